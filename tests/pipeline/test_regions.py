"""Layouts of many blocks are learned in two levels: a tree of regions, and a tree in each of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.spark.compute import assign_blocks
from hedgerow.spark.compute.assign_blocks import BLOCK, with_block
from hedgerow.spark.storage.source import open_source
from tests.support.answers import opened_by_each
from tests.support.events_table import conditions, write_events

ROWS, BLOCK_ROWS = 20_000, 100
ONE = hr.LearnOptions(block_rows=BLOCK_ROWS, sample_rows=300, recurrence=0.2, exact=False)
FEW = replace(ONE, regions=4)
BOXES = [
    f"number BETWEEN {i * 37 % 900} AND {i * 37 % 900 + 90} AND price BETWEEN {i * 7 % 80} AND {i * 7 % 80 + 15}"
    for i in range(80)
]
ASKED = [*BOXES, *conditions(1, 5), "word LIKE '%c%'"]


@pytest.fixture(scope="module")
def events(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_events(spark, str(tmp_path_factory.mktemp("regions") / "events"), ROWS)


@pytest.fixture(scope="module")
def workload() -> hr.Workload:
    return hr.Workload.from_sql([f"SELECT id FROM events WHERE {c}" for c in ASKED])


@pytest.fixture(scope="module")
def learned(spark: SparkSession, events: str, workload: hr.Workload) -> hr.Learned:
    return hr.learn(spark, events, workload, options=FEW)


def test_regions_are_as_good_as_all_rows(
    spark: SparkSession, events: str, workload: hr.Workload, learned: hr.Learned
) -> None:
    all_rows = hr.learn(spark, events, workload, options=replace(ONE, sample_rows=ROWS))
    reads = [hr.score(spark, events, workload, layout, exact=True).rows_read for layout in (learned, all_rows)]
    assert reads[0] < 1.1 * reads[1] and 0.8 * all_rows.blocks < learned.blocks < 1.4 * all_rows.blocks
    assert learned.provenance["regions"] == 4 and "regions" not in all_rows.provenance


def test_the_same_seed_gives_the_same_layout(
    spark: SparkSession, events: str, workload: hr.Workload, learned: hr.Learned
) -> None:
    assert hr.learn(spark, events, workload, options=FEW).layout == learned.layout


def test_python_routes_the_rows_of_a_large_tree(
    spark: SparkSession, events: str, learned: hr.Learned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = spark.read.parquet(events)
    schema = dict(open_source(spark, events).schema)
    by_sql = with_block(rows, learned.layout, schema)
    monkeypatch.setattr(assign_blocks, "_MAX_SQL_NODES", 0)
    by_python = with_block(rows, learned.layout, schema)
    assert "ArrowEvalPython" in by_python._jdf.queryExecution().toString()
    same = by_sql.select("id", BLOCK).exceptAll(by_python.select("id", BLOCK))
    assert same.count() == 0
    hr.apply(spark, events, learned, str(tmp_path / "written"))
    opened_by_each(spark.read.parquet(str(tmp_path / "written")), ASKED[::5])


def test_only_trees_have_regions(spark: SparkSession, events: str, workload: hr.Workload) -> None:
    with pytest.raises(LayoutError, match="only trees are learned in regions, as by qdtree, and not what zorder makes"):
        hr.learn(spark, events, workload, "zorder", FEW)
    with pytest.raises(LayoutError, match="regions has to be at least 1, not 0"):
        hr.LearnOptions(regions=0)


def test_more_regions_than_blocks(spark: SparkSession, events: str, workload: hr.Workload) -> None:
    options = hr.LearnOptions(block_rows=9_000, regions=50)
    learned = hr.learn(spark, events, workload, options=options)
    assert isinstance(learned.layout, TreeLayout) and learned.blocks <= 3


def test_few_rows_have_no_regions(spark: SparkSession, tmp_path: Path) -> None:
    """All rows of a small table are fewer than fifty for each block, and still one sample is enough."""
    place = str(tmp_path / "small")
    spark.range(100).write.parquet(place)
    asked = hr.Workload.from_sql([f"SELECT * FROM small WHERE id < {i}" for i in range(0, 100, 9)])
    learned = hr.learn(spark, place, asked, options=hr.LearnOptions(block_rows=10))
    assert learned.blocks > 5 and "regions" not in learned.provenance
