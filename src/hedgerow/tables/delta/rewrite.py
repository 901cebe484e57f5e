"""Changes a Delta table in Delta's own transactions: rewrites its files, appends to it, rolls the last rewrite back.

    read -> write -> inspect the new files -> list the part -> commit

Only the commit is visible to others. A run that is killed before it leaves files that no version has, for VACUUM.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.core.errors import HedgerowError, advise
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.without_columns import mentions
from hedgerow.core.layouts.base import Layout
from hedgerow.core.predicates.nodes import Column, Feature, Predicate, columns_of
from hedgerow.core.predicates.sql_text import quote_name, term_text
from hedgerow.spark.compute.assign_blocks import order_inside, settings_for
from hedgerow.spark.compute.checksum import observed, same_rows
from hedgerow.spark.compute.collect_stats import collect_files, collect_files_and_rows
from hedgerow.spark.compute.joins import Joins
from hedgerow.spark.optimizer.rule import settings
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import check_grammar, configured, first_line, spark_errors
from hedgerow.spark.storage.delta_log import Conflict, Snapshot, delta_log, type_text
from hedgerow.spark.storage.delta_rewrite import Rewrite, begin_rewrite
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.write.blocks import block_of_file, exact_writing
from hedgerow.spark.write.partition_files import placed
from hedgerow.spark.write.writing import Writing
from hedgerow.tables.delta.files import DeltaFiles
from hedgerow.tables.entry import Entry, Fields, struct_of
from hedgerow.tables.formats import footers_and_terms, schema_at
from hedgerow.tables.known_files import KnownFiles, file_names
from hedgerow.tables.new_rows import check_names
from hedgerow.tables.part import Part, parts_of, with_joined_appends, write_layout, write_part
from hedgerow.tables.plan import Plan
from hedgerow.tables.state import TableState, operation, update_state
from hedgerow.tables.stored_joins import joins_of, to_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MAX_DEAD_PARTS = 10  # parts without a file that still exists, kept for older versions of the table
_GENERATED = "delta.generationExpression"
_WRITER_OPTIONS = {"compression": "compression", "maxrecordsperfile": "maxRecordsPerFile"}


def rewrite(spark: SparkSession, target: str, plan: Plan, retries: int = 0) -> None:
    """Rewrite a Delta table in place, or some of its partitions or files.

    Raises Conflict if another transaction changed those files meanwhile, after `retries` further attempts. Then nothing
    is changed.
    """
    table = DeltaFiles(delta_log(spark, target))
    while True:
        try:
            _rewrite(table, plan)
            return
        except Conflict:
            if retries <= 0:
                raise
            retries -= 1


def _rewrite(table: DeltaFiles, plan: Plan) -> None:
    log = table.log
    snapshot = _prepared_snapshot(table, plan)
    old = _chosen_files(snapshot, plan.where)
    if not old:
        raise HedgerowError(f"{log.path} has no such file, so there is nothing to rewrite")
    transaction = begin_rewrite(snapshot)
    listed: Entry | None = None
    try:
        with (
            step(log.spark, "writing"),
            _exact_writing(snapshot),
            configured(log.spark, **settings_for(plan.layout)),
        ):
            frame = snapshot.with_row_ids(snapshot.frame(old, "Optimize"))
            with observed(frame, list(map(quote_name, snapshot.fields))) as (watched, checksums):
                written = transaction.write(_files_and_order(watched, plan, snapshot), options_of(plan.writing))
        with step(log.spark, "collecting statistics and comparing all rows"):
            rows, items = written.frame(), _indexed_items(plan, snapshot)
            footers, known = footers_and_terms(snapshot, written.sizes, items)
            names = file_names(written.sizes)
            stats, came_out = collect_files_and_rows(rows, items, schema_at(snapshot), names, known, plan.joins)
            went_in = same_rows(checksums[0], came_out, snapshot.frame(old), rows)
        files = KnownFiles.of_footers(written.sizes, footers, stats.rows, list(map(block_of_file, written.sizes)))
        index = BlockIndex(stats)
        entry = plan.entry(fields_of(snapshot), settings(log.spark), items)
        entry = replace(write_layout(table.side, entry, plan.layout), checksum=went_in)
        listed = added = write_part(table.side, entry, index, files)
        done = operation("apply", None, added, **_workload_cost(plan.predicates, index))
        _list_part(table, plan.name, added, snapshot, done)
    except BaseException as error:
        _undo(table, transaction, listed)
        if isinstance(error, spark_errors()):
            raise HedgerowError(f"{log.path} could not be rewritten, and is as it was: {first_line(error)}") from error
        raise
    try:
        version = transaction.commit(written, old, {"hedgerow": added.id})
    except Conflict:
        _undo(table, transaction, listed)
        raise
    except spark_errors() as error:  # the commit may have succeeded, so no new file may be deleted
        raise HedgerowError(
            f"Delta failed while it committed the rewrite of {log.path}: {first_line(error)}; table.describe() shows "
            "whether the rewrite is in place"
        ) from error
    with _after_commit(f"{log.path} is rewritten, but its history does not tell the version"):
        update_state(table.side, "delta", lambda state, _: _with_version(state, added.id, version))


def _list_part(table: DeltaFiles, name: str, entry: Entry, snapshot: Snapshot, done: Mapping[str, object]) -> None:
    """List one more part in the state; of parts without any file that exists, only the newest are kept."""

    def with_part(state: TableState, _: int) -> TableState:
        dead = [part.id for part in parts_of(table.side, state.parts) if not _is_there(part, snapshot)]
        kept = tuple(e for e in state.parts if e.id not in dead[:-_MAX_DEAD_PARTS])
        changed = replace(state, name=state.name or name, parts=kept).with_part(entry, done)
        return with_joined_appends(table.side, changed)

    update_state(table.side, "delta", with_part)


def _is_there(part: Part, snapshot: Snapshot) -> bool:
    return any(name in snapshot.files.place for name in part.known.names)


def fields_of(snapshot: Snapshot) -> Fields:
    return tuple(snapshot.fields.values())


def _prepared_snapshot(table: DeltaFiles, plan: Plan) -> Snapshot:
    """Return the snapshot to rewrite, after Delta was set to keep statistics of the queried columns."""
    options_of(plan.writing)
    snapshot = table.snapshot()
    snapshot.refuse()
    schema = schema_at(snapshot)
    snapshot.cover(sorted({term_text(c) for p in plan.predicates for c in columns_of(p) if term_text(c) in schema}))
    return table.snapshot()


def _undo(table: DeltaFiles, transaction: Rewrite, listed: Entry | None) -> None:
    """Delete what a rewrite wrote that was not committed. The files of its part stay for a day: readers may hold the
    state that names it. A failure to delete is not reported: the error that ended the rewrite is."""
    with suppress(HedgerowError, *spark_errors()):
        transaction.give_up()
    if listed is not None:
        with suppress(HedgerowError, *spark_errors()):
            update_state(table.side, "delta", lambda state, _: state.without_part(listed.id))


@contextmanager
def _after_commit(done: str) -> Iterator[None]:
    """Warn about a failure after the commit: an error would say that nothing was done."""
    failures: tuple[type[Exception], ...] = (HedgerowError, *spark_errors())
    try:
        yield
    except failures as error:
        advise(f"{done}: {first_line(error)}")


def _exact_writing(snapshot: Snapshot) -> AbstractContextManager[None]:
    physical = {logical: name for name, logical in snapshot.physical.items() if name != logical}
    return exact_writing(snapshot.log.spark, schema_at(snapshot), physical)


def _with_version(state: TableState, part: str, version: int) -> TableState:
    done = ({**o, "version": version} if o.get("part") == part else o for o in state.operations)
    return replace(state, operations=tuple(done))


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
    least = plan.origin.get("block_rows") or _mean_rows(snapshot)
    rows = placed(frame, plan.layout, schema_at(snapshot), snapshot.partition_columns, int(least), plan.joins)
    return _sorted_rows(rows, snapshot.partition_columns, plan.layout, plan.writing)


def _mean_rows(snapshot: Snapshot) -> int:
    return max(1, int(np.maximum(snapshot.files.rows, 0).sum()) // max(1, len(snapshot.files.names)))


def _sorted_rows(frame: DataFrame, partitions: Sequence[str], layout: Layout, how: Writing) -> DataFrame:
    """Sorts the rows of each file, by partition first: Delta's writer sorts by partition and loses another order."""
    order = order_inside(layout, how.sort_by, how.by_key)
    return frame.sortWithinPartitions(*map(quote_name, partitions), *order) if order else frame


