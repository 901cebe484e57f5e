"""Changes a Delta table in Delta's own transactions: rewrites its files, appends to it, rolls the last rewrite back.

    read -> write -> inspect the new files -> list the segment -> commit

Only the commit is visible to others. A run that is killed before it leaves files that no version has, for VACUUM.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from hedgerow.core.errors import HedgerowError, advise
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.without_columns import mentions
from hedgerow.core.layouts.base import Layout
from hedgerow.core.predicates.nodes import Column, Predicate, columns_of
from hedgerow.core.predicates.sql_text import quote_name, term_text
from hedgerow.core.pruning.block_stats import Stats
from hedgerow.spark.compute.assign_blocks import order_inside, settings_for
from hedgerow.spark.compute.checksum import Checksum, observed, same_rows
from hedgerow.spark.compute.collect_stats import collect_files, collect_files_and_rows
from hedgerow.spark.compute.evaluate import Item
from hedgerow.spark.compute.joins import NO_JOINS, Joins
from hedgerow.spark.optimizer.rule import settings
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import check_grammar, configured, first_line, spark_errors
from hedgerow.spark.storage.delta_log import Conflict, DeltaLog, Snapshot, delta_log, type_text
from hedgerow.spark.storage.delta_rewrite import Rewrite, begin_rewrite
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.source import open_source
from hedgerow.spark.write.blocks import block_of_file, exact_writing
from hedgerow.spark.write.partition_files import placed
from hedgerow.spark.write.writing import Writing
from hedgerow.tables.delta.segment_list import SegmentEntry, SegmentList
from hedgerow.tables.delta.segments import (
    Segment,
    operation,
    update_list,
    with_segment,
    without_segment,
    write_segment,
)
from hedgerow.tables.delta.snapshot_files import file_names, footers_and_terms, schema_at, spark_schema_at
from hedgerow.tables.known_files import KnownFiles
from hedgerow.tables.new_rows import check_names
from hedgerow.tables.stored_joins import StoredJoin, opened, schema_of_joins, stale, to_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_GENERATED = "delta.generationExpression"
_WRITER_OPTIONS = {"compression": "compression", "maxrecordsperfile": "maxRecordsPerFile"}


@dataclass(frozen=True)
class Plan:
    """The plan of a rewrite; `where`: the files, as a condition on partitions or as names; None: all files."""

    layout: Layout
    name: str
    predicates: Sequence[Predicate]
    items: Sequence[Item]
    provenance: Mapping[str, Any]
    how: Writing
    joins: Joins = NO_JOINS
    where: str | Sequence[str] | None = None


def rewrite(spark: SparkSession, target: str, plan: Plan, retries: int = 0) -> None:
    """Rewrites a Delta table in place, or some of its partitions or files.

    Raises Conflict if another transaction changed those files meanwhile, after `retries` further attempts. Then nothing
    is changed.
    """
    log = delta_log(spark, target)
    while True:
        try:
            _rewrite(log, plan)
            return
        except Conflict:
            if retries <= 0:
                raise
            retries -= 1


def _rewrite(log: DeltaLog, plan: Plan) -> None:
    snapshot = _prepared_snapshot(log, plan)
    old = _chosen_files(snapshot, plan.where)
    if not old:
        raise HedgerowError(f"{log.path} has no such file, so there is nothing to rewrite")
    transaction = begin_rewrite(snapshot)
    segment: SegmentEntry | None = None
    try:
        with (
            step(log.spark, "writing"),
            _exact_writing(snapshot),
            configured(log.spark, **settings_for(plan.layout)),
        ):
            frame = snapshot.with_row_ids(snapshot.frame(old, "Optimize"))
            with observed(frame, list(map(quote_name, snapshot.fields))) as (watched, checksums):
                written = transaction.write(_files_and_order(watched, plan, snapshot), options_of(plan.how))
        with step(log.spark, "collecting statistics and comparing all rows"):
            rows, items = written.frame(), _indexed_items(plan, snapshot)
            footers, known = footers_and_terms(snapshot, written.sizes, items)
            names = file_names(written.sizes)
            stats, came_out = collect_files_and_rows(rows, items, schema_at(snapshot), names, known, plan.joins)
            went_in = same_rows(checksums[0], came_out, snapshot.frame(old), rows)
        files = KnownFiles.of_footers(written.sizes, footers, stats.rows, list(map(block_of_file, written.sizes)))
        segment = added = write_segment(log, _entry(plan, snapshot, went_in), plan.layout, stats, files)
        done = {**operation("apply", None, added), **_workload_cost(plan.predicates, stats)}
        update_list(log, lambda m: with_segment(replace(m, name=m.name or plan.name), added, snapshot, done))
    except BaseException as error:
        _undo(log, transaction, segment)
        if isinstance(error, spark_errors()):
            raise HedgerowError(f"{log.path} could not be rewritten, and is as it was: {first_line(error)}") from error
        raise
    try:
        version = transaction.commit(written, old, {"hedgerow": added.id})
    except Conflict:
        _undo(log, transaction, segment)
        raise
    except spark_errors() as error:  # the commit may have succeeded, so no new file may be deleted
        raise HedgerowError(
            f"Delta failed while it committed the rewrite of {log.path}: {first_line(error)}; table.describe() shows "
            "whether the rewrite is in place"
        ) from error
    with _after_commit(f"{log.path} is rewritten, but its history does not tell the version"):
        update_list(log, lambda m: _with_version(m, added.id, version))


def _prepared_snapshot(log: DeltaLog, plan: Plan) -> Snapshot:
    """The snapshot to rewrite, after Delta was set to keep statistics of the queried columns."""
    options_of(plan.how)
    snapshot = log.snapshot()
    snapshot.refuse()
    schema = schema_at(snapshot)
    snapshot.cover(sorted({term_text(c) for p in plan.predicates for c in columns_of(p) if term_text(c) in schema}))
    return log.snapshot()


def _undo(log: DeltaLog, transaction: Rewrite, segment: SegmentEntry | None) -> None:
    """Delete what a rewrite wrote that was not committed. The files of its segment stay for a day: readers may hold
    the list that names it. A failure to delete is not reported: the error that ended the rewrite is."""
    with suppress(HedgerowError, *spark_errors()):
        transaction.give_up()
    if segment is not None:
        with suppress(HedgerowError, *spark_errors()):
            update_list(log, lambda m: without_segment(m, segment.id))


def _exact_writing(snapshot: Snapshot) -> AbstractContextManager[None]:
    physical = {logical: name for name, logical in snapshot.physical.items() if name != logical}
    return exact_writing(snapshot.log.spark, schema_at(snapshot), physical)


def _with_version(listed: SegmentList, segment_id: str, version: int) -> SegmentList:
    done = ({**o, "version": version} if o.get("segment") == segment_id else o for o in listed.operations)
    return replace(listed, operations=tuple(done))


def _chosen_files(snapshot: Snapshot, where: str | Sequence[str] | None) -> list[str]:
    if where is None:
        return list(snapshot.files.names)
    if isinstance(where, str):
        return snapshot.names_where(where)
    missing = [n for n in where if n not in snapshot.files.place]
    if missing:
        raise HedgerowError(f"{snapshot.log.path} has no file {missing[0]}")
    return list(dict.fromkeys(where))


def _files_and_order(frame: DataFrame, plan: Plan, snapshot: Snapshot) -> DataFrame:
    least = plan.provenance.get("block_rows") or _mean_rows(snapshot)
    rows = placed(frame, plan.layout, schema_at(snapshot), snapshot.partition_columns, int(least), plan.joins)
    return _sorted_rows(rows, snapshot.partition_columns, plan.layout, plan.how)


def _mean_rows(snapshot: Snapshot) -> int:
    return max(1, int(np.maximum(snapshot.files.rows, 0).sum()) // max(1, len(snapshot.files.names)))


def _sorted_rows(frame: DataFrame, partitions: Sequence[str], layout: Layout, how: Writing) -> DataFrame:
    """Sorts the rows of each file, by partition first: Delta's writer sorts by partition and loses another order."""
    order = order_inside(layout, how.sort_by, how.by_key)
    return frame.sortWithinPartitions(*map(quote_name, partitions), *order) if order else frame


