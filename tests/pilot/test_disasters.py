"""The autopilot is killed, meets another one, or a full disk: no row is lost, and the next run goes through."""

from __future__ import annotations

import json
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.tables.query_log import QueryLog
from tests.support.answers import Answer, answer
from tests.support.other_process import begun, killed_after, run
from tests.support.past_queries import past_query

ROWS = 30_000
KILLS, LAST = 12, 25.0  # seconds after which a run has ended
# Bytes take long in these programs: the table is too small for rewrites to pay on a real machine.
AUTOPILOT = """
import json, resource, sys, time
from pathlib import Path
import hedgerow as hr
from hedgerow.core.learning.seconds import RewriteCost, Speed
from hedgerow.pilot import look
from hedgerow.pipeline import estimate_seconds
path, limit, signal = sys.argv[1:]
spark = hr.session("1g", "local[2]", **{"spark.sql.shuffle.partitions": "2", "spark.log.level": "OFF"})
look.usual_speed = lambda source: Speed(0.01, 0.01, 1e-6)
look.assumed_cost = lambda byte: RewriteCost(0.0, 1e-8)
estimate_seconds.SMALL_TABLE_BYTES = 0
spark.read.format("delta").load(path).selectExpr("sum(id)", "max(text)").collect()  # loads what unpacks files
java = spark._jvm.java.lang.ProcessHandle.current().pid()
resource.prlimit(java, resource.RLIMIT_FSIZE, (int(limit), int(limit)))
print("begins", flush=True)
while not Path(signal).exists() and signal != "follow":
    time.sleep(0.01)
try:
    settings = hr.AutopilotSettings(horizon=3650, least_bytes=0, least_new=0, cooldown=0, search_interval=0)
    options = hr.LearnOptions(exact=False, effort="quick", block_rows=2000)
    found = hr.autopilot(spark, path, settings=settings, options=options, follow=signal == "follow")
    print(json.dumps([found.action, found.done, list(found.reasons)]))
except hr.HedgerowError as error:
    print(json.dumps(str(error)))
"""
NO_LIMIT = str(1 << 40)
AT_ONCE = "/"  # there is always a root, so nothing is waited for


@pytest.fixture
def table(delta: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "things")
    rows = delta.range(ROWS).selectExpr("id", "id * 7919 % 200 AS number", "sha2(CAST(id AS STRING), 256) AS text")
    rows.repartition(4).write.format("delta").save(path)
    QueryLog.of(delta, path).append([past_query(f"number < {i % 20 * 10}", i / 20, i) for i in range(40)])
    return path


def rows_of(spark: SparkSession, path: str) -> Answer:
    return answer(spark.read.format("delta").load(path))


def side_files(path: str) -> set[str]:
    return {p.name for p in (Path(path) / "_hedgerow").iterdir() if not p.name.startswith(".")}


def check(spark: SparkSession, path: str, before: Answer) -> None:
    """The rows are there, the lock of a dead process is none, and a last run leaves nothing behind."""
    action, _, reasons = run(AUTOPILOT, path, NO_LIMIT, AT_ONCE)
    assert action in ("whole table", "nothing") and "another autopilot" not in str(reasons)
    assert rows_of(spark, path) == before
    assert hr.table(spark, path).verify()["rows"] == before.rows
    assert "whole table" in [d.action for d in hr.decisions(spark, path)]
    assert not {name for name in side_files(path) if "lock" in name or name.startswith("calibrate")}


@pytest.mark.long
def test_kills(delta: SparkSession, table: str) -> None:
    before, r = rows_of(delta, table), random.Random(5)
    ended = 0
    for _ in range(KILLS):
        ended += "[" in killed_after(r.random() * LAST, AUTOPILOT, table, NO_LIMIT, AT_ONCE)
        assert rows_of(delta, table) == before
    assert ended < KILLS
    check(delta, table, before)


@pytest.mark.long
def test_signals_to_end(delta: SparkSession, table: str) -> None:
    """Whatever it does then, it ends by itself, soon, and leaves neither a lock nor half a rewrite."""
    before, r = rows_of(delta, table), random.Random(6)
    for number in (signal.SIGTERM, signal.SIGINT) * 3:
        process = begun(AUTOPILOT, table, NO_LIMIT, "follow")
        time.sleep(r.random() * LAST)
        process.send_signal(number)
        told, _ = process.communicate(timeout=120)
        assert process.returncode == 0 and json.loads(told.splitlines()[-1])[0] in ("whole table", "nothing")
        assert rows_of(delta, table) == before and "auto.lock" not in side_files(table)
    check(delta, table, before)


@pytest.mark.long
def test_two_at_once(delta: SparkSession, table: str, tmp_path: Path) -> None:
    before, signal = rows_of(delta, table), tmp_path / "signal"
    both = [begun(AUTOPILOT, table, NO_LIMIT, str(signal)) for _ in range(2)]
    signal.touch()
    told: list[Any] = [process.communicate()[0].splitlines()[-1] for process in both]
    assert sum("another autopilot works on it" in text or "began just now" in text for text in told) == 1, told
    check(delta, table, before)


@pytest.mark.long
def test_a_full_disk(delta: SparkSession, table: str) -> None:
    before = rows_of(delta, table)
    told = run(AUTOPILOT, table, str(1 << 16), AT_ONCE)
    assert isinstance(told, str) and told and "\n" not in told and "File too large" in told, told
    assert rows_of(delta, table) == before
    check(delta, table, before)
