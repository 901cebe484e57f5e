"""What happens to a Delta table: Hedgerow's writes, Delta's commands, other engines, other sessions."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from random import Random
from typing import Any

import hedgerow as hr
from hedgerow.spark.storage.delta_log import delta_log
from tests.histories.model import FIELDS, WIDER, Field, Row, a_row, a_value, arrow, literal, some_rows, without_nan
from tests.histories.world import (
    Declined,
    Kept,
    NotNow,
    Table,
    World,
    a_layout,
    how_to_write,
    ours,
    registry,
    relearned,
    renamed,
    with_names,
)

KINDS, step = registry()
START = ("create", "apply")
BEHIND_SPARK: frozenset[str] = frozenset()  # Delta lists its files anew for each query
_MAPPING = "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'"


def version_of(table: Table) -> int:
    """The newest version, as the log's directory says."""
    names = os.listdir(f"{table.path}/_delta_log")
    return max(int(n[:20]) for n in names if n[:20].isdigit() and n.endswith(".json"))


def remember(world: World) -> None:
    for table in world.tables:
        table.versions[version_of(table)] = table.now


def _write(
    world: World, r: Random, fields: tuple[Field, ...], rows: tuple[Row, ...], path: str, **options: str
) -> list[str]:
    """A new table in a few files; the columns of its partitions."""
    partitions = r.choice(([], [], ["part"])) if any(f.name == "part" for f in fields) else []
    spark = world.writer(r)
    writer = world.frame(spark, fields, rows).repartition(r.randrange(1, 4)).write.format("delta").options(**options)
    mode = "overwrite" if os.path.isdir(f"{path}/_delta_log") else "errorifexists"
    writer.mode(mode).option("overwriteSchema", "true").partitionBy(*partitions).save(path)
    return partitions


@step(0)
def create(world: World, r: Random) -> str:
    """A table with random features; one in five was Parquet, written by Hedgerow, and is converted."""
    fields = FIELDS
    rows = tuple(world.new_rows(r, fields, 250) + world.new_rows(r, fields, 150))
    table = Table(world.new_path("things"), "delta", fields, rows)
    world.main = table
    if r.random() < 0.2:
        table.kind = "parquet"
        source = world.new_path("source")
        world.frame(world.plain, fields, rows).write.parquet(source)
        told, layout = a_layout(world, r, replace(table, path=source))
        with ours():
            hr.apply(world.attached, source, layout, table.path, how_to_write(r, layout))
        world.plain.sql(f"CONVERT TO DELTA parquet.`{table.path}`")
        table.kind = "delta"
        return f"{len(rows)} rows as Parquet by Hedgerow ({told}), then CONVERT TO DELTA"
    chosen = {
        "delta.enableDeletionVectors": r.choice(("true", "false")),
        "delta.enableChangeDataFeed": r.choice(("true", "false", "false")),
        "delta.enableRowTracking": r.choice(("true", "false", "false")),
        "delta.enableTypeWidening": r.choice(("true", "false")),
        **({"delta.columnMapping.mode": "name"} if r.random() < 0.5 else {}),
    }
    if "delta.columnMapping.mode" in chosen:  # Delta refuses some writes to a table with both
        chosen["delta.enableChangeDataFeed"] = "false"
    table.partitions = tuple(_write(world, r, fields, rows, table.path, **chosen))
    on = sorted(k.removeprefix("delta.") for k, v in chosen.items() if v != "false")
    return f"{len(rows)} rows, partitioned by {table.partitions}, {on}"


# --- Hedgerow ---------------------------------------------------------------------------------------


@step(8)
def apply(world: World, r: Random) -> str:
    told, layout = a_layout(world, r, world.main)
    with ours():
        hr.apply(world.attached, world.main.path, layout, options=how_to_write(r, layout))
    return f"apply {told}"


@step(2)
def apply_to_part(world: World, r: Random) -> str:
    """Some partitions, or some files."""
    table = world.main
    told, layout = a_layout(world, r, table)
    if "part" in table.partitions and r.random() < 0.6:
        where: str | list[str] = r.choice(("part = 'a'", "part IS NULL", "part IN ('b', 'x y=z')"))
    else:
        with ours():
            files = sorted(hr.table(world.plain, table.path).files())
        where = r.sample(files, r.randrange(1, len(files) + 1)) if files else []
    with ours():
        hr.apply(world.attached, table.path, layout, options=how_to_write(r, layout), where=where)
    return f"apply where={where if isinstance(where, str) else f'{len(where)} files'} {told}"


