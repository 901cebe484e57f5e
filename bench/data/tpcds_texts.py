"""Templates of TPC-DS over its own tables, with literals redrawn from the data.

The texts are DuckDB's, with the literals of the validation run. What a column is compared with is drawn anew: numbers
and days of one column move together, so ranges stay as wide and years in a row stay in a row; texts become other values
of their column. Dates are drawn from the five years in which something is sold.

    d_year = 2000 OR d_year = 2000 + 1          d_year = 1998 OR d_year = 1998 + 1
    i_category IN ('Music', 'Books')            i_category IN ('Jewelry', 'Men')

Pando (8.1) takes templates 1 to 50, but not 14, 23, 24 and 39, which have several statements.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any

import sqlglot
from sqlglot import exp

from bench.data.duck import texts

TEMPLATES = tuple(n for n in range(1, 51) if n not in (14, 23, 24, 39))
MOST = 1000  # values of a column to draw from
SOLD = "d_year BETWEEN 1998 AND 2002"
COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In)

Values = Mapping[str, Sequence[Any]]  # by column, some values that occur in it


def queries(values: Values, seed: int, per_template: int) -> list[str]:
    """Return `per_template` queries of each template: the first of each, then the second of each, and so on."""
    return [drawn(n, values, random.Random(f"{n} {seed} {i}")) for i in range(per_template) for n in TEMPLATES]


def drawn(template: int, values: Values, r: random.Random) -> str:
    tree = _tree(template).copy()
    named: dict[str, list[exp.Literal]] = {}
    for column, literal in _compared(tree, values):
        named.setdefault(column, []).append(literal)
    for column, literals in named.items():
        new = _others(sorted({x.name for x in literals}), values[column], r)
        for literal in literals:
            literal.set("this", new[literal.name])
    return tree.sql("duckdb")


@cache
def _tree(template: int) -> exp.Expr:
    return sqlglot.parse_one(texts("tpcds")[template], read="duckdb")


def _compared(tree: exp.Expr, values: Values) -> Iterator[tuple[str, exp.Literal]]:
    """Yield the literals that a column of a table is compared with, except those inside of a function."""
    for node in tree.find_all(*COMPARED):
        sides = [*node.iter_expressions()]
        columns = {s.name.lower() for s in sides if isinstance(s, exp.Column)} & values.keys()
        if len(columns) != 1:
            continue
        (column,) = columns
        for side in sides:
            if not side.find(exp.Column, exp.Query):
                yield from ((column, x) for x in side.find_all(exp.Literal) if _of_the_kind(x, values[column]))


def _of_the_kind(literal: exp.Literal, values: Sequence[Any]) -> bool:
    """True if the literal has the column's type and is no operand, as the 1 of `2000 + 1` or the 30 of 30 days."""
    added = isinstance(literal.parent, exp.Add | exp.Sub | exp.Mul | exp.Div) and literal.arg_key == "expression"
    apart = added or literal.find_ancestor(exp.Interval)
    return literal.is_string == isinstance(values[0], str | date) and not apart


def _others(old: Sequence[str], values: Sequence[Any], r: random.Random) -> dict[str, str]:
    """Return the text to put in place of each literal of a column."""
    if isinstance(values[0], date):
        by_days = r.choice(values) - date.fromisoformat(old[0])
        return {x: str(date.fromisoformat(x) + by_days) for x in old}
    if isinstance(values[0], str):
        return dict(zip(old, (r.sample(values, len(old)) if len(old) <= len(values) else old), strict=True))
    least = min(old, key=Decimal)
    by = Decimal(str(r.choice(values))) - Decimal(least)
    return {x: f"{Decimal(x) + by:f}" for x in old}
