"""Spark's UI has a tab that shows how many files the scans of the newest queries opened, and why not fewer."""

from __future__ import annotations

from pathlib import Path

from tests.support.other_process import run

PROGRAM = """
import json, sys, urllib.request
import hedgerow as hr

folder = sys.argv[1]
spark = hr.session(spark_ui_enabled="true", spark_ui_port="0", spark_sql_shuffle_partitions="1")
spark.range(1000).selectExpr("id", "id % 10 AS k").write.parquet(f"{folder}/source")
layout = hr.learn(
    spark, f"{folder}/source", hr.Workload.from_sql("SELECT * FROM t WHERE k = 3"), "range",
    hr.LearnOptions(block_rows=100), columns=["k"], table="t",
)
hr.apply(spark, f"{folder}/source", layout, f"{folder}/table")
tabs = lambda: urllib.request.urlopen(spark.sparkContext.uiWebUrl).read().decode().count('href="/hedgerow/"')
before = tabs()
hr.attach(spark)
spark.read.parquet(f"{folder}/source").count()
none = tabs()
table = f"parquet.`{folder}/table`"
spark.sql(f"SELECT * FROM {table} WHERE k = 3").collect()
spark.sql(f"SELECT * FROM {table} WHERE id < rand()").collect()
spark.sql(f"SELECT * FROM {table} WHERE k = 7 AND id > 3").explain()
spark.sql(f"SELECT '</td>', count(*) FROM {table} a JOIN {table} b ON a.id = b.id WHERE a.k < 2").collect()
page = urllib.request.urlopen(spark.sparkContext.uiWebUrl + "/hedgerow/").read().decode()
print(json.dumps([before, none, tabs(), page]))
"""


def test_the_newest_queries(tmp_path: Path) -> None:
    before, none, after, page = run(PROGRAM, str(tmp_path))
    assert (before, none) == (0, 0) and after > 0
    assert page.count("/SQL/execution/?id=") >= 4  # two queries of one scan each, and a join
    assert "<tr><td/>" in page or "<tr><td></td>" in page  # planned, but not run
    for shown in ("1 of 10", "2 of 10", "10 of 10", "rand() depends on", "<th>Why not fewer</th>"):
        assert shown in page, page[-4000:]