def _indexed_items(plan: Plan, snapshot: Snapshot) -> list[Feature]:
    """The items to index for each file: those of the plan, and the partition columns.

    A timestamp in a partition's name changes its meaning with the time zone, so such columns are not indexed.
    """
    partitions = [Column((name,)) for name in snapshot.partition_columns]
    zoned = {name.lower() for name in snapshot.partition_columns if type_text(snapshot.fields[name]) == "timestamp"}
    return [item for item in (*plan.items, *partitions) if not mentions(item, zoned)]


def _workload_cost(predicates: Sequence[Predicate], index: BlockIndex) -> dict[str, float]:
    """Return the shares of rows and blocks that the learned queries read of the written files."""
    total = max(1, int(index.blocks.rows.sum()))
    opened = [index.to_open(p) for p in predicates]
    if not opened:
        return {}
    rows = float(np.mean([index.blocks.rows[o].sum() / total for o in opened]))
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


def lay_out(table: DeltaFiles, part: Part, name: str, files: Sequence[str]) -> None:
    """Rewrite some files in the layout of a part; the index describes the new ones in the same terms."""
    entry = part.entry
    joins = joins_of(table.spark, entry.joined, table.snapshot().frame(list(files)))
    plan = Plan(part.layout, name, (), entry.statistics, entry.origin, entry.writing, joins, files)
    rewrite(table.spark, table.path, plan)


