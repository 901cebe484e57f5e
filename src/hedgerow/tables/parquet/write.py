"""Writes a new Parquet table; its state is written last."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hedgerow.core.errors import HedgerowError
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.predicates.nodes import Column, Feature
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.spark.compute.checksum import Checksum, checksum, same_rows
from hedgerow.spark.compute.collect_stats import collect_files_and_rows
from hedgerow.spark.compute.joins import Joins
from hedgerow.spark.optimizer.jvm_facts import settings
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import first_line, spark_errors
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.source import Source
from hedgerow.spark.storage.waves import Wave
from hedgerow.spark.write.blocks import block_of_file, write_blocks
from hedgerow.spark.write.copies import COPIES, check_can_overlap, collect_parts, write_copies
from hedgerow.spark.write.writing import Writing
from hedgerow.tables.entry import Fields, schema_of_fields, struct_of, total
from hedgerow.tables.formats import check_names, footers_and_terms
from hedgerow.tables.known_files import SIDE, KnownFiles
from hedgerow.tables.lookups import Lookup, build_lookups, files_let_pass
from hedgerow.tables.parquet.claim import claimed
from hedgerow.tables.parquet.exchange import exchange
from hedgerow.tables.parquet.folder import ParquetFolder, side_of
from hedgerow.tables.parquet.runs import delete_left_behind, ended_partial, new_partial
from hedgerow.tables.parquet.target import Contents, check_target
from hedgerow.tables.parquet.waves import (
    forget_waves,
    has_waves,
    keep_finished,
    key_of,
    take_over,
    waves_of_plan,
    write_waves,
)
from hedgerow.tables.part import write_layout, write_part
from hedgerow.tables.rewrite_plan import Plan
from hedgerow.tables.state import TableState, operation, write_first_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_files(
    folder: ParquetFolder,
    frame: DataFrame,
    layout: Layout,
    writing: Writing,
    items: Sequence[Feature],
    joins: Joins,
    others: Collection[str] = (),
) -> tuple[Checksum, BlockIndex, KnownFiles]:
    """Write rows into a table folder and collect the statistics of the items for the new files.

    `others`: the names of the files that are in the folder already."""
    schema = schema_of_fields(folder.fields)
    if isinstance(layout, OverlapLayout):
        check_can_overlap(layout, schema)
    with step(folder.spark, "writing"):
        rows_read = write_blocks(frame, layout, schema, folder.path, writing, joins)
        if isinstance(layout, OverlapLayout) and layout.pairs:
            homes = folder.frame(list(folder.data_files()))
            write_copies(homes, layout, schema, f"{folder.path}/{COPIES}", writing.sort_by, writing.options)
    with step(folder.spark, "collecting statistics and comparing all rows"):
        own = {name: size for name, size in folder.data_files().items() if name not in others}
        index, files, rows_written = _inspected(folder, own, layout, items, joins, writing.group_rows > 0)
    return same_rows(rows_read, rows_written, frame, folder.frame(list(own))), index, files


def _inspected(
    folder: ParquetFolder,
    own: Mapping[str, int],
    layout: Layout,
    items: Sequence[Feature],
    joins: Joins,
    by_group: bool,
) -> tuple[BlockIndex, KnownFiles, Checksum]:
    """Return the statistics and sizes of the files, copies included, and the checksum of their rows."""
    hidden, schema = folder.hidden_files(), schema_of_fields(folder.fields)
    sizes = dict(sorted({**own, **hidden}.items()))
    frame = folder.frame(list(own))
    footers, entries, terms = footers_and_terms(folder.snapshot(), sizes, items, by_group)
    if isinstance(layout, OverlapLayout):
        copies = folder.with_copies(list(hidden)) if hidden else None
        index, rows = collect_parts(frame, copies, layout, items, schema, list(sizes)), checksum(frame)
    else:
        index, rows = collect_files_and_rows(frame, items, schema, entries, terms, joins)
    blocks = list(map(block_of_file, sizes))
    return index, KnownFiles.of_footers(sizes, footers, index.blocks.rows, blocks), rows


def lookups_of(
    folder: ParquetFolder,
    side: Folder,
    files: KnownFiles,
    index: BlockIndex,
    wanted: Mapping[Column, Sequence[int]],
    writing: Writing,
) -> tuple[Lookup, ...]:
    """Build the filters of files in a folder, in the side folder of their table."""
    if not wanted:
        return ()
    with step(folder.spark, "building filters for look-ups"):
        frame, schema = folder.frame(files.names), schema_of_fields(folder.fields)
        return build_lookups(side, frame, files, index, schema, wanted, writing.lookup_share)


def create(opened: Source, plan: Plan, to: str, overwrite: bool = False, copy_of: TableState | None = None) -> None:
    """Write the table beside its place and move it there when it is complete.

    In an object store, where a move copies file by file, it is written in its place, its state last.
    `copy_of`: the state of the table whose replica this is; both must have the same rows."""
    spark = opened.frame.sparkSession
    others = {name: source.roots for name, source in plan.joins.others.items()}
    target, before = check_target(spark, to, overwrite, opened.roots, others, copy_of is not None)
    waves = waves_of_plan(opened, plan)
    try:
        if Folder(spark, target).is_store:
            with claimed(Folder(spark, target), before, goes_on=len(waves) > 1):
                _write_table(opened, plan, waves, target, copy_of)
        else:
            _write_beside(opened, plan, waves, target, before, copy_of)
        if len(waves) > 1:
            forget_waves(side_of(spark, target))
    except spark_errors() as error:
        raise HedgerowError(f"{to} could not be written: {first_line(error)}") from error
    spark.catalog.refreshByPath(to)  # as Spark's own writes do; else a cached frame keeps the old rows


def _write_beside(
    opened: Source, plan: Plan, waves: Sequence[Wave], target: str, before: Contents, copy_of: TableState | None
) -> None:
    """Write the table beside its place, and exchange the two when it is complete.

    The folder of a failed run stays if some waves are finished in it."""
    spark = opened.frame.sparkSession
    around, partial = new_partial(target)
    parent = Folder(spark, around)
    if len(waves) > 1:
        take_over(spark, target, around, partial)
    delete_left_behind(spark, target)
    try:
        files = _write_table(opened, plan, waves, f"{around}/{partial}", copy_of)
        exchange(parent, partial, target.rpartition("/")[2], before, files)
    finally:
        if has_waves(Folder(spark, f"{around}/{partial}/{SIDE}")):
            parent.move(partial, ended_partial(target))
        else:
            parent.delete(partial)


def _write_table(
    opened: Source, plan: Plan, waves: Sequence[Wave], place: str, copy_of: TableState | None
) -> KnownFiles:
    """Write a table into a folder, its state last; return its files.

    The folder is empty, or has finished waves of an earlier run."""
    spark, name = opened.frame.sparkSession, opened.name
    fields: Fields = tuple(json.loads(opened.frame.schema.json())["fields"])
    if copy_of is not None:
        fields, name = copy_of.parts[-1].fields, copy_of.name
    folder = ParquetFolder(spark, place, fields)
    entry = plan.entry(fields, settings(spark), plan.items)

    def write(frame: DataFrame, others: Collection[str] = ()) -> tuple[Checksum, BlockIndex, KnownFiles]:
        rows = frame if copy_of is None else fitting_rows(fields, frame)
        return write_files(folder, rows, plan.layout, plan.writing, plan.items, plan.joins, others)

    if len(waves) > 1:
        key = key_of(opened, plan, entry)
        finished = keep_finished(folder, key, len(waves))
        entry = write_layout(folder.side, entry, plan.layout)
        rows, index, files = write_waves(folder, waves, key, finished, write)
        _check_is_all(opened, rows)
    else:
        entry = write_layout(folder.side, entry, plan.layout)
        rows, index, files = write(waves[0].frame)
    if copy_of is not None:
        check_same_rows(copy_of, rows)
    wanted = files_let_pass(plan.predicates, index.finest, entry.schema) if index.cells is None else {}
    lookups = lookups_of(folder, folder.side, files, index, wanted, plan.writing)
    entry = write_part(folder.side, replace(entry, checksum=rows, lookups=lookups), index, files)
    done = operation("apply", 1, entry, rows=rows.rows)
    state = TableState("parquet", name, (entry,), (done,), None if copy_of is None else copy_of.last_write)
    write_first_state(folder.side, state)
    return files


def _check_is_all(opened: Source, written: Checksum) -> None:
    """Raise HedgerowError unless the waves together have as many rows as the source."""
    if written.rows != opened.rows:
        raise HedgerowError(
            f"the waves have {written.rows} rows, but {opened.origin} has {opened.rows}, so nothing is changed: the "
            "source changed meanwhile"
        )


def check_same_rows(table: TableState, rows: Checksum) -> None:
    """Raise HedgerowError unless the rows of a replica are the table's rows."""
    if rows != total(table.parts):
        raise HedgerowError(f"these are not the rows of the table: {rows}, but the table has {total(table.parts)}")


def fitting_rows(fields: Fields, frame: DataFrame) -> DataFrame:
    """Return the new rows with the table's columns in its order; HedgerowError if columns or types differ."""
    check_names(frame.columns)
    new_fields = {f.name.lower(): f for f in frame.schema.fields}
    wanted = struct_of(fields)
    for field in wanted.fields:
        new_field = new_fields.pop(field.name.lower(), None)
        kind = field.dataType.simpleString()
        if new_field is None:
            raise HedgerowError(f"the new rows have no column {field.name}")
        new_kind = new_field.dataType.simpleString()
        if new_kind != kind:
            raise HedgerowError(f"the new rows have {field.name} as {new_kind}, the table as {kind}: cast it first")
    if new_fields:
        raise HedgerowError(f"the table has no column {', '.join(f.name for f in new_fields.values())}")
    return frame.select(*(quote_name(name) for name in wanted.names))
