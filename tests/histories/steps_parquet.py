"""What happens to a Parquet directory that Hedgerow wrote: appends, overwrites, and files that come, go and change."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import hedgerow as hr
from tests.histories import steps_delta
from tests.histories.model import ARROW, FIELDS, WIDER, Field, Row, arrow, without_nan
from tests.histories.world import NotNow, Table, World, a_layout, how_to_write, ours, registry, relearned

KINDS, step = registry()
START = ("create",)
# Steps that no session of Spark sees: what one has cached is refreshed after them, as Spark asks of its users.
BEHIND_SPARK = frozenset(
    (
        "make_anew",
        "delete_file",
        "replace_file",
        "replace_file_of_same_size",
        "file_of_another_schema",
        "move_directory",
    )
)


def remember(world: World) -> None:
    """A directory has no versions."""


def files_of(table: Table) -> list[Path]:
    return sorted(p for p in Path(table.path).glob("*.parquet") if not p.name.startswith(("_", ".")))


def a_file(table: Table, r: Random) -> Path:
    """One of several files: without any, Spark would not know the columns."""
    found = files_of(table)
    if len(found) < 2:
        raise NotNow
    return r.choice(found)


def without(table: Table, file: Path) -> tuple[Row, ...]:
    """The rows that the other files hold."""
    gone = set(pq.read_table(file, columns=["id"])["id"].to_pylist())
    return tuple(row for row in table.rows if row["id"] not in gone)


def put(file: Path, content: pa.Table, size: int | None = None) -> bool:
    """Write a file, of the given size if it can be had: bytes between the data and the footer mean nothing."""
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    draft = file.with_name(f".draft-{file.name}")
    pq.write_table(content, draft, compression="zstd", compression_level=19)
    written = draft.read_bytes()
    draft.unlink()
    if size is not None:
        if len(written) > size:
            return False
        footer = int.from_bytes(written[-8:-4], "little") + 8
        written = written[:-footer] + bytes(size - len(written)) + written[-footer:]
    file.unlink(missing_ok=True)
    file.write_bytes(written)
    return True


def truth(world: World, table: Table) -> None:
    """What Spark alone reads is what the table holds, after others made a mess of it."""
    found = world.plain.read.parquet(table.path).toArrow()
    kinds = {kind: name for name, kind in ARROW.items()}
    if any(f.type not in kinds for f in found.schema):
        return
    table.fields = tuple(Field(f.name, kinds[f.type]) for f in found.schema)
    table.rows = tuple(found.to_pylist())


# --- Hedgerow ---------------------------------------------------------------------------------------


@step(0)
def create(world: World, r: Random) -> str:
    rows = tuple(world.new_rows(r, FIELDS, 250) + world.new_rows(r, FIELDS, 150))
    table = Table(world.new_path("things"), "parquet", FIELDS, rows)
    world.main = table
    return f"{len(rows)} rows, {_write(world, r, table)}"


def _write(world: World, r: Random, table: Table) -> str:
    source = world.new_path("source")
    world.frame(world.plain, table.fields, table.rows).repartition(2).write.parquet(source)
    told, layout = a_layout(world, r, replace(table, path=source))
    with ours():
        hr.apply(
            world.attached, source, layout, table.path, how_to_write(r, layout), overwrite=os.path.exists(table.path)
        )
    return f"apply {told}"


@step(3)
def apply(world: World, r: Random) -> str:
    """Another layout, of what the table holds now."""
    table = world.main
    if table.loose:
        truth(world, table)
    told = _write(world, r, table)
    table.loose = False
    return f"overwrite=True, {told}"


@step(4)
def append_by_hedgerow(world: World, r: Random) -> str:
    table = world.main
    rows = world.new_rows(r, table.fields)
    with ours():
        hr.table(world.plain, table.path).append(world.frame(world.plain, table.fields, rows))
    table.rows += tuple(rows)
    return f"hr append of {len(rows)} rows from id {rows[0]['id']}"


@step(3)
def relearn(world: World, r: Random) -> str:
    return relearned(world, r, world.plain)


@step(3)
def replica(world: World, r: Random) -> str:
    told, layout = a_layout(world, r, world.main)
    with ours():
        hr.apply(world.plain, world.main.path, layout, to=world.main.path, replica=r.choice("ab"), overwrite=True)
    return f"replica of {told}"


@step(1)
def refresh_replicas(world: World, r: Random) -> str:
    with ours():
        table: Any = hr.table(world.plain, world.main.path)
        table.refresh_replicas()
    return "refresh_replicas"


# --- Spark --------------------------------------------------------------------------------------------


@step(3)
def append(world: World, r: Random) -> str:
    table, spark = world.main, world.writer(r)
    rows = world.new_rows(r, table.fields)
    world.frame(spark, table.fields, rows).coalesce(1).write.mode("append").parquet(table.path)
    table.rows += tuple(rows)
    return f"append of {len(rows)} rows from id {rows[0]['id']}"


@step(1)
def overwrite(world: World, r: Random) -> str:
    """Spark deletes all in the directory, Hedgerow's folder too."""
    table, spark = world.main, world.writer(r)
    rows = world.new_rows(r, FIELDS, 200)
    world.frame(spark, FIELDS, rows).repartition(2).write.mode("overwrite").parquet(table.path)
    table.fields, table.rows, table.loose = FIELDS, tuple(rows), False
    return f"overwrite by {len(rows)} rows"


