"""Looks at a table and its log: the files, the seconds of queries in each, and the cost of a rewrite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.core.arrays import Bools, Floats
from hedgerow.core.errors import HedgerowError, WorkloadError
from hedgerow.core.learning.seconds import RewriteCost, Speed
from hedgerow.core.workload.queries import Query
from hedgerow.pilot.backoff import reason_to_wait
from hedgerow.pilot.choose import reason_to_skip, worth_moving
from hedgerow.pilot.cost import corrected_cost
from hedgerow.pilot.decision import Decision, Figures
from hedgerow.pilot.file_seconds import mean_seconds, seconds_as_it_is
from hedgerow.pilot.files_to_move import Files, files_of, new_bytes, seconds_in
from hedgerow.pilot.history import History
from hedgerow.pilot.joined_tables import names_of_joined, opened_with_joined, why_not_judged
from hedgerow.pilot.others_rewrites import rewrites_of_others
from hedgerow.pilot.recent_queries import RecentLog
from hedgerow.pilot.settings import AutopilotSettings
from hedgerow.pilot.small_files import has_new_small_files
from hedgerow.pipeline.block_sizes import usual_speed
from hedgerow.pipeline.calibrated_cost import (
    ASSUMED_SPREAD,
    TIMED_SPREAD,
    assumed_cost,
    calibrated_cost,
    count_items,
)
from hedgerow.pipeline.inputs import MOST_QUERIES
from hedgerow.pipeline.learn_options import LearnOptions
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.learner_names import NamedLearner
from hedgerow.pipeline.logged_tables import joined_logs
from hedgerow.pipeline.open import open_table
from hedgerow.pipeline.present_layout import PresentLayout
from hedgerow.pipeline.score import score_source
from hedgerow.spark.compute.joins import NO_JOINS, Joins
from hedgerow.spark.start.progress import step
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.source import Source, own_name
from hedgerow.sql.workload import Workload
from hedgerow.tables.managed import ManagedTable
from hedgerow.tables.query_log import QueryLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Request:
    """The arguments of a call of `autopilot`, which explains them."""

    learner: NamedLearner
    options: LearnOptions
    settings: AutopilotSettings


@dataclass(frozen=True)
class Look:
    """A look at a table, with a candidate, which rewrites some of the files.

    `file_seconds`: the mean seconds that a query spends in each file. `speed`: the usual one of such a place,
    scaled down to what the log says. Nothing is timed: the same files, log and past decisions give the same look.
    `expected_queries`: until the workload changes. `cost_spread`: a rewrite may take so many times as long, or as
    short. `reason_to_wait`: why no layout is looked for; None if one is. `chosen`: the files of the candidate.
    `replaced_by`: the commands of others that replaced a layout.
    `learned`: a layout for them; None: the table's newest. `share_left`: of the time that queries spend in these
    files now, the share that would be left. `joins`: the rows of other tables on which `queries` have conditions.
    `is_join`: the candidate joins small files.
    """

    request: Request
    history: History
    managed: ManagedTable | None
    source: Source
    queries: Sequence[Query]
    workload: Workload
    files: Files
    file_seconds: Floats
    speed: Speed
    expected_queries: float
    cost: RewriteCost
    cost_spread: float
    reason_to_wait: str | None
    chosen: Bools
    replaced_by: Sequence[str] = ()
    learned: Learned | None = None
    share_left: float = 0.0
    joins: Joins = NO_JOINS
    is_join: bool = False

    @property
    def items(self) -> int:
        """The number of conditions and expressions that the new index would describe."""
        if self.learned is not None:
            return count_items(self.learned)
        return 0 if self.managed is None else len(self.managed.newest.entry.statistics)

    @property
    def seconds_left(self) -> float:
        """The mean seconds that a query would spend in the candidate's files."""
        return self.share_left * float(self.file_seconds[self.chosen].sum())

    def present_layout(self, chosen: Bools) -> PresentLayout | None:
        """Return the newest layout if all chosen files have it."""
        if self.managed is None or not self.files.newest[chosen].all():
            return None
        sort_by = self.managed.newest.entry.writing.sort_by
        return PresentLayout(self.managed.layout, sort_by[0] if sort_by else None)

    def with_seconds_at_most(self, seconds: float, chosen: Bools) -> Look:
        """Return the look with at most so many mean seconds of a query in the chosen files."""
        factor = min(1.0, seconds / max(1e-9, float(self.file_seconds[chosen].sum())))
        return replace(self, file_seconds=np.where(chosen, factor, 1.0) * self.file_seconds)

    def worth_moving(self, share_left: float = 0.0, max_rewrites: float | None = None) -> Bools:
        """Return which files pay for their own rewriting, if it leaves this share of the time in them."""
        settings, files = self.request.settings, self.files
        movable = files.times + 1 <= (settings.rewrites if max_rewrites is None else max_rewrites)
        rate = self.cost.rate(0)
        return worth_moving(self.file_seconds, files.sizes, movable, self.expected_queries, rate, settings, share_left)

    def figures(self, chosen: Bools, items: int, left: float, described: float | None = None) -> Figures:
        """Return the figures to decide by, if the chosen files are rewritten.

        Args:
            left: the mean seconds that a query then spends in these files.
            described: those of a query on the indexed files, if their index described all that queries ask.
        """
        files, size, history = self.files, self.source.size, self.history
        copies = 1 if self.learned is None else len(self.learned.copies)
        spent, whole = float(self.file_seconds[chosen].sum()), bool(chosen.all())
        now = self.speed.query + float(self.file_seconds.sum())
        then = self.speed.query + float(self.file_seconds[~chosen].sum()) + left
        least_gain = self.request.settings.least_gain
        if self.managed is None:
            described = None
        elif described is not None:
            new = float(files.sizes[files.is_new].sum() / files.sizes.sum())
            described += new * (seconds_as_it_is(self.source, self.queries, self.speed) - described)
            described = described if now - described > least_gain * now else now
        return Figures(
            size,
            size if whole else float(files.sizes[chosen].sum()),
            self.expected_queries,
            now,
            then if spent - left > least_gain * (now if whole else spent) else now,
            copies * self.cost.rate(items),
            self._part(chosen),
            described,
            history.bytes_rewritten,
            history.days_since_whole,
            copies * self.cost.fixed,
            self.request.settings.price,
            self.cost_spread,
        )

    def _part(self, chosen: Bools) -> str:
        """Return the action that rewrites only these files."""
        if self.is_join:
            return "small files"
        return "new files" if self.managed is not None and self.files.is_new[chosen].all() else "worst files"

    def candidate_figures(self) -> Figures:
        """Return the figures of the candidate."""
        return self.figures(self.chosen, self.items, self.seconds_left)

    def described_seconds(self) -> float | None:
        """Return the mean seconds of a query if the index of the present layout described what queries ask."""
        if self.managed is None:
            return None
        queries, joins = self.queries, NO_JOINS
        if self.joins.joined:
            queries, joins = self.managed.bound(self.workload, lost=()).queries, self.managed.joins
        try:
            score = score_source(self.source, queries, self.managed.layout, None, 1, False, joins)
            return mean_seconds(score, self.workload, self.source, self.speed)
        except HedgerowError:  # joined rows are not at hand any more
            return None


