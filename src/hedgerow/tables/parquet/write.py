"""Writes a new Parquet table; its state is written last."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hedgerow.core.errors import HedgerowError
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.layouts.base import Layout, sql_of
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.core.pruning.words import searched_for_words
from hedgerow.spark.compute.checksum import Checksum, checksum, same_rows
from hedgerow.spark.compute.collect_stats import collect_files_and_rows
from hedgerow.spark.compute.evaluate import Item
from hedgerow.spark.compute.joins import Joins
from hedgerow.spark.optimizer.rule import settings
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import first_line, spark_errors
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.footers import footers_of, known_terms
from hedgerow.spark.storage.source import Source
from hedgerow.spark.write.blocks import block_of_file, write_blocks
from hedgerow.spark.write.copies import COPIES, check_can_overlap, collect_parts, write_copies
from hedgerow.spark.write.writing import Writing
from hedgerow.tables.entry import Fields, schema_of_fields, struct_of, total
from hedgerow.tables.known_files import LOG, KnownFiles
from hedgerow.tables.new_rows import check_names
from hedgerow.tables.parquet.folder import (
    ParquetFolder,
    bring_back,
    is_half_done,
    old_place,
    partial_place,
    side_of,
)
from hedgerow.tables.part import write_layout, write_part
from hedgerow.tables.plan import Plan
from hedgerow.tables.state import TableState, newest_state, operation, write_first_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CHANGED = "{} was changed meanwhile, so it is not replaced: apply again"


def write_files(
    folder: ParquetFolder, frame: DataFrame, layout: Layout, how: Writing, items: Sequence[Item], joins: Joins
) -> tuple[Checksum, BlockIndex, KnownFiles]:
    """Write rows into an empty table folder and collect the statistics of the items for the new files."""
    schema = schema_of_fields(folder.fields)
    if isinstance(layout, OverlapLayout):
        check_can_overlap(layout, schema)
    with step(folder.spark, "writing"):
        went_in = write_blocks(frame, layout, schema, folder.path, how, joins)
        if isinstance(layout, OverlapLayout) and layout.pairs:
            own = folder.frame(list(folder.data_files()))
            write_copies(own, layout, schema, f"{folder.path}/{COPIES}", how.sort_by, how.options)
    with step(folder.spark, "collecting statistics and comparing all rows"):
        index, files, came_out = _inspected(folder, layout, items, joins)
    return same_rows(went_in, came_out, frame, folder.frame(list(folder.data_files()))), index, files


def _inspected(
    folder: ParquetFolder, layout: Layout, items: Sequence[Item], joins: Joins
) -> tuple[BlockIndex, KnownFiles, Checksum]:
    """Return the statistics and sizes of all files, and the checksum of their rows."""
    own, hidden, schema = folder.data_files(), folder.hidden_files(), schema_of_fields(folder.fields)
    sizes = dict(sorted({**own, **hidden}.items()))
    frame = folder.frame(list(own))
    wanted = set(map(sql_of, items))
    footers = footers_of(Folder(folder.spark, folder.path), sizes, wanted, searched_for_words(items))
    if isinstance(layout, OverlapLayout):
        copies = folder.with_copies(list(hidden)) if hidden else None
        index = collect_parts(frame, copies, layout, items, schema, list(sizes))
        came_out = checksum(frame)
    else:
        known = known_terms(footers, schema, wanted)
        stats, came_out = collect_files_and_rows(frame, items, schema, list(sizes), known, joins)
        index = BlockIndex(stats)
    blocks = list(map(block_of_file, sizes))
    return index, KnownFiles.of_footers(sizes, footers, index.blocks.rows, blocks), came_out


def create(opened: Source, plan: Plan, to: str, overwrite: bool = False, copy_of: TableState | None = None) -> None:
    """Write the table beside its place and move it there when it is complete.

    In an object store, where a move copies file by file, it is written in its place; its state completes it.
    With `copy_of`, it becomes a replica of that table and has to have the same rows."""
    spark = opened.frame.sparkSession
    to = to.rstrip("/")
    target, (around, partial) = Folder(spark, to), partial_place(to)
    bring_back(spark, to)
    number = newest_state(side_of(spark, to))
    is_free = target.is_empty() or is_half_done(spark, to)
    if not (is_free or overwrite):
        raise HedgerowError(f"{to} is not empty: name another place, or ask to overwrite it")
    if target.is_store and not is_free and copy_of is None:
        raise HedgerowError(
            f"{to} lies in an object store, which cannot replace a folder in one step: name a new place"
        )
    place = to if target.is_store else f"{around}/{partial}"
    Folder(spark, place).delete()
    try:
        _write_table(opened, plan, place, copy_of)
        if place != to:
            _exchange(Folder(spark, around), partial, to.rpartition("/")[2], number)
    except spark_errors() as error:
        raise HedgerowError(f"{to} could not be written: {first_line(error)}") from error
    finally:
        if place != to or is_half_done(spark, to):
            Folder(spark, place).delete()
    spark.catalog.refreshByPath(to)  # as a write of Spark's own does: else a cached frame keeps the old rows


def _write_table(opened: Source, plan: Plan, place: str, copy_of: TableState | None) -> None:
    """Write a table into an empty folder; its layout first, its state last."""
    spark, frame, name = opened.frame.sparkSession, opened.frame, opened.name
    fields: Fields = tuple(json.loads(frame.schema.json())["fields"])
    if copy_of is not None:
        fields, name = copy_of.parts[-1].fields, copy_of.name
        frame = fitting_rows(fields, frame)
    folder = ParquetFolder(spark, place, fields)
    entry = write_layout(folder.side, plan.entry(fields, settings(spark), plan.items), plan.layout)
    went_in, index, files = write_files(folder, frame, plan.layout, plan.writing, plan.items, plan.joins)
    if copy_of is not None:
        check_same_rows(copy_of, went_in)
    entry = write_part(folder.side, replace(entry, checksum=went_in), index, files)
    done = operation("apply", 1, entry, rows=went_in.rows)
    state = TableState("parquet", name, (entry,), (done,), None if copy_of is None else copy_of.writes)
    write_first_state(folder.side, state)


def check_same_rows(table: TableState, found: Checksum) -> None:
    """HedgerowError unless a replica has the table's rows."""
    if found != total(table.parts):
        raise HedgerowError(f"these are not the rows of the table: {found}, but the table has {total(table.parts)}")


