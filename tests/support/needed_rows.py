"""Tables of DuckDB with only the rows that a query needs, by the predicates that were found for its tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import sqlglot

from hedgerow.core.predicates.nodes import TRUE
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.workload.queries import Query


@contextmanager
def only_needed_rows(con: duckdb.DuckDBPyConnection, query: Query) -> Iterator[int]:
    """Put views in place of the tables that the query reads; yield how many of them leave rows out."""
    con.execute("CREATE SCHEMA kept")
    try:
        predicates = {table: query.predicate(table) for table in query.tables()}
        for table, predicate in predicates.items():
            condition = sqlglot.transpile(predicate_text(predicate), read="spark", write="duckdb")[0]
            con.execute(f"CREATE VIEW kept.{table} AS SELECT * FROM main.{table} WHERE {condition}")
        con.execute("SET search_path = 'kept,main'")
        yield sum(p != TRUE for p in predicates.values())
    finally:
        con.execute("SET search_path = 'main'")
        con.execute("DROP SCHEMA kept CASCADE")


def rows_of(con: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    """Return the rows of a query as texts, in an order of their own."""
    return sorted(map(repr, con.execute(sql).fetchall()))
