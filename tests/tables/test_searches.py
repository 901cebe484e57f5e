"""Searches for words that nobody ran before close files, by the words in the files, and never one with a match."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import hedgerow as hr
from tests.support.answers import answers, ask_all, opened, opened_by_each

SUBJECTS = "apricot", "birch", "cedar", "date_palm", "elm"
CONDITIONS = [
    *(f"path LIKE '%{word}%'" for word in (*SUBJECTS, "palm", "apri", "ware", "nothing", "17", "Birch", "é")),
    "path LIKE '%ware%birch%' AND tool LIKE '%run%'", "path LIKE '%elm%' OR tool LIKE '%cedar%'",
    "path NOT LIKE '%elm%'", "contains(path, 'cedar')", "path LIKE '%edar/part_1%'", "path LIKE '%date\\\\_palm%'",
    "path ILIKE '%BIRCH%'", "endswith(path, 'birch/part=7')",
]  # fmt: skip
SOME = [f"path LIKE '%{word}%'" for word in ("apri", "nothing", "17")]


def rows(spark: SparkSession, start: int, end: int, *subjects: str) -> DataFrame:
    of = f"element_at(array({', '.join(map(repr, subjects))}), CAST(id % {len(subjects)} + 1 AS INT))"
    texts = f"concat('/ware/', {of}, '/part=', id % 40) AS path", f"concat({of}, '-runner') AS tool"
    return spark.range(start, end).selectExpr("id", *texts, "id % 7 AS number")


@pytest.mark.parametrize("kind", ["parquet", pytest.param("delta", marks=pytest.mark.long)])
def test_searches(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, kind: str) -> None:
    source, path = str(tmp_path / "runs_source"), str(tmp_path / "runs")
    if kind == "delta":
        request.getfixturevalue("delta")
        source = path
    rows(spark, 0, 4000, *SUBJECTS).write.format(kind).save(source)
    workload = hr.Workload.from_sql([f"SELECT id FROM runs WHERE path LIKE '%{word}%'" for word in SUBJECTS[:2]])
    learned = hr.learn(spark, source, workload, options=hr.LearnOptions(block_rows=700, recurrence=1), table="runs")
    table = hr.apply(spark, source, learned, None if kind == "delta" else path)

    def read() -> DataFrame:
        return spark.read.format(kind).load(path)

    counts = opened_by_each(read(), CONDITIONS if kind == "parquet" else SOME)
    assert ask_all([table.read(where=c) for c in CONDITIONS[:3]])[0] == answers(read(), CONDITIONS[:3])
    assert counts["path LIKE '%apri%'"][0] < counts["path LIKE '%apri%'"][1]
    assert counts["path LIKE '%nothing%'"][0] == 0
    assert counts["path LIKE '%17%'"][0] == counts["path LIKE '%17%'"][1]
    table.append(rows(spark, 4000, 5000, "fir", "elm"))
    opened_by_each(read(), [f"path LIKE '%{word}%'" for word in ("fir", "birch")])
    few, all_ = opened(read(), "path LIKE '%fi%' AND tool LIKE '%runner%'")
    assert 0 < few < all_
    assert hr.table(spark, path).verify()["rows"] == 5000
    if kind == "delta":
        spark.sql(f"UPDATE delta.`{path}` SET path = '/ware/gorse' WHERE path LIKE '%birch%' AND number = 1")
        spark.sql(f"DELETE FROM delta.`{path}` WHERE path LIKE '%fir/%'")
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
        opened_by_each(read(), [f"path LIKE '%{word}%'" for word in ("gorse", "birch", "fir")])
        spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN path TO was")
        spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN tool TO path")
        opened_by_each(read(), [f"path LIKE '%{word}%'" for word in ("gorse", "birch", "runner")])
    hr.table(spark, path).verify()


@pytest.mark.parametrize("kind", ["parquet", pytest.param("delta", marks=pytest.mark.long)])
def test_relearning_finds_words(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, kind: str) -> None:
    source, path = str(tmp_path / "source"), str(tmp_path / "runs")
    if kind == "delta":
        request.getfixturevalue("delta")
        source = path
    rows(spark, 0, 2000, *SUBJECTS).write.format(kind).save(source)
    asked = hr.Workload.from_sql([f"SELECT id FROM runs WHERE tool = '{word}-runner'" for word in SUBJECTS])
    learned = hr.learn(spark, source, asked, options=hr.LearnOptions(block_rows=300, recurrence=1), table="runs")
    table = hr.apply(spark, source, learned, None if kind == "delta" else path)
    searches = hr.Workload.from_sql(["SELECT id FROM runs WHERE path LIKE '%birch%'"])
    assert table.files("path LIKE '%cedar%'") == table.files()
    table = table.relearn(searches)
    assert 0 < len(table.files("path LIKE '%cedar%'")) < len(table.files())
    opened(spark.read.format(kind).load(path), "path LIKE '%elm%'")
    assert table.verify()["rows"] == 2000


def test_verify_finds_wrong_words(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, path = str(tmp_path / "source"), str(tmp_path / "runs")
    rows(spark, 0, 2000, *SUBJECTS).write.parquet(source)
    asked = hr.Workload.from_sql(["SELECT id FROM runs WHERE path LIKE '%birch%'"])
    learned = hr.learn(spark, source, asked, "range", hr.LearnOptions(block_rows=500), columns=["id"], table="runs")
    monkeypatch.setattr("hedgerow.spark.storage.footer.words_in_texts", lambda texts: frozenset({"ware", "part"}))
    table = hr.apply(spark, source, learned, path)
    with pytest.raises(hr.HedgerowError, match=r"the statistics of .* are wrong"):
        table.verify()


def test_bytes_are_not_texts(spark: SparkSession, tmp_path: Path) -> None:
    """`contains` of bytes compares them as they are, and LIKE compares what they are as a text."""
    source, path = str(tmp_path / "source"), str(tmp_path / "runs")
    spark.range(2000).selectExpr("id", "IF(id < 1000, X'6162', CAST('6162' AS BINARY)) AS raw").write.parquet(source)
    asked = hr.Workload.from_sql(["SELECT id FROM runs WHERE raw LIKE '%6162%'", "SELECT id FROM runs WHERE id < 9"])
    learned = hr.learn(spark, source, asked, "range", hr.LearnOptions(block_rows=500), columns=["id"], table="runs")
    hr.apply(spark, source, learned, path)
    for condition in ("contains(raw, X'6162')", "raw LIKE '%6162%'", "endswith(raw, X'62')", "contains(raw, '6162')"):
        opened(spark.read.parquet(path), condition)


def test_collated_texts_are_not_judged_by_words(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "runs")
    frame = rows(spark, 0, 2000, *SUBJECTS).selectExpr("id", "path COLLATE UTF8_LCASE AS path", "number")
    frame.write.parquet(str(tmp_path / "source"))
    asked = hr.Workload.from_sql(["SELECT id FROM runs WHERE number < 3 AND path LIKE '%birch%'"])
    learned = hr.learn(spark, str(tmp_path / "source"), asked, options=hr.LearnOptions(block_rows=500), table="runs")
    hr.apply(spark, str(tmp_path / "source"), learned, path)
    for word in ("BIRCH", "Elm", "Apri", "nothing"):
        opened(spark.read.parquet(path), f"path LIKE '%{word}%'")
