"""Change a Delta table and keep its promises: rewrite its files, append to it, take the last rewrite back.

    read -> write -> look at what was written -> note the segment -> commit

Nothing but the commit can be seen by others. Who is killed before it leaves files that no version has, for VACUUM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from hedgerow.core.errors import HedgerowError
from hedgerow.core.index.block_index import BlockIndex, View
from hedgerow.core.layouts.base import Layout
from hedgerow.core.predicates.nodes import Column, Predicate, columns
from hedgerow.core.predicates.predicate_json import decode, encode
from hedgerow.core.predicates.sql_text import quote_name, term_text
from hedgerow.core.pruning.block_stats import Stats
from hedgerow.spark.compute.assign_blocks import order_inside, settings_for
from hedgerow.spark.compute.checksum import Checksum, observed, same_rows
from hedgerow.spark.compute.collect_stats import collect_files, collect_files_and_rows
from hedgerow.spark.compute.evaluate import Item
from hedgerow.spark.optimizer.rule import settings
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import configured, first_line, spark_errors
from hedgerow.spark.storage.delta_log import Conflict, DeltaLog, Snapshot, Written, delta_log, type_text
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.write.blocks import block_of_file, exact_writing
from hedgerow.spark.write.partition_files import placed
from hedgerow.tables.delta.segments import (
    Segment,
    note,
    operation,
    speaks_of,
    with_segment,
    without_segment,
    write_segment,
)
from hedgerow.tables.delta.snapshot_files import file_names, measured, schema_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OPTIONS = {"compression": "compression", "maxrecordsperfile": "maxRecordsPerFile"}


@dataclass(frozen=True)
class Plan:
    """What to do with which files; `where`: a condition on partitions, or names of files, None for all."""

    layout: Layout
    name: str
    predicates: Sequence[Predicate]
    statistics: Sequence[Any]
    provenance: Mapping[str, Any]
    writing: Mapping[str, Any]
    where: str | Sequence[str] | None = None


def rewrite(spark: SparkSession, target: str, plan: Plan, retries: int = 0) -> None:
    """Rewrite a Delta table in place, or some of its partitions or files.

    Conflict if somebody else changed those files meanwhile: nothing is changed then. `retries` times it is tried again.
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
    snapshot = _ready(log, plan)
    old = _chosen(snapshot, plan.where)
    if not old:
        raise HedgerowError(f"{log.path} has no such file, so there is nothing to rewrite")
    transaction = snapshot.rewrite()
    written: Written | None = None
    segment: dict[str, Any] | None = None
    try:
        with step(log.spark, "writing"), _exactly(snapshot), configured(log.spark, **settings_for(plan.layout)):
            frame = snapshot.with_row_ids(snapshot.frame(old, "Optimize"))
            with observed(frame, list(map(quote_name, snapshot.fields))) as (noted, found):
                written = transaction.write(_arranged(noted, plan, snapshot), options_of(plan.writing))
        with step(log.spark, "collecting statistics and comparing all rows"):
            rows, items = written.frame(), _items(plan, snapshot)
            stats, came_out = collect_files_and_rows(rows, items, schema_at(snapshot), file_names(written.sizes))
            went_in = same_rows(found[0], came_out, snapshot.frame(old), rows)
        meta = _meta(plan, snapshot, went_in)
        files = measured(snapshot, written.sizes, stats.rows, _blocks(written.sizes))
        segment = new = write_segment(log, meta, plan.layout, stats, files)
        done = {**operation("apply", None, new), **_score(plan.predicates, stats)}
        note(log, lambda m: with_segment({"name": plan.name, **m}, new, snapshot, done))
    except BaseException as error:
        _undo(log, written, segment)
        if isinstance(error, spark_errors()):
            raise HedgerowError(f"{log.path} could not be rewritten, and is as it was: {first_line(error)}") from error
        raise
    try:
        version = transaction.commit(written, old, {"hedgerow": new["id"]})
    except Conflict:
        _undo(log, written, segment)
        raise
    except spark_errors() as error:  # it may have been committed: no file of it may be deleted
        raise HedgerowError(
            f"Delta failed while it committed the rewrite of {log.path}, which table.describe() says whether it is in "
            f"place: {first_line(error)}"
        ) from error
    note(log, lambda m: _with_version(m, new["id"], version))


