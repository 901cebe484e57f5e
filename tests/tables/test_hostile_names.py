"""Names of columns, tables and folders that would be SQL if anybody forgot to quote them: every verb, the same rows."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import hedgerow as hr
from tests.support.answers import answers, ask_all, attached_to

NAMES = [
    "a b", "x`y", "x` OR 1=1 --", "q'uote", 'dq"uote', "new\nline", "Ünïcödé 列", "a.b", "back\\slash",
    "semi;DROP TABLE t", "{0} %s $1", "SELECT", "/* c */",
]  # fmt: skip
FOLDER = "fol'der `x` 列; --"  # no {glob}: Spark takes that for a pattern
ROWS = 4000
SOUGHT = 'it\'s "50%" `off`;\n-- \\ 列'


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def rows(spark: SparkSession, start: int = 0, end: int = ROWS) -> DataFrame:
    numbers = [f"id * {7919 + 2 * i} % 1000 AS {quoted(name)}" for i, name in enumerate(NAMES)]
    text = f"IF(id % 100 = 0, {literal(SOUGHT)}, concat('plain ', id % 50)) AS {quoted('te`xt')}"
    return spark.range(start, end).selectExpr("id", *numbers, text)


def conditions() -> list[str]:
    of_numbers = [f"{quoted(name)} BETWEEN {70 * i} AND {70 * i + 90}" for i, name in enumerate(NAMES)]
    two = [f"{quoted(a)} < {quoted(b)} AND {quoted(a)} > 900" for a, b in pairwise(NAMES)]
    text = quoted("te`xt")
    likes = (f"{text} LIKE {literal(pattern)}" for pattern in ("%in 4%", "%50\\%%"))
    of_text = [f"{text} = {literal(SOUGHT)}", *likes]
    return [*of_numbers, *two, *of_text, f"abs({quoted(NAMES[1])} - 500) < 20", f"{text} IN ({literal(SOUGHT)}, 'x')"]


@pytest.mark.parametrize("kind", ["parquet", pytest.param("delta", marks=pytest.mark.long)])
def test_every_verb(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, kind: str) -> None:
    source, path = str(tmp_path / FOLDER / "source"), str(tmp_path / FOLDER / "ta'ble")
    writer = rows(spark).write.format(kind)
    if kind == "delta":
        request.getfixturevalue("delta")
        source = path
        writer = writer.option("delta.columnMapping.mode", "name")
    writer.save(source)
    workload = hr.Workload.from_sql([f"SELECT id FROM {quoted(FOLDER)} WHERE {c}" for c in conditions()])
    assert not workload.skipped
    learned = hr.learn(spark, source, workload, options=hr.LearnOptions(block_rows=300), table=FOLDER)
    learned = hr.Learned.from_json(learned.to_json())
    hr.apply(spark, source, learned, None if kind == "delta" else path)
    table = hr.table(spark, path)
    assert check(table, kind, rows(spark), conditions()), "no file was skipped"
    table = table.append(rows(spark, ROWS, ROWS + 500))
    more = rows(spark, 0, ROWS + 500)
    check(table, kind, more, conditions()[::5])
    assert table.verify()["rows"] == ROWS + 500
    assert hr.explain(spark, path, conditions()[1]).to_dict()
    with hr.log(spark, path):
        for condition in conditions()[::8]:
            spark.read.format(kind).load(path).where(condition).collect()
    logged = hr.logged(spark, path, FOLDER)
    assert len(logged) == len(conditions()[::8])
    table.relearn(logged)
    check(hr.table(spark, path), kind, more, conditions()[::7])


def check(table: Any, kind: str, plain: DataFrame, some: list[str]) -> bool:
    """Every way to ask gives the plain answers; True if an attached query skipped a file."""
    spark, expected = table.spark, answers(plain, some)
    spark.read.format(kind).load(table.path).createOrReplaceTempView("asked")
    texts = [f"SELECT * FROM asked WHERE {c}" for c in some]
    assert ask_all([table.read(where=c) for c in some])[0] == expected
    assert ask_all([hr.route(spark, text) for text in texts])[0] == expected
    with attached_to(spark):
        assert ask_all([spark.sql(text) for text in texts])[0] == expected
        return any(scan.files_opened < scan.files for scan in hr.last_query(spark))
