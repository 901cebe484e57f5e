"""The files of written tables, read by DuckDB: what an order of rows gives to an engine that knows nothing of Hedgerow
and skips by Parquet's own statistics alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from bench.options import rotated

THREADS = 2


def seconds_in_duckdb(
    table: str, spark_texts: Sequence[str], files: Mapping[str, Sequence[str]], turns: int
) -> dict[str, float]:
    """By way of laying the table out, the sum of the queries' median seconds; the first turn warms the caches."""
    import duckdb
    import sqlglot

    texts = [sqlglot.transpile(text, read="spark", write="duckdb")[0] for text in spark_texts]
    con = duckdb.connect(config={"threads": THREADS})
    con.execute("SET enable_progress_bar = false")
    took: dict[str, list[list[float]]] = {way: [[] for _ in texts] for way in files}
    answers: dict[str, list[str]] = {}
    for turn in range(turns + 1):
        for way in rotated(list(files), turn):
            con.read_parquet(list(files[way])).create_view(table, replace=True)
            for text, own in zip(texts, took[way], strict=True):
                start = time.perf_counter()
                rows = con.execute(text).fetchall()
                own.append(time.perf_counter() - start)
                if not turn:
                    found = sorted(map(comparable, rows))
                    assert answers.setdefault(text, found) == found, f"{way} gives another answer: {text}"
    con.close()
    return {way: sum(median(own[1:]) for own in of) for way, of in took.items()}


def comparable(row: Iterable[Any]) -> str:
    """Sums of floating-point numbers depend on the order of the rows."""
    return repr([float(f"{v:.9g}") if isinstance(v, float) else v for v in row])
