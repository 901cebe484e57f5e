"""The disk is full, or an executor is lost in the middle of a rewrite: nothing is lost, and it is said in a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hedgerow as hr
from tests.support.answers import answer
from tests.support.other_process import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS, BLOCKS = 200_000, 8
FORMATS = ("parquet", "delta")

# No file may be longer than the limit, so writing fails as on a full disk. Java gets an error, no signal.
FULL_DISK = """
import json, resource, sys
import hedgerow as hr
source, layout, to, limit = sys.argv[1:]
spark = hr.session("1g", "local[2]", **{"spark.sql.shuffle.partitions": "2", "spark.log.level": "OFF"})
java = spark._jvm.java.lang.ProcessHandle.current().pid()
resource.prlimit(java, resource.RLIMIT_FSIZE, (int(limit), int(limit)))
try:
    hr.apply(spark, source, hr.Learned.load(layout), to or None, overwrite=bool(to))
    print(json.dumps(None))
except hr.HedgerowError as error:
    print(json.dumps(str(error)))
"""

LOSES_AN_EXECUTOR = """
import json, os, signal, sys, threading, time
from pathlib import Path
import hedgerow as hr
source, layout, to = sys.argv[1:]
settings = {"spark.sql.shuffle.partitions": "2", "spark.log.level": "OFF", "spark.driver.host": "127.0.0.1"}
spark = hr.session("1g", "local-cluster[2,1,1024]", **settings)
spark.range(100).count()
killed = []

def executors():
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"CoarseGrainedExecutorBackend" in words and spark.sparkContext.applicationId.encode() in words:
                yield int(entry.name)

def kill():
    tracker = spark.sparkContext.statusTracker()
    while not any(s and s.numActiveTasks for s in map(tracker.getStageInfo, tracker.getActiveStageIds())):
        time.sleep(0.01)
    for pid in list(executors())[:1]:
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)

threading.Thread(target=kill, daemon=True).start()
table = hr.apply(spark, source, hr.Learned.load(layout), to or None)
report = table.verify()
spark.stop()
print(json.dumps([len(killed), report["rows"]]))
"""


def source_and_layout(spark: SparkSession, folder: Path, format_: str) -> tuple[str, str]:
    source, layout = str(folder / "source"), str(folder / "layout.json")
    rows = spark.range(ROWS).selectExpr("id AS number", "sha2(CAST(id AS STRING), 256) AS text")
    rows.repartition(4).write.format(format_).save(source)
    workload = hr.Workload.from_sql("SELECT * FROM t WHERE number < 1000")
    learned = hr.learn(spark, source, workload, "range", ROWS // BLOCKS, ROWS, columns=["number"], table="t")
    learned.save(layout)
    return source, layout


@pytest.mark.long
@pytest.mark.parametrize("format_", FORMATS)
def test_a_full_disk(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, format_: str) -> None:
    if format_ == "delta":
        request.getfixturevalue("delta")
    source, layout = source_and_layout(spark, tmp_path, format_)
    to = str(tmp_path / "table") if format_ == "parquet" else ""
    expected = answer(spark.read.format(format_).load(source))
    hr.apply(spark, source, hr.Learned.load(layout), to or None)
    told = run(FULL_DISK, source, layout, to, str(1 << 20))
    assert told and "\n" not in told and "File too large" in told, told
    table = hr.table(spark, to or source)
    assert table.verify()["rows"] == ROWS
    assert answer(table.read()) == answer(spark.read.format(format_).load(to or source)) == expected
    assert run(FULL_DISK, source, layout, to, str(1 << 40)) is None, "and the next run goes through"


@pytest.mark.long
@pytest.mark.parametrize("format_", FORMATS)
def test_a_lost_executor(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, format_: str) -> None:
    if format_ == "delta":
        request.getfixturevalue("delta")
    source, layout = source_and_layout(spark, tmp_path, format_)
    to = str(tmp_path / "table") if format_ == "parquet" else ""
    expected = answer(spark.read.format(format_).load(source))
    assert run(LOSES_AN_EXECUTOR, source, layout, to) == [1, ROWS]
    assert answer(hr.table(spark, to or source).read()) == expected