@step(3)
def apply_partitions(world: World, r: Random) -> str:
    """Some partitions, each in a layout of its own, at the same time."""
    table = world.main
    if not table.partitions:
        raise NotNow
    with ours():
        partitions = delta_log(world.attached, table.path).snapshot().partitions()
    if not partitions:
        raise NotNow
    chosen = {where: a_layout(world, r, table)[1] for where in r.sample(partitions, min(3, len(partitions)))}
    layouts, how = hr.LearnedPartitions(chosen), how_to_write(r, None)
    with ours():
        hr.apply_partitions(world.attached, table.path, layouts, how, at_once=3)
    return f"apply_partitions to {', '.join(chosen)}"


@step(3)
def append_by_hedgerow(world: World, r: Random) -> str:
    table = world.main
    rows = world.new_rows(r, table.fields)
    with ours():
        hr.table(world.attached, table.path).append(world.frame(world.attached, table.fields, rows))
    table.rows += tuple(rows)
    return f"hr append of {len(rows)} rows from id {rows[0]['id']}"


@step(3)
def relearn(world: World, r: Random) -> str:
    return relearned(world, r, world.attached)


@step(2)
def rollback(world: World, r: Random) -> str:
    with ours():
        table: Any = hr.table(world.plain, world.main.path)
        table.rollback()
    return "hr rollback"


# --- Delta's commands --------------------------------------------------------------------------------


@step(3)
def append(world: World, r: Random) -> str:
    table, spark = world.main, world.writer(r)
    rows = world.new_rows(r, table.fields)
    frame = world.frame(spark, table.fields, rows)
    if r.random() < 0.5:
        frame.coalesce(1).write.format("delta").mode("append").save(table.path)
    else:
        spark.sql(f"INSERT INTO {table.name} BY NAME SELECT * FROM {world.view(spark, table.fields, rows)}")
    table.rows += tuple(rows)
    return f"append of {len(rows)} rows from id {rows[0]['id']}"


@step(1)
def overwrite(world: World, r: Random) -> str:
    table, spark = world.main, world.writer(r)
    rows = world.new_rows(r, table.fields, 200)
    world.frame(spark, table.fields, rows).write.format("delta").mode("overwrite").save(table.path)
    table.rows = tuple(rows)
    return f"overwrite by {len(rows)} rows"


@step(2)
def replace_where(world: World, r: Random) -> str:
    """The rows that meet a condition go, others that meet it come."""
    table, spark = world.main, world.writer(r)
    chosen = some_rows(r, table.fields, table.rows)
    new = [row for row in world.new_rows(r, table.fields, 100) if chosen.matches(row)]
    frame = world.frame(spark, table.fields, new)
    frame.write.format("delta").mode("overwrite").option("replaceWhere", chosen.sql).save(table.path)
    table.rows = (*(row for row in table.rows if not chosen.matches(row)), *new)
    return f"replaceWhere {chosen.sql} by {len(new)} rows"


@step(4)
def delete(world: World, r: Random) -> str:
    table, chosen = world.main, some_rows(r, world.main.fields, world.main.rows)
    world.writer(r).sql(f"DELETE FROM {table.name} WHERE {chosen.sql}")
    table.rows = tuple(row for row in table.rows if not chosen.matches(row))
    return f"DELETE WHERE {chosen.sql}"


@step(4)
def update(world: World, r: Random) -> str:
    table, chosen = world.main, some_rows(r, world.main.fields, world.main.rows)
    f = r.choice(table.free())
    value = a_value(r, f.kind, r.randrange(320))
    sql = f"UPDATE {table.name} SET `{f.name}` = CAST({literal(value, f.kind)} AS {f.kind}) WHERE {chosen.sql}"
    world.writer(r).sql(sql)
    table.rows = tuple({**row, f.name: value} if chosen.matches(row) else row for row in table.rows)
    return sql.removeprefix("UPDATE ").replace(table.path, "t")


