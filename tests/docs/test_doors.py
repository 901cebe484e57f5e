"""The page on doors shows how DuckDB reads a table; its program and its SQL run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from tests.support.lay_out import by_ranges

PAGE = (Path(__file__).parents[2] / "docs/guide/doors.md").read_text(encoding="utf-8")


def test_duckdb(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (program,), (sql,) = (re.findall(rf"```{kind}\n(.*?)```", PAGE, re.S) for kind in ("python", "sql"))
    (condition,) = set(re.findall(r"(?:where=|--where )\"([^\"]+)\"", PAGE))
    assert f"WHERE {condition} GROUP BY" in program and sql.endswith(f"WHERE {condition}\n")
    cities = ("Bern", "Graz", "Linz", "Ulm")
    orders = pa.table(
        {
            "day": [i // 55 for i in range(20_000)],
            "price": [i * 7919 % 1000 / 10 for i in range(20_000)],
            "city": [cities[i % 4] for i in range(20_000)],
        }
    )
    (tmp_path / "source").mkdir()
    pq.write_table(orders, tmp_path / "source" / "part-0.parquet")
    learned = by_ranges(spark, str(tmp_path / "source"), "day", 4000, [condition])
    table: Any = hr.apply(spark, str(tmp_path / "source"), learned, str(tmp_path / "orders"))
    names: dict[str, Any] = {}
    exec(compile(program.replace("lake/", f"{tmp_path}/"), "doors.md", "exec"), names)
    expected = table.read(condition).groupBy("city").count().orderBy("city").collect()
    printed = re.findall(r"(Bern|Graz|Linz|Ulm)\W+(\d+)", capsys.readouterr().out)
    assert printed == [(row[0], str(row[1])) for row in expected] and len(printed) == 4
    assert len(table.plain_files(condition)) < len(table.files())
    monkeypatch.chdir(tmp_path)
    Path("files.json").write_text(json.dumps({"files": table.plain_files(condition)}))
    con = duckdb.connect()
    for statement in sql.split(";"):
        rows = con.execute(statement)
    assert rows.fetchall() == [(table.read(condition).count(),)]
    con.close()
