"""Finds the foreign keys over which queries join tables, or checks the keys that a user names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hedgerow.core.errors import HedgerowError, counted, warn
from hedgerow.core.workload.queries import Workload
from hedgerow.core.workload.references import Reference, references
from hedgerow.spark.compute.joins import check_key, check_types, is_unique
from hedgerow.spark.storage.source import Source

Keys = Sequence[tuple[Any, Any]]
_FEW_ROWS = 50_000  # looked at before a whole table


def referred_column(source: Source, keys: Sequence[Reference]) -> str:
    """Return the column by which other tables refer to this one, or else its first."""
    referred = [key.other_columns[0] for key in keys if key.other == source.name]
    return (referred or [field.name for field in source.frame.schema.fields])[0]


def check_keys(tables: Mapping[str, Source], keys: Keys) -> tuple[Reference, ...]:
    """Return a user's foreign keys; HedgerowError if one does not fit the tables."""
    names = {name.lower(): name for name in tables}
    checked = []
    for key in references(keys):
        missing = [table for table in (key.table, key.other) if table.lower() not in names]
        if missing:
            raise HedgerowError(f"the key {key} names {missing[0]}, which is none of the tables {', '.join(tables)}")
        own = replace(key, table=names[key.table.lower()], other=names[key.other.lower()])
        check_key(tables[own.table], own, tables[own.other])
        checked.append(own)
    return _without_circles(checked)


def find_keys(tables: Mapping[str, Source], workload: Workload) -> tuple[Reference, ...]:
    """Return the foreign keys over which the queries join: where the columns of one side are unique.

    Of two tables with the same key, the smaller one is referred to. A warning names keys of different types."""
    unique: dict[tuple[str, tuple[str, ...]], bool] = {}
    not_followed: list[str] = []
    keys: list[Reference] = []
    for key in dict.fromkeys(_joins(tables, workload)):
        side = key.other, key.other_columns
        if side not in unique:
            unique[side] = _is_key(tables[key.other], key.other_columns)
        is_smaller = (tables[key.other].rows, key.other) < (tables[key.table].rows, key.table)
        is_new = not any(
            (k.table, k.other) == (key.table, key.other) and set(k.columns) <= set(key.columns) for k in keys
        )
        if unique[side] and is_smaller and is_new:
            try:
                check_types(tables[key.table], key, tables[key.other])
            except HedgerowError as error:
                not_followed.append(str(error))
                continue
            keys.append(key)
    warn(f"{counted(len(not_followed), 'key')} cannot be followed", not_followed)
    return _without_circles(keys)


def _joins(tables: Mapping[str, Source], workload: Workload) -> Iterator[Reference]:
    """Yield the equalities by which queries join two tables: each pair of columns, then all pairs together."""
    names = {name.lower(): name for name in tables}
    for query in workload:
        for scan in query.scans:
            for number in dict.fromkeys(join.other for join in scan.joins):
                table, other = names.get(scan.table.lower()), names.get(query.scans[number].table.lower())
                if table is None or other is None or table == other:
                    continue
                joins = [join for join in scan.joins if join.other == number]
                pairs = sorted({pair for j in joins for pair in zip(j.columns, j.other_columns, strict=True)})
                for some in [[pair] for pair in pairs] + ([pairs] if len(pairs) > 1 else []):
                    columns, other_columns = zip(*some, strict=True)
                    yield Reference(table, columns, other, other_columns)


def _is_key(source: Source, columns: tuple[str, ...]) -> bool:
    few = replace(source, frame=source.frame.limit(_FEW_ROWS))
    return is_unique(few, columns) and (source.rows <= _FEW_ROWS or is_unique(source, columns))


def _without_circles(keys: Sequence[Reference]) -> tuple[Reference, ...]:
    """Leave out each key that closes a circle of tables."""
    followed: list[Reference] = []
    for key in keys:
        reached = {key.other}
        while more := {k.other for k in followed if k.table in reached} - reached:
            reached |= more
        if key.table in reached:
            warn(f"the key {key} is not followed", [f"keys lead back from {key.other} to {key.table}"])
        else:
            followed.append(key)
    return tuple(followed)
