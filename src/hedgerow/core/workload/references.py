"""Foreign keys, and the rows that they lead to, as columns of the table that has the key.

Where that is asked for, the rows that have the key are also summarised for the row that they lead to.

    lineitem.l_orderkey -> orders.o_orderkey          at most one order for each line
    SELECT ... FROM lineitem JOIN orders ON l_orderkey = o_orderkey WHERE o_orderdate < DATE '1995-03-15'
    a line matters only if   `l_orderkey->orders`.o_orderdate < DATE '1995-03-15'

A condition on a joined column is like any other condition: it divides rows, and has bounds and outcomes in the index.
Its values come from one version of the other table, so its statistics hold for that version only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hedgerow.core.errors import WorkloadError
from hedgerow.core.predicates.nodes import Column, Feature, columns_in
from hedgerow.core.predicates.schema import path_of
from hedgerow.core.workload.queries import Query, Scan
from hedgerow.core.workload.summaries import Summary

MAX_STEPS = 4  # enough from lineitem to region: by orders, customer and nation
_KEY = re.compile(r"(.+)\.(`(?:[^`]|``)+`|[^.`]+)")


@dataclass(frozen=True, slots=True)
class Reference:
    """A foreign key: `columns` of `table` equal `other_columns` of at most one row of `other`.

    With `summaries` it is a foreign key of `other`, read backwards: all rows with the key count as one row, which has
    these columns.
    """

    table: str
    columns: tuple[str, ...]
    other: str
    other_columns: tuple[str, ...]
    summaries: tuple[Summary, ...] = ()

    def backwards(self, summaries: tuple[Summary, ...] = ()) -> Reference:
        return Reference(self.other, self.other_columns, self.table, self.columns, summaries)

    def __str__(self) -> str:
        sides = f"{self.table}.{', '.join(self.columns)}", f"{self.other}.{', '.join(self.other_columns)}"
        return f" {'<-' if self.summaries else '->'} ".join(sides)


@dataclass(frozen=True, slots=True)
class Joined:
    """The row to which a chain of foreign keys leads, as a struct column of the first key's table."""

    steps: tuple[Reference, ...]

    @property
    def name(self) -> str:
        """The name of the struct column.

        >>> lines = Reference("lineitem", ("l_orderkey",), "orders", ("o_orderkey",))
        >>> Joined((lines, Reference("orders", ("o_custkey",), "customer", ("c_custkey",)))).name
        'l_orderkey->orders/o_custkey->customer'
        >>> Joined((lines.backwards((Summary("min", Column(("l_tax",))),)),)).name
        'o_orderkey<-lineitem.l_orderkey'
        """
        return "/".join(
            f"{','.join(step.columns)}<-{step.other}.{','.join(step.other_columns)}"
            if step.summaries
            else f"{','.join(step.columns)}->{step.other}"
            for step in self.steps
        )

    def key_of(self, place: int) -> Column:
        """Return the first column of a step's key, as a column of the first table."""
        column = self.steps[place].columns[0]
        return Column((column,)) if place == 0 else Column((Joined(self.steps[:place]).name, column))

    @property
    def table(self) -> str:
        """The table that the last key leads to."""
        return self.steps[-1].other

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """The summaries of rows that it stands for; none if it is one row."""
        return self.steps[-1].summaries


def references(keys: Iterable[tuple[Any, Any]]) -> tuple[Reference, ...]:
    """Parse foreign keys as users write them, the referring side first.

    >>> [str(r) for r in references([("lineitem.l_orderkey", "orders.o_orderkey")])]
    ['lineitem.l_orderkey -> orders.o_orderkey']
    >>> pair = ("lineitem.l_partkey", "lineitem.l_suppkey"), ("partsupp.ps_partkey", "partsupp.ps_suppkey")
    >>> [str(r) for r in references([pair])]
    ['lineitem.l_partkey, l_suppkey -> partsupp.ps_partkey, ps_suppkey']
    >>> references([("visits.`page.id`", "pages.id")])[0].columns
    ('page.id',)
    """
    by_name: dict[str, Reference] = {}
    for key in keys:
        try:
            (table, columns), (other_table, other_columns) = map(_side, key)
        except (TypeError, ValueError):
            raise WorkloadError(f"a key is written like lineitem.l_orderkey, orders.o_orderkey, not {key!r}") from None
        if len(columns) != len(other_columns):
            raise WorkloadError(
                f"the key {key!r} has {len(columns)} columns on one side, {len(other_columns)} on the other"
            )
        reference = Reference(table, columns, other_table, other_columns)
        name = f"{table}: {Joined((reference,)).name}".lower()
        if by_name.setdefault(name, reference) != reference:
            raise WorkloadError(
                f"two keys lead from the same columns to {other_table}: {by_name[name]} and {reference}"
            )
    return tuple(by_name.values())


def _side(side: Any) -> tuple[str, tuple[str, ...]]:
    listed = [side] if isinstance(side, str) else list(side)
    names = [match.groups() for match in map(_KEY.fullmatch, listed) if match]
    tables = {table for table, _ in names}
    if len(names) < len(listed) or len(tables) != 1:
        raise ValueError
    return str(tables.pop()), tuple(path_of(column)[0] for _, column in names)


def joined_scans(
    query: Query, scan: Scan, keys: Sequence[Reference], steps: int = MAX_STEPS
) -> list[tuple[Joined, Scan]]:
    """Return the scans that foreign keys lead to from this scan, each with its chain of keys.

    A key that is read backwards is a chain of its own.
    """
    reached: list[tuple[Joined, Scan]] = []

    def follow(at: Scan, before: tuple[Reference, ...], passed: tuple[int, ...]) -> None:
        for key in keys if len(before) < steps else ():
            if key.table.lower() != at.table.lower() or (before and key.summaries):
                continue
            for number, other_scan in enumerate(query.scans):
                if (
                    number not in passed
                    and other_scan.table.lower() == key.other.lower()
                    and _is_joined(at, number, key)
                ):
                    reached.append((Joined((*before, key)), other_scan))
                    if not key.summaries:
                        follow(other_scan, (*before, key), (*passed, number))

    follow(scan, (), tuple(i for i, s in enumerate(query.scans) if s is scan))
    return reached


def _is_joined(scan: Scan, other_scan: int, key: Reference) -> bool:
    """True if the scan is joined to the other one by at least the columns of the key."""
    pairs = {
        (a.lower(), b.lower())
        for join in scan.joins
        if join.other == other_scan
        for a, b in zip(join.columns, join.other_columns, strict=True)
    }
    return {(a.lower(), b.lower()) for a, b in zip(key.columns, key.other_columns, strict=True)} <= pairs


def mentioned(items: Iterable[Feature], names: Iterable[str]) -> dict[str, set[str]]:
    """Return the fields that the items mention, for each struct column with one of these names."""
    columns = set(names)
    fields: dict[str, set[str]] = {}
    for item in items:
        for column in columns_in(item):
            if column.path[0] in columns and len(column.path) > 1:
                fields.setdefault(column.path[0], set()).add(column.path[1])
    return fields