def _entry(plan: Plan, snapshot: Snapshot, went_in: Checksum) -> SegmentEntry:
    """The entry of a segment that has no id yet."""
    items = _indexed_items(plan, snapshot)
    joined = to_store(plan.joins, (*items, *plan.layout.features))
    return SegmentEntry(
        id="",
        layout="",
        columns=snapshot.columns,
        schema=_stored_schema(snapshot, joined),
        settings=settings(snapshot.log.spark),
        writing=plan.how,
        statistics=tuple(items),
        joined=joined,
        hashed=tuple(snapshot.fields),
        checksum=went_in,
        origin=plan.provenance,
    )


def _stored_schema(snapshot: Snapshot, joined: Sequence[StoredJoin]) -> dict[str, str]:
    return {key: str(kind) for key, kind in {**schema_at(snapshot), **schema_of_joins(joined)}.items()}


def _indexed_items(plan: Plan, snapshot: Snapshot) -> list[Item]:
    """The items to index for each file: those of the plan, and the partition columns.

    A timestamp in a partition's name changes its meaning with the time zone, so such columns are not indexed.
    """
    partitions = [Column((name,)) for name in snapshot.partition_columns]
    zoned = {name.lower() for name in snapshot.partition_columns if type_text(snapshot.fields[name]) == "timestamp"}
    return [item for item in (*plan.items, *partitions) if not mentions(item, zoned)]


