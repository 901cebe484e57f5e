"""From a Parquet directory to blocks and back: the rows are the source's, and only the promised files are opened."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hedgerow.core.errors import HedgerowError
from hedgerow.pipeline import apply, learn, open_table, score
from hedgerow.sql.workload import Workload
from hedgerow.tables.parquet import ParquetTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS, BLOCK_ROWS = 20_000, 500
NAN = "double('NaN')"
LEARNERS = ["zorder", "qdtree", *(pytest.param(name, marks=pytest.mark.long) for name in ("range", "hilbert"))]


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Every kind of column: numbers, NULLs and NaN, decimals, dates, timestamps, binary, nested, awkward names."""
    path = str(tmp_path_factory.mktemp("source") / "events.parquet")
    spark.range(ROWS).selectExpr(
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


ATOMS: list[Callable[[random.Random], str]] = [
    lambda r: f"number {r.choice(['<', '<=', '=', '>=', '>', '<>'])} {r.randrange(1000)}",
    lambda r: f"Number BETWEEN {(n := r.randrange(1000))} AND {n + r.randrange(60)}",
    lambda r: f"Number IN ({', '.join(str(r.randrange(1000)) for _ in range(5))})",
    lambda r: f"ratio < {r.randrange(130)}",
    lambda r: f"odd {r.choice(['>', '<=', '=', '<>'])} {r.choice([NAN, '0', '33.5', '0.0D', '99'])}",
    lambda r: f"price >= {r.randrange(100)}.{r.randrange(100):02d}",
    lambda r: f"day = DATE '2024-{r.randrange(1, 12):02d}-{r.randrange(1, 28):02d}'",
    lambda r: f"day >= '2024-{r.randrange(1, 12):02d}-01'",
    lambda r: f"at < '2024-01-01 0{r.randrange(6)}:{r.randrange(10, 60)}:00'",
    lambda r: f"CAST(at AS DATE) = DATE '2024-01-0{r.randrange(1, 3)}'",
    lambda r: f"wall >= TIMESTAMP_NTZ '2024-01-01 1{r.randrange(9)}:00:00'",
    lambda r: f"word LIKE '{r.choice(['ab%', '%9', '%c%', 'bc1_', 'x%', '%'])}'",
    lambda r: f"word NOT LIKE '{r.choice('abcdefg')}%'",
    lambda r: r.choice(["flag", "NOT flag", "flag IS NULL", "flag IS NOT TRUE", "flag <=> false"]),
    lambda r: f"{r.choice(['ratio', 'odd', 'flag', 'word'])} IS {r.choice(['', 'NOT '])}NULL",
    lambda r: f"bytes = X'{r.choice(['31', '3132', '39'])}'",
    lambda r: f"parts.x < {r.randrange(400)}",
    lambda r: f"parts.name = 'n{r.randrange(12)}'",
    lambda r: f"tags['k'] = '{r.randrange(7)}'",
    lambda r: f"length(replace(word, 'a', '')) = {r.randrange(1, 5)}",
    lambda r: f"month(day) = {r.randrange(1, 13)}",
    lambda r: f"`a b` > {r.randrange(77)}",
    lambda r: "Number < ratio",
    lambda r: f"list[0] < {r.randrange(ROWS)}",
    lambda r: f"number % {r.randrange(2, 9)} = 0",
    lambda r: f"number = '{r.randrange(1000)}'",
    lambda r: f"number < {r.randrange(1000)}.5",
]


def condition(r: random.Random, size: int = 2) -> str:
    if size == 0 or r.random() < 0.4:
        return r.choice(ATOMS)(r)
    parts = [f"({condition(r, size - 1)})" for _ in range(r.randrange(1, 4))]
    joined = f" {r.choice(['AND', 'AND', 'OR'])} ".join(parts)
    return f"NOT ({joined})" if r.random() < 0.15 else joined


def conditions(seed: int, n: int) -> list[str]:
    r = random.Random(seed)
    return [condition(r) for _ in range(n)]


@pytest.fixture(scope="module")
def workload() -> Workload:
    return Workload.from_sql([f"SELECT id FROM events WHERE {c}" for c in conditions(1, 40)])


@pytest.fixture(scope="module", params=LEARNERS)
def managed(
    spark: SparkSession,
    source: str,
    workload: Workload,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> ParquetTable:
    learned = learn(spark, source, workload, learner=request.param, block_rows=BLOCK_ROWS, sample_rows=5_000)
    assert learned.layout.blocks > 5
    return apply(spark, source, learned, str(tmp_path_factory.mktemp(request.param) / "events"))


def fingerprint(frame: DataFrame) -> tuple[int, Any]:
    """Row count and an order-free checksum of all columns."""
    row = frame.selectExpr(
        "count(*) AS n", "sum(CAST(xxhash64(id, Number, odd, price, word, parts) AS DECIMAL(38))) AS s"
    )
    found = row.first()
    assert found is not None
    return found["n"], found["s"]


def test_same_rows_and_schema(spark: SparkSession, source: str, managed: ParquetTable) -> None:
    plain, written = spark.read.parquet(source), spark.read.parquet(managed.path)
    assert written.schema == plain.schema
    assert fingerprint(written) == fingerprint(plain)
    flat = [plain.drop("tags"), written.drop("tags")]  # maps cannot be compared as sets
    assert flat[0].exceptAll(flat[1]).isEmpty()
    assert flat[1].exceptAll(flat[0]).isEmpty()


def test_reads_are_exact_and_open_only_what_the_index_says(
    spark: SparkSession, source: str, managed: ParquetTable
) -> None:
    plain = spark.read.parquet(source)
    asked = conditions(2, 40)
    columns = [f"count(CASE WHEN {c} THEN 1 END) AS c{i}" for i, c in enumerate(asked)]
    expected = plain.selectExpr(*columns).first()
    assert expected is not None
    skipped = 0
    for i, c in enumerate(asked):
        frame = managed.read(where=c)
        assert frame.count() == expected[f"c{i}"], c
        files = managed.files(where=c)
        assert sorted(n.rsplit("/", 1)[-1] for n in frame.inputFiles()) == files
        skipped += len(managed.known) - len(files)
    assert skipped > 0.1 * len(asked) * len(managed.known)


def test_blocks_are_as_large_as_asked(managed: ParquetTable) -> None:
    blocks = managed.describe()["rows_per_block"]
    assert managed.known.rows.sum() == ROWS
    assert blocks["least"] >= 0.5 * BLOCK_ROWS


def test_score_tells_what_is_opened(managed: ParquetTable, workload: Workload) -> None:
    found = managed.score(workload)
    assert 0 < found.rows_read < 1
    assert len(found.queries) == len(workload)


def test_append_and_files_of_others(spark: SparkSession, source: str, workload: Workload, tmp_path: Path) -> None:
    learned = learn(spark, source, workload, learner="qdtree", block_rows=BLOCK_ROWS, sample_rows=5_000)
    table = apply(spark, source, learned, str(tmp_path / "events"))
    more = spark.read.parquet(source).where("id < 1000").selectExpr("id + 1000000 AS id", "* EXCEPT (id)")
    grown = table.append(more)
    assert grown.read().count() == ROWS + 1000
    assert grown.describe()["unknown_files"] == []
    spark.read.parquet(source).where("id < 10").coalesce(1).write.mode("append").parquet(table.path)
    again = open_table(spark, table.path)
    assert len(again.describe()["unknown_files"]) == 1
    assert again.read(where="id < 10").count() == 20
    assert again.read(where="id = 1000005").count() == 1


def test_what_if_agrees_with_what_is_written(
    spark: SparkSession, source: str, workload: Workload, managed: ParquetTable
) -> None:
    exact = score(spark, source, workload, managed.layout, exact=True)
    assert exact.rows_read == pytest.approx(managed.score(workload).rows_read, abs=0.02)


def test_bad_input_is_one_sentence(spark: SparkSession, source: str, workload: Workload, tmp_path: Path) -> None:
    def refused(call: Callable[[], object], words: str) -> None:
        with pytest.raises(HedgerowError, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)

    refused(lambda: learn(spark, str(tmp_path / "none"), workload), "cannot be read")
    refused(lambda: learn(spark, source, Workload(())), "no query")
    refused(lambda: learn(spark, source, Workload.from_sql("SELECT 1 FROM a JOIN b ON a.x = b.x")), "speaks of a, b")
    refused(lambda: learn(spark, source, Workload.from_sql("SELECT 1 FROM events WHERE nothing = 1")), "nothing")
    refused(lambda: learn(spark, source, workload, learner="magic"), "no learner 'magic'")
    refused(lambda: learn(spark, spark.read.parquet(source).limit(0), workload), "empty")
    refused(lambda: open_table(spark, source), "no table that Hedgerow wrote")
    some = learn(spark, source, workload, learner="range", block_rows=5_000)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("keep")
    refused(lambda: apply(spark, source, some, str(tmp_path / "full")), "not empty")
    assert (tmp_path / "full" / "mine.txt").read_text() == "keep"
