"""autopilot: rewrites a table if its log of queries says that this pays, and notes why or why not."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, get_args

from hedgerow.core.errors import HedgerowError
from hedgerow.core.index.sums import is_sum
from hedgerow.core.predicates.nodes import Column, columns_in
from hedgerow.pilot.clock import days_since
from hedgerow.pilot.decision import Decision, Outcome
from hedgerow.pilot.decision_notes import decisions, note
from hedgerow.pilot.follow import ended_by_signals, follow_changes
from hedgerow.pilot.history import History
from hedgerow.pilot.lock import table_lock
from hedgerow.pilot.look import Look, Request, look_at, name_replacements
from hedgerow.pilot.search import decide, decide_without_search, or_small_files
from hedgerow.pilot.settings import AutopilotSettings
from hedgerow.pipeline.apply import apply
from hedgerow.pipeline.learn_options import QUICK, LearnOptions
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.learner_names import DEFAULT, NamedLearner
from hedgerow.pipeline.open import open_table
from hedgerow.pipeline.write_options import WriteOptions
from hedgerow.spark.start.session import in_own_session, needs_jvm
from hedgerow.spark.storage.delta_log import delta_log
from hedgerow.spark.storage.folder import Folder
from hedgerow.tables.managed import ManagedTable
from hedgerow.tables.query_log import QueryLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Mode = Literal["run", "dry_run", "shadow"]


@in_own_session
def autopilot(
    spark: SparkSession,
    table: str,
    *,
    to: str | None = None,
    mode: Mode = "run",
    settings: AutopilotSettings = AutopilotSettings(),
    learner: str = DEFAULT,
    options: LearnOptions = QUICK,
    follow: bool = False,
    tell: Callable[[Decision], object] | None = None,
    **params: Any,
) -> Decision:
    """Look at the table's log of queries, and rewrite the table if that saves more than it costs.

    Args:
        to: for a Parquet table, the place of the new generation; a Delta table is rewritten in place.
        mode: "dry_run" decides, and neither rewrites nor notes anything; the table is not locked, so it may be
            read-only. "shadow" decides and notes it, but rewrites nothing.
        settings: see `AutopilotSettings`.
        learner, options, params: for `learn`. By default the options are `exact=False, effort="quick"`, for longer
            learning leaves no less to read.
        follow: look again whenever a Delta table or its log has a new version, until Ctrl-C or SIGTERM; then return the
            last decision. The settings `seconds_per_hour` and `pause` limit this.
        tell: called with each decision of a table that is followed.
    """
    if mode not in get_args(Mode):
        raise HedgerowError(f"mode has to be {', '.join(get_args(Mode))}, not {mode!r}")
    needs_jvm(spark, "run the autopilot")
    log = QueryLog.of(spark, table)
    if follow:
        if not log.is_delta:
            raise HedgerowError("follow= is for Delta tables, because a Parquet table is not rewritten in place")
        log.last()  # a table without a log is refused at once
        look = partial(
            autopilot, spark, table, mode=mode, settings=settings, learner=learner, options=options, **params
        )
        return _follow(look, partial(_versions, spark, table, log), settings, tell)
    folder = Folder(spark, log.root)
    request = Request(NamedLearner(learner, params), options, settings)
    with nullcontext() if mode == "dry_run" else table_lock(folder) as holder:
        if holder is not None:
            return Decision("nothing", (f"another autopilot works on it: {holder}",))
        past = [d for d in decisions(spark, table) if days_since(d.at) >= 0]  # a clock may have been wrong
        decision, candidate = _decide(spark, table, log, request, History(past, settings.period))
        if mode == "run" and candidate is not None and decision.action != "nothing":
            try:
                decision = _carry_out(spark, table, decision, candidate, log.is_delta, to)
            except HedgerowError as error:
                note(folder, replace(decision, reasons=(*decision.reasons, f"it failed: {error}")))
                raise
        if mode != "dry_run":
            note(folder, decision)
        return decision


def _follow(
    look: Callable[[], Decision],
    mark: Callable[[], Any],
    settings: AutopilotSettings,
    tell: Callable[[Decision], object] | None,
) -> Decision:
    """Look at each change until a signal to stop; return the last decision."""
    decision = Decision("nothing", ("it was stopped before the first look ended",))
    with ended_by_signals():
        for decision in follow_changes(look, mark, settings.seconds_per_hour, settings.pause):
            if tell is not None:
                tell(decision)
    return decision


def _versions(spark: SparkSession, table: str, log: QueryLog) -> tuple[str, str | None]:
    """Return marks of the newest versions of a Delta table and of its log, None without a log."""
    logged = delta_log(spark, log.folder).snapshot().mark if log.exists() else None
    return delta_log(spark, table).snapshot().mark, logged


def _decide(
    spark: SparkSession, table: str, log: QueryLog, request: Request, history: History
) -> tuple[Decision, Look | None]:
    """Return the decision, and the look with the candidate that it is about; None if there is no candidate."""
    begun, look = perf_counter(), look_at(spark, table, log, request, history)
    if isinstance(look, Decision):
        return look, None
    wait = look.reason_to_wait
    decision, candidate = decide(look, begun) if wait is None else decide_without_search(look, wait)
    decision, candidate = or_small_files(look, decision, candidate)
    return replace(decision, reasons=(*decision.reasons, *name_replacements(look.replaced_by))), candidate


def _carry_out(
    spark: SparkSession, table: str, decision: Decision, candidate: Look, is_delta: bool, to: str | None
) -> Decision:
    """Do what was decided; return the decision with its outcome."""
    begun, items = perf_counter(), candidate.items
    if decision.action == "statistics":
        managed = open_table(spark, table)
        managed = managed.repair() if managed.stale_joins() else managed
        written = managed.relearn(candidate.workload)
        return replace(decision, outcome=Outcome(round(perf_counter() - begun, 1), written.path, 0.0, items))
    if not is_delta and to is None:
        reason = "a Parquet table is not rewritten in place: say with to= where its new generation goes"
        return replace(decision, reasons=(*decision.reasons, reason))
    names, learned = candidate.files.names(candidate.chosen), candidate.learned
    if learned is not None:
        others = {name: source.origin for name, source in candidate.joins.others.items()}
        kept = with_kept_items(learned, candidate.managed)
        options = replace(kept_options(candidate.managed), other_tables=others)
        written = apply(spark, table, kept, to, options, where=names)
    else:
        assert candidate.managed is not None  # no other table has files without an index
        written = candidate.managed.lay_out(names or ())
    assert decision.figures is not None  # the decision is about the candidate
    copies = 1 if learned is None else len(learned.copies)
    times = candidate.files.times_in_all if candidate.is_join else candidate.files.times
    size, most = copies * decision.figures.candidate_bytes, 1 + int(times[candidate.chosen].max())
    seconds = round(perf_counter() - begun, 1)
    return replace(decision, outcome=Outcome(seconds, written.path, size, items, most, written.newest.id))


def kept_options(managed: ManagedTable | None) -> WriteOptions:
    """Return the options for writing that the table has; the defaults if it is not managed yet."""
    if managed is None:
        return WriteOptions()
    writing = managed.newest.entry.writing
    return WriteOptions(
        max_block_rows=writing.max_block_rows,
        sort_by=None if writing.by_key else writing.sort_by,
        parquet=writing.options,
        lookup_share=writing.lookup_share,
        file_bytes=writing.file_bytes,
    )


def with_kept_items(learned: Learned, managed: ManagedTable | None) -> Learned:
    """Return the layout with the sums and columns that the table's index has: a log knows no sums."""
    items = () if managed is None else managed.newest.entry.statistics
    summed = (column for item in items if is_sum(item) for column in columns_in(item))
    columns = (item for item in items if isinstance(item, Column))
    return replace(
        learned,
        summed=tuple(dict.fromkeys((*learned.summed, *summed))),
        described=tuple(dict.fromkeys((*learned.described, *columns))),
    )