@step(3)
def merge(world: World, r: Random) -> str:
    table, spark = world.main, world.writer(r)
    old = {row["id"]: row for row in r.sample(table.rows, min(len(table.rows), r.randrange(0, 40)))}
    new = world.new_rows(r, table.fields, 30)
    fresh = [a_row(r, table.fields, own) for own in old]
    source = world.view(spark, table.fields, [*fresh, *new])
    deletes = "WHEN MATCHED AND s.id % 3 = 0 THEN DELETE " if r.random() < 0.6 else ""
    spark.sql(
        f"MERGE INTO {table.name} t USING {source} s ON t.id = s.id {deletes}"
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    changed = {row["id"]: row for row in fresh if not (deletes and row["id"] % 3 == 0)}
    table.rows = (
        *(changed.get(row["id"], row) for row in table.rows if row["id"] not in old or row["id"] in changed),
        *new,
    )
    return f"MERGE of {len(fresh)} matched{' (a third deleted)' if deletes else ''} and {len(new)} new rows"


@step(2)
def optimize(world: World, r: Random) -> str:
    names = [f.name for f in world.main.free()]
    by = f" ZORDER BY ({', '.join(r.sample(names, 2))})" if r.random() < 0.5 else ""
    world.writer(r).sql(f"OPTIMIZE {world.main.name}{by}")
    return f"OPTIMIZE{by}"


@step(1)
def purge(world: World, r: Random) -> str:
    world.writer(r).sql(f"REORG TABLE {world.main.name} APPLY (PURGE)")
    return "REORG TABLE APPLY (PURGE)"


@step(2)
def restore(world: World, r: Random) -> str:
    table = world.main
    version = r.choice(sorted(table.versions))
    world.writer(r).sql(f"RESTORE TABLE {table.name} TO VERSION AS OF {version}")
    table.has(table.versions[version])
    return f"RESTORE TO VERSION AS OF {version}"


@step(2)
def clone(world: World, r: Random) -> str:
    """A shallow clone, which is then a table of its own beside the first."""
    table = world.main
    version = r.choice(sorted(table.versions)) if r.random() < 0.4 else None
    held = table.now if version is None else table.versions[version]
    copy = Table(world.new_path("clone"), "delta", held.fields, held.rows, table.partitions)
    at = "" if version is None else f" VERSION AS OF {version}"
    world.writer(r).sql(f"CREATE TABLE {copy.name} SHALLOW CLONE {table.name}{at}")
    world.extras.append(copy)
    return f"SHALLOW CLONE{at}"


@step(1)
def work_on_clone(world: World, r: Random) -> str:
    """From now on the clone is what changes, and the first table is looked at."""
    if not world.extras:
        raise NotNow
    other = r.choice(world.extras)
    world.extras = [t for t in world.tables if t is not other]
    world.main = other
    return f"go on with {os.path.basename(other.path)}"


@step(1)
def create_or_replace(world: World, r: Random) -> str:
    table, spark = world.main, world.writer(r)
    fields = tuple(f for f in FIELDS if f.name == "id" or r.random() < 0.85)
    rows = world.new_rows(r, fields, 250)
    order = [fields[0], *r.sample(fields[1:], len(fields) - 1)]
    view = world.view(spark, order, rows)
    spark.sql(f"CREATE OR REPLACE TABLE {table.name} USING delta AS SELECT * FROM {view}")
    table.fields, table.rows, table.partitions = tuple(order), tuple(rows), ()
    return f"CREATE OR REPLACE TABLE with {len(rows)} rows and columns {[f.name for f in order]}"


@step(1)
def make_anew(world: World, r: Random) -> str:
    """Drop the table with all its files, or all but the folder `_hedgerow`, and make another at the same path."""
    table = world.main
    keeps = r.random() < 0.5
    for name in os.listdir(table.path):
        if name == "_hedgerow" and keeps:
            continue
        whole = f"{table.path}/{name}"
        shutil.rmtree(whole) if os.path.isdir(whole) else os.remove(whole)
    jvm = world.plain._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    world.extras = []  # a shallow clone has lost its files
    rows = tuple(world.new_rows(r, FIELDS, 250))
    table.partitions = tuple(_write(world, r, FIELDS, rows, table.path))
    table.fields, table.rows, table.versions = FIELDS, rows, {}
    return f"drop, and make anew at the same path with {len(rows)} rows{', _hedgerow stays' if keeps else ''}"


@step(1)
def vacuum(world: World, r: Random) -> str:
    """Old versions can be read no more, or in part: of these, the plain session is the judge."""
    if r.random() < 0.5:
        raise NotNow
    world.writer(r).sql(f"VACUUM {world.main.name} RETAIN 0 HOURS")
    world.extras = []
    world.main.versions = {version_of(world.main): world.main.now}
    return "VACUUM RETAIN 0 HOURS"


# --- columns ------------------------------------------------------------------------------------------


def _mapped(world: World) -> None:
    """Column mapping, without which no column can be renamed."""
    told = world.plain.sql(f"DESCRIBE DETAIL {world.main.name}").select("properties").first()
    if told is not None and told[0].get("delta.columnMapping.mode") != "name":
        world.plain.sql(f"ALTER TABLE {world.main.name} SET TBLPROPERTIES ({_MAPPING})")


def _learned(world: World, r: Random) -> Field:
    """A column, most often one that the newest layout was learned for."""
    free = world.main.free()
    asked = [f for f in free if any(f.name in c.split() for c in world.conditions)]
    return r.choice(asked) if asked and r.random() < 0.7 else r.choice(free)


def touch(world: World, name: str) -> None:
    """The column is not what it was: queries ask about it at once, and for some time more often."""
    world.touched = [*world.touched[-3:], name]
    world.touched_now.append(name)


def _rename(world: World, old: str, new: str) -> None:
    table = world.main
    world.plain.sql(f"ALTER TABLE {table.name} RENAME COLUMN `{old}` TO `{new}`")
    table.fields, table.rows = renamed(table.fields, {old: new}), with_names(table.rows, {old: new})
    touch(world, new)


@step(2)
def rename(world: World, r: Random) -> str:
    _mapped(world)
    old = r.choice(world.main.free()).name
    new = world.new_name(f"{old[:6]}_")
    _rename(world, old, new)
    return f"RENAME COLUMN {old} TO {new}"


@step(2)
def rename_crosswise(world: World, r: Random) -> str:
    _mapped(world)
    free = world.main.free()
    one = _learned(world, r)
    same = [f for f in free if f.kind == one.kind and f != one]
    two = r.choice(same) if same and r.random() < 0.7 else r.choice([f for f in free if f != one])
    for old, new in ((one.name, "in_between"), (two.name, one.name), ("in_between", two.name)):
        _rename(world, old, new)
    return f"rename {one.name} and {two.name} crosswise"


@step(2)
def drop_and_add(world: World, r: Random) -> str:
    """A column goes, and another of its name comes; it is NULL in all rows."""
    _mapped(world)
    table = world.main
    gone = _learned(world, r)
    world.plain.sql(f"ALTER TABLE {table.name} DROP COLUMN `{gone.name}`")
    table.fields = tuple(f for f in table.fields if f != gone)
    table.rows = tuple({k: v for k, v in row.items() if k != gone.name} for row in table.rows)
    if r.random() < 0.3:
        return f"DROP COLUMN {gone.name}"
    kind = gone.kind if r.random() < 0.7 else r.choice(("int", "string", "date"))
    return f"DROP COLUMN {gone.name}, {_add(world, Field(gone.name, kind))}"


@step(1)
def add_column(world: World, r: Random) -> str:
    return _add(world, Field(world.new_name("new_"), r.choice(("int", "string", "date", "timestamp"))))


def _add(world: World, new: Field) -> str:
    table = world.main
    world.plain.sql(f"ALTER TABLE {table.name} ADD COLUMN `{new.name}` {new.kind}")
    table.fields = (*table.fields, new)
    table.rows = tuple({**row, new.name: None} for row in table.rows)
    touch(world, new.name)
    return f"ADD COLUMN {new.name} {new.kind}"


@step(2)
def widen(world: World, r: Random) -> str:
    table = world.main
    narrow = [f for f in table.free() if f.kind in WIDER]
    if not narrow:
        raise NotNow
    f = r.choice(narrow)
    world.plain.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    world.plain.sql(f"ALTER TABLE {table.name} ALTER COLUMN `{f.name}` TYPE {WIDER[f.kind]}")
    table.fields = tuple(Field(g.name, WIDER[g.kind]) if g == f else g for g in table.fields)
    return f"ALTER COLUMN {f.name} TYPE {WIDER[f.kind]}"


# --- others --------------------------------------------------------------------------------------------


@step(2)
def append_by_delta_rs(world: World, r: Random) -> str:
    """Another engine; it declines tables with features that it does not know."""
    import deltalake

    table = world.main
    rows = without_nan(world.new_rows(r, table.fields))
    try:
        deltalake.write_deltalake(table.path, arrow(table.fields, rows), mode="append")
    except Exception as error:  # what it raises has no common ground
        raise Declined(f"{type(error).__name__} {error}") from error
    table.rows += tuple(rows)
    return f"delta-rs append of {len(rows)} rows from id {rows[0]['id']}"


@step(2)
def view(world: World, r: Random) -> str:
    """A view by SQL, which looks at the table anew, or of a frame, which keeps what it saw; or a cached one."""
    table = r.choice(world.tables)
    name = world.new_name("view_")
    cached = r.random() < 0.4
    if r.random() < 0.5:
        where = r.choice(("", " WHERE id % 2 = 0", " WHERE id > 50"))
        world.attached.sql(f"CREATE TEMP VIEW {name} AS SELECT * FROM {table.name}{where}")
        told = f"SQL{where}"
    else:
        world.attached.read.format(table.kind).load(table.path).createTempView(name)
        told = "frame"
    if cached:
        world.attached.catalog.cacheTable(name)
    world.kept.append(Kept(name, table.fields, cached))
    return f"{'cached ' if cached else ''}view {name} of a {told}"
