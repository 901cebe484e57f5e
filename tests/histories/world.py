"""The tables of one history, the sessions that work on them, and what a step is.

    attached   Hedgerow's rule prunes its queries          plain, other   two more sessions without the rule

A step is a name and a seed: it looks at the state of the world and chooses by its own `random.Random`, so that it makes
sense after other steps were left out, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import hedgerow as hr
from hedgerow.core.errors import EngineError
from hedgerow.core.layouts.overlap import OverlapLayout
from tests.histories.model import Field, Row, a_condition, a_sharp_condition, frame, rows_of

ENABLED = "hedgerow.enabled"
LEARNERS = ("qdtree", "qdtree", "pando", "range", "zorder", "hilbert", "bottom_up", "sop_zorder", "random")
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.databricks.delta.vacuum.parallelDelete.enabled": "false",
    # Thousands of queries that differ, over a few hundred rows: no code is worth compiling.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # of VACUUM's listing: 10,000 tasks took 2 minutes
    "spark.sql.files.ignoreMissingFiles": "false",
}


class NotNow(Exception):
    """The step makes no sense in this state."""


class Declined(Exception):
    """Another engine would not do it."""


class RawError(Exception):
    """Hedgerow ended with something else than one sentence of its own."""


@dataclass(frozen=True)
class Version:
    fields: tuple[Field, ...]
    rows: tuple[Row, ...]


@dataclass
class Table:
    """A table and what it must hold. Of a `loose` one nobody knows: what Spark alone says of it is the truth."""

    path: str
    kind: str  # "delta" or "parquet"
    fields: tuple[Field, ...]
    rows: tuple[Row, ...]
    partitions: tuple[str, ...] = ()
    versions: dict[int, Version] = field(default_factory=dict)
    loose: bool = False
    files: int = 0  # that a query without a condition opened last

    @property
    def name(self) -> str:
        return f"{self.kind}.`{self.path}`"

    @property
    def now(self) -> Version:
        return Version(self.fields, self.rows)

    def has(self, version: Version) -> None:
        self.fields, self.rows = version.fields, version.rows

    def named(self, name: str) -> Field:
        return next(f for f in self.fields if f.name == name)

    def free(self) -> list[Field]:
        """Columns that may be renamed and dropped."""
        return [f for f in self.fields if f.name != "id" and f.name not in self.partitions]


@dataclass
class Kept:
    """A view or a cached frame, made at some time: attached and unattached it answers the same."""

    name: str
    fields: tuple[Field, ...]
    cached: bool = False


@dataclass
class World:
    attached: SparkSession
    plain: SparkSession
    other: SparkSession
    folder: Path
    main: Table = field(init=False)
    extras: list[Table] = field(default_factory=list)  # clones and copies
    kept: list[Kept] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)  # that the newest layout was learned from
    touched: list[str] = field(default_factory=list)  # columns that became others, the last ones
    touched_now: list[str] = field(default_factory=list)  # by this step
    layouts: list[Any] = field(default_factory=list)
    next_id: int = 0
    names: int = 0
    believed: bool = False  # a file was replaced under its name and size: known to be believed

    @property
    def tables(self) -> list[Table]:
        return [self.main, *self.extras]

    def writer(self, r: Random) -> SparkSession:
        return r.choice((self.attached, self.plain, self.other))

    def new_name(self, what: str) -> str:
        self.names += 1
        return f"{what}{self.names}"

    def new_path(self, what: str) -> str:
        return str(self.folder / self.new_name(what))

    def new_rows(self, r: Random, fields: Sequence[Field], most: int = 60) -> list[Row]:
        n = r.randrange(1, most)
        self.next_id += n
        return rows_of(r, fields, self.next_id - n, n)

    def frame(self, spark: SparkSession, fields: Sequence[Field], rows: Sequence[Row]) -> DataFrame:
        return frame(spark, fields, rows)

    def view(self, spark: SparkSession, fields: Sequence[Field], rows: Sequence[Row]) -> str:
        """A temporary view with these rows."""
        name = self.new_name("rows_")
        frame(spark, fields, rows).createOrReplaceTempView(name)
        return name


# --- Hedgerow's own ---------------------------------------------------------------------------------


@contextmanager
def ours() -> Iterator[None]:
    """A refusal is one sentence that a place in the code foresaw; anything else is a fault."""
    try:
        yield
    except hr.HedgerowError as error:
        if type(error) is EngineError:
            raise RawError(str(error)) from error
        raise
    except Exception as error:
        raise RawError(f"{type(error).__name__}: {' '.join(str(error).split())[:400]}") from error


def how_to_write(r: Random, layout: Any) -> hr.WriteOptions:
    """Some tables have files of several blocks."""
    may_share = not isinstance(getattr(layout, "layout", layout), OverlapLayout)
    return hr.WriteOptions(file_bytes=r.choice((None, None, "2KB", "8KB")) if may_share else None)


def a_layout(world: World, r: Random, table: Table, source: Any = None) -> tuple[str, Any]:
    """Learn from random conditions, or take an older layout again."""
    if world.layouts and r.random() < 0.2:
        return "an older layout", r.choice(world.layouts)
    learner = r.choice(LEARNERS)
    names = [f.name for f in table.fields]
    columns = r.sample(names, 1 if learner == "range" else 2)
    conditions = [a_sharp_condition(r, table.fields, table.rows, r.choice(columns)) for _ in range(3)]
    conditions += [a_sharp_condition(r, table.fields, table.rows) for _ in range(3)]
    conditions += [a_condition(r, table.fields, table.rows)]
    given: dict[str, Any] = {} if learner in ("qdtree", "pando", "bottom_up", "random") else {"columns": columns}
    if learner in ("qdtree",) and table.kind == "parquet" and r.random() < 0.3:
        given["overlap"] = True
    if columns and learner in ("range", "zorder", "hilbert", "sop_zorder"):
        conditions.append(f"{columns[0]} IS NOT NULL")
    workload = hr.Workload.from_sql([f"SELECT * FROM things WHERE {c}" for c in conditions])
    rows = max(4, len(table.rows) // r.choice((4, 8, 12)))
    where = source if source is not None else table.path
    recurrence = r.choice((1, "auto"))
    with ours():
        learned = hr.learn(
            world.attached,
            where,
            workload,
            learner,
            hr.LearnOptions(block_rows=rows, sample_rows=2000, recurrence=recurrence),
            table="things",
            **given,
        )
    world.conditions = conditions
    world.layouts.append(learned)
    return f"{learner}{given or ''} of {rows} rows for {conditions}", learned


def relearned(world: World, r: Random, spark: SparkSession) -> str:
    """Let the index describe other conditions."""
    fields, rows = world.main.fields, world.main.rows
    conditions = [a_sharp_condition(r, fields, rows) for _ in range(4)] + [a_condition(r, fields, rows)]
    with ours():
        table: Any = hr.table(spark, world.main.path)
        table.relearn(hr.Workload.from_sql([f"SELECT * FROM things WHERE {c}" for c in conditions]), r.choice((3, 300)))
    world.conditions = conditions
    return f"relearn for {conditions}"


# --- steps ------------------------------------------------------------------------------------------

Do = Callable[[World, Random], str]


@dataclass(frozen=True)
class Kind:
    """A kind of step; `weight` is how often it is chosen."""

    name: str
    do: Do
    weight: int = 2


def registry() -> tuple[dict[str, Kind], Callable[..., Callable[[Do], Do]]]:
    """An empty list of kinds, and the decorator that adds to it."""
    kinds: dict[str, Kind] = {}

    def step(weight: int = 2) -> Callable[[Do], Do]:
        def add(do: Do) -> Do:
            kinds[do.__name__] = Kind(do.__name__, do, weight)
            return do

        return add

    return kinds, step


def renamed(fields: Sequence[Field], names: dict[str, str]) -> tuple[Field, ...]:
    return tuple(replace(f, name=names.get(f.name, f.name)) for f in fields)


def with_names(rows: Sequence[Row], names: dict[str, str]) -> tuple[Row, ...]:
    return tuple({names.get(key, key): value for key, value in row.items()} for row in rows)
