"""`kill -9` while a table is replaced: afterwards the old or the new one is whole, on a disk and in an object store.

An object store replaces no table. There are killed: first writes, also over what an earlier one left, and writes of a
replica that takes the place of another.
"""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from tests.support.answers import answer
from tests.support.lay_out import by_ranges
from tests.support.other_process import begun, told_then_killed

KILLS, ROWS = 30, 3000
PROGRAM = """
import sys
import hedgerow as hr
spark = hr.session("1g", "local[2]", **{"spark.sql.shuffle.partitions": "2", "spark.log.level": "OFF"})
source, layout, to = sys.argv[1:]
learned = hr.Learned.load(layout)
spark.read.parquet(source).count()
print("begins", flush=True)
hr.apply(spark, source, learned, to, overwrite=True)
print("ended", flush=True)
"""

# Tells what the one before it left, and begins the next write: of a table, or of its replica.
IN_A_STORE = """
import json, sys
from pathlib import Path
import hedgerow as hr
from bench.data.object_store import settings
url, folder, what, to = sys.argv[1:]
own = {"spark.sql.shuffle.partitions": "2", "spark.log.level": "OFF"}
spark = hr.session("1g", "local[2]", **own, **settings(url))
source, layouts = "s3a://lake/source", [Path(folder, f"layout{i}.json") for i in range(2)]
if not layouts[1].exists():
    spark.range(3000).selectExpr("id", "id % 7 AS v").write.parquet(source)
    workload = hr.Workload.from_sql([f"SELECT * FROM t WHERE v = {v}" for v in range(7)])
    for column, place in zip(["v", "id"], layouts):
        hr.learn(spark, source, workload, "range", hr.LearnOptions(block_rows=400), columns=[column], table="t").save(place)
learned, second = map(hr.Learned.load, layouts)
try:
    table = hr.table(spark, to)
except hr.HedgerowError as error:
    assert "\\n" not in str(error), error
    table = None
if table is None:
    told = None
else:
    rows = sorted(r[0] for r in table.read().collect())
    plain = sorted(r[0] for r in spark.read.parquet(to).collect())
    some = table.read("v = 3").count() == sum(i % 7 == 3 for i in range(3000))
    try:
        hr.apply(spark, source, learned, to, overwrite=True)
        refused = False
    except hr.HedgerowError as error:
        refused = "in one step" in str(error)
    report = table.verify()
    told = [rows == plain == list(range(3000)), some, report["rows"] == 3000, refused, report["replicas"]]
print(json.dumps(told), flush=True)
print("begins", flush=True)
if what == "table" and table is None:
    hr.apply(spark, source, learned, to)
elif what == "replica":
    hr.apply(spark, to, second, to, replica="second", overwrite=True)
print("ended", flush=True)
"""


@pytest.mark.long
def test_a_table_on_a_disk(spark: SparkSession, tmp_path: Path) -> None:
    r, to, sources = random.Random(7), tmp_path / "table", [str(tmp_path / f"source{i}") for i in range(2)]
    for i, source in enumerate(sources):
        rows = spark.range(i * ROWS, (2 * i + 1) * ROWS).selectExpr("id", "id % 7 AS v")
        rows.repartition(3).write.parquet(source)
    learned = by_ranges(spark, sources[0], "v", 400, [f"v = {v}" for v in range(7)])
    learned.save(tmp_path / "layout.json")
    expected = [answer(spark.read.parquet(source)) for source in sources]
    hr.apply(spark, sources[0], learned, str(to))
    now, ended, replaced, longest = 0, 0, 0, 5.0
    for kill in range(KILLS):
        process = begun(PROGRAM, sources[1 - now], str(tmp_path / "layout.json"), str(to))
        if kill % 2:
            time.sleep(r.uniform(0, longest))
        else:  # at the moment of the exchange
            _wait_for_state(tmp_path)
            time.sleep(r.uniform(0, 0.12))
        os.killpg(process.pid, signal.SIGKILL)
        printed, _ = process.communicate()
        table = hr.table(spark, str(to))
        found = answer(table.read())
        assert found in expected and found == answer(spark.read.parquet(str(to))), kill
        assert table.verify()["rows"] == found.rows
        has_ended, is_new = "ended" in printed, found != expected[now]
        assert is_new or not has_ended, "a run that ended is lost"
        ended, replaced, longest = ended + has_ended, replaced + is_new, longest * (0.9 if is_new else 1.1)
        now = expected.index(found)
        print(f"kill {kill + 1}: {'the new' if is_new else 'the old'} table", flush=True)
    print(f"{KILLS} kills: {replaced} replaced, {ended} ended before")
    assert 0 < replaced < KILLS and ended < KILLS
    hr.apply(spark, sources[0], learned, str(to), overwrite=True)
    assert {p.name for p in tmp_path.iterdir()} == {"layout.json", "source0", "source1", "table"}


def _wait_for_state(around: Path) -> None:
    """Waits until a new table is written in full, or its place is gone."""
    began, state = time.time(), ".table.hedgerow-partial-*/_hedgerow/state-1.json"
    while not any(around.glob(state)) and time.time() - began < 60:
        time.sleep(0.001)


@pytest.mark.long
def test_in_an_object_store(tmp_path: Path) -> None:
    pytest.importorskip("moto", reason="the extra `dev` has an S3 server")
    from bench.data.object_store import ObjectStore

    store, r, place, longest, half, whole = ObjectStore(), random.Random(8), 0, 6.0, 0, 0
    folder, has_table, has_replica = str(tmp_path), False, False
    for kill in range(KILLS):
        what = "table" if kill < KILLS // 2 else "replica"
        to = f"s3a://lake/table{place}"
        if what == "replica" and not has_table:  # a whole one, for the rest
            _, has_ended = told_then_killed(90, IN_A_STORE, store.url, folder, "table", to)
            assert has_ended
            has_table = True
        told, has_ended = told_then_killed(r.uniform(0.2, longest), IN_A_STORE, store.url, folder, what, to)
        half += told is None
        print(f"kill {kill + 1}, of a {what}: before it {told}", flush=True)
        if told is not None:
            whole += 1
            *checks, replicas = told
            assert all(checks), told
            assert replicas.get("second") in (None, "as the table", "not up to date, so not read"), replicas
            assert replicas or not has_replica, "a replica whose writing ended is lost"
        if what == "table":
            place += told is not None
            longest *= 0.9 if has_ended else 1.3  # a busy machine takes longer
        else:
            assert told is not None
            has_replica = has_ended
    print(f"{KILLS} kills: {half} times no table yet, {whole} times whole")
    assert half and whole
