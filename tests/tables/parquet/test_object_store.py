"""Tables in an object store: `s3a://` against an S3 server on this machine, in a Spark with the jars for it.

There a move is a copy and a listing costs, so requests are counted. Runs are killed too.
"""

from __future__ import annotations

import random

import pytest

from bench.data.object_store import ObjectStore
from tests.support.other_process import run, told_then_killed

pytest.importorskip("moto", reason="the extra `dev` has an S3 server")

# One process: it serves, and asks itself.
WHOLE = """
import json, sys
import hedgerow as hr
from bench.data.object_store import ObjectStore, settings
from tests.support.answers import answer
store = ObjectStore()
own = {"spark.sql.shuffle.partitions": "2", "spark.log.level": "OFF"}
spark = hr.session("1g", "local[2]", **own, **settings(store.url))
requests, found, to = {}, {}, "s3a://lake/table"

def rows(start, count):
    return spark.range(start, start + count).selectExpr("id", "id % 70 AS v", "sha2(CAST(id AS STRING), 256) AS text")

def counted(name, work):
    store.counted()
    result = work()
    requests[name] = dict(store.counted())
    return result

def one_sentence(name, work):
    try:
        work()
        found[name] = None
    except hr.HedgerowError as error:
        found[name] = str(error)

rows(0, 100_000).repartition(10).write.parquet("s3a://lake/source")
workload = hr.Workload.from_sql([f"SELECT * FROM t WHERE v = {v}" for v in range(0, 70, 2)])
learned = counted("learn", lambda: hr.learn(spark, "s3a://lake/source", workload, "qdtree", hr.LearnOptions(block_rows=2500), table="t"))
counted("apply", lambda: hr.apply(spark, "s3a://lake/source", learned, to))
table = counted("table", lambda: hr.table(spark, to))
found["files"] = len(table.known)
found["same"] = answer(table.read()) == answer(spark.read.parquet("s3a://lake/source"))
found["left"] = [n for n in table.format.side.sizes() if n.startswith("append-")]
table = counted("append", lambda: table.append(rows(100_000, 700)))
found["new files"] = len(table.known) - found["files"]
counted("verify", table.verify)
found["rows"] = table.verify()["rows"]
found["left"] += [n for n in table.format.side.sizes() if n.startswith("append-")]
one_sentence("overwrite", lambda: hr.apply(spark, "s3a://lake/source", learned, to, overwrite=True))
one_sentence("occupied", lambda: hr.apply(spark, "s3a://lake/source", learned, to))
spark.read.parquet(to).createOrReplaceTempView("t")
query = lambda: answer(spark.sql("SELECT * FROM t WHERE v = 4"))
plain = counted("plain", query)
hr.attach(spark)
found["attached is the same"] = [counted("attached first", query) == plain, counted("attached", query) == plain]
found["opened"] = len(table.files("v = 4"))
hr.detach(spark)
hr.apply(spark, to, learned, to, replica="second")
hr.apply(spark, to, learned, to, replica="second", overwrite=True)
inside = to + "/_hedgerow/replicas/second"
one_sentence("itself", lambda: hr.apply(spark, inside, learned, to, replica="second", overwrite=True))
found["replica"] = hr.table(spark, to).verify()["replicas"]
table = hr.table(spark, to).append(rows(200_000, 700))
found["replica after append"] = table.verify()["replicas"]
found["rows at the end"] = [table.read().count(), spark.read.parquet(to).count()]
spark.stop()
print(json.dumps([found, requests]))
"""

# Checks what the one before it left, makes it whole, and begins a rewrite or an append; it is killed meanwhile.
ONE_OF_MANY = """
import json, sys
import hedgerow as hr
from bench.data.object_store import settings
own = {"spark.sql.shuffle.partitions": "2", "spark.log.level": "OFF"}
url, to = sys.argv[1:]
spark = hr.session("1g", "local[2]", **own, **settings(url))

def rows(start, count):
    return spark.range(start, start + count).selectExpr("id", "id % 7 AS v")

try:
    table = hr.table(spark, to)
except hr.HedgerowError as error:
    assert "\\n" not in str(error), error
    table = None
if table is None:
    rows(0, 2000).write.mode("overwrite").parquet("s3a://lake/source")
    workload = hr.Workload.from_sql([f"SELECT * FROM t WHERE v = {v}" for v in range(7)])
    learned = hr.learn(spark, "s3a://lake/source", workload, "range", hr.LearnOptions(block_rows=250), columns=["v"], table="t")
    print(json.dumps("nothing yet"), flush=True)
    print("begins", flush=True)
    hr.apply(spark, "s3a://lake/source", learned, to)
else:
    held = sorted(r[0] for r in spark.read.parquet(to).collect())
    appends, rest = divmod(len(held) - 2000, 300)
    whole = rest == 0 and held == list(range(2000 + 300 * appends))
    routed = sorted(r[0] for r in table.read("v = 3").collect()) == [i for i in held if i % 7 == 3]
    verified = table.verify()["rows"] == len(held)
    print(json.dumps([len(held), whole, routed, verified]), flush=True)
    print("begins", flush=True)
    table.append(rows(len(held), 300))
print("ended", flush=True)
"""

