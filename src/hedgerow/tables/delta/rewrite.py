"""Changes a Delta table in Delta's own transactions: rewrites its files, appends to it, rolls back the last rewrite.

    read -> write -> inspect the new files -> list the part -> commit

Only the commit is visible to others. A run that is killed before the commit leaves files that are in no version; VACUUM
deletes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.errors import HedgerowError, advise
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.without_columns import mentions
from hedgerow.core.predicates.nodes import Column, Feature, Predicate, columns_of
from hedgerow.core.predicates.sql_text import quote_name, term_text
from hedgerow.core.progress import Progress
from hedgerow.core.time_left import TimeLeft
from hedgerow.spark.compute.assign_blocks import settings_for
from hedgerow.spark.compute.checksum import observed, same_rows
from hedgerow.spark.compute.collect_stats import collect_files, collect_files_and_rows
from hedgerow.spark.compute.joins import Joins
from hedgerow.spark.optimizer.jvm_facts import settings
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import check_grammar, configured, first_line, spark_errors
from hedgerow.spark.storage.delta_log import Conflict, Snapshot, delta_log, type_text
from hedgerow.spark.storage.delta_rewrite import Rewrite, Written, begin_rewrite
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.waves import free_shuffles
from hedgerow.spark.write.blocks import block_of_file
from hedgerow.spark.write.exact_writing import exact_writing
from hedgerow.spark.write.partition_files import in_files
from hedgerow.spark.write.writing import Writing
from hedgerow.tables.delta.files import DeltaFiles
from hedgerow.tables.delta.waves import run_of, runs_of
from hedgerow.tables.entry import Entry, Fields, struct_of
from hedgerow.tables.formats import check_names, footers_and_terms, schema_at
from hedgerow.tables.known_files import KnownFiles
from hedgerow.tables.lookups import build_lookups, files_let_pass, same_columns
from hedgerow.tables.part import Part, parts_of, with_joined_appends, write_layout, write_part
from hedgerow.tables.rewrite_plan import Plan
from hedgerow.tables.state import TableState, operation, update_state
from hedgerow.tables.stored_joins import joins_of, to_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MAX_DEAD_PARTS = 10  # so many parts without a file of the newest version are kept, for older versions and rollbacks
_MAX_DEAD_RUNS = 2  # the same for runs of many rewrites
_GENERATED = "delta.generationExpression"
_WRITER_OPTIONS = {"compression": "compression", "maxrecordsperfile": "maxRecordsPerFile"}


def rewrite(spark: SparkSession, target: str, plan: Plan, retries: int = 0) -> None:
    """Rewrite a Delta table in place, or some of its partitions or files.

    Raises Conflict if another transaction changed those files meanwhile, after `retries` further attempts. Then nothing
    is changed, but for the waves before.
    """
    table = DeltaFiles(delta_log(spark, target))
    snapshot = table.snapshot()
    sizes = snapshot.files.sizes_of(_chosen_files(snapshot, plan.where))
    if sum(sizes.values()) <= plan.wave_bytes:
        _retried(lambda: _rewrite(table, plan, {}), retries)
        return
    entry = plan.entry(fields_of(snapshot), settings(spark), _indexed_items(plan, snapshot))
    run = run_of(table, plan, entry, snapshot, sizes)
    progress, time_left = Progress("apply"), TimeLeft(sum(size for _, size in run.left))
    if run.done:
        progress.report(f"{run.done} of {run.waves} waves are there from an earlier run, which was killed or failed")
    for number, (names, size) in enumerate(run.left, run.done + 1):
        try:
            _retried(partial(_rewrite_present, table, plan, names, run.facts(number)), retries)
        except HedgerowError as error:
            kind = Conflict if isinstance(error, Conflict) else HedgerowError
            raise kind(f"wave {number} of {run.waves} failed, and those before it are committed: {error}") from error
        free_shuffles(spark)
        progress.report(f"wave {number} of {run.waves} is committed{time_left.after(size)}")


def _retried(attempt: Callable[[], None], retries: int) -> None:
    """Rewrite, and begin again so often if others changed the same files meanwhile."""
    while True:
        try:
            attempt()
            return
        except Conflict:
            if retries <= 0:
                raise
            retries -= 1


def _rewrite_present(table: DeltaFiles, plan: Plan, names: Sequence[str], facts: Mapping[str, Any]) -> None:
    """Rewrite the files of a wave that others have not replaced since the waves were chosen."""
    place = table.snapshot().files.place
    present = [name for name in names if name in place]
    if present:
        _rewrite(table, replace(plan, where=present), facts)


def _rewrite(table: DeltaFiles, plan: Plan, facts: Mapping[str, Any]) -> None:
    """Rewrite the chosen files in one transaction. `facts`: of the operation, for the table's history."""
    log = table.log
    snapshot = _prepared_snapshot(table, plan)
    old = _chosen_files(snapshot, plan.where)
    if not old:
        raise HedgerowError(f"{log.path} has no such file, so there is nothing to rewrite")
    transaction = begin_rewrite(snapshot)
    listed: Entry | None = None
    try:
        with step(log.spark, "writing"), _set_for(snapshot, plan):
            frame = snapshot.with_row_ids(snapshot.frame(old, "Optimize"))
            with observed(frame, list(map(quote_name, snapshot.fields))) as (watched, checksums):
                written = transaction.write(_in_files(watched, plan, snapshot), options_of(plan.writing))
        with step(log.spark, "collecting statistics and comparing all rows"):
            rows, items = written.frame(), _indexed_items(plan, snapshot)
            schema, by_group = schema_at(snapshot), plan.writing.group_rows > 0
            footers, entries, terms = footers_and_terms(snapshot, written.sizes, items, by_group)
            index, rows_written = collect_files_and_rows(rows, items, schema, entries, terms, plan.joins)
            checksum = same_rows(checksums[0], rows_written, snapshot.frame(old), rows)
        blocks = list(map(block_of_file, written.sizes))
        files = KnownFiles.of_footers(written.sizes, footers, index.blocks.rows, blocks)
        entry = plan.entry(fields_of(snapshot), settings(log.spark), items)
        wanted = {**files_let_pass(plan.predicates, index.finest, schema), **dict.fromkeys(plan.lookups, ())}
        lookups = build_lookups(table.side, rows, files, index, schema, wanted, plan.writing.lookup_share)
        entry = replace(write_layout(table.side, entry, plan.layout), checksum=checksum, lookups=lookups)
        listed = added = write_part(table.side, entry, index, files)
        batch = {} if plan.batch is None else {"batch": plan.batch}
        done = operation("apply", None, added, **facts, **batch, **_workload_cost(plan.predicates, index))
        _list_part(table, plan.name, added, snapshot, done)
    except BaseException as error:
        _undo(table, transaction, listed)
        if isinstance(error, spark_errors()):
            raise HedgerowError(f"{log.path} could not be rewritten, and is as it was: {first_line(error)}") from error
        raise
    with _committing(table, transaction, listed, f"the rewrite of {log.path}"):
        version = transaction.commit(written, old, {"hedgerow": added.id})
    with _after_commit(f"{log.path} is rewritten, but its history lacks the version"):
        update_state(table.side, "delta", lambda state, _: state.with_version(added.id, version, table.side))


