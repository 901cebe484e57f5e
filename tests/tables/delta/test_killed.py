"""`kill -9` in the middle of a rewrite: the table reads as before or as after, and the next run cleans up."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from tests.support.answers import answer
from tests.support.delta_tables import by_number, data_files, now, write
from tests.support.lay_out import by_ranges
from tests.support.other_process import killed_after
from tests.support.things_table import ROWS, by_id, write_things

PROGRAM = """
import sys
import hedgerow as hr
spark = hr.session("1g", "local[2]", **{"spark.sql.shuffle.partitions": "2", "spark.log.level": "OFF"})
source, layout, to = sys.argv[1:]
learned = hr.Learned.load(layout)
spark.read.format("delta" if to == "-" else "parquet").load(source).count()
print("begins", flush=True)
hr.apply(spark, source, learned, None if to == "-" else to)
print("ended", flush=True)
"""


def killed(after: float, source: str, layout: str, to: str) -> bool:
    """Start a run and kill it so many seconds after it began; whether it had ended."""
    return "ended" in killed_after(after, PROGRAM, source, layout, to)


def kill_delta(spark: SparkSession, folder: Path, moments: list[float]) -> int:
    path = write(spark, str(folder / "things"))
    before = answer(now(spark, path))
    learned = by_ranges(spark, path, "number", 250, ["number < 100"], "things")
    learned.save(folder / "layout.json")
    ended = 0
    for after in moments:
        ended += killed(after, path, str(folder / "layout.json"), "-")
        assert answer(now(spark, path)) == before
        try:
            table = hr.table(spark, path)
        except hr.HedgerowError:
            continue
        assert answer(table.read()) == before
        assert answer(table.read(where="number < 100")).rows == 100
        table.verify()
    by_number(spark, path)
    with_orphans = len(data_files(path))
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS")
    spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert len(data_files(path)) == len(hr.table(spark, path).files()) <= with_orphans
    assert hr.table(spark, path).verify()["unknown_files"] == 0
    assert answer(now(spark, path)) == before
    return ended


def kill_parquet(spark: SparkSession, folder: Path, moments: list[float]) -> int:
    source = write_things(spark, str(folder / "things.parquet"))
    layout = by_id(spark, source, str(folder / "ours0"), ["number < 100"]).layout
    expected = answer(spark.read.parquet(source))
    hr.Learned(layout, "things").save(folder / "layout.json")
    ended = 0
    for after in moments:
        to = str(folder / f"ours{ended + 1}")
        ended += killed(after, source, str(folder / "layout.json"), to)
        try:
            table = hr.table(spark, to)
        except hr.HedgerowError:
            assert not Path(to).exists(), "half a table"
            continue
        assert answer(table.read()) == answer(spark.read.parquet(to)) == expected
        assert table.verify()["rows"] == ROWS
        ended = int(to.rpartition("ours")[2])  # killed when all was done but to say so
    hr.apply(spark, source, layout, str(folder / f"ours{ended + 1}"))
    left = {p.name for p in folder.iterdir()} - {f"ours{i}" for i in range(ended + 2)}
    assert left == {"layout.json", "things.parquet"}
    return ended


@pytest.mark.long
def test_delta_is_killed(delta: SparkSession, tmp_path: Path) -> None:
    r = random.Random(1)
    assert kill_delta(delta, tmp_path, [r.random() * 12 for _ in range(20)]) < 20


@pytest.mark.long
def test_parquet_is_killed(spark: SparkSession, tmp_path: Path) -> None:
    r = random.Random(2)
    assert kill_parquet(spark, tmp_path, [r.random() * 8 for _ in range(20)]) < 20
