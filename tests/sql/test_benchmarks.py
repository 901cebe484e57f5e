"""All queries of TPC-H and TPC-DS: what is found per table, and that leaving the other rows out changes no result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from bench.data.duck import texts
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.sql.workload import Workload
from tests.support import tpc_data as duck
from tests.support.needed_rows import only_needed_rows, rows_of

GOLDEN = Path(__file__).parent.parent / "golden"
COUNTS = {"tpch": 22, "tpcds": 99}


@pytest.fixture(scope="module", params=["tpch", "tpcds"])
def bench(request: pytest.FixtureRequest) -> Iterator[tuple[str, duckdb.DuckDBPyConnection, dict[int, str]]]:
    con = duck.with_data(request.param, 0.01)
    yield request.param, con, texts(request.param)
    con.close()


def test_golden(bench: tuple[str, duckdb.DuckDBPyConnection, dict[int, str]]) -> None:
    """Change the golden file by hand, or run with the new text written over it, and read the difference."""
    name, con, queries = bench
    assert len(queries) == COUNTS[name]
    schemas = duck.schemas(con)
    found = []
    for number, sql in queries.items():
        (query,) = Workload.from_sql(sql, schemas, "duckdb").queries
        found.append(
            f"-- {number}\n" + "".join(f"{t}: {predicate_text(query.predicate(t))}\n" for t in sorted(query.tables()))
        )
    golden = GOLDEN / f"{name}.txt"
    actual = "\n".join(found)
    if not golden.exists():
        golden.write_text(actual)
        pytest.fail(f"{golden} was missing and has been written: read it")
    assert actual == golden.read_text()


@pytest.mark.long
def test_other_rows_change_nothing(bench: tuple[str, duckdb.DuckDBPyConnection, dict[int, str]]) -> None:
    """Each query runs on the tables and on views of only the rows its predicates keep: the results are equal."""
    name, con, queries = bench
    schemas = duck.schemas(con)
    filtered = nonempty = 0
    for number, sql in queries.items():
        (query,) = Workload.from_sql(sql, schemas, "duckdb").queries
        plain = _without_limit(sql)
        expected = rows_of(con, plain)
        with only_needed_rows(con, query) as views:
            assert rows_of(con, plain) == expected, f"{name} {number}"
        filtered += views
        nonempty += bool(expected)
    assert filtered > 1.5 * len(queries)
    assert nonempty > 0.7 * len(queries)


def _without_limit(sql: str) -> str:
    """Ties at a LIMIT may fall either way."""
    tree = sqlglot.parse_one(sql, read="duckdb")
    if isinstance(tree, exp.Select | exp.SetOperation):
        tree.set("limit", None)
    return tree.sql("duckdb")