def _list_part(table: DeltaFiles, name: str, entry: Entry, snapshot: Snapshot, done: Mapping[str, Any]) -> None:
    """List one more part in the state, and drop parts if it is a rewrite's; an append does not read all lists."""

    def with_part(state: TableState, _: int) -> TableState:
        parts = state.parts if entry.was_appended else _parts_to_keep(table, state, snapshot, done)
        changed = replace(state, name=state.name or name, parts=parts).with_part(entry, done)
        return with_joined_appends(table.side, changed)

    update_state(table.side, "delta", with_part)


def _parts_to_keep(
    table: DeltaFiles, state: TableState, snapshot: Snapshot, done: Mapping[str, Any]
) -> tuple[Entry, ...]:
    """Return the parts without damaged ones, and without the oldest ones whose files are not in the snapshot."""
    present = snapshot.files.place
    parts = [part for part in parts_of(table.side, state.parts) if part.is_readable]
    dead = [part.id for part in parts if not any(name in present for name in part.known.names)]
    if len(dead) > _MAX_DEAD_PARTS:
        rewrites = [o for o in (*state.all_operations(table.side), done) if o["operation"].startswith("apply")]
        dead = dead[: -max(_MAX_DEAD_PARTS, _MAX_DEAD_RUNS * max(map(len, runs_of(rewrites))))]
        parts = [part for part in parts if part.id not in dead]
    return tuple(part.entry for part in parts)