def _ready(log: DeltaLog, plan: Plan) -> Snapshot:
    """The snapshot to work on, after Delta was told which columns to keep statistics of."""
    options_of(plan.writing)
    snapshot = log.snapshot()
    snapshot.refuse()
    snapshot.cover(sorted({term_text(c) for p in plan.predicates for c in columns(p)}))
    return log.snapshot()


def _undo(log: DeltaLog, written: Written | None, segment: Mapping[str, Any] | None) -> None:
    if segment is not None:
        note(log, lambda m: without_segment(m, segment["id"]))
    if written is not None:
        written.delete()


def _exactly(snapshot: Snapshot) -> AbstractContextManager[None]:
    physical = {logical: name for name, logical in snapshot.physical.items() if name != logical}
    return exact_writing(snapshot.log.spark, schema_at(snapshot), physical)


def _with_version(found: dict[str, Any], own: str, version: int) -> dict[str, Any]:
    done = [{**o, "version": version} if o.get("segment") == own else o for o in found["operations"]]
    return {**found, "operations": done}


def _chosen(snapshot: Snapshot, where: str | Sequence[str] | None) -> list[str]:
    if where is None:
        return list(snapshot.files.names)
    if isinstance(where, str):
        return snapshot.names_where(where)
    missing = [n for n in where if n not in snapshot.files.place]
    if missing:
        raise HedgerowError(f"{snapshot.log.path} has no file {missing[0]}")
    return list(dict.fromkeys(where))


def _arranged(frame: DataFrame, plan: Plan, snapshot: Snapshot) -> DataFrame:
    least = plan.provenance.get("block_rows") or _mean_rows(snapshot)
    rows = placed(frame, plan.layout, schema_at(snapshot), snapshot.partition_columns, int(least))
    return _sorted(rows, snapshot.partition_columns, plan.layout, plan.writing)


