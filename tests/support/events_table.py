"""A small table with every kind of column, and random conditions about it: the same seed, the same conditions."""

from __future__ import annotations

import random
from collections.abc import Callable

from pyspark.sql import SparkSession

from tests.support.random_queries import conditions_of

ROWS = 20_000
NAN = "double('NaN')"


def write_events(spark: SparkSession, path: str, rows: int = ROWS) -> str:
    """Numbers, NULLs and NaN, decimals, dates, timestamps, binary, nested, awkward names."""
    spark.range(rows).selectExpr(
        "id",
        "CAST(pmod(id * 7919, 1000) AS INT) AS Number",
        "IF(id % 11 = 0, NULL, CAST(pmod(id * 31, 500) / 4.0 AS DOUBLE)) AS ratio",
        "CASE WHEN id % 13 = 0 THEN double('NaN') WHEN id % 17 = 0 THEN -0.0D ELSE pmod(id * 17, 300) / 3D END AS odd",
        "CAST(pmod(id * 101, 10000) / 100.0 AS DECIMAL(8, 2)) AS price",
        "date_add(DATE '2024-01-01', CAST(id / 60 AS INT)) AS day",
        "TIMESTAMP '2024-01-01 00:00:00' + make_interval(0, 0, 0, 0, 0, id) AS at",
        "CAST(TIMESTAMP_NTZ '2024-01-01 00:00:00' + make_interval(0, 0, 0, 0, 0, id * 3) AS TIMESTAMP_NTZ) AS wall",
        "concat(substr('abcdefghij', 1 + pmod(id * 3, 10), 2), pmod(id * 13, 97)) AS word",
        "IF(id % 5 = 0, NULL, id % 3 = 0) AS flag",
        "CAST(CAST(pmod(id, 50) AS STRING) AS BINARY) AS bytes",
        "named_struct('x', pmod(id * 7, 400), 'name', concat('n', pmod(id, 9))) AS parts",
        "array(id, id + 1) AS list",
        "map('k', CAST(pmod(id, 6) AS STRING)) AS tags",
        "pmod(id * 3, 77) AS `a b`",
    ).repartition(4, "id").write.parquet(path)
    return path


# Each takes what stands before a column: nothing, or an alias and a dot.
ATOMS: list[Callable[[random.Random, str], str]] = [
    lambda r, e: f"{e}number {r.choice(['<', '<=', '=', '>=', '>', '<>'])} {r.randrange(1000)}",
    lambda r, e: f"{e}Number BETWEEN {(n := r.randrange(1000))} AND {n + r.randrange(60)}",
    lambda r, e: f"{e}Number IN ({', '.join(str(r.randrange(1000)) for _ in range(5))})",
    lambda r, e: f"{e}ratio < {r.randrange(130)}",
    lambda r, e: f"{e}odd {r.choice(['>', '<=', '=', '<>'])} {r.choice([NAN, '0', '33.5', '0.0D', '99'])}",
    lambda r, e: f"{e}price >= {r.randrange(100)}.{r.randrange(100):02d}",
    lambda r, e: f"{e}day = DATE '2024-{r.randrange(1, 12):02d}-{r.randrange(1, 28):02d}'",
    lambda r, e: f"{e}day >= '2024-{r.randrange(1, 12):02d}-01'",
    lambda r, e: f"{e}at < '2024-01-01 0{r.randrange(6)}:{r.randrange(10, 60)}:00'",
    lambda r, e: f"CAST({e}at AS DATE) = DATE '2024-01-0{r.randrange(1, 3)}'",
    lambda r, e: f"{e}wall >= TIMESTAMP_NTZ '2024-01-01 1{r.randrange(9)}:00:00'",
    lambda r, e: f"{e}word LIKE '{r.choice(['ab%', '%9', '%c%', 'bc1_', 'x%', '%'])}'",
    lambda r, e: f"{e}word NOT LIKE '{r.choice('abcdefg')}%'",
    lambda r, e: r.choice(
        [f"({e}flag)", f"NOT {e}flag", f"{e}flag IS NULL", f"{e}flag IS NOT TRUE", f"{e}flag <=> false"]
    ),
    lambda r, e: f"{e}{r.choice(['ratio', 'odd', 'flag', 'word'])} IS {r.choice(['', 'NOT '])}NULL",
    lambda r, e: f"{e}bytes = X'{r.choice(['31', '3132', '39'])}'",
    lambda r, e: f"{e}parts.x < {r.randrange(400)}",
    lambda r, e: f"{e}parts.name = 'n{r.randrange(12)}'",
    lambda r, e: f"{e}tags['k'] = '{r.randrange(7)}'",
    lambda r, e: f"length(replace({e}word, 'a', '')) = {r.randrange(1, 5)}",
    lambda r, e: f"month({e}day) = {r.randrange(1, 13)}",
    lambda r, e: f"{e}`a b` > {r.randrange(77)}",
    lambda r, e: f"{e}Number < {e}ratio",
    lambda r, e: f"{e}list[0] < {r.randrange(ROWS)}",
    lambda r, e: f"{e}number % {r.randrange(2, 9)} = 0",
    lambda r, e: f"{e}number = '{r.randrange(1000)}'",
    lambda r, e: f"{e}number < {r.randrange(1000)}.5",
]
condition = conditions_of(ATOMS, 0.4, ["AND", "AND", "OR"], 0.15)


def conditions(seed: int, n: int) -> list[str]:
    r = random.Random(seed)
    return [condition(r) for _ in range(n)]