def fields_of(snapshot: Snapshot) -> Fields:
    return tuple(snapshot.fields.values())


def _prepared_snapshot(table: DeltaFiles, plan: Plan) -> Snapshot:
    """Set Delta to keep statistics of the queried columns, and return the snapshot to rewrite."""
    options_of(plan.writing)
    snapshot = table.snapshot()
    snapshot.refuse()
    cover_queried(snapshot, plan.predicates)
    return table.snapshot()


def cover_queried(snapshot: Snapshot, predicates: Sequence[Predicate]) -> None:
    """Set Delta to keep statistics of the columns in some conditions."""
    schema = schema_at(snapshot)
    snapshot.cover(sorted({term_text(c) for p in predicates for c in columns_of(p) if term_text(c) in schema}))


def _undo(table: DeltaFiles, transaction: Rewrite, listed: Entry | None) -> None:
    """Delete the files of a rewrite that was not committed, and remove its part from the state.

    The part's own files stay for a day, because readers may use a state that names them. Errors here are not reported;
    the caller reports the error that ended the rewrite."""
    with suppress(HedgerowError, *spark_errors()):
        transaction.give_up()
    if listed is not None:
        with suppress(HedgerowError, *spark_errors()):
            update_state(table.side, "delta", lambda state, _: state.without_part(listed.id, table.side))


@contextmanager
def _committing(table: DeltaFiles, transaction: Rewrite, listed: Entry | None, change: str) -> Iterator[None]:
    """Undo the transaction after a Conflict; after other errors it may be committed, so no new file is deleted."""
    try:
        yield
    except Conflict:
        _undo(table, transaction, listed)
        raise
    except spark_errors() as error:
        look = "DESCRIBE HISTORY shows whether it is in place"
        raise HedgerowError(f"Delta failed while it committed {change}: {first_line(error)}; {look}") from error


@contextmanager
def _after_commit(done: str) -> Iterator[None]:
    """Turn a failure of the body into a warning, because an error would mean that nothing was changed."""
    failures: tuple[type[Exception], ...] = (HedgerowError, *spark_errors())
    try:
        yield
    except failures as error:
        advise(f"{done}: {first_line(error)}")


@contextmanager
def _set_for(snapshot: Snapshot, plan: Plan) -> Iterator[None]:
    """Set what the session needs for writing by the plan."""
    spark, schema = snapshot.log.spark, schema_at(snapshot)
    physical = {logical: name for name, logical in snapshot.physical.items() if name != logical}
    exact = exact_writing(spark, schema, physical, plan.writing.group_rows)
    with exact, configured(spark, **settings_for(plan.layout)):
        yield


def _chosen_files(snapshot: Snapshot, where: str | Sequence[str] | None) -> list[str]:
    if where is None:
        return list(snapshot.files.names)
    if isinstance(where, str):
        return snapshot.names_where(where)
    missing = [n for n in where if n not in snapshot.files.place]
    if missing:
        raise HedgerowError(f"{snapshot.log.path} has no file {missing[0]}")
    return list(dict.fromkeys(where))


