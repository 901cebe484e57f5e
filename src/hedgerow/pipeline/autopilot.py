"""autopilot: lays a table out anew if its log of queries says that this pays, and notes why or why not."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import takewhile
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Bools, Floats
from hedgerow.core.errors import HedgerowError, HedgerowWarning, WorkloadError
from hedgerow.core.learning.rewrite_choice import Choice, Facts, Limits, choose, worth_moving
from hedgerow.core.learning.rewrite_cost import RewriteCost, Run, cost_of
from hedgerow.core.learning.seconds import Speed
from hedgerow.core.workload.queries import Query
from hedgerow.pipeline.apply import apply
from hedgerow.pipeline.calibrate import calibrated, items_in
from hedgerow.pipeline.decisions import Decision, decisions, note
from hedgerow.pipeline.files_to_move import Files, files_of, mean_seconds, new_bytes, seconds_in
from hedgerow.pipeline.inputs import MOST_QUERIES, opened_with_queries
from hedgerow.pipeline.learn import learned_layout
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.log import Span, span_of, timed_workload_of
from hedgerow.pipeline.one_at_a_time import alone, days_since, trial_folder, utc_now
from hedgerow.pipeline.open import open_table
from hedgerow.pipeline.score import scored
from hedgerow.pipeline.table_problem import How
from hedgerow.spark.compute.measure_speed import measured_speed, seconds_as_it_is, seconds_to_rewrite
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import in_own_session
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.source import Source
from hedgerow.sql.workload import Workload
from hedgerow.tables.managed import ManagedTable
from hedgerow.tables.query_log import QueryLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOKS_PAID = 10.0  # to look for a layout is worth while once queries took so many times as long,
_LOOKS_IN_VAIN = 10.0  # or up to so many times that: each look that found nothing that pays doubles it;
_LOOKS_LOST = 3.0  # or so many times as long more than the last look expected
_HOW = {"exact": False, "effort": "quick"}  # as little is left to read as after longer learning
_FAR_FEWER = 0.5  # of the bytes
_NO_SECONDS = "the queries' seconds cannot be measured on this table"
_LEAST_SHARE = 0.05  # of a query's time: a smaller gain than this is within the error of the estimates


@in_own_session
def autopilot(
    spark: SparkSession,
    table: str,
    *,
    to: str | None = None,
    learner: str = "qdtree",
    horizon: float | None = None,
    half_life: float = 7.0,
    period: float = 7.0,
    price: float | None = None,
    limits: Limits | None = None,
    dry_run: bool = False,
    shadow: bool = False,
    **how: Any,
) -> Decision:
    """Look at the table's log of queries, and rewrite the table if that saves more than it costs.

    Args:
        to: for a Parquet table, the place of the new generation; a Delta table is rewritten in place.
        horizon: days that the workload will last. By default as many queries are expected as the log has, of which
            older ones count less.
        half_life: days after which a logged query counts half; a seventh of that is taken for a day where it matters
            whether queries are still asked.
        period: days in which `limits.rewrites` bounds how often a byte is rewritten.
        price: what an hour of the cluster costs; then gain and cost are told in money too.
        limits: see `Limits`; what is not even considered.
        dry_run: decide, and neither write nor note anything. `shadow`: decide and note it, but rewrite nothing.
        how: for `learn`, such as block_bytes="128MB".
    """
    log = QueryLog.of(spark, table)
    folder, limits = Folder(spark, log.root), limits or Limits()
    with alone(folder) as holder:
        if holder is not None:
            return Decision(utc_now(), table, "nothing", (f"another autopilot works on it: {holder}",), {})
        before = [d for d in decisions(spark, table) if days_since(d.at) >= 0]  # a clock may have been wrong
        pilot = _Pilot(spark, table, log, learner, dict(how), price)
        decision, found = pilot.decide(horizon, half_life, period, limits, before)
        if found is not None and decision.action != "nothing" and not (dry_run or shadow):
            try:
                decision = pilot.carry_out(decision, found, to)
            except HedgerowError as error:
                note(folder, replace(decision, reasons=(*decision.reasons, f"it failed: {error}")))
                raise
        if not dry_run:
            note(folder, decision)
        return decision


@dataclass(frozen=True)
class _Present:
    """A table as it is, and its queries. `seconds`: of each file, what a query spends in it. `expected`: so many
    queries; `rewritten`: bytes of all rewrites in the period; `days_since_whole`: since the last of everything.
    `measured`: the speed, before it was scaled to what the log says. `too_soon`: why no other layout is looked for."""

    managed: ManagedTable | None
    source: Source
    queries: Sequence[Query]
    workload: Workload
    speed: Speed
    files: Files
    seconds: Floats
    expected: float
    model: RewriteCost
    rewritten: float
    days_since_whole: float | None
    price: float | None
    measured: Speed
    too_soon: str | None

    def worth_moving(self, limits: Limits, left: float = 0.0) -> Bools:
        """The files that pay for their own rewriting, if queries then spend the share `left` of their time in them."""
        files, rested = self.files, self.files.times + 1 <= limits.rewrites
        return worth_moving(self.seconds, files.sizes, rested, self.expected, self.model.rate(0), limits, left)

    def facts(self, part: Bools, items: int, left: float, described: float | None = None) -> Facts:
        """What a decision needs. `part`: the files to lay out anew, in which a query then spends `left` seconds.
        `described`: what it would take in the present layout if its index told all that queries ask."""
        files, size, spent = self.files, self.source.size, float(self.seconds[part].sum())
        now, whole = self.speed.query + float(self.seconds.sum()), bool(part.all())
        then = self.speed.query + float(self.seconds[~part].sum()) + left
        if described is not None:
            new = float(files.sizes[files.is_new].sum() / files.sizes.sum())
            described += new * (seconds_as_it_is(self.source, self.queries, self.speed) - described)
        return Facts(
            size,
            size if whole else float(files.sizes[part].sum()),
            self.expected,
            now,
            then if spent - left > _LEAST_SHARE * (now if whole else spent) else now,
            self.model.rate(items),
            self.managed is not None and bool(files.is_new[part].all()),
            None if self.managed is None else described,
            self.rewritten,
            self.days_since_whole,
            self.model.fixed,
            self.price,
        )

    def described(self, managed: ManagedTable) -> float | None:
        """The seconds of a query if the index of the present layout described what the queries ask."""
        try:
            found = scored(self.source, self.queries, managed.layout, None, 1, False)
            return mean_seconds(found, self.workload, self.source, self.speed)
        except HedgerowError:  # the layout looks at joined rows, which are not at hand
            return None


@dataclass(frozen=True)
class _Found:
    """What a look at a table found: the table as it is, some of its files, and a layout for these, if one was learned;
    else they get the table's newest layout.

    `share`: of the time that queries spend in these files now, what they would still spend there."""

    present: _Present
    part: Bools
    learned: Learned | None
    share: float

    @property
    def items(self) -> int:
        """How many conditions and expressions an index would describe."""
        if self.learned is not None:
            return items_in(self.learned)
        managed = self.present.managed
        return 0 if managed is None else len(managed.newest.entry.statistics)

    @property
    def left(self) -> float:
        """The seconds that a query would spend in these files."""
        return self.share * float(self.present.seconds[self.part].sum())

    def worth(self, limits: Limits) -> tuple[bool, float]:
        """Whether it would be done, and the seconds that it saves beside what it costs."""
        choice = choose(self.present.facts(self.part, self.items, self.left), limits)
        return choice.action != "nothing", choice.gain - choice.cost


@dataclass(frozen=True)
class _Pilot:
    spark: SparkSession
    table: str
    log: QueryLog
    learner: str
    how: dict[str, Any]
    price: float | None = None

    def decide(
        self, horizon: float | None, half_life: float, period: float, limits: Limits, before: list[Decision]
    ) -> tuple[Decision, _Found | None]:
        begun, present = perf_counter(), self._look(horizon, half_life, period, limits, before)
        if isinstance(present, Decision):
            return present, None
        if present.too_soon is not None:
            return self._as_before(present, present.too_soon, limits)
        part, anyhow = present.worth_moving(limits), present.worth_moving(replace(limits, rewrites=np.inf))
        waits = ["what a rewrite would pay for was rewritten lately"] if anyhow.any() and not part.any() else []
        if not anyhow.any():  # then the reasons tell of the whole table, which pays as little
            part = present.files.all
        best = present.facts(part, 0, 0.0, present.speed.query)
        choice = choose(best, limits)
        if choice.action == "nothing":
            little = choice.gain < limits.margin * choice.cost and not waits
            why = "too little to gain, even if queries found nothing to read: " if little else ""
            return self._nothing(*(waits or [why + "; ".join(choice.reasons)]), begun=begun, facts=best), None
        found = self._found(present, part if part.any() else present.files.all)
        if found is not None and part.any():
            found = self._fewer(found, limits)
        if found is None:
            return self._nothing(_NO_SECONDS, begun=begun), None
        part = found.part if part.any() else part
        real = present.facts(part, found.items, found.left)
        # How good statistics are takes a scan to tell, so that is looked at only if they might pay.
        hoped = replace(real, described=real.then if part.any() else present.speed.query + found.left)
        if present.managed is not None and choose(hoped, limits).action == "statistics":
            real = present.facts(part, found.items, found.left, present.described(present.managed))
        choice = choose(real, limits)
        return self._decided(choice, (*choice.reasons, *waits), real, present, perf_counter() - begun), found

    def _as_before(self, present: _Present, too_soon: str, limits: Limits) -> tuple[Decision, _Found | None]:
        """New files get the newest layout, if that still serves the queries; so nothing is measured or learned."""
        files, spent = present.files, present.seconds
        share = files.left_by_newest()
        part = present.worth_moving(limits, share) & files.is_new
        opening = present.speed.file * int(files.newest.sum())  # of as many files as the newest layout has
        share *= 1 + opening / max(1e-9, float(spent[part].sum()))
        found = _Found(present, part, None, share)
        real = present.facts(part, found.items, found.left)
        choice = choose(real, limits)
        return self._decided(choice, (too_soon, *choice.reasons), real, present, 0.0), found

    def _decided(
        self, choice: Choice, reasons: tuple[str, ...], facts: Facts, present: _Present, looked: float
    ) -> Decision:
        fast, speed = present.measured, None
        if present.too_soon is None:  # else it was measured long ago
            speed = {"query": fast.query, "file": fast.file, "byte": fast.byte, "unskipped": fast.unskipped}
        gain, cost, looked = (round(seconds, 1) for seconds in (choice.gain, choice.cost, looked))
        return Decision(
            utc_now(), self.table, choice.action, reasons, asdict(facts), gain, cost, looked=looked, speed=speed
        )

    def _look(
        self, horizon: float | None, half_life: float, period: float, limits: Limits, before: list[Decision]
    ) -> _Present | Decision:
        """The table as it is; or the decision to do nothing, where there is no need to look further."""
        managed, span = self._managed(), span_of(self.log, half_life=half_life)
        share = 1.0 if horizon is None else horizon / span.days
        too_soon = self._too_little(span, share, before, limits.margin)
        noted = next((d.measured for d in before if d.measured and days_since(d.at) <= period), None)
        if too_soon is not None and (noted is None or new_bytes(managed) < max(1.0, limits.least_new)):
            return self._nothing(too_soon)
        name = None if managed is None else managed.name
        try:
            workload, took = timed_workload_of(self.log, name or "t", half_life=half_life)
        except WorkloadError as error:
            return self._nothing(str(error))
        expected, workload = sum(query.weight for query in workload), workload.sampled(MOST_QUERIES)
        with step(self.spark, "looking at the table"):
            source, queries, _ = opened_with_queries(self.spark, self.table, workload, name)
        if source.size < limits.least_bytes:
            return self._nothing(*choose(Facts(source.size, 0, 0, 0, 0, 0), limits).reasons)
        begun = perf_counter()
        with step(self.spark, "looking at the layout"):
            files = files_of(source, managed, queries, workload, _moved_lately(before, period, limits.cooldown))
        with step(self.spark, "measuring"):
            speed = noted if too_soon is not None else measured_speed(source, queries, files.most_read)
            model = self._rewriting(source, before, period)
        if speed is None:
            return self._nothing(_NO_SECONDS, begun=begun)
        if model is None:
            return self._nothing("how long a rewrite takes cannot be measured on this table", begun=begun)
        lately = [d for d in before if d.done and days_since(d.at) <= period]
        seconds = seconds_in(files, managed, queries, workload, speed)
        # No more can be saved than queries take, by the log.
        factor = min(1.0, np.inf if took is None else took / max(1e-9, speed.query + float(seconds.sum())))
        return _Present(
            managed,
            source,
            queries,
            workload,
            speed.times(factor),
            files,
            factor * seconds,
            expected * share,
            model,
            sum(float((d.after or {}).get("bytes", 0.0)) for d in lately),
            min((days_since(d.at) for d in before if d.done and d.action == "whole table"), default=None),
            self.price,
            speed,
            too_soon,
        )

    def _found(self, present: _Present, part: Bools) -> _Found | None:
        """A layout for the rows of some files; None if its seconds cannot be told."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HedgerowWarning)  # that little is to be gained is for the decision to say
            how = How.of(self.learner, {**_HOW, **self.how})
            learned = learned_layout(present.files.part(part), present.queries, how, speed=present.speed)
        if learned.estimate is None:
            return None
        left, now = learned.estimate.then - present.speed.query, float(present.seconds[part].sum())
        return _Found(present, part, learned, max(0.0, left) / max(1e-9, now))

    def _fewer(self, found: _Found, limits: Limits) -> _Found:
        """If that leaves much to read, fewer files pay for their own rewriting: the better of all and these.

        For far fewer a layout is learned anew: of this one their blocks would be small."""
        part, sizes = found.present.worth_moving(limits, found.share), found.present.files.sizes
        if not part.any() or (part == found.part).all():
            return found
        fewer: _Found | None = replace(found, part=part)
        if sizes[part].sum() < _FAR_FEWER * sizes[found.part].sum():
            fewer = self._found(found.present, part)
        return max((found, fewer), key=lambda f: f.worth(limits)) if fewer is not None else found

    def _rewriting(self, source: Source, before: list[Decision], period: float) -> RewriteCost | None:
        """What a rewrite takes, by those that were timed, or else by a small one; None if none can be."""
        model = cost_of([*calibrated(self.spark, self.log), *_real_runs(before)])
        model = model or next((d.rewriting for d in before if d.rewriting and days_since(d.at) <= period), None)
        if model is None and (rate := seconds_to_rewrite(source, f"{self.log.root}/{trial_folder()}")) is not None:
            model = RewriteCost(0.0, rate)
        return model

    def _too_little(self, span: Span, share: float, before: list[Decision], margin: float) -> str | None:
        """Why there is no need to learn a layout now, in the seconds that queries take; learning takes seconds too.

        `share`: how many queries are expected, as a multiple of the log's. Where the log does not tell what they took,
        the last look's estimate counts."""
        looks = [d for d in before if d.looked]
        last = looks[0] if looks else None
        if last is None or (last.action != "nothing" and not last.done) or last.would_pay(span.queries * share, margin):
            return None
        lately, promised = span_of(self.log, last.at), last.promised
        mean = max((s for s in (span.mean, lately.mean) if s is not None), default=promised or 0.0)
        expected, since = mean * span.queries * share, (lately.mean or mean) * lately.queries
        if expected < _LOOKS_PAID * last.looked:
            return f"the queries take {expected:,.0f} s in all, and to look for a layout took {last.looked:,.0f} s"
        lost = 0.0 if promised is None else since - promised * lately.queries
        in_vain = sum(look.is_in_vain(margin) for look in takewhile(lambda look: look.action == "nothing", looks))
        paid = _LOOKS_PAID * min(2.0**in_vain, _LOOKS_IN_VAIN) * last.looked
        if since < paid and lost < _LOOKS_LOST * last.looked:
            return f"since the last look queries took {since:,.0f} s, and the look itself {last.looked:,.0f} s"
        return None

    def _managed(self) -> ManagedTable | None:
        try:
            return open_table(self.spark, self.table)
        except HedgerowError:
            return None

    def carry_out(self, decision: Decision, found: _Found, to: str | None) -> Decision:
        files, begun = found.present.files, perf_counter()
        after: dict[str, Any]
        if decision.action == "statistics":
            written = open_table(self.spark, self.table).relearn(found.present.workload)
            after = {"bytes": 0.0, "items": found.items}
        elif not self.log.is_delta and to is None:
            reason = "a Parquet table is not rewritten in place: say with to= where its new generation goes"
            return replace(decision, reasons=(*decision.reasons, reason))
        else:
            names = files.names(found.part)
            managed, learned = found.present.managed, found.learned
            if learned is not None:
                written = apply(self.spark, self.table, learned, to, where=names, table=learned.table)
            else:
                assert managed is not None  # of no other table is a part laid out without learning
                written = managed.lay_out(names or ())
            times = 1 + int(files.times[found.part].max())
            after = {"bytes": decision.facts["part"], "items": found.items, "times": times}
            after["part"] = written.newest.id
        seconds = round(perf_counter() - begun, 1)
        return replace(decision, done=True, after={"seconds": seconds, "path": written.path, **after})

    def _nothing(self, *reasons: str, begun: float | None = None, facts: Facts | None = None) -> Decision:
        looked = 0.0 if begun is None else round(perf_counter() - begun, 1)
        return Decision(
            utc_now(), self.table, "nothing", reasons, {} if facts is None else asdict(facts), looked=looked
        )


def _moved_lately(before: Sequence[Decision], period: float, cooldown: float) -> dict[str, float]:
    """How often the rows of a part were moved in the period; infinitely often, if that was a moment ago."""
    moved: dict[str, float] = {}
    for d in before:
        age = days_since(d.at)
        match d.after:
            case {"part": str() as part, "times": int() as times} if d.done and age <= period:
                moved[part] = times if age >= cooldown else np.inf
    return moved


def _real_runs(before: list[Decision]) -> list[Run]:
    """The rewrites that the autopilot carried out, the oldest first; the next one will take about as long."""
    done = [d.after for d in reversed(before) if d.done and d.after and d.after.get("bytes")]
    return [Run(float(a["bytes"]), int(a.get("items", 0)), float(a["seconds"]), True) for a in done]
