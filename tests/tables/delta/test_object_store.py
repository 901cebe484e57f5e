"""Delta tables in an object store, in place: the same rows after every verb, and how many requests each takes."""

from __future__ import annotations

import pytest

from tests.support.other_process import run

pytest.importorskip("moto", reason="the extra `dev` has an S3 server")

PROGRAM = """
import json
import hedgerow as hr
from bench.data.object_store import ObjectStore, settings
from tests.support.answers import answer
store = ObjectStore()
own = {"spark.sql.shuffle.partitions": "2", "spark.log.level": "OFF"}
spark = hr.session("1g", "local[2]", **own, **settings(store.url))
path, requests, found = "s3a://lake/table", {}, {}

def rows(start, count):
    return spark.range(start, start + count).selectExpr("id", "id % 70 AS v", "sha2(CAST(id AS STRING), 256) AS text")

def counted(name, work):
    store.counted()
    result = work()
    requests[name] = sum(store.counted().values())
    return result

def now():
    return answer(spark.read.format("delta").load(path))

rows(0, 100_000).repartition(10).write.format("delta").save(path)
before = now()
workload = hr.Workload.from_sql([f"SELECT * FROM t WHERE v = {v}" for v in range(0, 70, 2)])
learned = counted("learn", lambda: hr.learn(spark, path, workload, "qdtree", hr.LearnOptions(block_rows=2500), table="t"))
counted("apply", lambda: hr.apply(spark, path, learned))
table = counted("table", lambda: hr.table(spark, path))
found["files"] = len(table.files())
found["same after apply"] = now() == before
table = counted("append", lambda: table.append(rows(100_000, 700)))
found["new files"] = len(table.files()) - found["files"]
counted("verify", table.verify)
spark.sql(f"DELETE FROM delta.`{path}` WHERE v = 5")
rows(200_000, 500).write.format("delta").mode("append").save(path)
before = now()
spark.read.format("delta").load(path).createOrReplaceTempView("t")
query = lambda: answer(spark.sql("SELECT * FROM t WHERE v = 4"))
query()
plain = counted("plain", query)
hr.attach(spark)
found["attached is the same"] = [counted("attached first", query) == plain, counted("attached", query) == plain]
[scan] = hr.last_query(spark)
found["opened"] = scan.files_opened
hr.detach(spark)
hr.apply(spark, path, learned, where=hr.table(spark, path).describe()["unknown_files"])
found["same after new files"] = now() == before
counted("rollback", hr.table(spark, path).rollback)
found["same after rollback"] = now() == before
found["verified"] = hr.table(spark, path).verify()["rows"] == before.rows
with hr.log(spark, path):
    query()
found["autopilot"] = hr.autopilot(spark, path).reasons
spark.stop()
print(json.dumps([found, requests]))
"""


@pytest.mark.long
def test_a_table_from_end_to_end() -> None:
    found, requests = run(PROGRAM)
    print(found, requests)
    assert found["same after apply"] and found["same after new files"] and found["same after rollback"]
    assert found["attached is the same"] == [True, True] and found["verified"]
    assert found["opened"] < found["files"] / 5
    assert "too little to gain" in found["autopilot"][0]
    # Delta itself takes some eight requests for a file that it writes.
    assert requests["table"] <= 8 and requests["learn"] <= 60
    assert requests["apply"] <= 15 * found["files"] and requests["append"] <= 15 * found["new files"]
    # What is attached has the index, and asks only whether the table has a newer version.
    assert requests["attached"] <= requests["plain"] + 2 and requests["attached first"] <= requests["attached"] + 12
