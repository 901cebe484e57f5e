"""Writes a managed Parquet table, appends to it, and brings replicas up to date; the manifest is written last."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from hedgerow.core.errors import FormatError, HedgerowError
from hedgerow.core.index.block_index import BlockIndex, concat_indexes
from hedgerow.core.index.index_file import index_bytes
from hedgerow.core.index.without_columns import without_columns
from hedgerow.core.layouts.base import Layout, layout_to_json, sql_of
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.core.pruning.words import searched_for_words
from hedgerow.spark.compute.checksum import Checksum, checksum, same_rows
from hedgerow.spark.compute.collect_stats import collect_files_and_rows
from hedgerow.spark.compute.evaluate import Item
from hedgerow.spark.compute.joins import NO_JOINS, Joins
from hedgerow.spark.optimizer.rule import settings
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import first_line, spark_errors
from hedgerow.spark.storage.folder import PARTIAL, Folder
from hedgerow.spark.storage.footers import footers_of, known_terms
from hedgerow.spark.storage.source import Source, open_source
from hedgerow.spark.write.blocks import block_of_file, write_blocks
from hedgerow.spark.write.copies import COPIES, check_can_overlap, collect_parts, write_copies
from hedgerow.spark.write.writing import Writing
from hedgerow.tables.known_files import SIDE, KnownFiles
from hedgerow.tables.new_rows import check_names
from hedgerow.tables.parquet.drafts import give_up, move_in, new_draft
from hedgerow.tables.parquet.exchange import exchange
from hedgerow.tables.parquet.manifest import Manifest, manifest_name, read_manifest
from hedgerow.tables.parquet.stored import LAYOUT, StoredParquet, data_files, is_half_done, partial_place
from hedgerow.tables.parquet.target import check_target
from hedgerow.tables.sealed import digest
from hedgerow.tables.settings_fit import check_settings, settings_as_written
from hedgerow.tables.stored_joins import stale, to_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NUMBERED = re.compile(rf"(?:manifest-(\d+)\.json|(?:index|files)-(\d+)-[0-9a-f]{{8}}\.arrow)(?:{PARTIAL})?")
_MAX_KEPT_MANIFESTS = 10  # the newest, and some more for readers that still use an older one


def write_files(
    table: StoredParquet, frame: DataFrame, layout: Layout, how: Writing, items: Sequence[Item], joins: Joins
) -> tuple[Checksum, BlockIndex, KnownFiles]:
    """Writes rows into an empty table folder and collects the statistics of the items for the new files."""
    if isinstance(layout, OverlapLayout):
        check_can_overlap(layout, table.schema)
    with step(table.spark, "writing"):
        went_in = write_blocks(frame, layout, table.schema, table.path, how, joins)
        if isinstance(layout, OverlapLayout) and layout.pairs:
            own = table.frame(list(data_files(table.spark, table.path)))
            where = f"{table.path}/{COPIES}"
            write_copies(own, layout, table.schema, where, how.sort_by, how.options)
    with step(table.spark, "collecting statistics and comparing all rows"):
        index, files, came_out = _inspected(table, layout, items, joins)
    return same_rows(went_in, came_out, frame, table.frame(list(data_files(table.spark, table.path)))), index, files


def _inspected(
    table: StoredParquet, layout: Layout, items: Sequence[Item], joins: Joins
) -> tuple[BlockIndex, KnownFiles, Checksum]:
    """The statistics and sizes of all files, and the checksum of their rows."""
    own, hidden = data_files(table.spark, table.path), table.hidden_files()
    sizes = dict(sorted({**own, **hidden}.items()))
    frame = table.frame(list(own))
    wanted = set(map(sql_of, items))
    footers = footers_of(Folder(table.spark, table.path), sizes, wanted, searched_for_words(items))
    if isinstance(layout, OverlapLayout):
        copies = table.with_copies(list(hidden)) if hidden else None
        index = collect_parts(frame, copies, layout, items, table.schema, list(sizes))
        came_out = checksum(frame)
    else:
        known = known_terms(footers, table.schema, wanted)
        stats, came_out = collect_files_and_rows(frame, items, table.schema, list(sizes), known, joins)
        index = BlockIndex(stats)
    blocks = list(map(block_of_file, sizes))
    return index, KnownFiles.of_footers(sizes, footers, index.blocks.rows, blocks), came_out


def add_rows(
    table: StoredParquet, frame: DataFrame, finish: Callable[[Checksum, BlockIndex, KnownFiles], object]
) -> None:
    """Writes the rows into a draft, calls `finish` to commit them, and then moves the files into the table.

    Without rows, nothing is changed."""
    draft, names = new_draft(table), tuple[str, ...]()
    try:
        with settings_as_written(table.spark, table.manifest.settings):
            now = settings(table.spark)
            check_settings(f"nothing can be appended to {table.path}", table.manifest.settings, now)
            if stale(table.manifest.joined, table.joins):
                table.joins.check(open_source(table.spark, frame, table.name))
            went_in, index, files = write_files(
                draft, frame, table.layout, table.manifest.writing, table.manifest.statistics, table.joins
            )
        names = files.names if went_in.rows else ()
        if names:
            finish(went_in, index, files)
    except BaseException as error:
        give_up(table, draft, names)
        if isinstance(error, spark_errors()):
            raise HedgerowError(f"nothing could be appended to {table.path}: {first_line(error)}") from error
        raise
    move_in(table, draft, names)
    table.spark.catalog.refreshByPath(table.path)  # else a cached frame lacks the new rows


def commit_append(
    stored: StoredParquet, went_in: Checksum, index: BlockIndex, files: KnownFiles, copy_of: StoredParquet | None = None
) -> bool:
    """Commits an append after the newest manifest, which may be a concurrent writer's; returns whether it succeeded.

    With `copy_of`, it fails instead of following another writer: the replica must equal the table as we read it."""
    table, items = stored, stored.manifest.statistics
    while True:
        # The new files were looked at with the present versions of other tables, the old ones perhaps with older ones.
        lost = stale(table.manifest.joined, stored.joins)
        grown = concat_indexes(table.stored_index, without_columns(index, items, lost))
        total = table.manifest.checksum + went_in
        manifest = replace(table.manifest, number=table.manifest.number + 1, checksum=total, operation=None)
        if copy_of is not None:
            check_same_rows(copy_of, total)
            manifest = manifest.as_copy_of(copy_of.manifest)
        if commit(stored.spark, stored.path, manifest, grown, table.known + files, after=table.manifest):
            return True
        table = StoredParquet.open(stored.spark, stored.path)
        if set(files.names) <= set(table.known.names):
            return True  # the manifest that came first is ours: its writing succeeded, and was then tried again
        if copy_of is not None:
            return False


def append_to_replica(replica: StoredParquet, frame: DataFrame, of: StoredParquet) -> bool:
    """Appends the rows that the replica lacks of the table `of`; False if another writer came first."""

    def commit_copy(went_in: Checksum, index: BlockIndex, files: KnownFiles) -> None:
        if not commit_append(replica, went_in, index, files, of):
            raise _Overtaken

    try:
        add_rows(replica, frame, commit_copy)
    except _Overtaken:
        return False
    return True


class _Overtaken(Exception):
    """Another writer appended to the replica first."""


def check_same_rows(table: StoredParquet, went_in: Checksum) -> None:
    """HedgerowError unless the written rows are the table's."""
    if went_in != table.manifest.checksum:
        raise HedgerowError(
            f"these are not the rows of {table.path}: {went_in}, but the table has {table.manifest.checksum}"
        )


