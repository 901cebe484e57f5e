"""Two processes append to one Delta table on a local disk, where Delta alone can lose a commit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from tests.support.other_process import environment

APPENDS = 8
PROGRAM = """
import json, sys
import hedgerow as hr
path, start, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
spark = hr.session("1g", "local[1]", **{"spark.sql.shuffle.partitions": "1", "spark.log.level": "OFF"})
table = hr.table(spark, path)
print("ready", flush=True)
sys.stdin.readline()
done = []
for i in range(start, start + count):
    try:
        table = table.append(spark.range(i, i + 1).selectExpr("id", "id % 7 AS v"))
        done.append(i)
    except hr.HedgerowError as error:
        print(error, file=sys.stderr)
print(json.dumps(done))
"""


@pytest.mark.long
def test_no_append_is_lost(delta: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    delta.range(100).selectExpr("id", "id % 7 AS v").write.format("delta").save(path)
    workload = hr.Workload.from_sql("SELECT * FROM t WHERE id < 10")
    hr.apply(delta, path, hr.learn(delta, path, workload, "range", hr.LearnOptions(block_rows=20), table="t"))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment()}
    writers = [
        subprocess.Popen([sys.executable, "-c", PROGRAM, path, str(start), str(APPENDS)], **pipes)
        for start in (1000, 2000)
    ]
    for writer in writers:
        assert writer.stdout is not None and writer.stdout.readline().strip() == "ready"
    done: list[int] = []
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        done += json.loads(writer.communicate(timeout=400)[0].splitlines()[-1])
    assert len(done) == 2 * APPENDS
    held = sorted(row[0] for row in delta.read.format("delta").load(path).where("id >= 1000").collect())
    assert held == sorted(done)
    assert hr.table(delta, path).verify()["unknown_files"] == 0
