"""Random queries of every shape: on tables without the rows that their predicates leave out, results stay the same."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot
from pyspark.sql import SparkSession

from hedgerow.core.errors import HedgerowError
from hedgerow.core.predicates.nodes import TRUE
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.sql.workload import Workload
from tests.support.needed_rows import only_needed_rows, rows_of
from tests.support.random_queries import SHAPES, Ground, Shape, conditions_of
from tests.support.workload_conditions import where

Schemas = dict[str, dict[str, str]]
SCHEMAS: Schemas = {
    "t": {"a": "int", "b": "int", "s": "string"},
    "u": {"a": "int", "c": "int", "s": "string"},
    "v": {"c": "int", "d": "int", "flag": "boolean"},
}

WORDS = ["ab", "abc", "b", "", "bcd"]
ATOMS: list[Callable[[random.Random, str], str]] = [
    lambda r, e: f"{e}a {r.choice(['=', '<', '>=', '<>', '>'])} {r.randrange(-1, 6)}",
    lambda r, e: f"{e}b {r.choice(['IN', 'NOT IN'])} ({r.randrange(6)}, {r.randrange(6)})",
    lambda r, e: f"{e}b BETWEEN {r.randrange(6)} AND {r.randrange(6)}",
    lambda r, e: f"{e}a IS {r.choice(['', 'NOT '])}NULL",
    lambda r, e: f"{e}a {r.choice(['=', '<', 'IS NOT DISTINCT FROM'])} {e}b",
    lambda r, e: f"coalesce({e}b, {r.randrange(6)}) = {r.randrange(6)}",
    lambda r, e: f"{r.randrange(9)} > {e}a + {r.randrange(6)}",
    lambda r, e: f"{e}s {r.choice(['', 'NOT '])}LIKE '{r.choice(['a%', '%b%', 'ab', '_b%', '%'])}'",
    lambda r, e: f"{e}s {r.choice(['<', '=', '>='])} '{r.choice(WORDS)}'",
    lambda r, e: f"substr({e}s, 1, 1) = 'a'",
    lambda r, e: f"{e}a {r.choice(['IN', 'NOT IN'])} (SELECT c FROM v WHERE flag)",
    lambda r, e: f"{e}a = (SELECT count(*) FROM v WHERE d < {r.randrange(6)})",
    lambda r, e: f"{r.randrange(-1, 6)} < {r.randrange(-1, 6)}",
]
condition = conditions_of(ATOMS, 0.35, ["AND", "AND", "OR"], 0.2)


GROUND = Ground(
    condition,
    **{"key": "b", "number": "a", "group": "s", "foreign": "a", "primary": "c", "label": "d"},
    most=6,
    other=lambda r, d: f"{d}d > {r.randrange(6)} OR {d}flag",
)


def check(con: duckdb.DuckDBPyConnection, sql: str, dialect: str, name: str, schemas: Schemas = SCHEMAS) -> int:
    """Check that a query has the same rows on views of only the rows that its predicates keep; count these views."""
    in_duckdb = sqlglot.transpile(sql, read=dialect, write="duckdb")[0] if dialect != "duckdb" else sql
    expected = rows_of(con, in_duckdb)
    (query,) = Workload.from_sql(sql, schemas, dialect).queries
    with only_needed_rows(con, query) as views:
        assert rows_of(con, in_duckdb) == expected, f"{name}: {sql}"
    return views


@pytest.mark.parametrize("shape", SHAPES, ids=[shape.name for shape in SHAPES])
def test_random_queries(con: duckdb.DuckDBPyConnection, shape: Shape) -> None:
    views, cases = 0, 200 if os.environ.get("HEDGEROW_HYPOTHESIS") == "full" else 5
    for seed in range(cases):
        sql = shape(GROUND, random.Random(seed)).replace("$E", "t").replace("$D", "v")
        some = random.Random(seed).sample(list(SCHEMAS), seed % 3)
        try:
            views += check(con, sql, "spark", f"seed {seed}")
            check(con, sql, "spark", f"seed {seed}, known are {some}", {table: SCHEMAS[table] for table in some})
        except duckdb.NotImplementedException:
            continue  # a subquery in the condition of an outer join
    assert views > 0 or not shape.skips


def test_spark_aggregates_are_seen(spark: SparkSession) -> None:
    """Every aggregate, window and generator function of Spark's keeps conditions out of the SELECT it stands in."""
    catalog: Any = spark._jsparkSession.sessionState().catalog()
    identifier: Any = spark._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier  # type: ignore[union-attr]
    names = [row["function"] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()]
    plain = [n for n in names if n.isidentifier()]
    groups = {n: catalog.lookupFunctionInfo(identifier(n)).getGroup() for n in plain}
    found = [n for n, group in groups.items() if group in ("agg_funcs", "window_funcs", "generator_funcs")]
    assert len(found) > 90
    for name in found:
        if name == "row_number":
            continue  # no SQL without OVER
        for arguments in ("a", "a, 2", "", "a, b, 3"):
            try:
                w = Workload.from_sql(
                    f"SELECT 1 FROM (SELECT {name}({arguments}) AS m FROM t) AS d WHERE m = 1", SCHEMAS
                )
            except HedgerowError:
                continue
            assert w.queries[0].predicate("t") == TRUE, name


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    rng = random.Random(5)
    con = duckdb.connect()
    con.execute("SET default_collation = ''")
    for table, schema in SCHEMAS.items():
        con.execute(f"CREATE TABLE {table} ({', '.join(f'{c} {k}' for c, k in schema.items())})")
        for _ in range(40):
            values = {"int": rng.randrange(6), "string": rng.choice(WORDS), "boolean": rng.random() < 0.5}
            row = [None if rng.random() < 0.2 else values[k] for k in schema.values()]
            con.execute(f"INSERT INTO {table} VALUES (?, ?, ?)", row)
    return con


