"""learn, apply, score and open for several tables that foreign keys join: one layout for each table.

A layout may divide the rows of a table by columns of the tables to which its foreign keys lead. So `apply` writes those
tables first: what an index says of their rows holds for the version that queries will read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import FormatError, HedgerowError, WorkloadError, warn
from hedgerow.core.layouts.curve import CurveLayout
from hedgerow.core.predicates.nodes import TRUE, Predicate, columns_of
from hedgerow.core.workload.queries import Query, Workload
from hedgerow.core.workload.references import Joined, Reference, references
from hedgerow.pipeline.learned import Learned, read_text, written
from hedgerow.spark.compute.joins import Joins, check_key, check_types, is_unique
from hedgerow.spark.start.session import meaning
from hedgerow.spark.storage.folder import Folder, is_within
from hedgerow.spark.storage.source import Source, open_source
from hedgerow.sql.joined import with_joined
from hedgerow.tables.parquet.target import check_target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Keys = Sequence[tuple[Any, Any]]
_FEW_ROWS = 50_000  # that are looked at before all of a table
WHOLE = CurveLayout((), (), ())  # of a table that no query divides


@dataclass(frozen=True)
class LearnedTables(Mapping[str, Learned]):
    """The layouts of several tables, by name, and the foreign keys that were used."""

    layouts: Mapping[str, Learned]
    references: tuple[Reference, ...] = ()

    def __getitem__(self, name: str) -> Learned:
        return self.layouts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.layouts)

    def __len__(self) -> int:
        return len(self.layouts)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.layouts.values()), *(f"by the key {key}" for key in self.references)])

    def in_order(self) -> list[str]:
        """The tables, each after those to which its foreign keys lead."""
        found: dict[str, None] = {}

        def add(name: str) -> None:
            for key in self.references:
                if key.table == name and key.other in self.layouts and key.other not in found:
                    add(key.other)
            found.setdefault(name)

        for name in self.layouts:
            add(name)
        return list(found)

    def to_json(self) -> str:
        layouts = {name: json.loads(one.to_json()) for name, one in self.layouts.items()}
        return json.dumps({"hedgerow_tables": layouts, "keys": [key.to_dict() for key in self.references]})

    @staticmethod
    def from_json(value: str) -> LearnedTables:
        """Reads the text of `to_json`; FormatError for any other."""
        try:
            saved = json.loads(value)
            layouts = {name: Learned.from_json(json.dumps(one)) for name, one in saved["hedgerow_tables"].items()}
            return LearnedTables(layouts, tuple(map(Reference.from_dict, saved["keys"])))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FormatError("these are no layouts that `learn` made, or damaged ones") from error

    def save(self, path: str | Path) -> None:
        written(path, self.to_json())

    @staticmethod
    def load(path: str | Path) -> LearnedTables:
        return LearnedTables.from_json(read_text(path))


def tables_in(spark: SparkSession, place: str) -> dict[str, str]:
    """The tables of a folder, each in a folder of its name, or of a database of the catalog; empty if it is neither."""
    folder = Folder(spark, place.rstrip("/"))
    found = {n: f"{folder.root}/{n}" for n in folder.folders() if "=" not in n}
    if found or "/" in place or not spark.catalog.databaseExists(place):
        return found
    return {t.name: f"{place}.{t.name}" for t in spark.catalog.listTables(place) if not t.isTemporary}


def loaded(path: str | Path) -> Learned | LearnedTables:
    """What `learn` saved, of one table or of several."""
    text = read_text(path)
    return (LearnedTables if text.startswith('{"hedgerow_tables"') else Learned).from_json(text)


def opened_tables(spark: SparkSession, sources: Mapping[str, Any]) -> dict[str, Source]:
    if not sources:
        raise HedgerowError("there is no table: name a directory with a folder for each, a database, or tables by name")
    return {name: open_source(spark, source, name) for name, source in sources.items()}


def check_targets(
    spark: SparkSession, sources: Mapping[str, Any], to: str, others: Mapping[str, str], overwrite: bool
) -> None:
    """HedgerowError, before anything is written, if one of the tables may not be written to its folder in `to`."""
    read = {name: open_source(spark, place, name).roots for name, place in {**others, **sources}.items()}
    taken: dict[str, str] = {}
    for name in sources:
        rest = {other: roots for other, roots in read.items() if other != name}
        place, _ = check_target(spark, f"{to.rstrip('/')}/{name}", overwrite, read[name], rest)
        for other, used in taken.items():
            if is_within(place, used) or is_within(used, place):
                raise HedgerowError(f"{name} and {other} would lie in one place, for {to} holds a link")
        taken[name] = place


def bound_to(tables: Mapping[str, Source], workload: Workload) -> Workload:
    """The queries that fit the tables; WorkloadError if there is none."""
    spark = next(iter(tables.values())).frame.sparkSession
    bound = workload.bind({name: source.schema for name, source in tables.items()}, meaning(spark))
    if not any(q.reads(name) for q in bound for name in tables):
        why = f": {bound.skipped[0]}" if bound.skipped else ""
        raise WorkloadError(f"no query of the workload fits the tables {', '.join(tables)}{why}")
    warn(f"{len(bound.skipped)} of {len(workload)} queries are left out", bound.skipped)
    known = {name.lower() for name in tables}
    others = sorted({table for table in bound.tables() if table.lower() not in known})
    warn("some tables are not among those given", [f"queries read {table}, too" for table in others])
    return bound


def joined_queries(
    workload: Workload, table: str, tables: Mapping[str, Source], keys: Sequence[Reference], steps: int
) -> tuple[list[Query], Joins]:
    """The queries of one table with the conditions of the tables that they join to it, and the joined rows."""
    found: dict[str, Joined] = {}
    queries = []
    for query in workload:
        if query.reads(table):
            own, joined = with_joined(query, table, keys, steps)
            queries.append(own)
            found |= joined
    others = {step.other.lower() for joined in found.values() for step in joined.steps}
    by_name = {name.lower(): source for name, source in tables.items()}
    return queries, Joins(tuple(found[name] for name in sorted(found)), {name: by_name[name] for name in others})


def whole(name: str, predicates: Sequence[Predicate]) -> Learned:
    """A table of one block."""
    own = tuple(p for p in predicates if all(len(c.path) == 1 for c in columns_of(p)))
    return Learned(WHOLE, name, own)


def is_asked_whole(queries: Sequence[Query], table: str) -> bool:
    return all(query.predicate(table) == TRUE for query in queries)


# --- keys ---


def key_of(source: Source, keys: Sequence[Reference]) -> str:
    """The column by which others refer to the table, or else its first: to sort rows by that no query filters."""
    referred = [key.other_columns[0] for key in keys if key.other == source.name]
    return (referred or [field.name for field in source.frame.schema.fields])[0]


def checked_keys(tables: Mapping[str, Source], given: Keys) -> tuple[Reference, ...]:
    """The foreign keys as given; HedgerowError if one does not fit the tables."""
    names = {name.lower(): name for name in tables}
    found = []
    for key in references(given):
        missing = [table for table in (key.table, key.other) if table.lower() not in names]
        if missing:
            raise HedgerowError(f"the key {key} names {missing[0]}, which is none of the tables {', '.join(tables)}")
        own = replace(key, table=names[key.table.lower()], other=names[key.other.lower()])
        check_key(tables[own.table], own, tables[own.other])
        found.append(own)
    return _without_circles(found)


def found_keys(tables: Mapping[str, Source], workload: Workload) -> tuple[Reference, ...]:
    """The foreign keys over which the queries join: where the columns of one side are unique.

    Of two tables with the same key, the smaller one is referred to."""
    names = {name.lower(): name for name in tables}
    candidates: dict[Reference, None] = {}
    for query in workload:
        for scan in query.scans:
            for number in dict.fromkeys(join.other for join in scan.joins):
                table, other = names.get(scan.table.lower()), names.get(query.scans[number].table.lower())
                pairs = sorted(
                    {
                        pair
                        for join in scan.joins
                        if join.other == number
                        for pair in zip(join.columns, join.other_columns, strict=True)
                    }
                )
                if table is not None and other is not None and table != other:
                    for some in [[pair] for pair in pairs] + ([pairs] if len(pairs) > 1 else []):
                        mine, theirs = zip(*some, strict=True)
                        candidates[Reference(table, mine, other, theirs)] = None
    unique: dict[tuple[str, tuple[str, ...]], bool] = {}
    found: list[Reference] = []
    for key in candidates:
        side = key.other, key.other_columns
        if side not in unique:
            unique[side] = _is_key(tables[key.other], key.other_columns)
        is_smaller = (tables[key.other].rows, key.other) < (tables[key.table].rows, key.table)
        is_new = not any(
            (k.table, k.other) == (key.table, key.other) and set(k.columns) <= set(key.columns) for k in found
        )
        if unique[side] and is_smaller and is_new:
            try:
                check_types(tables[key.table], key, tables[key.other])
            except HedgerowError:
                continue  # the two sides have different types
            found.append(key)
    return _without_circles(found)


def _is_key(source: Source, columns: tuple[str, ...]) -> bool:
    few = replace(source, frame=source.frame.limit(_FEW_ROWS))
    return is_unique(few, columns) and (source.rows <= _FEW_ROWS or is_unique(source, columns))


def _without_circles(keys: Sequence[Reference]) -> tuple[Reference, ...]:
    """The keys without those that lead back to a table from which they come."""
    kept: list[Reference] = []
    for key in keys:
        reached = {key.other}
        while more := {k.other for k in kept if k.table in reached} - reached:
            reached |= more
        if key.table in reached:
            warn(f"the key {key} is not followed", [f"keys lead back from {key.other} to {key.table}"])
        else:
            kept.append(key)
    return tuple(kept)
