"""Published suites answer alike with pruning and without: some queries each time, all of them by `make test-long`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.published import sqltests, tpc
from tests.published.outcome import Outcome, same, within
from tests.published.tally import Tally

INPUTS = "HEDGEROW_SQL_TESTS"
SAMPLE = (3, 42, 96)  # three tables, a LIMIT between ties, a count


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HEDGEROW_BENCH_CACHE", str(tmp_path / "cache"))
    yield tmp_path


def check(tally: Tally, compared: int, vacuous: int) -> None:
    assert not tally.different, "\n".join(tally.lines())
    assert tally.compared >= compared and len(tally.vacuous) <= vacuous, tally.lines()[0]


def test_comparison() -> None:
    one = Outcome("a int", ((1, 0.1 + 0.2), (2, float("nan")), (3, None)))
    other = Outcome("a int", ((1, 0.3), (2, float("nan")), (3, None)))
    assert same(one, other) and within(Outcome("a int", one.rows[:2]), other)
    assert not same(one, Outcome("a bigint", other.rows)) and not same(one, Outcome("a int", other.rows[:2]))
    assert not same(one, Outcome("a int", ((1, 0.30001), *other.rows[1:])))
    assert not same(Outcome("a int", ((1,),)), Outcome("a int", (("1",),)))
    assert not same(Outcome(error="DIVIDE_BY_ZERO"), Outcome()) and not within(one, Outcome("a int", one.rows[:2]))


def test_statements(tmp_path: Path) -> None:
    (tmp_path / "b.sql").write_text("SELECT 'of b';")
    lines = [
        "--SET spark.a=1, spark.b=x", "--IMPORT b.sql", "-- a comment; with one", "SELECT ';' /* ; */, \"a;b\";",
        "SELECT 2",
    ]  # fmt: skip
    delimited = ["--QUERY-DELIMITER-START", "SELECT 3; -- still the third", "--QUERY-DELIMITER-END", "SELECT 4;"]
    (tmp_path / "a.sql").write_text("\n".join([*lines, ";", *delimited]))
    found, settings = sqltests.statements(tmp_path / "a.sql", tmp_path)
    assert [s.strip() for s in found] == [
        *("SELECT 'of b'", "SELECT ';' /* ; */, \"a;b\"", "SELECT 2"),
        *("SELECT 3; -- still the third", "SELECT 4"),
    ]
    assert settings == {"spark.a": "1", "spark.b": "x"}


@pytest.mark.long
def test_tpcds_sample(spark: SparkSession, cache: Path) -> None:
    for tally in tpc.run(spark, "tpcds", tpc.tables("tpcds", 0.01), cache / "tables", SAMPLE, ["parquet"]):
        check(tally, len(SAMPLE), 0)


@pytest.mark.long
@pytest.mark.parametrize("kind", tpc.FORMATS)
@pytest.mark.parametrize(("suite", "compared", "vacuous"), [("tpcds", 99, 10), ("tpch", 22, 8)])
def test_all(
    spark: SparkSession, cache: Path, suite: str, compared: int, vacuous: int, kind: str, request: pytest.FixtureRequest
) -> None:
    if kind == "delta":
        request.getfixturevalue("delta")
    for tally in tpc.run(spark, suite, tpc.tables(suite), cache / "tables", formats=[kind]):
        check(tally, compared, vacuous)


@pytest.mark.long
@pytest.mark.parametrize("kind", tpc.FORMATS)
@pytest.mark.parametrize(("suite", "compared", "vacuous"), [("tpcds", 99, 15), ("tpch", 22, 8)])
def test_joined(
    spark: SparkSession, cache: Path, suite: str, compared: int, vacuous: int, kind: str, request: pytest.FixtureRequest
) -> None:
    """Layouts that look at joined tables; Delta tables again after every table was changed twenty times."""
    if kind == "delta":
        request.getfixturevalue("delta")
    folder = tpc.tables(suite, 0.01)
    for number, tally in enumerate(tpc.run_joined(spark, suite, folder, cache / "tables", formats=[kind], rounds=20)):
        check(tally, compared, compared if number == 2 else vacuous)


@pytest.mark.long
def test_sql_tests(spark: SparkSession, tmp_path: Path) -> None:
    if INPUTS not in os.environ:
        pytest.skip(f"{sqltests.HOW} Here: {INPUTS}=<folder>")
    check(sqltests.run(spark, Path(os.environ[INPUTS]), tmp_path), 2000, 2000)
