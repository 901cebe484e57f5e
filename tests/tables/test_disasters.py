"""The disk is full, or an executor is lost in the middle of a rewrite: nothing is lost, and it is said in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from tests.support.answers import Answer, answer
from tests.support.lay_out import by_ranges
from tests.support.other_process import run

ROWS, BLOCKS = 200_000, 8

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


@dataclass(frozen=True)
class Rewriting:
    """What is to be rewritten: `to` is a new directory, or '' for a Delta table in place."""

    format: str
    source: str
    layout: str
    to: str

    def read(self, spark: SparkSession, path: str) -> Answer:
        return answer(spark.read.format(self.format).load(path))


@pytest.fixture(params=["parquet", "delta"])
def rewriting(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Rewriting:
    if request.param == "delta":
        request.getfixturevalue("delta")
    to = str(tmp_path / "table") if request.param == "parquet" else ""
    found = Rewriting(request.param, str(tmp_path / "source"), str(tmp_path / "layout.json"), to)
    rows = spark.range(ROWS).selectExpr("id AS number", "sha2(CAST(id AS STRING), 256) AS text")
    rows.repartition(4).write.format(found.format).save(found.source)
    learned = by_ranges(spark, found.source, "number", ROWS // BLOCKS, ["number < 1000"], sample_rows=ROWS)
    learned.save(found.layout)
    return found


@pytest.mark.long
def test_a_full_disk(spark: SparkSession, rewriting: Rewriting) -> None:
    source, layout, to = rewriting.source, rewriting.layout, rewriting.to
    expected = rewriting.read(spark, source)
    hr.apply(spark, source, hr.Learned.load(layout), to or None)
    told = run(FULL_DISK, source, layout, to, str(1 << 20))
    assert told and "\n" not in told and "File too large" in told, told
    table = hr.table(spark, to or source)
    assert table.verify()["rows"] == ROWS
    assert answer(table.read()) == rewriting.read(spark, to or source) == expected
    assert run(FULL_DISK, source, layout, to, str(1 << 40)) is None, "and the next run goes through"


@pytest.mark.long
def test_a_lost_executor(spark: SparkSession, rewriting: Rewriting) -> None:
    expected = rewriting.read(spark, rewriting.source)
    assert run(LOSES_AN_EXECUTOR, rewriting.source, rewriting.layout, rewriting.to) == [1, ROWS]
    assert answer(hr.table(spark, rewriting.to or rewriting.source).read()) == expected