@step(1)
def make_anew(world: World, r: Random) -> str:
    """Nothing stays but the path."""
    table = world.main
    shutil.rmtree(table.path)
    table.fields, table.rows, table.loose = FIELDS, tuple(world.new_rows(r, FIELDS, 250)), False
    return f"delete the directory, then {_write(world, r, table)}"


# --- files --------------------------------------------------------------------------------------------


@step(3)
def delete_file(world: World, r: Random) -> str:
    table = world.main
    file = a_file(table, r)
    rows = without(table, file)
    file.unlink()
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    told, table.rows = f"{file.name} with {len(table.rows) - len(rows)} rows is deleted", rows
    return told


@step(3)
def replace_file(world: World, r: Random) -> str:
    """Another file under the same name, of another size."""
    table = world.main
    file = a_file(table, r)
    rows, new, size = without(table, file), without_nan(world.new_rows(r, table.fields)), file.stat().st_size
    put(file, arrow(table.fields, new))
    if file.stat().st_size == size:
        world.believed = True
    table.rows = (*rows, *new)
    return f"{file.name} ({size} bytes) is replaced by {len(new)} rows of {file.stat().st_size} bytes"


@step(1)
def replace_file_of_same_size(world: World, r: Random) -> str:
    """What no list of names and sizes shows: reported apart, as believed."""
    table = world.main
    file = a_file(table, r)
    rows, new, size = without(table, file), without_nan(world.new_rows(r, table.fields, 12)), file.stat().st_size
    if not put(file, arrow(table.fields, new), size):
        raise NotNow
    table.rows, world.believed = (*rows, *new), True
    return f"{file.name} is replaced by {len(new)} rows in as many bytes, {size}"


@step(2)
def file_of_another_schema(world: World, r: Random) -> str:
    """A file with one column more, one less, one wider, or in another order: Spark takes one file's columns for all."""
    table = world.main
    how = r.choice(("more", "less", "wider", "order"))
    fields = list(table.fields)
    one = r.choice(fields[1:])
    match how:
        case "more":
            fields.append(Field(world.new_name("new_"), "int"))
        case "less":
            fields.remove(one)
        case "wider":
            fields = [Field(f.name, WIDER.get(f.kind, f.kind)) for f in fields]
        case "order":
            fields = [fields[0], *r.sample(fields[1:], len(fields) - 1)]
    rows = without_nan(world.new_rows(r, fields, 30))
    name = f"{r.choice(('a', 'part-00000', 'z'))}-{world.new_name('other_')}.parquet"
    put(Path(table.path) / name, arrow(fields, rows))
    table.loose = True
    empty = {f.name: None for f in table.fields}
    shared = {f.name for f in table.fields}
    table.rows += tuple({**empty, **{k: v for k, v in row.items() if k in shared}} for row in rows)
    return f"{name} with {how}: {one.name if how in ('less', 'wider') else ''}"


# --- directories ----------------------------------------------------------------------------------------


@step(2)
def copy_directory(world: World, r: Random) -> str:
    """The copy may be what changes from now on."""
    table = world.main
    copy = replace(table, path=world.new_path("copy"), versions={})
    shutil.copytree(table.path, copy.path)
    world.extras.append(copy)
    if r.random() < 0.5:
        world.extras = [t for t in world.tables if t is not copy]
        world.main = copy
        return f"copy the directory to {copy.path}, and go on with the copy"
    return f"copy the directory to {copy.path}"


@step(2)
def move_directory(world: World, r: Random) -> str:
    """Sometimes to where another table was a moment ago."""
    table, to = world.main, world.new_path("moved")
    if world.extras and r.random() < 0.5:
        gone = world.extras.pop()
        shutil.rmtree(gone.path)
        to = gone.path
    os.rename(table.path, to)
    table.path = to
    return f"move the directory to {to}"


step(2)(steps_delta.view)
