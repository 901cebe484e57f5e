"""Time queries in DuckDB on the files of written tables.

Over all files of a table, DuckDB skips by Parquet's own statistics alone, so the seconds show what the order of rows
brings by itself. Over the files that Hedgerow chooses for each query, the seconds include the choice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from hedgerow.demo.race import comparable, rotated

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

THREADS = 2
Choice = Callable[["DuckDBPyConnection", "str | None"], "DuckDBPyRelation"]  # of a connection and a condition


def seconds_in_duckdb(
    table: str,
    spark_texts: Sequence[str],
    files: Mapping[str, Sequence[str]],
    turns: int,
    chosen: Mapping[str, Choice] | None = None,
) -> dict[str, float]:
    """Return the sum of the queries' median seconds for each way; the first turn warms the caches.

    `files`: ways that read the same files for each query. `chosen`: ways that choose the files for each condition."""
    import duckdb
    import sqlglot

    chosen = chosen or {}
    texts = [sqlglot.transpile(text, read="spark", write="duckdb")[0] for text in spark_texts]
    conditions = [condition_of(text, table) for text in spark_texts] if chosen else [None] * len(texts)
    database = duckdb.connect(config={"threads": THREADS})
    database.execute("SET enable_progress_bar = false")
    took: dict[str, list[list[float]]] = {way: [[] for _ in texts] for way in (*files, *chosen)}
    answers: dict[str, list[str]] = {}
    for turn in range(turns + 1):
        for way in rotated(list(took), turn):
            if way in files:
                database.read_parquet(list(files[way])).create_view(table, replace=True)
            for text, condition, seconds in zip(texts, conditions, took[way], strict=True):
                start = time.perf_counter()
                if way in chosen:
                    chosen[way](database, condition).create_view(table, replace=True)
                rows = database.execute(text).fetchall()
                seconds.append(time.perf_counter() - start)
                if not turn:
                    answer = sorted(map(comparable, rows))
                    assert answers.setdefault(text, answer) == answer, f"{way} gives another answer: {text}"
    database.close()
    return {way: sum(median(seconds[1:]) for seconds in of) for way, of in took.items()}


def condition_of(spark_text: str, table: str) -> str | None:
    """Return the WHERE of a query that reads this table only; None for any other query.

    >>> condition_of("SELECT * FROM t AS s WHERE s.x < 3 ORDER BY y", "t"), condition_of("SELECT * FROM t, u", "t")
    ('x < 3', None)
    """
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(spark_text, read="spark")
    where = tree.args.get("where")
    reads = [(read.name, read.db) for read in tree.find_all(exp.Table)]
    if not isinstance(tree, exp.Select) or where is None or reads != [(table, "")]:
        return None
    condition, (source,) = where.this.copy(), tree.find_all(exp.Table)
    for column in condition.find_all(exp.Column):
        if column.table == source.alias_or_name:  # else a field of a struct
            column.set("table", None)
    return str(condition.sql("spark"))
