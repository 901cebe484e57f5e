"""Any SQL text: find the managed tables in it, and read just the files of each that the query can need.

The text stays the user's: only names of tables are replaced, at their place, by names of pruned views of them.

    SELECT * FROM orders WHERE day = '2024-05-01'   ->   SELECT * FROM {t0} AS orders WHERE day = '2024-05-01'
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from sqlglot import exp

from hedgerow.core.errors import HedgerowError
from hedgerow.core.expr import quote_name
from hedgerow.core.types import Type
from hedgerow.spark.delta import Snapshot
from hedgerow.spark.session import is_remote, same_grammar, spark_errors
from hedgerow.spark.source import schema_of
from hedgerow.sql.workload import Need, needs, query_of
from hedgerow.tables.delta import DeltaTable, schema_at
from hedgerow.tables.files import is_hidden
from hedgerow.tables.parquet import OF_FILES, ParquetTable
from hedgerow.tables.replicas import Opening

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Plan nodes that hand on their child's rows as they are.
_SAME_ROWS = ("SubqueryAlias", "View", "LogicalRelation")
# Options that change which rows a relation has, or what is in them.
_OPTIONS = ("mergeSchema", "datetimeRebaseMode", "int96RebaseMode", "pathGlobFilter", "modifiedBefore", "modifiedAfter")


def route(spark: SparkSession, sql: str) -> DataFrame:
    """Run any SQL; of the tables that `apply` wrote it opens only the files that matter, the others are untouched."""
    replaced, frames = _pruned(spark, sql)
    if frames:
        try:
            return spark.sql(replaced, **frames)
        except spark_errors():  # such as a column named db.orders.x: what we do not understand stays as it was
            pass
    return spark.sql(sql)


def _pruned(spark: SparkSession, sql: str) -> tuple[str, dict[str, Any]]:
    """The text with {t0}, {t1}... for managed tables, and what they stand for."""
    query = query_of(sql) if same_grammar(spark) else None
    found = [t for t in query.find_all(exp.Table) if isinstance(t.this, exp.Identifier)] if query else []
    named = {_name(t): t for t in found}
    of_a_version = {_name(t) for t in found if t.args.get("version") or t.args.get("when")}
    tables = {n: m for n, t in named.items() if n not in of_a_version and (m := managed(spark, t)) is not None}
    _read_one_version(tables)
    if query is None or not tables or len({name.lower() for name in named}) < len(named):
        return sql, {}  # two paths may differ in letter case only, and be two tables
    own = bool(OF_FILES.search(sql))
    frames: dict[str, Any] = {}
    labels: dict[tuple[object, ...], str] = {}
    places: list[tuple[int, int, str]] = []
    for need in needs(query, sql, {name: m.schema for name, m in tables.items()}):
        name = _name(need.place)
        opening = tables[name].opening(need, own) if name in tables else None
        if opening is None:
            continue
        label = labels.setdefault((name, opening.key), f"t{len(labels)}")
        if label not in frames:
            frames[label] = opening.frame()
        parts = need.place.parts
        alias = "" if need.place.alias else f" AS {quote_name(parts[-1].name)}"
        places.append((parts[0].meta["start"], parts[-1].meta["end"] + 1, f"{{{label}}}{alias}"))
    return _replaced(sql, places), frames


def _name(table: exp.Table) -> str:
    """As Spark tells tables apart: a path by its letters, other names without their case."""
    name = ".".join(p.name for p in table.parts)
    return name if "/" in name else name.lower()


def _replaced(sql: str, places: Sequence[tuple[int, int, str]]) -> str:
    """The text as a format string: braces of its own are doubled."""
    parts: list[str] = []
    at = 0
    for start, end, name in sorted(places):
        parts += [_plain(sql[at:start]), name]
        at = end
    return "".join([*parts, _plain(sql[at:])])


def _plain(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


@dataclass(frozen=True)
class Managed:
    """A managed table as a query names it; `only`: the files that the name stands for, None for all there are."""

    table: ParquetTable
    only: frozenset[str] | None

    @property
    def schema(self) -> Mapping[str, Type]:
        return self.table.schema

    def opening(self, need: Need, own: bool) -> Opening | None:
        """None where nothing is better than the table as it lies."""
        whole = self.only is None or self.only == {n for n in self.table.known.names if not is_hidden(n)}
        found = self.table.opening(need.predicate, need.columns, own or not whole)
        if found.table is not self.table:
            return found
        if self.only is not None:  # copies are opened only if all that they are copies of is there
            files, skipped = (
                [n for n in names if n in self.only or is_hidden(n)] for names in (found.files, found.skipped)
            )
            found = replace(found, files=tuple(files), skipped=tuple(skipped))
        return found if found.skipped else None


@dataclass(frozen=True)
class ManagedDelta:
    """A Delta table at one version."""

    table: DeltaTable
    snapshot: Snapshot

    @property
    def schema(self) -> Mapping[str, Type]:
        return schema_at(self.snapshot)

    def opening(self, need: Need, own: bool) -> _Version:
        """Also where nothing is left out: another place of the query may read the same version."""
        return _Version(self.snapshot, tuple(self.table.divided(need.predicate, self.snapshot)[0]))


@dataclass(frozen=True)
class _Version:
    """What a query opens of a Delta table."""

    snapshot: Snapshot
    files: tuple[str, ...]

    @property
    def key(self) -> tuple[object, ...]:
        return self.files

    def frame(self) -> DataFrame:
        return self.snapshot.frame(self.files)


def _read_one_version(tables: dict[str, Managed | ManagedDelta]) -> None:
    """Two names of one Delta table read the same version of it, as Delta itself sees to."""
    versions: dict[str, ManagedDelta] = {}
    for name, found in tables.items():
        if isinstance(found, ManagedDelta):
            tables[name] = versions.setdefault(found.table.path, found)


def managed(spark: SparkSession, node: exp.Table) -> Managed | ManagedDelta | None:
    """The managed table behind a name in a query, if there is one and the name stands for its rows as they are."""
    parts = [p.name for p in node.parts]
    if len(parts) == 2 and parts[0].lower() == "delta" and "/" in parts[1]:
        return None if is_remote(spark) else _open_delta(spark, parts[1])
    if len(parts) == 2 and parts[0].lower() == "parquet" and ("/" in parts[1]):
        return _open(spark, parts[1], None)
    name = ".".join(map(quote_name, parts))
    try:
        return _in_catalog(spark, name) if is_remote(spark) else _in_plan(spark, name)
    except spark_errors():
        return None  # no such table, or a kind we do not know: it is for Spark to say


def _open_delta(spark: SparkSession, path: str) -> ManagedDelta | None:
    try:
        table = DeltaTable.open(spark, path)
        return ManagedDelta(table, table.snapshot())
    except HedgerowError:
        return None


def _in_plan(spark: SparkSession, name: str) -> Managed | ManagedDelta | None:
    """A catalog table or a view right over the files, by the plan that Spark makes of its name."""
    frame = spark.table(name)
    plan: Any = frame._jdf.queryExecution().analyzed()
    while plan.getClass().getSimpleName() != "LogicalRelation":
        if plan.getClass().getSimpleName() not in _SAME_ROWS or plan.children().size() != 1:
            return None
        plan = plan.children().head()
    relation = plan.relation()
    if relation.getClass().getSimpleName() == "HadoopFsRelation" and _is_newest_delta(relation.location()):
        return _open_delta(spark, relation.location().path().toString())
    if relation.getClass().getSimpleName() != "HadoopFsRelation" or not relation.partitionSchema().isEmpty():
        return None
    if any(not relation.options().get(o).isEmpty() for o in _OPTIONS):
        return None
    roots = [r for r in relation.location().rootPaths().mkString("\n").split("\n") if r]
    whole = _open(spark, roots[0], frame) if len(roots) == 1 else None
    if whole is not None:
        return whole
    folders = {r.rpartition("/")[0] for r in roots}
    names = frozenset(r.rpartition("/")[2] for r in roots)
    return _open(spark, folders.pop(), frame, names) if len(folders) == 1 else None


def _is_newest_delta(location: Any) -> bool:
    """Not a table at a version of its own, which a view may name."""
    return location.getClass().getSimpleName() == "TahoeLogFileIndex" and not location.isTimeTravelQuery()


def _in_catalog(spark: SparkSession, name: str) -> Managed | None:
    """A catalog table, by what the catalog tells over Spark Connect."""
    told = {row[0]: row[1] for row in spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()}
    if told.get("Type") not in ("MANAGED", "EXTERNAL") or str(told.get("Provider")).lower() != "parquet":
        return None
    return _open(spark, unquote(told["Location"]), spark.table(name))


@lru_cache(maxsize=16)
def _known_of(spark: SparkSession, path: str, manifest: str) -> ParquetTable:
    """What earlier queries read of it is still so under the same manifest: its files get new names with each write."""
    return ParquetTable(spark, path, json.loads(manifest))


def _open(
    spark: SparkSession, path: str, frame: DataFrame | None, only: frozenset[str] | None = None
) -> Managed | None:
    try:
        newest = ParquetTable.open(spark, path.rstrip("/"))
        table = _known_of(spark, newest.path, json.dumps(newest.manifest))
    except HedgerowError:
        return None
    if frame is not None and list(schema_of(frame.schema).items()) != list(table.schema.items()):
        return None
    return Managed(table, only)
