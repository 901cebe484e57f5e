"""Rows, options and failures for tests of rewrites in waves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import hedgerow as hr
from hedgerow.spark.storage.source import open_source
from hedgerow.tables.managed import ManagedTable
from tests.support.answers import answer, answers
from tests.support.lay_out import by_ranges

ROWS, FILES, WAVES = 3000, 6, 3
ASKED = ["v < 2", "id = 77", "id BETWEEN 100 AND 300 AND v = 3"]


def rows(spark: SparkSession) -> DataFrame:
    """Rows in files that each hold all values of both columns' ranges."""
    return spark.range(ROWS).selectExpr("id", "id % 7 AS v", "sha2(CAST(id AS STRING), 256) AS text").repartition(FILES)


def in_waves(spark: SparkSession, source: str, count: int = WAVES) -> hr.WriteOptions:
    """Options with which the files of this source are written in so many waves."""
    opened = open_source(spark, source)
    sizes = sorted(opened.sizes.values()) if opened.sizes else sorted(f.stat().st_size for f in parquet(Path(source)))
    return hr.WriteOptions(wave_bytes=f"{sum(sizes[-(FILES // count) :])}B")


def parquet(folder: Path) -> list[Path]:
    return [f for f in folder.rglob("*.parquet") if "_hedgerow" not in f.parts]


def check(spark: SparkSession, table: ManagedTable, expected: DataFrame) -> None:
    assert answer(table.read()) == answer(expected)
    for condition, plain in zip(ASKED, answers(expected, ASKED), strict=True):
        assert answer(table.read(where=condition)) == plain, condition
    assert table.verify()["rows"] == expected.count()


def learned_by_v(spark: SparkSession, place: str) -> hr.Learned:
    rows(spark).write.parquet(place)
    return by_ranges(spark, place, "v", ROWS // 4, ASKED)


class Interrupted(Exception):
    """The run stops here."""


def interrupt(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, call: int, before: bool) -> None:
    """Let a function raise an error at its call of this number, before or after it has done its work."""
    real, calls = getattr(owner, name), [0]

    def run(*args: Any, **named: Any) -> Any:
        calls[0] += 1
        if before and calls[0] == call:
            raise Interrupted
        result = real(*args, **named)
        if calls[0] == call:
            raise Interrupted
        return result

    monkeypatch.setattr(owner, name, run)