def fitting_rows(table: StoredParquet, frame: DataFrame) -> DataFrame:
    """The new rows with the table's columns in its order; HedgerowError if columns or types differ."""
    check_names(frame.columns)
    given = {f.name.lower(): f for f in frame.schema.fields}
    for field in table.spark_schema.fields:
        new_field = given.pop(field.name.lower(), None)
        wanted = field.dataType.simpleString()
        if new_field is None:
            raise HedgerowError(f"the new rows have no column {field.name}")
        if new_field.dataType.simpleString() != wanted:
            kind = new_field.dataType.simpleString()
            raise HedgerowError(f"the new rows have {field.name} as {kind}, the table as {wanted}: cast it first")
    if given:
        raise HedgerowError(f"the table has no column {', '.join(f.name for f in given.values())}")
    return frame.select(*(quote_name(name) for name in table.spark_schema.names))


def create(
    opened: Source,
    layout: Layout,
    to: str,
    *,
    items: Sequence[Item],
    provenance: Mapping[str, Any],
    how: Writing,
    overwrite: bool = False,
    copy_of: StoredParquet | None = None,
    joins: Joins = NO_JOINS,
) -> None:
    """Writes the table beside its place and moves it there when it is complete.

    In an object store, where a move copies file by file, it is written in its place; its manifest completes it.
    With `copy_of`, it becomes a replica of that table and has to have the same rows."""
    spark = opened.frame.sparkSession
    others = {name: other.roots for name, other in joins.others.items()}
    target, before = check_target(spark, to, overwrite, opened.roots, others, copy_of is not None)
    around, partial = partial_place(target)
    place = target if Folder(spark, target).is_store else f"{around}/{partial}"
    Folder(spark, place).delete()
    try:
        layout_bytes = layout_to_json(layout).encode()
        Folder(spark, f"{place}/{SIDE}").write(LAYOUT, layout_bytes)
        manifest = Manifest(
            number=1,
            name=opened.name,
            schema=json.loads(opened.frame.schema.json()),
            settings=settings(spark),
            writing=how,
            statistics=tuple(items),
            checksum=Checksum(0, 0, 0),  # no rows are written yet
            joined=to_store(joins, (*items, *layout.features)),
            origin=provenance,
            seals={LAYOUT: digest(layout_bytes)},
        )
        frame = opened.frame
        if copy_of is not None:
            of = copy_of.manifest
            manifest = replace(manifest, name=of.name, schema=of.schema).as_copy_of(of)
            frame = fitting_rows(copy_of, frame)
        went_in, index, files = write_files(StoredParquet(spark, place, manifest), frame, layout, how, items, joins)
        if copy_of is not None:
            check_same_rows(copy_of, went_in)
        commit(spark, place, replace(manifest, checksum=went_in), index, files)
        if place != target:
            exchange(Folder(spark, around), partial, target.rpartition("/")[2], before, files)
    except spark_errors() as error:
        raise HedgerowError(f"{to} could not be written: {first_line(error)}") from error
    finally:
        if place != target or is_half_done(spark, target):
            Folder(spark, place).delete()
    spark.catalog.refreshByPath(to)  # as a write of Spark's own does: else a cached frame keeps the old rows


