"""What a query reads of a table as it is: by the facts that Delta itself skips files by."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.pipeline.inputs import opened_with_queries
from hedgerow.pipeline.reads_now import by_stated_facts

FILES = 12
CONDITIONS = (
    "number < 100",
    "device.model = 3",
    "device.`fw.version` = 'v07'",
    "device.model = 2 AND device.`fw.version` < 'v03'",
    "device.inner.day >= DATE '2026-01-09'",
    "device.model IS NULL",
    "part = 1",
    "part = 1 AND device.model = 4",
    "`zähler` BETWEEN 5 AND 6",
    "tags['a'] = 'x'",
)


@pytest.mark.parametrize("mode", ["none", "name"])
def test_delta_skips_by_the_facts_of_its_log(delta: SparkSession, mode: str, tmp_path: Path) -> None:
    """Fields of structs, too, and columns that have other names in the files."""
    place = str(tmp_path / "readings")
    frame = delta.range(0, 1_200, 1, FILES).selectExpr(
        "id AS number",
        "named_struct('model', CAST(id / 100 AS INT), 'fw.version', concat('v', lpad(CAST(id / 100 AS INT), 2, '0')), "
        "'inner', named_struct('day', date_add(DATE '2026-01-01', CAST(id / 100 AS INT)))) AS device",
        "CAST(id / 600 AS INT) AS part",
        "CAST(id / 100 AS INT) AS `zähler`",
        "map('a', 'x') AS tags",
    )
    frame.write.format("delta").option("delta.columnMapping.mode", mode).partitionBy("part").save(place)
    delta.read.format("delta").load(place).createOrReplaceTempView("readings")
    asked = [f"SELECT number FROM readings WHERE {condition}" for condition in CONDITIONS]
    asked += ["SELECT count(*) FROM readings", "SELECT number FROM readings", "SELECT sum(number) FROM readings"]
    source, queries, _ = opened_with_queries(delta, place, hr.Workload.from_sql(asked), "readings")
    scores = by_stated_facts(source, queries).queries
    told = {text: round(score.blocks_read * FILES) for text, score in zip(asked, scores, strict=True)}
    assert told == {text: len(delta.sql(text).inputFiles()) for text in asked}
    assert min(told.values()) == 0 and 1 in told.values() and FILES in told.values()