def append(table: DeltaFiles, part: Part, frame: DataFrame) -> None:
    """Write new rows through the layout of a part, in an append of Delta's own, and index the new files.

    Without rows, nothing is changed."""
    check_grammar(table.spark)
    check_names(frame.columns)
    appended = _appended(table, part, frame)
    if appended is not None:
        with _after_commit(f"the rows are in {table.path}, but not in its index, so that every query reads them"):
            _index_appended(table, part, *appended)


def _index_appended(table: DeltaFiles, part: Part, version: int, joins: Joins) -> None:
    """Describe the files that an append added in this version, as a part of their own."""
    after, before = table.snapshot(version), table.snapshot(version - 1)
    new = after.files.sizes_of([name for name in after.files.names if name not in before.files.place])
    if not new:
        return
    items = part.entry.statistics
    footers, known = footers_and_terms(after, new, items)
    stats = collect_files(after.frame(list(new)), items, schema_at(after), file_names(new), known, joins)
    joined = to_store(joins, (*items, *part.layout.features))
    now = settings(table.spark)
    entry = replace(part.entry, id="", writes=(), fields=fields_of(after), settings=now, checksum=None, joined=joined)
    files = KnownFiles.of_footers(new, footers, stats.rows, list(map(block_of_file, new)))
    added = write_part(table.side, entry, BlockIndex(stats), files)
    _list_part(table, "", added, after, operation("append", version, added))


