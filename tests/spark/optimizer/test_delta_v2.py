"""Delta reads a table by one of two interfaces of Spark: files are skipped, or the reason is reported."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import hedgerow as hr
from hedgerow.spark.start.session import temporary_settings
from tests.support import delta_tables
from tests.support.answers import answer
from tests.support.delta_tables import FILES
from tests.support.laid_tables import plainly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODE = "spark.databricks.delta.v2.enableMode"
MODES = ("AUTO", "NONE", "STRICT")
WHERE = "number IN (5, 1995)"  # Delta's own bounds skip no file for this list
QUERIES = (
    f"SELECT id, word FROM {{t}} WHERE {WHERE}",
    "SELECT count(*), min(number), max(day) FROM {t} WHERE number < 700 AND word LIKE '%9'",
    f"SELECT a.id, b.price FROM {{t}} a JOIN {{t}} b ON a.id = b.id WHERE a.{WHERE}",
)


@pytest.fixture(scope="module")
def path(delta: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place = delta_tables.write(delta, str(tmp_path_factory.mktemp("v2") / "things"))
    delta_tables.by_number(delta, place)
    delta.sql(f"CREATE TABLE v2_things USING delta LOCATION '{place}'")
    yield place
    delta.sql("DROP TABLE v2_things")


def test_these_are_all_modes(delta: SparkSession, path: str) -> None:  # Delta has read its settings for the table
    with pytest.raises(Exception, match="none of them") as refused:
        delta.conf.set(MODE, "none of them")
    assert sorted(re.findall(r"\b[A-Z]{4,6}\b", str(refused.value).split("one of")[-1])) == sorted(MODES)


@pytest.mark.parametrize("mode", MODES)
def test_each_mode(attached: SparkSession, path: str, mode: str) -> None:
    by_v2 = mode == "STRICT"
    for name in ("v2_things", f"delta.`{path}`"):
        for query in QUERIES if name == "v2_things" else QUERIES[:1]:
            sql = query.format(t=name)
            expected = plainly(attached, sql)
            with temporary_settings(attached, {MODE: mode}):
                for found in (attached.sql(sql), hr.route(attached, sql)):
                    assert answer(found) == expected, sql
                    reports = hr.last_query(attached)
                    assert reports and all(r.table == "things" for r in reports)
                    assert all("DataSource V2" in (r.reason or "") if by_v2 else r.reason is None for r in reports)
                    assert by_v2 or min(r.files_opened for r in reports) < FILES, sql


@pytest.mark.parametrize("mode", MODES)
def test_paths_skip_files_in_each_mode(attached: SparkSession, path: str, mode: str) -> None:
    expected = plainly(attached, f"SELECT * FROM delta.`{path}` WHERE {WHERE}")
    with temporary_settings(attached, {MODE: mode}):
        for frame in (
            attached.read.format("delta").load(path).where(WHERE),
            hr.table(attached, path).read(where=WHERE),
        ):
            assert answer(frame) == expected
            [report] = hr.last_query(attached)
            assert (report.reason, report.files_opened, report.files) == (None, 2, FILES)
