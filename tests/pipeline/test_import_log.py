"""Event logs of Spark, SQL texts and histories are imported into a table's log, each query once."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.core.errors import HedgerowError
from hedgerow.spark.start.session import temporary_settings
from hedgerow.tables.query_log import QueryLog
from tests.support.events_table import conditions
from tests.support.logged_entries import entries


@pytest.fixture(scope="module")
def event_logs(events: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Spark's own logs of another session; queries with texts that look like syntax."""
    place = tmp_path_factory.mktemp("eventlog")
    asked = [*conditions(11, 15), "word <> 'a) AND (b'", "word IN ('x, y', 'ab1') OR word LIKE '%it''s%'"]
    program = f"""
import hedgerow as hr
from hedgerow.spark.start.session import local_session
conf = {{"spark.eventLog.enabled": "true", "spark.eventLog.dir": "file:{place}"}}
spark = local_session("1g", "local[1]", **conf)
spark.read.parquet({events!r}).createOrReplaceTempView("events")
hr.learn(spark, {events!r}, hr.Workload.from_sql("SELECT * FROM events WHERE id < 5 AND word LIKE '%a%'"))  # not a user's
for condition in {asked!r}:
    print(spark.sql("SELECT id FROM events WHERE " + condition).count())
spark.stop()
"""
    counts = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    (place / "counts").write_text(counts)
    return place


@pytest.mark.long
def test_event_logs(spark: SparkSession, events: str, event_logs: Path) -> None:
    counts = [int(line) for line in (event_logs / "counts").read_text().splitlines()]
    spark.read.parquet(events).createOrReplaceTempView("events")
    found = hr.import_log(spark, events, event_logs)
    assert found.entries == len(counts)
    logged = entries(spark, events)
    assert [entry.rows_kept for entry in logged] == counts
    whole = 0
    for entry, count in zip(logged, counts, strict=True):
        (condition,) = entry.conditions
        selected = spark.sql(f"SELECT id FROM events WHERE {condition}").count()
        assert selected >= count  # a part that cannot be read counts as TRUE
        whole += selected == count
    assert whole >= 0.8 * len(counts)
    assert hr.import_log(spark, events, event_logs).entries == 0
    (event_logs / "torn").write_bytes(
        b'{"Event":"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart"}\n{"Ev'
    )
    assert hr.import_log(spark, events, event_logs).entries == 0