def _appended(table: DeltaFiles, part: Part, frame: DataFrame) -> tuple[int, Joins] | None:
    """Write the rows; return the version of the table that has them, and the rows of other tables that they join.

    Return None if there are no rows: Delta commits nothing then."""
    log, snapshot = table.log, table.snapshot()
    partitions, writing = snapshot.partition_columns, part.entry.writing
    transaction = begin_rewrite(snapshot)
    try:
        rows, lacking = _with_lacking_columns(frame, snapshot)
        joins = joins_of(table.spark, part.entry.joined, rows)
        with _exact_writing(snapshot), configured(log.spark, **settings_for(part.layout)):
            least = int(part.entry.origin.get("block_rows") or _mean_rows(snapshot))
            rows = placed(rows, part.layout, schema_at(snapshot), partitions, least, joins)
            rows = _sorted_rows(rows, partitions, part.layout, writing).drop(*lacking)
            written = transaction.write_new(rows, {**options_of(writing), "optimizeWrite": "false"})
    except BaseException as error:
        _undo(table, transaction, None)
        if isinstance(error, spark_errors()):
            raise HedgerowError(f"nothing could be appended to {log.path}: {first_line(error)}") from error
        raise
    try:
        version = transaction.commit_new(written)
    except Conflict:
        _undo(table, transaction, None)
        raise
    except spark_errors() as error:  # the commit may have succeeded, so no new file may be deleted
        raise HedgerowError(
            f"Delta failed while it committed the append to {log.path}: {first_line(error)}; look whether the rows are "
            "there"
        ) from error
    if version is None:
        _undo(table, transaction, None)  # Spark writes a file even if there are no rows
        return None
    return version, joins


def _with_lacking_columns(frame: DataFrame, snapshot: Snapshot) -> tuple[DataFrame, list[str]]:
    """Return the rows with the columns that they lack, for the layout to look at, and the names of these columns.

    Delta gives such columns their values when it writes: generated ones by their expressions, which are used here too.
    Other columns are NULL here, so an identity column or a default decides nothing about where a row goes."""
    from pyspark.sql import functions as f

    given = {name.lower() for name in frame.columns}
    columns = struct_of(fields_of(snapshot)).fields
    lacking = {x.name: x.dataType for x in columns if x.name.lower() not in given}
    expressions = {name: snapshot.fields[name]["metadata"].get(_GENERATED) for name in lacking}
    nulls = {name: f.lit(None).cast(kind) for name, kind in lacking.items() if expressions[name] is None}
    generated = {
        name: f.expr(expressions[name]).cast(kind) for name, kind in lacking.items() if expressions[name] is not None
    }
    return frame.withColumns(nulls).withColumns(generated), list(lacking)


def roll_back(table: DeltaFiles, state: TableState, parts: Sequence[Part]) -> None:
    """Put back the files that the last rewrite replaced; rows appended since then stay."""
    log = table.log
    done = [o for o in state.operations if o["operation"] == "apply" and "version" in o]
    if not done:
        raise HedgerowError(f"{log.path} has no rewrite of Hedgerow's to take back")
    last, snapshot = done[-1], log.snapshot()
    part = next((p for p in parts if p.id == last["part"]), None)
    sizes = {} if part is None else part.known.sizes_by_name
    ours = [n for n, size in sizes.items() if snapshot.files.untouched(n, size)]
    if part is None or len(ours) < len(part.known):
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
        version = transaction.commit(transaction.bring_back(before, old), ours, {"hedgerow": f"rollback {part.id}"})
    except spark_errors() as error:
        raise HedgerowError(
            f"the last rewrite of {log.path} cannot be taken back: {first_line(error)}; table.describe() shows "
            "whether the rewrite is in place"
        ) from error
    done_now = operation("rollback", version, to=last["version"] - 1)

    def with_rollback(state: TableState, _: int) -> TableState:
        kept = [{**o, "operation": "apply, taken back"} if o == last else o for o in state.operations]
        return replace(state, operations=(*kept, done_now))

    with _after_commit(f"the last rewrite of {log.path} is taken back, but its history does not tell"):
        update_state(table.side, "delta", with_rollback)