def look_at(spark: SparkSession, table: str, log: QueryLog, request: Request, history: History) -> Look | Decision:
    """Return a look at the table; or the decision to do nothing, if there is no need to look further."""
    settings, last = request.settings, history.last_search
    try:
        recent = RecentLog.read(log, settings.half_life, None if last is None else last.at)
    except WorkloadError as error:
        return Decision("nothing", (str(error),))
    share = 1.0 if settings.horizon is None else settings.horizon / recent.span.days
    wait = reason_to_wait(history, recent.span, recent.late, recent.news, share * recent.span.queries, settings)
    managed = _open_managed(spark, table)
    name = own_name(log.root, is_path=True) if managed is None else managed.name
    others = joined_logs(log, recent.queries, {log.root: name, **names_of_joined(managed)})
    wait = wait or why_not_judged(managed, others)
    replaced_by = rewrites_of_others(managed)
    if len(replaced_by) >= settings.stand_back:
        return Decision("nothing", (f"it stands back, because others replace its layouts: {', '.join(replaced_by)}",))
    has_work = new_bytes(managed) >= max(1.0, settings.least_new)
    if wait is not None and not has_work and not has_new_small_files(managed, history, settings):
        return Decision("nothing", (wait, *name_replacements(replaced_by)))
    if others:
        recent = RecentLog.read(log, settings.half_life, None if last is None else last.at, others)
    try:
        workload = recent.workload(name, MOST_QUERIES)
    except WorkloadError as error:
        return Decision("nothing", (str(error),))
    with step(spark, "looking at the table"):
        source, queries, joins = opened_with_joined(spark, table, name, workload, others)
    if (too_small := reason_to_skip(source.size, settings)) is not None:
        return Decision("nothing", (too_small,))
    with step(spark, "looking at the layout"):
        moved, moved_in_all = history.times_moved(settings.cooldown), history.times_in_all
        files = files_of(source, managed, queries, workload, moved, moved_in_all)
    speed = usual_speed(source)
    seconds = seconds_in(files, managed, queries, workload, speed)
    # Queries cannot save more time than they take by the log.
    logged = np.inf if recent.mean_seconds is None else recent.mean_seconds
    factor = min(1.0, logged / max(1e-9, speed.query + float(seconds.sum())))
    speed = speed.times(factor)
    cost, spread = _rewrite_cost(log, source, history, speed)
    return Look(
        request,
        history,
        managed,
        source,
        queries,
        workload,
        files,
        factor * seconds,
        speed,
        share * sum(query.weight for query in workload),
        cost,
        spread,
        wait,
        files.all,
        replaced_by,
        joins=joins,
    )


def name_replacements(replaced_by: Sequence[str]) -> list[str]:
    """Return a sentence for each command of others that replaced a layout."""
    return [f"{command} has replaced its layout" for command in replaced_by]


def nothing(begun: float, *reasons: str, figures: Figures | None = None) -> Decision:
    """Return the decision to do nothing, after a search that began at a time of the performance counter."""
    return Decision("nothing", reasons, figures, search_seconds=round(perf_counter() - begun, 1))


def _open_managed(spark: SparkSession, table: str) -> ManagedTable | None:
    """Return the table if Hedgerow manages it."""
    try:
        return open_table(spark, table)
    except HedgerowError:
        return None


def _rewrite_cost(log: QueryLog, source: Source, history: History, speed: Speed) -> tuple[RewriteCost, float]:
    """Return the cost of a rewrite, from timed ones, or else assumed.

    The second value says how many times as long, or as short, it may take."""
    timed = corrected_cost(calibrated_cost(Folder(source.frame.sparkSession, log.root)), history.rewrites)
    return (assumed_cost(speed.byte), ASSUMED_SPREAD) if timed is None else (timed, TIMED_SPREAD)