def fitting_rows(fields: Fields, frame: DataFrame) -> DataFrame:
    """Return the new rows with the table's columns in its order; HedgerowError if columns or types differ."""
    check_names(frame.columns)
    given = {f.name.lower(): f for f in frame.schema.fields}
    wanted = struct_of(fields)
    for field in wanted.fields:
        new_field = given.pop(field.name.lower(), None)
        kind = field.dataType.simpleString()
        if new_field is None:
            raise HedgerowError(f"the new rows have no column {field.name}")
        new_kind = new_field.dataType.simpleString()
        if new_kind != kind:
            raise HedgerowError(f"the new rows have {field.name} as {new_kind}, the table as {kind}: cast it first")
    if given:
        raise HedgerowError(f"the table has no column {', '.join(f.name for f in given.values())}")
    return frame.select(*(quote_name(name) for name in wanted.names))


def _exchange(around: Folder, new: str, name: str, number: int) -> None:
    """Replace the folder `name` by `new`; the old one is deleted only after the new one is in place.

    `number`: of the newest state of the folder that is to be replaced; HedgerowError if it has a newer one by now."""
    old = old_place(name)
    around.delete(old)
    was_there = around.exists(name)
    if was_there:
        around.move(name, old)
    try:
        if was_there and newest_state(side_of(around.spark, f"{around.root}/{old}")) != number:
            raise HedgerowError(_CHANGED.format(f"{around.root}/{name}"))
        around.move(new, name)
        if around.exists(f"{name}/{new}"):  # moved into a folder that another process made of this name meanwhile
            around.delete(f"{name}/{new}")
            raise HedgerowError(_CHANGED.format(f"{around.root}/{name}"))
    except BaseException:
        if was_there and around.exists(old):
            around.delete(name)
            around.move(old, name)
        raise
    if around.exists(f"{old}/{LOG}"):
        around.move(f"{old}/{LOG}", f"{name}/{LOG}")
    around.delete(old)