def commit(
    spark: SparkSession,
    path: str,
    manifest: Manifest,
    index: BlockIndex,
    files: KnownFiles,
    after: Manifest | None = None,
) -> bool:
    """Writes the index, the list of files and then the manifest; False if a manifest of this number exists already.

    HedgerowError unless the table still has the manifest `after`: another table may have replaced it meanwhile."""
    side = Folder(spark, f"{path}/{SIDE}")
    number = manifest.number
    index_name, files_name = (f"{kind}-{number}-{uuid4().hex[:8]}.arrow" for kind in ("index", "files"))
    written = {index_name: index_bytes(index), files_name: files.to_bytes()}
    kept = {name: seal for name, seal in manifest.seals.items() if name in (LAYOUT, manifest.copy_of)}
    listed = replace(
        manifest,
        index=index_name,
        files=files_name,
        seals={**kept, **{name: digest(data) for name, data in written.items()}},
        written=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )
    _check_follows(side, path, after)
    for name, data in written.items():
        side.write(name, data)
    if not side.write(manifest_name(number), listed.to_bytes(), new=True):
        return False
    try:
        _check_follows(side, path, after)
    except HedgerowError:
        side.delete(manifest_name(number))
        raise
    for name in side.sizes():
        match = _NUMBERED.fullmatch(name)
        if match and int(match[1] or match[2]) <= number - _MAX_KEPT_MANIFESTS:
            side.delete(name)
    return True


def _check_follows(side: Folder, path: str, after: Manifest | None) -> None:
    """HedgerowError unless this manifest is still the table's; None stands for a table that has none yet."""
    if after is not None:
        with suppress(FormatError):
            if read_manifest(side, after.number, path).index == after.index:
                return
        raise HedgerowError(f"another table took the place of {path} meanwhile, so nothing is changed")