def _mean_rows(snapshot: Snapshot) -> int:
    return max(1, int(np.maximum(snapshot.files.rows, 0).sum()) // max(1, len(snapshot.files.names)))


def _sorted(frame: DataFrame, partitions: Sequence[str], layout: Layout, writing: Mapping[str, Any]) -> DataFrame:
    """Delta sorts by partitions when it writes, and would lose another order."""
    inside = order_inside(layout, writing["sort_by"], writing.get("by_key", False))
    return frame.sortWithinPartitions(*map(quote_name, partitions), *inside) if inside else frame


def _meta(plan: Plan, snapshot: Snapshot, went_in: Checksum) -> dict[str, Any]:
    return {
        **plan.provenance,
        "columns": snapshot.columns,
        "schema": {key: str(kind) for key, kind in schema_at(snapshot).items()},
        "settings": settings(snapshot.log.spark),
        "writing": dict(plan.writing),
        "statistics": list(map(encode, _items(plan, snapshot))),
        "hashed": list(snapshot.fields),
        "checksum": {"rows": went_in.rows, "low": went_in.low, "high": went_in.high},
    }


def _items(plan: Plan, snapshot: Snapshot) -> list[Item]:
    """What to note of each file: what was asked for, and the columns of the partitions.

    A time in a partition's name may mean another one in another time zone: nothing is noted of it.
    """
    partitions = [Column((name,)) for name in snapshot.partition_columns]
    zoned = {name.lower() for name in snapshot.partition_columns if type_text(snapshot.fields[name]) == "timestamp"}
    return [item for item in (*map(decode, plan.statistics), *partitions) if not speaks_of(item, zoned)]


def _score(predicates: Sequence[Predicate], stats: Stats) -> dict[str, float]:
    """What the queries that the layout was learned from read of the files that were written."""
    index, total = BlockIndex((View(stats),)), max(1, int(stats.rows.sum()))
    opened = [index.to_open(p) for p in predicates]
    if not opened:
        return {}
    rows = float(np.mean([stats.rows[o].sum() / total for o in opened]))
    return {"rows_read": round(rows, 4), "blocks_read": round(float(np.mean([o.mean() for o in opened])), 4)}


def _blocks(names: Mapping[str, int]) -> Any:
    return np.array([block_of_file(n.rsplit("/", 1)[-1]) for n in names], np.int64)


def options_of(writing: Mapping[str, Any]) -> dict[str, str]:
    """Options for Delta's writer, which takes few."""
    given = {key.lower(): str(value) for key, value in (writing.get("options") or {}).items()}
    unknown = sorted(set(given) - set(_OPTIONS))
    if unknown:
        raise HedgerowError(f"Delta's writer takes {' and '.join(_OPTIONS.values())}, not {unknown[0]}")
    most = {"maxRecordsPerFile": str(writing["max_block_rows"])} if writing.get("max_block_rows") else {}
    return {**{_OPTIONS[key]: value for key, value in given.items()}, **most}


# --- append and rollback ---


def append(log: DeltaLog, segment: Segment, frame: DataFrame) -> None:
    """New rows through the newest layout, in an append of Delta's own; the files it wrote are indexed then."""
    snapshot = log.snapshot()
    schema, partitions, mark = schema_at(snapshot), snapshot.partition_columns, f"hedgerow-{uuid4().hex}"
    try:
        with _exactly(snapshot), configured(log.spark, **settings_for(segment.layout)):
            least = int(segment.meta.get("block_rows") or _mean_rows(snapshot))
            rows = placed(frame, segment.layout, schema, partitions, least)
            rows = _sorted(rows, partitions, segment.layout, segment.meta["writing"])
            options = {**options_of(segment.meta["writing"]), "userMetadata": mark, "optimizeWrite": "false"}
            rows.write.format("delta").mode("append").options(**options).save(log.path)
    except spark_errors() as error:
        raise HedgerowError(f"nothing could be appended to {log.path}: {first_line(error)}") from error
    found = log.history().where(f"userMetadata = '{mark}'").select("version").first()
    if found is None:
        raise HedgerowError(f"the rows were appended to {log.path}, but are not indexed: they are always read")
    after, before = log.snapshot(found[0]), log.snapshot(found[0] - 1)
    new = {n: int(after.files.sizes[i]) for n, i in after.files.place.items() if n not in before.files.place}
    if new:
        stats = collect_files(after.frame(list(new)), segment.items, schema, file_names(new))
        meta = {key: value for key, value in segment.meta.items() if key != "checksum"}
        meta |= {"settings": settings(log.spark), "columns": after.columns}
        added = write_segment(log, meta, None, stats, measured(after, new, stats.rows, _blocks(new)))
        note(log, lambda m: with_segment(m, added, after, operation("append", int(found[0]), added)))


def roll_back(log: DeltaLog, manifest: Mapping[str, Any], segments: Sequence[Segment]) -> None:
    """Put back the files that the last rewrite replaced; rows that came since then stay."""
    done = [o for o in manifest["operations"] if o["operation"] == "apply" and "version" in o]
    if not done:
        raise HedgerowError(f"{log.path} has no rewrite of Hedgerow's to take back")
    last, snapshot = done[-1], log.snapshot()
    segment = next((s for s in segments if s.id == last["segment"]), None)
    ours = [] if segment is None else [n for n, size in segment.known.by_name.items() if _is_plain(snapshot, n, size)]
    if segment is None or len(ours) < len(segment.known):
        raise HedgerowError(
            f"the last rewrite of {log.path} cannot be taken back, for others changed its files since then: "
            f"RESTORE TABLE {log.sql_name} TO VERSION AS OF {last['version'] - 1} would undo their work too"
        )
    before, after = log.snapshot(last["version"] - 1), log.snapshot(last["version"])
    old = sorted(set(before.files.names) - set(after.files.names))
    if any(not Folder(log.spark, "").exists(log.place_of(n)) for n in old):
        raise HedgerowError(f"the files that the last rewrite of {log.path} replaced were vacuumed")
    transaction = snapshot.rewrite()
    version = transaction.commit(transaction.bring_back(before, old), ours, {"hedgerow": f"rollback {segment.id}"})
    noted = {**operation("rollback", version, None), "to": last["version"] - 1}

    def taken_back(found: dict[str, Any]) -> dict[str, Any]:
        kept = [{**o, "operation": "apply, taken back"} if o == last else o for o in found["operations"]]
        return {**found, "operations": [*kept, noted]}

    note(log, taken_back)


def _is_plain(snapshot: Snapshot, name: str, size: int) -> bool:
    """The file is there, as it was, and no row of it was deleted."""
    at = snapshot.files.place.get(name)
    return at is not None and int(snapshot.files.sizes[at]) == size and not snapshot.files.deleted[at]