def golden() -> list[tuple[str, dict[str, str]]]:
    """Queries with the predicates written below them."""
    cases: list[tuple[str, dict[str, str]]] = []
    content = (Path(__file__).parent.parent / "golden" / "pushdown.sql").read_text()
    for line in content.splitlines():
        found = re.match(r"-- ([tuv]): (.*)", line)
        if line and not line.startswith("--"):
            cases.append((line, {}))
        elif found:
            cases[-1][1][found[1]] = found[2]
    return cases


@pytest.mark.parametrize(("sql", "expected"), golden())
def test_golden(con: duckdb.DuckDBPyConnection, sql: str, expected: dict[str, str]) -> None:
    (query,) = Workload.from_sql(sql, SCHEMAS, "duckdb").queries
    assert {table: predicate_text(query.predicate(table)) for table in query.tables()} == expected
    check(con, sql, "duckdb", "golden")


VOLATILE = [
    "rand()", "randn()", "random()", "uuid()", "now()", "current_date()", "current_date", "curdate()",
    "current_timestamp()", "current_timestamp", "localtimestamp()", "current_timezone()", "unix_timestamp()",
    "input_file_name()", "input_file_block_start()", "version()", "monotonically_increasing_id()",
    "spark_partition_id()", "current_user()", "current_user", "user()", "session_user()", "current_database()",
    "current_catalog()", "current_schema()", "explode(b)", "posexplode(b)", "sum(b)", "raise_error('x')",
    "assert_true(b)", "reflect('a','b')", "shuffle(b)", "uniform(1,2)",
]  # fmt: skip


@pytest.mark.parametrize("call", VOLATILE)
def test_what_changes_from_run_to_run_is_no_condition(call: str) -> None:
    for c in (f"({call}) = b", f"b < {call}", f"coalesce({call}, a) = 1", f"b IN (1, {call})"):
        assert predicate_text(where(f"a = 1 AND {c}")) == "a = 1", c