def _workload_cost(predicates: Sequence[Predicate], stats: Stats) -> dict[str, float]:
    """The shares of rows and blocks that the learned queries read of the written files."""
    index, total = BlockIndex(stats), max(1, int(stats.rows.sum()))
    opened = [index.to_open(p) for p in predicates]
    if not opened:
        return {}
    rows = float(np.mean([stats.rows[o].sum() / total for o in opened]))
    return {"rows_read": round(rows, 4), "blocks_read": round(float(np.mean([o.mean() for o in opened])), 4)}


def options_of(how: Writing) -> dict[str, str]:
    """The options for Delta's writer; HedgerowError for an option that it does not take."""
    given = {key.lower(): str(value) for key, value in how.options.items()}
    unknown = sorted(set(given) - set(_WRITER_OPTIONS))
    if unknown:
        raise HedgerowError(f"Delta's writer takes {' and '.join(_WRITER_OPTIONS.values())}, not {unknown[0]}")
    most = {"maxRecordsPerFile": str(how.max_block_rows)} if how.max_block_rows else {}
    return {**{_WRITER_OPTIONS[key]: value for key, value in given.items()}, **most}


# --- in the newest layout, and back ---


def lay_out(log: DeltaLog, segment: Segment, name: str, files: Sequence[str]) -> None:
    """Rewrites some files in the layout of a segment, and describes the new ones as that does."""
    entry = segment.entry
    joins = _joins_of(log, segment, log.snapshot().frame(list(files)))
    rewrite(
        log.spark,
        log.path,
        Plan(segment.layout, name, (), entry.statistics, entry.origin, entry.writing, joins, files),
    )


def append(log: DeltaLog, segment: Segment, frame: DataFrame) -> None:
    """Writes new rows through the newest layout, in an append of Delta's own, and indexes the new files.

    Without rows, nothing is changed."""
    check_grammar(log.spark)
    check_names(frame.columns)
    snapshot = log.snapshot()
    schema, partitions, mark = schema_at(snapshot), snapshot.partition_columns, f"hedgerow-{uuid4().hex}"
    try:
        rows, lacking = _with_lacking_columns(frame, snapshot)
        joins = _joins_of(log, segment, rows)
        with (
            log.committing(),
            _exact_writing(snapshot),
            configured(log.spark, **settings_for(segment.layout)),
        ):
            least = int(segment.entry.origin.get("block_rows") or _mean_rows(snapshot))
            rows = placed(rows, segment.layout, schema, partitions, least, joins)
            rows = _sorted_rows(rows, partitions, segment.layout, segment.entry.writing).drop(*lacking)
            options = {**options_of(segment.entry.writing), "userMetadata": mark, "optimizeWrite": "false"}
            rows.write.format("delta").mode("append").options(**options).save(log.path)
    except spark_errors() as error:
        raise HedgerowError(f"nothing could be appended to {log.path}: {first_line(error)}") from error
    row = log.history().where(f"userMetadata = '{mark}'").select("version").first()
    if row is None and frame.isEmpty():
        return  # Delta commits nothing then
    if row is None:
        raise HedgerowError(
            f"the append to {log.path} is not in its history, where another process may have taken its place: "
            "look whether the rows are there"
        )
    with _after_commit(f"the rows are in {log.path}, but not in its index, so that every query reads them"):
        _index_appended(log, segment, int(row[0]), joins)