@pytest.mark.long
def test_event_logs_of_queries_that_were_noted(spark: SparkSession, copy: str, tmp_path: Path) -> None:
    """The log of the session itself: what `log` noted is not added again."""
    program = f"""
import hedgerow as hr
from hedgerow.spark.start.session import local_session
conf = {{"spark.eventLog.enabled": "true", "spark.eventLog.dir": "file:{tmp_path}"}}
spark = local_session("1g", "local[1]", **conf)
spark.read.parquet({copy!r}).createOrReplaceTempView("events")
spark.sql("SELECT id FROM events WHERE id < 5").collect()
with hr.log(spark, {copy!r}):
    for _ in range(2):
        spark.sql("SELECT id FROM events WHERE id < 7").collect()
    spark.range(3).write.mode("overwrite").parquet("{tmp_path}/other")
spark.stop()
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert len(entries(spark, copy)) == 2
    (logs,) = tmp_path.glob("*local-*")
    assert hr.import_log(spark, copy, logs).entries == 1  # the query before `log`
    assert sorted(entry.conditions[0] for entry in entries(spark, copy)).count("(id < 7L)") == 2


def test_texts_of_queries_that_were_noted(spark: SparkSession, copy: str, tmp_path: Path) -> None:
    """Neither time nor condition is written as the log has them."""
    spark.read.parquet(copy).createOrReplaceTempView("events")
    asked = [f"SELECT id FROM events WHERE {c}" for c in ("id BETWEEN 3 AND 9 AND word LIKE 'a%'", "NOT (id >= 5)")]
    with hr.log(spark, copy):
        for sql in asked:
            spark.sql(sql).collect()
    first, second = (e.at.astimezone(timezone.utc).isoformat(timespec="seconds") for e in entries(spark, copy))
    file = tmp_path / "history.sql"
    other = f"-- at {first}\nSELECT id FROM events WHERE id < 6;\n-- at 2026-01-01 12:00:00\n{asked[1]};"
    file.write_text(f"-- at {first}\n{asked[0]};\n-- at {second}\n{asked[1]};\n{other}")
    assert hr.import_log(spark, copy, file).entries == 2  # another condition, another time
    assert hr.import_log(spark, copy, file).entries == 0
    assert len(entries(spark, copy)) == 4


def test_sql_with_times(spark: SparkSession, copy: str, tmp_path: Path) -> None:
    sql, lines = tmp_path / "history.sql", tmp_path / "history.jsonl"
    sql.write_text(
        "-- at 2026-11-01 12:00:00\nSELECT id FROM events WHERE id < 5;\n"
        "-- at: 2026-11-02T00:00:00+01:00\nSELECT id FROM events WHERE id > 9\n-- at 2026-11-03\nSELEC nonsense FROM"
    )
    found = hr.import_log(spark, copy, sql)
    assert (found.entries, len(found.skipped)) == (2, 1)
    lines.write_text('{"at": "2026-11-04 01:00:00", "sql": "SELECT 1 FROM events WHERE id = 3", "seconds": 2.5}\n\n')
    assert hr.import_log(spark, copy, str(lines)).entries == 1
    with temporary_settings(spark, {"spark.sql.session.timeZone": "UTC"}):
        history = spark.sql("SELECT TIMESTAMP '2026-11-05 00:00:00' AS at, 'SELECT id FROM events WHERE id = 4' AS sql")
        assert hr.import_log(spark, copy, history).entries == 1
    asked = [(e.at.timestamp(), e.conditions, e.seconds) for e in entries(spark, copy)]
    start = datetime(2026, 11, 1, 12, tzinfo=timezone.utc).timestamp()
    assert [(at - start) / 3600 for at, _, _ in asked] == [0, 11, 61, 84]
    assert [c for _, c, _ in asked] == [["id < 5"], ["id >= 10"], ["id = 3"], ["id = 4"]]
    assert [s for _, _, s in asked] == [None, None, 2.5, None]
    assert len(hr.logged(spark, copy, "events", since="2026-11-04")) == 2
    sql.write_text("SELECT id FROM events")
    with pytest.raises(HedgerowError, match="does not say when"):
        hr.import_log(spark, copy, sql)
    lines.write_text('{"sql": "SELECT 1"}')
    with pytest.raises(HedgerowError, match="line 1 of"):
        hr.import_log(spark, copy, lines)
    with pytest.raises(HedgerowError, match="at is missing"):
        hr.import_log(spark, copy, spark.sql("SELECT 'x' AS sql"))


def test_histories_with_rubbish(spark: SparkSession, copy: str, tmp_path: Path) -> None:
    sql, lines = tmp_path / "history.sql", tmp_path / "history.jsonl"
    whole = '{"at": "2026-11-04 01:00:00", "sql": "SELECT 1 FROM events WHERE id = 3"'
    for rubbish, message in [
        ('"seconds": "abc"', "could not convert"),
        ('"seconds": [1]', "line 1 of"),
        ('"seconds": -5', "seconds cannot be -5"),
        ('"seconds": 1e400', "seconds cannot be inf"),
        ('"sql": "\\ud800"', "surrogates"),
    ]:
        lines.write_text(f"{whole}, {rubbish}}}")
        with pytest.raises(HedgerowError, match=message):
            hr.import_log(spark, copy, lines)
    assert not QueryLog.of(spark, copy).exists()
    deep = "(" * 3000 + "id = 5" + ")" * 3000
    sql.write_text(f"-- at 2026-11-01\nSELECT id FROM events WHERE {deep};\n-- at 2026-11-02\nSELECT id FROM events")
    found = hr.import_log(spark, copy, sql)
    assert found.entries == 1 and "nested too deeply" in found.skipped[0]
    times = ", ".join(f"TIMESTAMP'{at}'" for at in ("+200000-01-01", "9999-12-31", "0001-01-01", "2026-11-03"))
    frame = spark.sql(f"SELECT explode(array({times})) AS at, 'SELECT id FROM events' AS sql, double('NaN') AS seconds")
    found = hr.import_log(spark, copy, frame)
    assert found.entries == 1 and found.skipped == ("3 queries are of times that cannot be, and are left out",)
    assert [entry.seconds for entry in entries(spark, copy)] == [None, None]