# While a run writes a table, or a replica, another run begins to write the same one.
TWO_RUNS = """
import json, subprocess, sys
import hedgerow as hr
from bench.data.object_store import ObjectStore, settings
from hedgerow.spark.storage.folder import Folder
from hedgerow.tables.parquet import write
from hedgerow.tables.parquet.runs import new_run
from tests.support.answers import answer
store = ObjectStore()
own = {"spark.sql.shuffle.partitions": "2", "spark.log.level": "OFF"}
spark = hr.session("1g", "local[2]", **own, **settings(store.url))
for i in range(2):
    spark.range(i * 700, i * 700 + 700).selectExpr("id", "id % 7 AS v").write.parquet(f"s3a://lake/source{i}")
workload = hr.Workload.from_sql([f"SELECT * FROM t WHERE v = {v}" for v in range(7)])
learned = hr.learn(spark, "s3a://lake/source0", workload, "range", hr.LearnOptions(block_rows=100), columns=["v"], table="t")
to, found = "s3a://lake/table", {}
plain = write.write_first_state

def interrupted(work, other):
    told = []
    def begin(*args):
        write.write_first_state = plain
        try:
            told.append(other() and None)
        except hr.HedgerowError as error:
            told.append(str(error))
        plain(*args)
    write.write_first_state = begin
    work()
    return told[0]

def facts():
    table = hr.table(spark, to)
    report = table.verify()
    same = answer(table.read()) == answer(spark.read.parquet(to)) == answer(spark.read.parquet("s3a://lake/source0"))
    left = [name for name in (*table.format.side.sizes(), *Folder(spark, to).sizes()) if name.startswith(("run-", "left"))]
    return [same, report["unknown_files"], report["replicas"], left]

def apply(source=0, **how):
    return hr.apply(spark, f"s3a://lake/source{source}", learned, to, **how)

ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True).stdout
machine, _, run = new_run().split("-")
side = Folder(spark, to + "/_hedgerow")
side.write("run-1", f"{machine}-{int(ended)}-{run}".encode())
Folder(spark, to).write("left.parquet", b"x")
found["table"] = [interrupted(apply, lambda: apply(1)), *facts()]
replica = lambda: hr.apply(spark, to, learned, to, replica="second", overwrite=True)
found["replica"] = [interrupted(replica, replica), *facts()]
spark.stop()
print(json.dumps(found))
"""


@pytest.mark.long
def test_two_runs_in_one_place() -> None:
    found = run(TWO_RUNS)
    for name, replicas in {"table": {}, "replica": {"second": "as the table"}}.items():
        refused, *facts = found[name]
        assert refused and "another run writes to s3a://lake/table" in refused and "\n" not in refused, found
        assert facts == [True, 0, replicas, []], found


@pytest.mark.long
def test_a_table_from_end_to_end() -> None:
    found, requests = run(WHOLE)
    files, new = found["files"], found["new files"]
    assert found["same"] and found["rows"] == 100_700 and not found["left"]
    assert found["attached is the same"] == [True, True] and found["opened"] < files / 5
    assert found["replica"] == found["replica after append"] == {"second": "as the table"}
    assert found["rows at the end"] == [101_400, 101_400]
    for name, words in {"overwrite": "in one step", "occupied": "is not empty", "itself": "lies in it"}.items():
        assert words in found[name] and "\n" not in found[name]

    def total(name: str) -> int:
        return sum(requests[name].values())

    print({name: (total(name), by_kind) for name, by_kind in requests.items()}, files, new)
    assert total("table") <= 8
    # Spark's own writing and reading take some 35 requests for a file.
    assert requests["apply"]["GET"] <= 3 * files and total("apply") <= 37 * files
    assert total("append") <= 45 * new
    # A query looks for a newer state, and opens its files. The first one reads state, list and index as well.
    assert requests["attached"] == {"LIST": 1, "HEAD": found["opened"]} | (
        {"GET": requests["attached"]["GET"]} if "GET" in requests["attached"] else {}
    )
    assert total("attached first") <= total("attached") + 6
    assert total("attached") < total("plain") / 3


@pytest.mark.long
def test_runs_are_killed() -> None:
    """Twenty times: what is there is what was there before or after, and the next one goes on."""
    store, r = ObjectStore(), random.Random(3)
    to, seen, ended, longest = "s3a://lake/table", [0], 0, 6.0
    for _ in range(21):
        said, has_ended = told_then_killed(r.uniform(0.2, longest), ONE_OF_MANY, store.url, to)
        count, whole, routed, verified = (0, True, True, True) if said == "nothing yet" else said
        assert whole and routed and verified, said
        assert count >= max(seen[-1], ended), "what was there, or had ended, is lost"
        longest *= 1.5 if count == seen[-1] else 0.9  # a busy machine takes longer
        seen.append(count)
        ended = (count + 300 if count else 2000) if has_ended else 0
    assert seen[-1] > 2000, seen
