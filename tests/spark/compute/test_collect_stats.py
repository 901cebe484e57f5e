"""Cells are counted by core and by Spark, each what it is fast at; written files by Spark alone. Both say the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from hedgerow.core.layouts.base import sql_of
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.predicates.nodes import Compare, atoms_of, col, lit
from hedgerow.spark.compute.assign_blocks import BLOCK, with_block
from hedgerow.spark.compute.collect_stats import collect_blocks, collect_by
from hedgerow.spark.compute.evaluate import needed, split_by_evaluator
from hedgerow.spark.storage.source import schema_of
from hedgerow.sql.workload import Workload
from tests.support.events_table import conditions, write_events

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_core_and_spark_say_the_same(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.read.parquet(write_events(spark, str(tmp_path / "events"), rows=3_000))
    schema = schema_of(frame.schema)
    asked = Workload.from_sql([f"SELECT * FROM events WHERE {c}" for c in conditions(9, 40)])
    predicates = [q.predicate("events") for q in asked.bind({"events": schema})]
    features = {p for whole in predicates for p in (whole, *atoms_of(whole))}
    items = [*needed(predicates), *sorted(features, key=sql_of)]
    assert min(map(len, split_by_evaluator(items))) > 10, "nothing was tried"

    cuts = tuple(Compare(col("id"), "<", lit(i)) for i in (700, 1500, 2900))
    layout = TreeLayout(cuts, ((0, ~0, 1), (1, ~1, 2), (2, ~2, ~3)))
    counted = collect_blocks(frame, layout, items, schema)
    keys, found = collect_by(with_block(frame, layout, schema), f.col(BLOCK).cast("string"), items, schema)
    assert counted.conditions.keys() == found.conditions.keys()
    for name, feature in counted.conditions.items():
        bits = [0] * layout.blocks
        for key, seen in zip(keys, found.conditions[name].bits.tolist(), strict=True):
            bits[int(key)] |= seen
        assert feature.bits.tolist() == bits, name
