"""The commands on a table of values at the ends of their types, and of times of day."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from hedgerow.spark.start.session import temporary_settings

NINES = "9" * 38


def test_learn_apply_and_query(run: Callable[..., Any], spark: SparkSession, tmp_path: Path) -> None:
    lake, plan, to, queries = (str(tmp_path / name) for name in ("lake", "plan.json", "to", "queries.sql"))
    ends = f"IF(id % 3 = 0, CAST({NINES} AS DECIMAL(38, 0)), CAST(id - 500 AS DECIMAL(38, 0))) AS amount"
    time = "make_time(CAST(id % 24 AS INT), 0, 0) AS clock"
    conditions = [
        f"amount >= {NINES}", "amount < -400", "clock < TIME'05:00:00'", f"amount > -{NINES} AND clock > '20:00:00'",
    ]  # fmt: skip
    Path(queries).write_text(";\n".join(f"SELECT id FROM lake WHERE {c}" for c in conditions))
    with temporary_settings(spark, {"spark.sql.timeType.enabled": "true"}):
        spark.range(1000).selectExpr("id", ends, time).write.parquet(lake)
        for words in (
            ["learn", lake, queries, "--block-rows", "50", "--out", plan],
            ["apply", lake, plan, "--to", to],
            ["verify", to],
        ):
            done = run(*words)
            assert done.exit_code == 0, (words, done.output)
            assert "Exception" not in done.output
        for condition in conditions:
            asked = f"SELECT count(*) AS n FROM parquet.`{to}` WHERE {condition}"
            done = run("query", asked, "--json")
            assert done.exit_code == 0, done.output
            n = spark.read.parquet(lake).where(condition).count()
            assert json.loads(done.stdout) == {"n": n}, condition
