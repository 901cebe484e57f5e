"""Cells are counted by core and by Spark, each what it is fast at; written files by Spark alone. Both say the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import hedgerow as hr
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.predicates.nodes import Compare, Feature, atoms_of, col, lit
from hedgerow.core.predicates.sql_text import feature_text
from hedgerow.core.pruning.block_stats import Stats
from hedgerow.core.pruning.combine_stats import agree
from hedgerow.spark.compute.assign_blocks import BLOCK, with_block
from hedgerow.spark.compute.collect_stats import _joined, _stats_of_chunk, collect_blocks, collect_by, usable_items
from hedgerow.spark.compute.count_blocks import TableCounter
from hedgerow.spark.compute.evaluate import needed, split_by_evaluator
from hedgerow.spark.storage.source import open_source, schema_of
from hedgerow.sql.workload import Workload
from tests.support.events_table import conditions, write_events


def test_core_and_spark_say_the_same(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.read.parquet(write_events(spark, str(tmp_path / "events"), rows=3_000))
    schema = schema_of(frame.schema)
    asked = Workload.from_sql([f"SELECT * FROM events WHERE {c}" for c in conditions(9, 24)])
    predicates = [q.predicate("events") for q in asked.bind({"events": schema})]
    features = {p for whole in predicates for p in (whole, *atoms_of(whole))}
    items = [*needed(predicates), *sorted(features, key=feature_text)]
    assert min(map(len, split_by_evaluator(items))) > 10, "nothing was tried"

    cuts = tuple(Compare(col("id"), "<", lit(i)) for i in (700, 1500, 2900))
    layout = TreeLayout(cuts, ((0, ~0, 1), (1, ~1, 2), (2, ~2, ~3)))
    counted = collect_blocks(frame, layout, items, schema)
    joined = collect_blocks(frame.repartition(7), layout, items, schema, joiners=2)
    assert agree(counted, joined).all() and counted.terms.keys() == joined.terms.keys()
    keys, found = collect_by(
        with_block(frame, layout, schema), f.col(BLOCK).cast("string"), usable_items(frame, items, schema)
    )
    assert counted.conditions.keys() == found.conditions.keys()
    for name, feature in counted.conditions.items():
        bits = [0] * layout.blocks
        for key, seen in zip(keys, found.conditions[name].bits.tolist(), strict=True):
            bits[int(key)] |= seen
        assert feature.bits.tolist() == bits, name


@pytest.mark.parametrize("rows_of_a_piece", (1, 7, 100))
def test_pieces_add_up(rows_of_a_piece: int) -> None:
    """Statistics joined from pieces are those of all rows at once, also where a piece lacks a block or has only NULL."""
    r = np.random.default_rng(rows_of_a_piece)
    n, blocks = 100, r.integers(0, 6, 100).astype(np.int32)
    numbers = pa.array(r.integers(0, 90, n), mask=r.random(n) < 0.3)
    ratios = pa.array([None if v < 0.1 else float("nan") if v < 0.2 else v for v in r.random(n)], pa.float64())
    words = pa.array([f"w{v}" for v in r.integers(0, 5, n)])
    terms: dict[str, Feature] = {"a": col("number"), "b": col("ratio"), "c": col("word")}
    table = pa.table({"a": numbers, "b": ratios, "c": words})
    condition = Compare(col("number"), "<", lit(40))

    def summed(start: int, size: int) -> tuple[list[int], Stats]:
        piece = table.slice(start, size).combine_chunks()
        return _stats_of_chunk(piece, blocks[start : start + size], terms, [], [condition])

    parts = [summed(start, rows_of_a_piece) for start in range(0, n, rows_of_a_piece)]
    half = len(parts) // 2
    ids, joined = _joined([_joined(parts[:half]), _joined(parts[half:])]) if half else _joined(parts)
    whole_ids, whole = summed(0, n)
    assert ids == whole_ids and agree(whole, joined).all() and agree(joined, whole).all()


def test_a_sample_stands_for_all_rows(spark: SparkSession, tmp_path: Path) -> None:
    path = write_events(spark, str(tmp_path / "events"), rows=4_000)
    source = open_source(spark, path)
    layout = TreeLayout((Compare(col("id"), "<", lit(1000)),), ((0, ~0, ~1),))
    all_rows = TableCounter(source, [col("id")]).count(layout).rows
    some = TableCounter(source, [col("id")], most=1_000, seed=3).count(layout).rows
    assert all_rows.tolist() == [1000, 3000]
    assert abs(some - all_rows).max() < 300 and abs(int(some.sum()) - 4_000) <= 1


def test_rows_are_counted_by_the_blocks_of_several_layouts(spark: SparkSession, tmp_path: Path) -> None:
    source = open_source(spark, write_events(spark, str(tmp_path / "events"), rows=4_000))
    layouts = [TreeLayout((Compare(col("id"), "<", lit(n)),), ((0, ~0, ~1),)) for n in (3000, 1000)]
    blocks, rows = TableCounter(source, []).count_together(layouts)
    assert blocks.T.tolist() == [[0, 0], [0, 1], [1, 1]] and rows.tolist() == [1000, 2000, 1000]
    blocks, some = TableCounter(source, [], most=1_000, seed=3).count_together(layouts)
    assert blocks.T.tolist() == [[0, 0], [0, 1], [1, 1]]
    assert abs(some - rows).max() < 300 and abs(int(some.sum()) - 4_000) <= 2


def test_a_condition_that_fails_inside_of_nullif_is_unknown(spark: SparkSession, tmp_path: Path) -> None:
    """Spark evaluates the part that NULLIF needs twice ahead of all else, unless it is told not to."""
    source, word = str(tmp_path / "source"), "CASE WHEN id % 3 = 0 THEN 'SS' WHEN id % 3 = 1 THEN '5' ELSE 'b1' END"
    spark.range(400).selectExpr("id", f"{word} AS word").write.parquet(source)
    words = ["word = 'b1'", "id < 7", "nullif(word = 5, true)"]
    workload = hr.Workload.from_sql([f"SELECT * FROM t WHERE {condition}" for condition in words])
    options = hr.LearnOptions(block_rows=20, recurrence=1.0)
    for column, narrow in (("id", "id < 7"), ("word", "word = 'b1'")):
        learned = hr.learn(spark, source, workload, "range", options, columns=[column], table="t")
        table = hr.apply(spark, source, learned, str(tmp_path / column))
        assert len(table.files("nullif(word = 5, true)")) == len(table.known)
        assert len(table.files(narrow)) < len(table.known)
