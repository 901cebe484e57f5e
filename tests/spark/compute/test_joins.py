"""However large the other table is taken for, joined rows are the same; no task hashes more than fits."""

from __future__ import annotations

from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession

from hedgerow.core.predicates.nodes import Column
from hedgerow.core.workload.references import Joined, references
from hedgerow.spark.compute import joins as module
from hedgerow.spark.compute.joins import Joins
from hedgerow.spark.start.session import temporary_settings
from hedgerow.spark.storage.source import Source, open_source
from tests.joins.star import frame, rows_of

TO_ORDERS, TO_CUSTOMERS = references([("lines.okey", "orders.okey"), ("orders.ckey", "customers.ckey")])
NEAR, FAR = Joined((TO_ORDERS,)), Joined((TO_ORDERS, TO_CUSTOMERS))
NEVER_BY_ITSELF = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
FEW, MANY = [Column((NEAR.name, "total"))], [Column((NEAR.name, "status")), Column((FAR.name, "seg"))]


@pytest.fixture(scope="module")
def sources(spark: SparkSession) -> dict[str, Source]:
    r = Random(5)
    return {
        name: open_source(spark, frame(spark, name, rows_of(name, r)), name)
        for name in ("lines", "orders", "customers")
    }


def widened(sources: dict[str, Source], items: list[Column]) -> DataFrame:
    return Joins((NEAR, FAR), sources).widened(sources["lines"].frame, items)


def plan(shown: DataFrame) -> str:
    return str(shown._jdf.queryExecution().executedPlan().toString())


def test_each_way_to_join_gives_the_same_rows(
    spark: SparkSession, sources: dict[str, Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {}
    for broadcast, hashed, operator in (
        (1 << 30, 1, "BroadcastHashJoin"),
        (0, 1 << 30, "ShuffledHashJoin"),
        (0, 1_000, "REPARTITION_BY_NUM"),
    ):
        monkeypatch.setattr(module, "_BROADCAST_BYTES", broadcast)
        monkeypatch.setattr(module, "_HASHED_BYTES", hashed)
        with temporary_settings(spark, NEVER_BY_ITSELF):
            shown = widened(sources, MANY)
            assert operator in plan(shown)
            assert "SortMergeJoin" not in plan(shown)
            found[operator] = sorted(map(str, shown.collect()))
    first, *others = found.values()
    assert len(first) == sources["lines"].rows
    assert all(other == first for other in others)


def test_no_partition_hashes_more_than_fits(
    spark: SparkSession, sources: dict[str, Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two fields, one of them of a table further on, take more than one field does."""
    monkeypatch.setattr(module, "_BROADCAST_BYTES", 50 * sources["orders"].rows)
    monkeypatch.setattr(module, "_HASHED_BYTES", 1_000)
    with temporary_settings(spark, {**NEVER_BY_ITSELF, "spark.sql.adaptive.enabled": "false"}):
        assert "ShuffledHashJoin" not in plan(widened(sources, FEW))
        wide = widened(sources, MANY)
        assert plan(wide).count("ShuffledHashJoin") == 1
        assert wide.rdd.getNumPartitions() >= 48 * sources["orders"].rows / 1_000
