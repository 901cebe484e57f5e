"""The doctor finds what was broken on purpose, and nothing where all is well."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.spark.session_settings import DELTA_SWITCHES, EFFECTS, SWITCHES
from hedgerow.spark.start.session import temporary_settings
from tests.support.answers import ask, without_skipping
from tests.support.lay_out import by_ranges


@pytest.fixture(scope="module")
def numbers(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("numbers")
    source, to = str(folder / "source"), str(folder / "numbers")
    spark.range(2000).selectExpr("id", "id % 10 AS digit").write.parquet(source)
    learned = by_ranges(spark, source, "id", 500, ["id < 100; SELECT * FROM numbers WHERE id % 1000 < 20"], "numbers")
    return hr.apply(spark, source, learned, to).path


@pytest.fixture
def place(numbers: str, tmp_path: Path) -> str:
    return str(shutil.copytree(numbers, tmp_path / "numbers"))


def advices(spark: SparkSession, table: str | None = None) -> dict[str, str]:
    """What to do, by what was looked at; that Delta's jars are missing may be so on this machine."""
    found = hr.doctor(spark, table)
    assert len({f.subject for f in found}) >= 5
    return {f.subject: f.advice for f in found if f.advice is not None and f.subject != "Delta"}


def test_all_is_well(attached: SparkSession, place: str) -> None:
    assert advices(attached) == {}
    assert advices(attached, place) == {}


def test_findings_are_lines(attached: SparkSession, place: str) -> None:
    found = hr.doctor(attached, place)
    assert str(found).splitlines() == repr(found).splitlines() == [str(finding) for finding in found]


def test_a_session_that_is_not_attached(spark: SparkSession) -> None:
    assert "hedgerow.attach" in advices(spark)["attached"]


def test_skipping_is_turned_off(attached: SparkSession) -> None:
    with without_skipping(attached):
        assert "hedgerow.enabled" in advices(attached)["attached"]


def test_files_that_the_index_does_not_know(attached: SparkSession, place: str) -> None:
    attached.range(5).selectExpr("id", "id AS digit").write.mode("append").parquet(place)
    assert "append with Hedgerow" in advices(attached, place)["files"]


def test_lost_files(attached: SparkSession, place: str) -> None:
    next(Path(place).glob("*.parquet")).unlink()
    assert "missing" in advices(attached, place)["files"]


def test_an_append_that_was_killed(attached: SparkSession, place: str) -> None:
    (Path(place) / "_hedgerow" / "append-12345678-9-12345678").mkdir()
    (found,) = [f for f in hr.doctor(attached, place) if f.subject == "draft"]
    assert found.fact == "_hedgerow/append-12345678-9-12345678" and "deletes" in (found.advice or "")


@pytest.mark.parametrize(
    ("setting", "value", "bounds", "expressions", "said"),
    [
        ("spark.sql.session.timeZone", "Asia/Kathmandu", True, False, EFFECTS["meaning"]),
        ("spark.sql.parquet.mergeSchema", "true", False, False, EFFECTS["reading"]),
        ("spark.sql.of.others", "1", False, False, EFFECTS["reading"]),
        ("spark.of.others", "1", True, True, "those it was written under"),
    ],
)
def test_what_a_setting_holds_back_is_what_is_said(
    attached: SparkSession, place: str, setting: str, value: str, bounds: bool, expressions: bool, said: str
) -> None:
    with temporary_settings(attached, {setting: value}):
        for condition, skips in (("id < 100", bounds), ("id % 1000 < 20", expressions)):
            attached.sql(f"SELECT count(*), max(digit) FROM parquet.`{place}` WHERE {condition}").collect()
            (scan,) = hr.last_query(attached)
            assert (scan.files_opened < scan.files) == skips
        (finding,) = [f for f in hr.doctor(attached, place) if f.subject == "settings"]
        assert said in finding.fact
        assert (finding.advice is None) == expressions
        described = hr.table(attached, place).describe()["settings"]
        assert (described or "those it was written under") == finding.fact


@pytest.mark.parametrize("switch", SWITCHES)
def test_a_switch_that_is_off_is_named_with_what_it_holds_back(attached: SparkSession, switch: str) -> None:
    for value, is_on in (("false", False), ("off", False), ("TRUE", True)):
        with temporary_settings(attached, {switch: value}):
            found = [f for f in hr.doctor(attached) if f.subject == "setting"]
        said = (
            [] if is_on else [(f"{switch} is {value}, so {SWITCHES[switch]}", f"to skip files again: RESET {switch}")]
        )
        assert [(f.fact, f.advice) for f in found] == said


def test_delta_skips_nothing_without_its_statistics(
    attached: SparkSession, delta: SparkSession, place: str, tmp_path: Path
) -> None:
    """What is said of the switch is so: with it off, neither Delta nor Hedgerow skips a file, but by partitions."""
    table = str(tmp_path / "delta")
    rows = delta.range(2000).selectExpr("id", "id DIV 1000 AS half")
    rows.repartitionByRange(4, "id").write.format("delta").partitionBy("half").save(table)
    hr.apply(delta, table, by_ranges(delta, table, "id", 500, ["id < 100"], "delta"))

    def files(condition: str) -> int:
        query = attached.sql(f"SELECT id FROM delta.`{table}` WHERE {condition}")
        return sum(scan.files for scan in ask(query)[1])

    assert (files("id < 100"), files("half = 0")) == (1, 2)
    (switch,) = DELTA_SWITCHES
    with temporary_settings(attached, {switch: "false"}):
        assert (files("id < 100"), files("half = 0")) == (4, 2)
        (finding,) = [f for f in hr.doctor(attached) if f.subject == "setting"]
    assert finding.fact == f"{switch} is false, so {DELTA_SWITCHES[switch]}"


def test_a_damaged_state(attached: SparkSession, place: str) -> None:
    (state,) = Path(place, "_hedgerow").glob("state-*.json")
    state.write_text("{}")
    assert "damaged" in advices(attached, place)["table"] or "cannot be read" in advices(attached, place)["table"]


@pytest.mark.long
def test_why_the_last_query_skipped_nothing(attached: SparkSession, place: str) -> None:
    attached.sql(f"SELECT * FROM parquet.`{place}` WHERE id = 3").collect()
    assert "last query" not in advices(attached)
    (state,) = Path(place, "_hedgerow").glob("state-*.json")
    state.write_text("{}")
    attached.sql(f"SELECT * FROM parquet.`{place}` WHERE id = 4").collect()
    assert "the index does not help" in advices(attached)["last query"]


def test_a_place_without_a_table(attached: SparkSession, tmp_path: Path) -> None:
    assert "no table that Hedgerow wrote" in advices(attached, str(tmp_path / "none"))["table"]
