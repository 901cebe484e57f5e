"""What limits skipping in a session is named at once, with the line that lifts it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.spark.session_settings import TRUSTED
from hedgerow.spark.start.session import temporary_settings
from tests.support.things_table import FILES, by_id, write_things

UNKNOWN = "spark.sql.thingOfTomorrow"


@pytest.fixture(scope="module")
def things(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    source = write_things(spark, str(tmp_path_factory.mktemp("plain") / "things.parquet"))
    return by_id(spark, source, str(tmp_path_factory.mktemp("ours") / "things"), ["number < 100"]).path


@pytest.fixture
def limited(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with a setting whose effect is unknown."""
    spark.conf.set(UNKNOWN, "1")
    yield spark
    for key in (UNKNOWN, TRUSTED):
        spark.conf.unset(key)
    hr.detach(spark)


def opened(spark: SparkSession, path: str) -> tuple[int, str | None]:
    assert spark.sql(f"SELECT id FROM parquet.`{path}` WHERE number < 20").count() == 20
    (scan,) = hr.last_query(spark)
    return scan.files_opened, scan.reason


def test_attach_names_the_setting_and_the_line_that_lifts_it(limited: SparkSession, things: str) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        hr.attach(limited)
    first, last = (str(w.message) for w in told if issubclass(w.category, hr.HedgerowWarning))
    assert UNKNOWN in first
    files, reason = opened(limited, things)
    assert files == FILES and UNKNOWN in str(reason)
    (line,) = re.findall(r"SET \S+$", last)
    limited.sql(line)
    assert opened(limited, things) == (1, None)
    limited.conf.unset(TRUSTED)
    assert opened(limited, things)[0] == FILES


def test_doctor_names_the_setting_and_the_line_that_lifts_it(limited: SparkSession) -> None:
    (found,) = [f for f in hr.doctor(limited) if f.subject == "setting"]
    assert found.fact == UNKNOWN and f"SET {TRUSTED}={UNKNOWN}" in str(found.advice)
    with temporary_settings(limited, {TRUSTED: UNKNOWN}):
        assert [f for f in hr.doctor(limited) if f.subject == "setting"] == []


def test_a_setting_of_an_application_limits_nothing(attached: SparkSession, things: str) -> None:
    with temporary_settings(
        attached, {"my.application.mode": "fast", "hive.server2.thrift.resultset.default.fetch.size": "9"}
    ):
        assert opened(attached, things) == (1, None)
