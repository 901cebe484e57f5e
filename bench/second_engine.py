"""Time queries in DuckDB on the files of written tables. DuckDB knows nothing of Hedgerow: it skips by Parquet's own
statistics alone, so the seconds show what the order of rows brings by itself.
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
    """Return the sum of the queries' median seconds for each layout of the table; the first turn warms the caches."""
    import duckdb
    import sqlglot

    texts = [sqlglot.transpile(text, read="spark", write="duckdb")[0] for text in spark_texts]
    database = duckdb.connect(config={"threads": THREADS})
    database.execute("SET enable_progress_bar = false")
    took: dict[str, list[list[float]]] = {way: [[] for _ in texts] for way in files}
    answers: dict[str, list[str]] = {}
    for turn in range(turns + 1):
        for way in rotated(list(files), turn):
            database.read_parquet(list(files[way])).create_view(table, replace=True)
            for text, seconds in zip(texts, took[way], strict=True):
                start = time.perf_counter()
                rows = database.execute(text).fetchall()
                seconds.append(time.perf_counter() - start)
                if not turn:
                    answer = sorted(map(comparable, rows))
                    assert answers.setdefault(text, answer) == answer, f"{way} gives another answer: {text}"
    database.close()
    return {way: sum(median(seconds[1:]) for seconds in of) for way, of in took.items()}


def comparable(row: Iterable[Any]) -> str:
    """Return a row as text, its floats rounded: sums of floating-point numbers depend on the order of the rows."""
    return repr([float(f"{v:.9g}") if isinstance(v, float) else v for v in row])
