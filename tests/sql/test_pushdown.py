"""Random queries of every shape: on tables without the rows that their predicates leave out, results stay the same."""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
import sqlglot

from hedgerow.core.errors import HedgerowError
from hedgerow.core.predicates.nodes import TRUE
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.sql.workload import Workload
from tests.support.workload_conditions import where

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMAS = {
    "t": {"a": "int", "b": "int", "s": "string"},
    "u": {"a": "int", "c": "int", "s": "string"},
    "v": {"c": "int", "d": "int", "flag": "boolean"},
}
WORDS = ["ab", "abc", "b", "", "bcd"]


class Writer:
    """Writes one random query; every relation it makes has the columns it says."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = 0

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def alias(self) -> str:
        self.names += 1
        return f"r{self.names}"

    def source(self, depth: int) -> tuple[str, str, dict[str, str]]:
        """FROM item, alias, columns with their kinds."""
        alias = self.alias()
        if depth <= 0 or self.random.random() < 0.6:
            table = self.pick("t", "u", "v")
            return f"{table} AS {alias}", alias, dict(SCHEMAS[table])
        sql, columns = self.query(depth - 1)
        return f"({sql}) AS {alias}", alias, columns

    def column(self, scope: dict[str, dict[str, str]], kind: str, qualified: bool = False) -> str | None:
        found = [(alias, name) for alias, columns in scope.items() for name, k in columns.items() if k == kind]
        if not found:
            return None
        alias, name = self.random.choice(found)
        alone = sum(name in columns for columns in scope.values()) == 1
        return name if alone and not qualified and self.random.random() < 0.2 else f"{alias}.{name}"

    def atom(self, scope: dict[str, dict[str, str]], depth: int) -> str:
        number, word, flag = (self.column(scope, kind) for kind in ("int", "string", "boolean"))
        n, m = self.random.randrange(-1, 6), self.random.randrange(-1, 6)
        options = [f"{n} < {m}"]
        if number:
            other = self.column(scope, "int")
            options += [
                f"{number} {self.pick('=', '<', '>=', '<>', '>')} {n}",
                f"{number} BETWEEN {n} AND {m}",
                f"{number} {self.pick('IN', 'NOT IN')} ({n}, {m})",
                f"{number} IS {self.pick('', 'NOT ')}NULL",
                f"{number} {self.pick('=', '=', '<')} {other}",
                f"coalesce({number}, {n}) = {m}",
                f"{n} > {number} + {m}",
                f"{number} IS NOT DISTINCT FROM {other}",
            ]
            if depth > 0:
                options += [self.subquery(number, scope, depth)] * 3
        if word:
            options += [
                f"{word} {self.pick('', 'NOT ')}LIKE '{self.pick('a%', '%b%', 'ab', '_b%', '%')}'",
                f"{word} {self.pick('<', '=', '>=')} '{self.pick(*WORDS)}'",
                f"substr({word}, 1, 1) = 'a'",
            ]
        if flag:
            options += [flag, f"{flag} IS NOT TRUE"]
        return self.random.choice(options)

    def subquery(self, number: str, scope: dict[str, dict[str, str]], depth: int) -> str:
        item, alias, columns = self.source(depth - 1)
        inner = self.column({alias: columns}, "int")
        if inner is None:
            return f"{number} = 1"
        condition = self.condition({**scope, alias: columns} if self.random.random() < 0.5 else {alias: columns}, 1, 0)
        match self.random.randrange(4):
            case 0:
                return f"{number} {self.pick('IN', 'NOT IN')} (SELECT {inner} FROM {item} WHERE {condition})"
            case 1:
                link = f"{inner} = {number}"
                return f"{self.pick('', 'NOT ')}EXISTS (SELECT 1 FROM {item} WHERE {link} AND {condition})"
            case 2:
                return f"{number} <= (SELECT max({inner}) FROM {item} WHERE {condition})"
        return f"{number} = (SELECT count(*) FROM {item} WHERE {inner} = {number} AND {condition})"

    def condition(self, scope: dict[str, dict[str, str]], size: int, depth: int) -> str:
        if size <= 0 or self.random.random() < 0.35:
            return self.atom(scope, depth)
        parts = [self.condition(scope, size - 1, depth) for _ in range(self.random.randrange(1, 4))]
        joined = f" {self.pick('AND', 'AND', 'OR')} ".join(f"({p})" for p in parts)
        return f"NOT ({joined})" if self.random.random() < 0.2 else joined

    def query(self, depth: int) -> tuple[str, dict[str, str]]:
        if depth > 0 and self.random.random() < 0.25:
            return self.set_operation(depth)
        return self.select(depth)

    def set_operation(self, depth: int) -> tuple[str, dict[str, str]]:
        sides = []
        for _ in range(2):
            table = self.pick("t", "u")
            columns = [self.pick("a", "b" if table == "t" else "c"), "s"]
            where = self.condition({table: dict(SCHEMAS[table])}, 1, depth - 1)
            sides.append(f"SELECT {columns[0]} AS k{len(sides)}, {columns[1]} FROM {table} WHERE {where}")
        op = self.pick("UNION", "UNION ALL", "INTERSECT", "EXCEPT")
        limit = " ORDER BY 1, 2 LIMIT 3" if self.random.random() < 0.2 else ""
        return f"{sides[0]} {op} {sides[1]}{limit}", {"k0": "int", "s": "string"}

    def select(self, depth: int) -> tuple[str, dict[str, str]]:
        item, alias, columns = self.source(depth)
        scope = {alias: columns}
        sql = f"FROM {item}"
        for _ in range(self.random.choice((0, 0, 1, 1, 2))):
            item, alias, columns = self.source(depth - 1)
            kind = self.pick("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN", ",")
            if kind == ",":
                sql += f" CROSS JOIN {item}"
            else:
                both = {**scope, alias: columns}
                a, b = self.column(scope, "int", True), self.column({alias: columns}, "int", True)
                on = f"{a} = {b}" if a and b else "1 = 1"
                if self.random.random() < 0.5:
                    on += f" AND ({self.condition(both, 1, 0)})"
                if kind == "FULL JOIN":
                    on = f"{a} = {b}" if a and b else "1 = 1"
                sql += f" {kind} {item} ON {on}"
            if kind not in ("SEMI JOIN", "ANTI JOIN"):
                scope[alias] = columns
        if self.random.random() < 0.8:
            sql += f" WHERE {self.condition(scope, 2, depth)}"
        return self.outputs(sql, scope)

    def outputs(self, sql: str, scope: dict[str, dict[str, str]]) -> tuple[str, dict[str, str]]:
        number, word = self.column(scope, "int"), self.column(scope, "string")
        named = [(c, k) for c, k in ((number, "int"), (word, "string")) if c]
        columns = {f"o{i}": kind for i, (_, kind) in enumerate(named)}
        listed = [f"{c} AS o{i}" for i, (c, _) in enumerate(named)]
        if not named:
            return f"SELECT count(*) AS n {sql}", {"n": "int"}
        match self.random.randrange(8):
            case 0:
                keys = ", ".join(c for c, _ in named)
                having = self.pick("", " HAVING count(*) > 1")
                return f"SELECT {', '.join(listed)}, count(*) AS n {sql} GROUP BY {keys}{having}", {
                    **columns,
                    "n": "int",
                }
            case 1:
                places = ", ".join(str(i + 1) for i in range(len(named)))
                return f"SELECT {', '.join(listed)} {sql} ORDER BY {places} LIMIT 2", columns
            case 2:
                window = f"row_number() OVER (ORDER BY {named[0][0]}, {named[-1][0]})"
                return f"SELECT {', '.join(listed)}, {window} AS n {sql}", {**columns, "n": "int"}
            case 3:
                return f"SELECT DISTINCT {', '.join(listed)} {sql}", columns
            case 4 if number:
                return f"SELECT max({number}) AS m, count(*) AS n {sql}", {"m": "int", "n": "int"}
            case 5 if number:
                return f"SELECT coalesce({number}, 0) + 1 AS m, {', '.join(listed)} {sql}", {"m": "int", **columns}
            case 6 if number and len(named) == 2:
                return f"SELECT {', '.join(listed)}, sum({number}) AS n {sql} GROUP BY ROLLUP ({number}, {word})", {
                    **columns,
                    "n": "int",
                }
        return f"SELECT {', '.join(listed)} {sql}", columns

    def statement(self) -> str:
        if self.random.random() < 0.25:
            inner, columns = self.query(1)
            names = [c for c, k in columns.items() if k == "int"]
            if names:
                where = self.condition({"w": columns}, 1, 0)
                other = self.pick("", f" JOIN w AS w2 ON w.{names[0]} = w2.{names[0]} AND w2.{names[0]} > 1")
                return f"WITH w AS ({inner}) SELECT w.{names[0]} FROM w{other} WHERE {where}"
        return self.query(2)[0]


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
    check(con, sql, Counter(), "golden")


VOLATILE = [
    "rand()",
    "randn()",
    "random()",
    "uuid()",
    "now()",
    "current_date()",
    "current_date",
    "curdate()",
    "current_timestamp()",
    "current_timestamp",
    "localtimestamp()",
    "current_timezone()",
    "unix_timestamp()",
    "input_file_name()",
    "input_file_block_start()",
    "version()",
    "monotonically_increasing_id()",
    "spark_partition_id()",
    "current_user()",
    "current_user",
    "user()",
    "session_user()",
    "current_database()",
    "current_catalog()",
    "current_schema()",
    "explode(b)",
    "posexplode(b)",
    "sum(b)",
    "raise_error('x')",
    "assert_true(b)",
    "reflect('a','b')",
    "shuffle(b)",
    "uniform(1,2)",
]


@pytest.mark.parametrize("call", VOLATILE)
def test_what_changes_from_run_to_run_is_no_condition(call: str) -> None:
    for c in (f"({call}) = b", f"b < {call}", f"coalesce({call}, a) = 1", f"b IN (1, {call})"):
        assert predicate_text(where(f"a = 1 AND {c}")) == "a = 1", c


def check_random(con: duckdb.DuckDBPyConnection, seed: int, counts: Counter[str]) -> None:
    sql = Writer(seed).statement()
    try:
        con.execute(sql)
    except duckdb.Error:
        counts["not valid"] += 1
        return
    check(con, sql, counts, f"seed {seed}")
    some = random.Random(seed).sample(list(SCHEMAS), seed % 3)
    check(con, sql, counts, f"seed {seed}, known are {some}", {table: SCHEMAS[table] for table in some})


def check(
    con: duckdb.DuckDBPyConnection,
    sql: str,
    counts: Counter[str],
    name: str,
    schemas: dict[str, dict[str, str]] = SCHEMAS,
) -> None:
    """The query gives the same rows on the tables and on views of only the rows that its predicates keep."""
    expected = sorted(map(repr, con.execute(sql).fetchall()))
    (query,) = Workload.from_sql(sql, schemas, "duckdb").queries
    con.execute("CREATE SCHEMA kept")
    try:
        for table in SCHEMAS:
            p = query.predicate(table) if table in query.tables() else TRUE
            condition = sqlglot.transpile(predicate_text(p), read="spark", write="duckdb")[0]
            con.execute(f"CREATE VIEW kept.{table} AS SELECT * FROM main.{table} WHERE {condition}")
            counts["filtered"] += p != TRUE
        con.execute("SET search_path = 'kept,main'")
        actual = sorted(map(repr, con.execute(sql).fetchall()))
    finally:
        con.execute("SET search_path = 'main'")
        con.execute("DROP SCHEMA kept CASCADE")
    counts["queries"] += 1
    counts["with rows"] += bool(expected)
    assert actual == expected, f"{name}: {sql}"


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_random_queries(con: duckdb.DuckDBPyConnection, part: int) -> None:
    size = 5000 if os.environ.get("HEDGEROW_HYPOTHESIS") == "full" else 250
    counts: Counter[str] = Counter()
    for seed in range(part * size, (part + 1) * size):
        check_random(con, seed, counts)
    assert counts["not valid"] < 0.1 * size
    assert counts["with rows"] > 0.8 * size
    assert counts["filtered"] > size


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


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        (
            "SELECT * FROM t;\nSELEC * FRM t WHERE b",
            "line 2, column 19: Invalid expression .* after 'SELEC \\* FRM t WHERE'",
        ),
        ("SELECT * FROM t WHERE b = = 3", "line 1, .* 'expression' missing for EQ, after 'SELECT .* b = ='"),
    ],
)
def test_broken_text_is_told_with_its_place(sql: str, told: str) -> None:
    with pytest.raises(HedgerowError, match=told):
        Workload.from_sql(sql)


def test_a_misspelt_column_is_told_with_the_one_meant() -> None:
    schema = {"t": {"o_custkey": "int", "o_orderdate": "date"}}
    workload = Workload.from_sql(["SELECT * FROM t WHERE o_custky = 1", "SELECT * FROM t WHERE zebra = 1"], schema)
    first, second = workload.skipped
    assert first.endswith("there is no column o_custky: did you mean o_custkey?")
    assert second.endswith("there is no column zebra")