def _in_files(frame: DataFrame, plan: Plan, snapshot: Snapshot) -> DataFrame:
    partitions, rows = snapshot.partition_columns, np.maximum(snapshot.files.rows, 0)
    block_rows = plan.origin.get("block_rows") or max(1, int(rows.sum()) // max(1, len(rows)))
    return in_files(frame, plan.layout, schema_at(snapshot), plan.writing, plan.joins, partitions, int(block_rows))


def _indexed_items(plan: Plan, snapshot: Snapshot) -> list[Feature]:
    """Return the items that the index describes: the plan's items and the partition columns.

    A timestamp in a partition's name changes its meaning with the time zone, so such columns are left out.
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
    rows = float(np.mean([index.rows_to_read(p, o).sum() / total for p, o in zip(predicates, opened, strict=True)]))
    return {"rows_read": round(rows, 4), "blocks_read": round(float(np.mean([o.mean() for o in opened])), 4)}


def options_of(writing: Writing) -> dict[str, str]:
    """Return the options for Delta's writer; HedgerowError for an option that it does not take."""
    options = {key.lower(): str(value) for key, value in writing.options.items()}
    unknown = sorted(set(options) - set(_WRITER_OPTIONS))
    if unknown:
        raise HedgerowError(f"Delta's writer takes {' and '.join(_WRITER_OPTIONS.values())}, not {unknown[0]}")
    most = {"maxRecordsPerFile": str(writing.max_block_rows)} if writing.max_block_rows else {}
    return {**{_WRITER_OPTIONS[key]: value for key, value in options.items()}, **most}


# --- new files in the layout of a part, and rollback ---


def lay_out(table: DeltaFiles, part: Part, name: str, files: Sequence[str]) -> None:
    """Rewrite some files in the layout of a part; the index describes the same items of the new files."""
    joins = joins_of(table.spark, part.entry.joined, table.snapshot().frame(list(files)))
    rewrite(table.spark, table.path, replace(_plan_of(part, joins), name=name, where=files))


def _plan_of(part: Part, joins: Joins) -> Plan:
    """Return the plan by which the files of a part were written."""
    entry = part.entry
    lookups = list(same_columns(entry.lookups))
    return Plan(part.layout, "", (), entry.statistics, entry.origin, entry.writing, joins, lookups)


def append(table: DeltaFiles, part: Part, frame: DataFrame) -> None:
    """Append new rows in the layout of a part, in a transaction of Delta's, and index the new files.

    Without rows, nothing is changed."""
    check_grammar(table.spark)
    check_names(frame.columns)
    appended = _appended(table, part, frame)
    if appended is not None:
        with _after_commit(f"the rows are in {table.path}, but not in its index, so that every query reads them"):
            _index_appended(table, part, *appended)


def _index_appended(table: DeltaFiles, part: Part, version: int, joins: Joins) -> None:
    """Add a part for the files that an append added in this version."""
    after, before = table.snapshot(version), table.snapshot(version - 1)
    new = after.files.sizes_of([name for name in after.files.names if name not in before.files.place])
    if not new:
        return
    items, rows = part.entry.statistics, after.frame(list(new))
    footers, entries, terms = footers_and_terms(after, new, items, part.entry.writing.group_rows > 0)
    index = collect_files(rows, items, schema_at(after), entries, terms, joins)
    joined = to_store(joins, (*items, *part.layout.features))
    files = KnownFiles.of_footers(new, footers, index.blocks.rows, list(map(block_of_file, new)))
    wanted, share = same_columns(part.entry.lookups), part.entry.writing.lookup_share
    lookups = build_lookups(table.side, rows, files, index, schema_at(after), wanted, share)
    entry = replace(part.entry, id="", write="", checksum=None, joined=joined, lookups=lookups)
    entry = replace(entry, fields=fields_of(after), settings=settings(table.spark))
    added = write_part(table.side, entry, index, files)
    _list_part(table, "", added, after, operation("append", version, added))


def _appended(table: DeltaFiles, part: Part, frame: DataFrame) -> tuple[int, Joins] | None:
    """Write the rows; return the version of the table that has them, and the rows of other tables that they join.

    Return None if there are no rows, because Delta then commits nothing."""
    log, snapshot = table.log, table.snapshot()
    transaction = begin_rewrite(snapshot)
    try:
        rows, lacking = _with_lacking_columns(frame, snapshot)
        joins = joins_of(table.spark, part.entry.joined, rows)
        plan = _plan_of(part, joins)
        with _set_for(snapshot, plan):
            laid_out = _in_files(rows, plan, snapshot).drop(*lacking)
            written = transaction.write_new(laid_out, {**options_of(part.entry.writing), "optimizeWrite": "false"})
    except BaseException as error:
        _undo(table, transaction, None)
        if isinstance(error, spark_errors()):
            raise HedgerowError(f"nothing could be appended to {log.path}: {first_line(error)}") from error
        raise
    with _committing(table, transaction, None, f"the append to {log.path}"):
        version = transaction.commit_new(written)
    if version is None:
        _undo(table, transaction, None)  # Spark writes a file even if there are no rows
        return None
    return version, joins


def _with_lacking_columns(frame: DataFrame, snapshot: Snapshot) -> tuple[DataFrame, list[str]]:
    """Return the rows with the columns that they lack, because the layout needs them, and the names of these columns.

    Delta computes the values of such columns when it writes. Generated columns have the same expressions here. Other
    columns are NULL here, so the block of a row does not depend on an identity column or a default."""
    from pyspark.sql import functions as f

    frame_columns = {name.lower() for name in frame.columns}
    columns = struct_of(fields_of(snapshot)).fields
    lacking = {x.name: x.dataType for x in columns if x.name.lower() not in frame_columns}
    expressions = {name: snapshot.fields[name]["metadata"].get(_GENERATED) for name in lacking}
    nulls = {name: f.lit(None).cast(kind) for name, kind in lacking.items() if expressions[name] is None}
    generated = {name: f.expr(text).cast(lacking[name]) for name, text in expressions.items() if text is not None}
    return frame.withColumns(nulls).withColumns(generated), list(lacking)


def roll_back(table: DeltaFiles, state: TableState, parts: Sequence[Part]) -> None:
    """Put back the files that the last rewrite replaced, in all its waves and partitions; appended rows stay."""
    log = table.log
    rewrites = [o for o in state.all_operations(table.side) if o["operation"] == "apply" and "version" in o]
    if not rewrites:
        raise HedgerowError(f"{log.path} has no rewrite of Hedgerow's to take back")
    # In the order of versions, the snapshot after one rewrite is often the one before the next.
    run, snapshot = sorted(runs_of(rewrites)[-1], key=lambda done: done["version"]), log.snapshot()
    first, by_id = run[0]["version"] - 1, {part.id: part for part in parts}
    unchanged, replaced = list[str](), list[tuple[Snapshot, list[str]]]()
    for wave in run:
        part = by_id.get(wave["part"])
        sizes = {} if part is None else part.known.sizes_by_name
        own = [n for n, size in sizes.items() if snapshot.files.untouched(n, size)]
        if part is None or len(own) < len(part.known):
            raise HedgerowError(
                f"the last rewrite of {log.path} cannot be taken back, for others changed its files since then: "
                f"RESTORE TABLE {log.sql_name} TO VERSION AS OF {first} would undo their work too"
            )
        before, after = log.snapshot(wave["version"] - 1), log.snapshot(wave["version"])
        unchanged += own
        replaced.append((before, sorted(set(before.files.names) - set(after.files.names))))
    if any(not Folder(log.spark, "").exists(log.full_path(n)) for _, names in replaced for n in names):
        raise HedgerowError(f"the files that the last rewrite of {log.path} replaced were vacuumed")
    transaction = begin_rewrite(snapshot)
    try:
        brought_back = [transaction.bring_back(before, names) for before, names in replaced]
        added = Written(snapshot, [action for one in brought_back for action in one.actions])
        version = transaction.commit(added, unchanged, {"hedgerow": f"rollback {run[-1]['part']}"})
    except spark_errors() as error:
        raise HedgerowError(
            f"the last rewrite of {log.path} cannot be taken back: {first_line(error)}; table.describe() shows "
            "whether the rewrite is in place"
        ) from error
    rollback = operation("rollback", version, to=first)

    def with_rollback(state: TableState, _: int) -> TableState:
        state = state.with_all_operations(table.side)
        operations = [{**o, "operation": "apply, taken back"} if o in run else o for o in state.operations]
        return replace(state, operations=(*operations, rollback))

    with _after_commit(f"the last rewrite of {log.path} is taken back, but its history lacks the rollback"):
        update_state(table.side, "delta", with_rollback)
