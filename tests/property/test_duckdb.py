"""The text of a predicate, read by a database that is not ours, means what `truth` says: Spark SQL put into DuckDB.

DuckDB agrees with Spark on three-valued logic, on NaN (equal to itself, above all), on -0.0 = 0.0, and on the order of
strings by their UTF-8 bytes. Left out: opaque parts, whose truth is given and not computed, and the
literal `TIMESTAMP '...'` in the session's zone, which `bind` replaces. Years outside 1 to 9999 are read by numpy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.core.predicates.nodes import Column, atoms_of
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.row_truth import truth
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.predicates.values import date_text, timestamp_text
from hedgerow.core.pruning.row_batch import Rows
from tests.support.random_cases import a_curve, a_predicate, a_table, a_tree

PER_EXAMPLE = 5
_DOUBLE = re.compile(r"(?<![\w'.])(-?\d[\d.]*(?:e[+-]?\d+)?)D\b")
_FAR = re.compile(r"(DATE|TIMESTAMP_LTZ|TIMESTAMP_NTZ) '([+-]\d+|0000)(-[^' ]*)( [^' ]*)?( UTC)?'")


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1; SET TimeZone = 'UTC'")
        yield connection


@given(random=st.integers(0, 2**64).map(Random))
def test_duckdb_agrees(database: duckdb.DuckDBPyConnection, random: Random) -> None:
    table = a_table(random, plain=True)
    rows = pa.table({t.path[0]: a for t, a in table.columns.items() if isinstance(t, Column)})
    asked = [a_predicate(random, table) for _ in range(PER_EXAMPLE)]
    for p in asked:
        if any(a in table.opaque for a in atoms_of(p)):
            continue
        expected = [truth(p, row) for row in table.rows]
        for form in (p, normalise(p)):
            found = database.from_arrow(rows).project(duckdb_sql(predicate_text(form))).fetchall()
            assert [f for (f,) in found] == expected, predicate_text(form)


@pytest.mark.long
@given(random=st.integers(0, 2**64).map(Random))
def test_the_sql_of_a_layout_assigns_the_same_blocks(database: duckdb.DuckDBPyConnection, random: Random) -> None:
    """Trees, and curves, straight and turning."""
    table = replace(a_table(random, plain=True), opaque=())
    tree = a_tree(random, table)
    rows = pa.table({t.path[0]: a for t, a in table.columns.items() if isinstance(t, Column)})
    curves = [a_curve(random, table, kind) for kind in ("range", "z", "snake")]
    for layout in (tree, *curves):
        sql = layout.assign_sql()
        assert sql is not None
        found = database.from_arrow(rows).project(duckdb_sql(sql)).fetchall()
        assert [block for (block,) in found] == layout.assign(Rows(table.columns)).tolist()


def duckdb_sql(spark_sql: str) -> str:
    near = _FAR.sub(_by_number, spark_sql)
    exact = _DOUBLE.sub(r"double('\1')", near)  # else DuckDB reads a decimal, whose cast to double is not exact
    return sqlglot.transpile(exact, read="spark", write="duckdb")[0]


def _by_number(far: re.Match[str]) -> str:
    """A year that DuckDB writes in another way: the moment as a count of days or microseconds since 1970."""
    kind, year, day, clock = far[1], far[2].lstrip("+"), far[3], (far[4] or "").replace(" ", "T")
    unit: Any = "D" if kind == "DATE" else "us"
    count = np.datetime64(year + day + clock, unit).astype(np.int64)
    if kind == "DATE":
        return f"(DATE '1970-01-01' + CAST({count} AS INT))"
    return f"CAST(make_timestamp({count}) AS {'TIMESTAMP' if kind == 'TIMESTAMP_NTZ' else 'TIMESTAMP_LTZ'})"


@given(days=st.integers(-(10**9), 10**9), micros=st.integers(0, 86_399_999_999))
def test_dates_are_written_as_numpy_reads_them(days: int, micros: int) -> None:
    assert np.datetime64(date_text(days).lstrip("+"), "D").astype(np.int64) == days
    instant = days // 10 * 86_400_000_000 + micros  # 64 bits of microseconds are 292,000 years
    assert np.datetime64(timestamp_text(instant).lstrip("+").replace(" ", "T"), "us").astype(np.int64) == instant


def test_far_dates_carry_the_sign_that_spark_asks_for() -> None:
    assert [date_text(d) for d in (2_932_896, 2_932_897, -719_528, -719_529)] == [
        "9999-12-31",
        "+10000-01-01",
        "0000-01-01",
        "-0001-12-31",
    ]
