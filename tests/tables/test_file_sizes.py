"""Neighbouring blocks share files of the wanted size, in row groups of their own size; answers stay the same."""

from __future__ import annotations

from itertools import pairwise
from math import ceil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import hedgerow as hr
from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.spark.start.session import configured
from hedgerow.spark.storage.source import open_source
from hedgerow.tables.managed import ManagedTable
from tests.support.answers import attached_to
from tests.support.lay_out import asking, by_ranges

ROWS, BLOCK_ROWS = 240_000, 40_000
COLUMNS = ("id", "id % 7 AS k", "id DIV 80000 AS day")
ASKED = (
    "id < 40000",
    "id BETWEEN 100000 AND 139999 AND k = 3",
    "k = 5 AND day = 1",
    "id IN (1, 239999)",
    "day IS NULL",
)


def learned_of(spark: SparkSession, source: str, kind: str = "parquet", partitions: tuple[str, ...] = ()) -> hr.Learned:
    """Write a table, and return a layout of several blocks for it."""
    rows = spark.range(ROWS).selectExpr(*COLUMNS).repartition(3)
    rows.write.format(kind).partitionBy(*partitions).save(source)
    return by_ranges(spark, source, "id", BLOCK_ROWS, ASKED)


def in_one_file(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> tuple[SparkSession, hr.Learned, ManagedTable]:
    """Write a table whose blocks are all in one file."""
    spark: SparkSession = request.getfixturevalue("delta" if kind == "delta" else "spark")
    source, to = str(tmp_path / "source"), None if kind == "delta" else str(tmp_path / "t")
    learned = learned_of(spark, source, kind)
    table = hr.apply(spark, source, learned, to, hr.WriteOptions(file_bytes="10GB"))
    return spark, learned, table


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_blocks_share_a_file(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    spark, learned, table = in_one_file(request, tmp_path, kind)
    (file,) = table.files()
    metadata = pq.read_metadata(Path(table.path, file))
    bounds = [metadata.row_group(g).column(0).statistics for g in range(metadata.num_row_groups)]
    assert len(bounds) == ceil(ROWS / (ROWS // learned.blocks // 2)) > learned.blocks
    assert all(before.max < after.min for before, after in pairwise(bounds))  # block after block
    assert table.read().count() == ROWS
    with attached_to(spark):
        read = spark.read.format(kind).load(table.path)
        for condition in ASKED:
            expected = spark.range(ROWS).selectExpr(*COLUMNS).where(condition).count()
            assert read.where(condition).count() == expected, condition
    grown = table.append(spark.range(ROWS, ROWS + 60_000).selectExpr(*COLUMNS))
    (new,) = set(grown.files()) - {file}  # an append keeps the options
    assert pq.read_metadata(Path(table.path, new)).num_row_groups > 1
    assert spark.conf.get("parquet.block.row.count.limit", None) is None


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_row_groups_are_skipped(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    """By conditions that only the index knows, after an append and `relearn`."""
    spark, _, table = in_one_file(request, tmp_path, kind)
    table = table.append(spark.range(ROWS, ROWS + 60_000).selectExpr(*COLUMNS))
    table = table.relearn(asking(["id % 1000 = 7 AND id < 50000", "sqrt(id) < 100"]))
    table.verify()
    seldom = "sqrt(id) < 100"  # ids below 10,000
    with configured(spark, parquet__filterPushdown=False), attached_to(spark):
        for condition, most in ((ASKED[0], 48_000), (ASKED[3], 48_000), (seldom, 24_000), ("id >= 280000", 36_000)):
            rows = spark.read.format(kind).load(table.path).where(condition)
            expected = [r.id for r in spark.range(ROWS + 60_000).selectExpr(*COLUMNS).where(condition).collect()]
            assert sorted(r.id for r in rows.collect()) == expected
            (scan,) = hr.last_query(spark)
            assert 0 < scanned_rows(rows) <= most and scan.bytes_opened < scan.bytes / 3, condition
            joined = rows.join(spark.read.format(kind).load(table.path).where("id < 5"), "id")
            assert sorted(r.id for r in joined.collect()) == [i for i in expected if i < 5]
        whole = spark.read.format(kind).load(table.path)
        assert scanned_rows(whole) == ROWS + 60_000
        assert whole.where(seldom).cache().count() == whole.where("id < 10000").count() == 10_000
    spark.catalog.clearCache()
    assert 0 < table.score(asking([seldom])).rows_read < 0.1


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_look_ups_skip_row_groups(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    """By filters that name row groups, after appends whose filters are joined."""
    spark: SparkSession = request.getfixturevalue("delta" if kind == "delta" else "spark")
    source, to = str(tmp_path / "source"), None if kind == "delta" else str(tmp_path / "t")
    columns = (*COLUMNS, "pmod(xxhash64(id), 1000003) AS key", "md5(CAST(id AS STRING)) AS event")
    spark.range(ROWS).selectExpr(*columns).write.format(kind).save(source)
    learned = by_ranges(spark, source, "id", BLOCK_ROWS, [*ASKED, "key = 77"])
    table = hr.apply(spark, source, learned, to, hr.WriteOptions(file_bytes="10GB", lookup_share=0.5))
    table = table.relearn(asking(["event = 'a'"]))
    for start in (ROWS, ROWS + 60_000):
        table = table.append(spark.range(start, start + 60_000).selectExpr(*columns))
    table.verify()
    with attached_to(spark):
        read = spark.read.format(kind).load(table.path)
        for i in (0, 100_000, ROWS - 1, ROWS + 7, ROWS + 60_000):
            key, event = spark.range(i, i + 1).selectExpr(*columns).select("key", "event").collect()[0]
            for condition in (f"key = {key}", f"event = '{event}'", f"key IN ({key}, -5) AND k < 9"):
                expected = spark.range(ROWS + 120_000).selectExpr(*columns).where(condition).collect()
                rows = read.where(condition)
                assert sorted(r.id for r in rows.collect()) == sorted(r.id for r in expected)
                (scan,) = hr.last_query(spark)
                assert scan.means == "look-up" and 0 < scanned_rows(rows) <= 6 * 20_000, condition
        assert read.where("event = 'none'").count() == 0
    assert 0 < table.score(asking([f"event = '{event}'"])).rows_read < 0.3


def scanned_rows(rows: DataFrame) -> int:
    """Return the rows that the scan of a query has read from its files."""
    execution = rows.select("*")._jdf.queryExecution()  # whose metrics are new
    execution.toRdd().count()
    return int(execution.executedPlan().collectLeaves().head().metrics().apply("numOutputRows").value())


def test_partitions(delta: SparkSession, tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    learned = learned_of(delta, source, "delta", ("day",))
    table = hr.apply(delta, source, learned, options=hr.WriteOptions(file_bytes="10GB"))
    assert len(table.files()) == 3
    for file in table.files():
        ids = pq.ParquetFile(Path(table.path, file)).read(["id"])["id"].to_pylist()
        assert ids == sorted(ids)


def test_sizes(spark: SparkSession, tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    learned = learned_of(spark, source)
    size = open_source(spark, source).size / learned.blocks
    for blocks in (0.1, 1, 2, 4, 100):
        options, to = hr.WriteOptions(file_bytes=f"{size * blocks:.0f}B"), str(tmp_path / f"t{blocks}")
        assert len(hr.apply(spark, source, learned, to, options).files()) == ceil(learned.blocks / max(1, blocks)), (
            blocks
        )


def test_waves(spark: SparkSession, tmp_path: Path) -> None:
    """A block has a file in each wave, so more blocks share one."""
    source, to = str(tmp_path / "source"), str(tmp_path / "t")
    learned = learned_of(spark, source)
    size = open_source(spark, source).size
    options = hr.WriteOptions(file_bytes=f"{size / learned.blocks:.0f}B", wave_bytes=f"{size / 3 + 1000:.0f}B")
    table = hr.apply(spark, source, learned, to, options)
    assert len(table.files()) <= 2 * learned.blocks  # not three times as many
    assert table.read().count() == ROWS


def test_refused(spark: SparkSession, tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    spark.range(1000).selectExpr(*COLUMNS).coalesce(1).write.parquet(source)
    learned = hr.learn(
        spark, source, asking(ASKED), "qdtree", hr.LearnOptions(block_rows=10), table="t", overlap=True, cells=1
    )
    assert isinstance(learned.layout, OverlapLayout)
    with pytest.raises(LayoutError, match="a file for each block"):
        hr.apply(spark, source, learned, str(tmp_path / "t"), hr.WriteOptions(file_bytes="1MB"))
    with pytest.raises(LayoutError, match="a file size is written like 64MB, not '12 parsecs'"):
        hr.WriteOptions(file_bytes="12 parsecs")