def test_schemas_given_once_still_tell_whose_a_name_is() -> None:
    """`b` may be a column of u, for all that t's schema says; with u's schema it is not."""
    sql = "SELECT count(*) FROM t, (SELECT * FROM u) AS u WHERE t.a = u.a AND b = 3"
    alone, known = Workload.from_sql(sql), Workload.from_sql(sql, SCHEMAS)
    for workload, expected in ((alone, "TRUE"), (known, "b = 3")):
        (query,) = workload.on("t").bind({"t": SCHEMAS["t"]})
        assert predicate_text(query.predicate("t")) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT count(*) FROM t, u WHERE b = 3", "b = 3"),
        ("SELECT count(*) FROM t LEFT JOIN u ON t.a = u.a WHERE b = 3", "b = 3"),
        # Here `b` may be a column of u, and t's is not seen.
        ("SELECT count(*) FROM u SEMI JOIN t ON t.a = u.a WHERE b = 3", "TRUE"),
        ("SELECT count(*) FROM t, u JOIN v ON b = 3", "TRUE"),
        ("SELECT count(*) FROM u JOIN t USING (b) WHERE b = 3", "TRUE"),
        ("SELECT count(*) FROM t LATERAL VIEW explode(s) x AS b WHERE b = 3", "TRUE"),
        ("SELECT count(*) FROM t, (SELECT * FROM u) AS w WHERE b = 3", "TRUE"),
    ],
)
def test_a_name_that_one_table_has_is_no_other_ones(sql: str, expected: str) -> None:
    """A query in which two tables have it would be refused, so nothing has to be known of the others."""
    (query,) = Workload.from_sql(sql, {"t": SCHEMAS["t"]})
    assert predicate_text(query.predicate("t")) == expected


def test_a_table_of_another_name() -> None:
    """Read again with the schema known, the conditions are those of the table that `on` named."""
    for workload in (
        Workload.from_sql("SELECT * FROM t WHERE B = 3"),
        Workload.from_sql("SELECT * FROM t WHERE b = 3", SCHEMAS),
    ):
        (query,) = workload.on("lake").bind({"lake": {"b": "bigint"}})
        assert query.tables() == ("lake",)
        assert predicate_text(query.predicate("lake")) == "b = 3"


def test_every_spelling_of_a_table_gets_its_schema() -> None:
    texts = [
        "SELECT * FROM events WHERE B = 3",
        "SELECT * FROM web.events WHERE B = 3",
        "SELECT * FROM `web`.`events` e",
    ]
    workload = Workload.from_sql(texts).on("lake").bind({"lake": {"b": "bigint"}})
    assert [query.tables() for query in workload] == [("lake",)] * 3
    assert predicate_text(workload.queries[1].predicate("lake")) == "b = 3"


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("\nSELEC * FRM t WHERE b", "line 2, column 19: Invalid expression .* after 'SELEC \\* FRM t WHERE'"),
        ("SELECT * FROM t WHERE b = = 3", "line 1, .* 'expression' missing for EQ, after 'SELECT .* b = ='"),
        ("SELECT * FROM WHERE b = 3", "line 1, column 19: Expected table name but got WHERE, after 'SELECT"),
    ],
)
def test_broken_text_is_told_with_its_place(sql: str, told: str) -> None:
    with pytest.raises(HedgerowError, match=told):
        Workload.from_sql(sql)


def test_only_the_statement_that_cannot_be_parsed_is_left_out() -> None:
    text = """SELECT * FROM t WHERE a = 'x;y'; -- one; two

        SELEC * FRM t WHERE b;
        SELECT * FROM t WHERE b = = 3;SELECT * FROM u;"""
    workload = Workload.from_sql(text)
    assert [query.tables() for query in workload] == [("t",), ("u",)]
    first, second = workload.skipped
    assert first.startswith("query q2 is left out: the text of the queries is not spark SQL: line 3, ")
    assert second.startswith("query q3 is left out: the text of the queries is not spark SQL: line 4, ")
    listed = Workload.from_sql(["SELECT * FROM t", "SELEC * FRM t WHERE b"])
    assert len(listed) == 1 and "statement 2 is not spark SQL" in listed.skipped[0]


def test_a_misspelt_column_is_told_with_the_one_meant() -> None:
    schema = {"t": {"o_custkey": "int", "o_orderdate": "date"}}
    workload = Workload.from_sql(["SELECT * FROM t WHERE o_custky = 1", "SELECT * FROM t WHERE zebra = 1"], schema)
    first, second = workload.skipped
    assert first.endswith("there is no column o_custky: did you mean o_custkey?")
    assert second.endswith("there is no column zebra")