def _index_appended(log: DeltaLog, segment: Segment, version: int, joins: Joins) -> None:
    """Describes the files that an append added in this version, as a segment of its own."""
    after, before = log.snapshot(version), log.snapshot(version - 1)
    new = {n: int(after.files.sizes[i]) for n, i in after.files.place.items() if n not in before.files.place}
    if not new:
        return
    items = segment.entry.statistics
    footers, known = footers_and_terms(after, new, items)
    stats = collect_files(after.frame(list(new)), items, schema_at(after), file_names(new), known, joins)
    joined = to_store(joins, (*items, *segment.layout.features))
    entry = replace(
        segment.entry,
        schema=_stored_schema(after, joined),
        settings=settings(log.spark),
        columns=after.columns,
        checksum=None,
        joined=joined,
    )
    files = KnownFiles.of_footers(new, footers, stats.rows, list(map(block_of_file, new)))
    added = write_segment(log, entry, None, stats, files)
    update_list(log, lambda m: with_segment(m, added, after, operation("append", version, added)))


@contextmanager
def _after_commit(done: str) -> Iterator[None]:
    """Warns about a failure after the commit: an error would say that nothing was done."""
    failures: tuple[type[Exception], ...] = (HedgerowError, *spark_errors())
    try:
        yield
    except failures as error:
        advise(f"{done}: {first_line(error)}")


def _with_lacking_columns(frame: DataFrame, snapshot: Snapshot) -> tuple[DataFrame, list[str]]:
    """Return the rows with the columns that they lack, for the layout to look at, and the names of these columns.

    Delta gives such columns their values when it writes: generated ones by their expressions, which are used here too.
    Other columns are NULL here, so an identity column or a default decides nothing about where a row goes."""
    from pyspark.sql import functions as f

    given = {name.lower() for name in frame.columns}
    lacking = {x.name: x.dataType for x in spark_schema_at(snapshot).fields if x.name.lower() not in given}
    expressions = {name: snapshot.fields[name]["metadata"].get(_GENERATED) for name in lacking}
    nulls = {name: f.lit(None).cast(kind) for name, kind in lacking.items() if expressions[name] is None}
    generated = {
        name: f.expr(expressions[name]).cast(kind) for name, kind in lacking.items() if expressions[name] is not None
    }
    return frame.withColumns(nulls).withColumns(generated), list(lacking)


def _joins_of(log: DeltaLog, segment: Segment, frame: DataFrame) -> Joins:
    """The joined rows that a layout speaks of; HedgerowError if a table is missing or a key does not fit any more."""
    joins = opened(log.spark, segment.entry.joined)
    if stale(segment.entry.joined, joins):
        joins.check(open_source(log.spark, frame, joins.joined[0].steps[0].table))
    return joins


def roll_back(log: DeltaLog, listed: SegmentList, segments: Sequence[Segment]) -> None:
    """Puts back the files that the last rewrite replaced; rows appended since then stay."""
    done = [o for o in listed.operations if o["operation"] == "apply" and "version" in o]
    if not done:
        raise HedgerowError(f"{log.path} has no rewrite of Hedgerow's to take back")
    last, snapshot = done[-1], log.snapshot()
    segment = next((s for s in segments if s.id == last["segment"]), None)
    sizes = {} if segment is None else segment.known.sizes_by_name
    ours = [n for n, size in sizes.items() if snapshot.files.untouched(n, size)]
    if segment is None or len(ours) < len(segment.known):
        raise HedgerowError(
            f"the last rewrite of {log.path} cannot be taken back, for others changed its files since then: "
            f"RESTORE TABLE {log.sql_name} TO VERSION AS OF {last['version'] - 1} would undo their work too"
        )
    before, after = log.snapshot(last["version"] - 1), log.snapshot(last["version"])
    old = sorted(set(before.files.names) - set(after.files.names))
    if any(not Folder(log.spark, "").exists(log.full_path(n)) for n in old):
        raise HedgerowError(f"the files that the last rewrite of {log.path} replaced were vacuumed")
    transaction = begin_rewrite(snapshot)
    try:
        version = transaction.commit(transaction.bring_back(before, old), ours, {"hedgerow": f"rollback {segment.id}"})
    except spark_errors() as error:
        raise HedgerowError(
            f"the last rewrite of {log.path} cannot be taken back: {first_line(error)}; table.describe() shows "
            "whether the rewrite is in place"
        ) from error
    done_now = {**operation("rollback", version, None), "to": last["version"] - 1}

    def with_rollback(listed: SegmentList) -> SegmentList:
        kept = [{**o, "operation": "apply, taken back"} if o == last else o for o in listed.operations]
        return replace(listed, operations=(*kept, done_now))

    with _after_commit(f"the last rewrite of {log.path} is taken back, but its history does not tell"):
        update_list(log, with_rollback)
