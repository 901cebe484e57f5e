"""Beyond the one local session: executors that are processes of their own, and Spark Connect."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hedgerow.tables.state import TableState, state_name
from tests.support.other_process import run
from tests.support.things_table import FILES, by_id, write_things

CLUSTER = """
import json, os, sys
os.environ["PYSPARK_PYTHON"] = os.environ["WORKERS_PYTHON"]
import hedgerow as hr
from hedgerow.spark.storage import footers
from pyspark.sql import SparkSession
from tests.support.answers import answer
from tests.support.events_table import conditions, write_events

spark = (
    SparkSession.builder.master("local-cluster[2,1,1024]")
    .config("spark.driver.memory", "1g")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "4")
    .getOrCreate()
)
folder = sys.argv[1]
footers.MAX_ON_DRIVER = 0  # so that executors need the jar, too
source = write_events(spark, f"{folder}/events.parquet", 50_000)
workload = hr.Workload.from_sql([f"SELECT id FROM events WHERE {c}" for c in conditions(1, 15)])
learned = hr.learn(spark, source, workload, options=hr.LearnOptions(block_rows=2_000, sample_rows=10_000))
table = hr.apply(spark, source, learned, f"{folder}/ours/events")
verified = table.verify()
asked = ["number < 50", "word LIKE '%c%' AND month(day) = 3", "length(replace(word, 'a', '')) = 3 OR flag"]
plain = spark.read.parquet(source)
same = [answer(table.read(where=c)) == answer(plain.where(c)) for c in asked]
more = plain.where("id < 100").selectExpr("id + 1000000 AS id", "* EXCEPT (id)")
grown = table.append(more)
curve = hr.learn(spark, source, workload, "hilbert", hr.LearnOptions(block_rows=10_000), columns=["number", "id"])
curved = hr.apply(spark, source, curve, f"{folder}/ours/curved").verify()["rows"]
relearned = grown.relearn(workload).verify()["rows"]
findings = [f"{f.fact} {f.advice}" for f in hr.doctor(spark) if f.subject == "executors"]
hosts = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
spark.stop()
grew = len(grown.known) > len(table.known)
print(json.dumps([hosts, [verified["rows"], curved, relearned], learned.blocks, same, grew, findings]))
"""
# A Python that has numpy and pyarrow, but neither Hedgerow nor numba, as on the workers of a cluster.
WORKER = """
import os, sys
sys.path[:] = [folder for folder in sys.path if not os.path.isdir(os.path.join(folder, "hedgerow"))]
sys.modules["numba"] = None
"""


@pytest.mark.spark
@pytest.mark.long
def test_on_executors_without_hedgerow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(WORKER)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}:$PYTHONPATH" exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("WORKERS_PYTHON", str(python))
    executors, rows, blocks, same, grew, findings = run(CLUSTER, str(tmp_path))
    assert executors == 2
    assert rows == [50_000, 50_000, 50_100]
    assert ["run Hedgerow's tasks" in finding for finding in findings] == [True]
    assert "numba" in findings[0]
    assert blocks > 5
    assert same == [True] * 3
    assert grew


CONNECT = """
import json, sys
import hedgerow as hr
from pyspark.sql import SparkSession

path, source, delta, *asked = sys.argv[1:]
spark = SparkSession.builder.remote("local[2]").getOrCreate()


def summed(frame):  # rows, a checksum, and how many files the scans opened
    row = frame.selectExpr("count(*) AS n", f"sum(CAST(xxhash64({', '.join(frame.columns)}) AS DECIMAL(38))) AS s")
    [found] = row.collect()
    _, nodes = row.executionInfo.metrics.extract_graph()
    files = sum(m.value for node in nodes.values() for m in node.metrics if m.name == "numFiles")
    return [found["n"], str(found["s"]), files]


table = hr.table(spark, path)
spark.sql(f"CREATE TABLE ours USING parquet LOCATION '{path}'")
found = {"connect": type(spark).__module__, "plain": [], "read": [], "by_path": [], "by_name": [], "files": []}
for c in asked:
    found["plain"].append(summed(spark.read.parquet(source).where(c))[:2])
    found["read"].append(summed(table.read(where=c)))
    found["by_path"].append(summed(hr.route(spark, f"SELECT * FROM parquet.`{path}` WHERE {c}")))
    found["by_name"].append(summed(hr.route(spark, f"SELECT * FROM ours WHERE {c}")))
    found["files"].append(len(table.files(where=c)))
some = f"WITH x AS (SELECT id FROM parquet.`{path}` WHERE number < 250)"
found["joined"] = summed(hr.route(spark, f"{some} SELECT a.id FROM x a JOIN ours b ON a.id = b.id + 1 WHERE b.number < 20"))
found["errors"] = []
for call in (
    lambda: hr.learn(spark, source, hr.Workload.from_sql("SELECT * FROM things WHERE number < 5")),
    lambda: hr.apply(spark, source, table.layout, path + "-again"),
    lambda: table.append(spark.read.parquet(source)),
    lambda: table.verify(),
    lambda: hr.attach(spark),
    lambda: hr.last_query(spark),
    lambda: hr.table(spark, path + "-nowhere"),
    lambda: hr.table(spark, delta),
):
    try:
        call()
        found["errors"].append("")
    except hr.HedgerowError as error:
        found["errors"].append(str(error))
spark.stop()
print(json.dumps(found))
"""


@pytest.mark.long
def test_spark_connect(spark: SparkSession, tmp_path: Path) -> None:
    """A table that a classic session wrote is read through Connect, with the files that the index names."""
    pytest.importorskip("grpc")
    asked = ["number < 20", "kind = 'n' AND number BETWEEN 300 AND 420", "word LIKE '%9' AND late"]
    source = write_things(spark, str(tmp_path / "things.parquet"))
    table = by_id(spark, source, str(tmp_path / "things"), asked)
    files = [*(len(table.files(where=c)) for c in asked[:2]), FILES]  # LIKE is no simple condition
    rows = [spark.read.parquet(source).where(c).count() for c in asked]
    delta = tmp_path / "delta" / "_hedgerow" / state_name(1)
    delta.parent.mkdir(parents=True)
    delta.write_bytes(TableState("delta").to_bytes())
    found = run(CONNECT, table.path, source, str(tmp_path / "delta"), *asked)
    assert found["connect"].startswith("pyspark.sql.connect")
    assert [n for n, _ in found["plain"]] == rows
    expected = [[*plain, n] for plain, n in zip(found["plain"], files, strict=True)]
    assert found["read"] == found["by_path"] == found["by_name"] == expected
    assert min(files) < FILES
    assert found["files"] == files
    assert found["joined"][0] == 20
    for error in found["errors"]:
        assert error and "\n" not in error, found["errors"]
    assert "classic Spark session" in found["errors"][0]
    assert "is a Delta table: over Spark Connect" in found["errors"][-1]
    assert sum("lacks Hedgerow's extension" in error for error in found["errors"]) == 2
