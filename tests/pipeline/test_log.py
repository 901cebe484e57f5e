"""The log of queries: what it says is what the queries did, and nothing that went wrong damages it."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.core.errors import HedgerowError, WorkloadError
from hedgerow.pilot.recent_queries import RecentLog
from hedgerow.pipeline.log import report
from hedgerow.tables.query_log import QueryLog, Waiting
from tests.support.answers import answers, attached_to
from tests.support.events_table import conditions
from tests.support.logged_entries import entries

DELTA = "events_log_delta"


@pytest.mark.parametrize("count", [10, pytest.param(25, marks=pytest.mark.long)])
def test_conditions_select_the_rows_that_the_queries_kept(spark: SparkSession, copy: str, count: int) -> None:
    spark.read.parquet(copy).createOrReplaceTempView("events")
    # Spark answers the others without a look at the table.
    asked = [c for c in conditions(7, count) if spark.sql(f"SELECT id FROM events WHERE {c}").inputFiles()]
    with hr.log(spark, copy):
        kept = [spark.sql(f"SELECT id FROM events WHERE {condition}").collect() for condition in asked]
    logged = entries(spark, copy)
    assert [entry.rows_kept for entry in logged] == list(map(len, kept))
    noted = [condition for entry in logged for condition in entry.conditions]
    assert [found.rows for found in answers(spark.table("events"), noted)] == list(map(len, kept))
    workload = hr.logged(spark, copy, "events")
    assert not workload.skipped and sum(query.weight for query in workload) == len(asked)
    direct = hr.Workload.from_sql([f"SELECT id FROM events WHERE {condition}" for condition in asked])
    assert report(spark, copy).workload.filtered == 1
    layout = hr.learn(spark, copy, workload, options=hr.LearnOptions(block_rows=500), table="events")
    usual = hr.learn(spark, copy, direct, options=hr.LearnOptions(block_rows=500), table="events")
    read = [hr.score(spark, copy, direct, one, exact=True).rows_read for one in (layout, usual)]
    assert read[0] <= read[1] + 0.1  # what Spark made of the queries serves as well as their texts


def test_what_is_noted_of_a_query(spark: SparkSession, copy: str) -> None:
    spark.read.parquet(copy).createOrReplaceTempView("events")
    size = sum(file.stat().st_size for file in Path(copy).glob("*.parquet"))
    with hr.log(spark, copy) as log:
        before = datetime.now(timezone.utc)
        spark.sql("SELECT a.id FROM events a JOIN events b ON a.id = b.id WHERE a.id < 10 AND b.id < 0").collect()
        spark.sql("SELECT count(*) FROM events WHERE id < 5 AND id >= (SELECT min(id) FROM events)").collect()
        spark.range(5).collect()
        own = hr.Workload.from_sql(["SELECT id FROM events WHERE id < 99"])
        hr.score(
            spark, copy, own, hr.learn(spark, copy, own, options=hr.LearnOptions(block_rows=5000))
        )  # these queries are not the user's
        spark.newSession().read.parquet(copy).count()
        assert log.flush() == 2 and log.flush() == 0 and log.lost == 0
    joined, nested = entries(spark, copy)
    assert len(joined.conditions) == 2 and joined.rows_kept <= 10 and joined.columns == ["id"]
    assert any("id < 5" in condition for condition in nested.conditions) and "TRUE" in nested.conditions
    assert nested.files > 0 and 0 < nested.bytes <= 2 * size and nested.seconds > 0 and not nested.redacted
    assert joined.at.timestamp() >= before.timestamp() - 1


def test_the_keys_of_joins(spark: SparkSession, copy: str) -> None:
    """The rows of each query have a key that was noted, and what is learned from the log has the keys, too."""
    spark.read.parquet(copy).createOrReplaceTempView("events")
    sides = {
        "few": "SELECT explode(sequence(3L, 699L, 70L)) AS key",
        "ranges": "SELECT CAST(id AS INT) AS key FROM range(2000) WHERE id % 500 < 150",
        "nulls": "SELECT IF(id < 5, id, NULL) AS key FROM range(9)",
        "texts": "SELECT concat('a', id) AS key FROM range(40)",
        "beyond": "SELECT explode(sequence(5000000000, 5000000009)) AS key",
    }
    asked = [
        ("few", "events e JOIN side ON e.id = key", True),
        ("ranges", "events e LEFT SEMI JOIN side ON e.id = key WHERE e.id < 900", True),
        ("nulls", "side JOIN events e ON e.id = key", True),
        ("texts", "events e JOIN side ON e.word = key", True),
        ("beyond", "events e JOIN side ON e.number = key", False),  # an INT has none of these
        ("few", "events e LEFT JOIN side ON e.id = key", False),
        ("few", "(SELECT * FROM events ORDER BY id LIMIT 9) e JOIN side ON e.id = key", False),
    ]
    kept = []
    with hr.log(spark, copy):
        for side, query, _ in asked:
            spark.sql(sides[side]).createOrReplaceTempView("side")
            kept.append({row.id for row in spark.sql(f"SELECT /*+ BROADCAST(side) */ e.id FROM {query}").collect()})
    noted = entries(spark, copy)
    for (_, query, is_known), entry, rows in zip(asked, noted, kept, strict=True):
        assert [bool(keys) for keys in entry.keys] == [is_known], query
        if is_known:
            found = spark.sql(f"SELECT id FROM events WHERE {entry.keys[0]}").collect()
            assert rows <= {row.id for row in found} and len(found) < spark.table("events").count(), query
    assert noted[0].keys == [f"(id IN ({', '.join(f'{n}L' for n in range(3, 700, 70))}))"]
    learned_from = list(hr.logged(spark, copy, "events"))
    assert any("213" in str(query.predicate("events")) for query in learned_from)
    assert not any("213" in str(query.written("events")) for query in learned_from)
    assert {query.keyed for query in learned_from} == {(), ("id",), ("word",)}


def test_another_session_stays_active(spark: SparkSession, delta: SparkSession, tmp_path: Path) -> None:
    """Spark reads the text of a condition, and Delta its settings, as the active session says."""
    table, own = str(tmp_path / "d"), spark.newSession()
    spark.range(5).write.format("delta").save(table)
    active: Any = spark._jvm.org.apache.spark.sql.classic.SparkSession  # type: ignore[union-attr]
    active.setActiveSession(spark._jsparkSession)
    with hr.log(own, table):
        own.read.format("delta").load(table).where("id < 3").collect()
    assert len(entries(spark, table)) == 1
    assert active.getActiveSession().get().equals(spark._jsparkSession)


@pytest.mark.long
@pytest.mark.parametrize("form", ["path", "name", "parquet name"])
def test_tables_of_all_kinds(spark: SparkSession, delta: SparkSession, tmp_path: Path, form: str) -> None:
    name = f"logged_{form.replace(' ', '_')}"
    kind = "parquet" if form == "parquet name" else "delta"
    place = str(tmp_path / "d")
    frame = spark.range(100).selectExpr("id", "id % 5 AS five").write.format(kind).partitionBy("five")
    frame.save(place) if form == "path" else frame.mode("overwrite").saveAsTable(name)
    table, read = (place, f"delta.`{place}`") if form == "path" else (name, name)
    try:
        with hr.log(spark, {"t": table}):
            assert spark.sql(f"SELECT id FROM {read} WHERE five = 3 AND id > 50").count() == 10
        (entry,) = entries(spark, table)
        assert entry.rows_kept == 10 and entry.columns == ["five", "id"] and entry.files <= 2
        found = report(spark, table)
        assert found.partitions == ["five"] and found.workload.on_partitions == 1
        assert spark.sql(f"SELECT count(*) FROM {read}").first()[0] == 100  # the log is no part of the table
    finally:
        if form != "path":
            spark.sql(f"DROP TABLE {name}")


@pytest.mark.long
def test_a_managed_table(spark: SparkSession, events: str, tmp_path: Path) -> None:
    workload = hr.Workload.from_sql([f"SELECT id FROM events WHERE {c}" for c in conditions(1, 20)])
    place = str(tmp_path / "managed")
    table = hr.apply(spark, events, hr.learn(spark, events, workload, options=hr.LearnOptions(block_rows=500)), place)
    spark.read.parquet(place).createOrReplaceTempView("managed")
    with attached_to(spark), hr.log(spark, place):
        found = spark.sql("SELECT id FROM managed WHERE id < 20").collect()
        scan = hr.last_query(spark)[0]
    (entry,) = entries(spark, place)
    assert (entry.files, entry.rows_kept) == (scan.files_opened, len(found))
    table.verify()  # the log lies beside the index and belongs to neither
    assert hr.table(spark, place).describe()["unknown_files"] == []


def test_the_kinds_of_queries_and_the_means(spark: SparkSession, events: str, tmp_path: Path) -> None:
    place, workload = str(tmp_path / "kinds"), hr.Workload.from_sql("SELECT id FROM events WHERE id < 20")
    options = hr.LearnOptions(block_rows=500)
    hr.apply(spark, events, hr.learn(spark, events, workload, "range", options, columns=["id"]), place)
    spark.read.parquet(place).createOrReplaceTempView("managed")
    asked = {
        "SELECT id FROM managed WHERE id < 20": ("where", "where"),
        "SELECT id FROM managed ORDER BY id DESC LIMIT 3": ("top-k", "top-k"),
        "SELECT id FROM managed WHERE id > 700 LIMIT 3": ("limit", "limit"),
        "SELECT count(*), max(id) FROM managed WHERE id > 700": ("aggregates", "aggregates"),
        "SELECT count(*) AS n, max(id) FROM managed WHERE id % 7 = 3": ("aggregates", ""),
        "SELECT a.id FROM managed a JOIN managed b ON a.id = b.id + 1 WHERE b.id < 5 LIMIT 1": ("where", "where"),
    }
    with attached_to(spark), hr.log(spark, place):
        for sql in asked:
            spark.sql(sql).collect()
    logged = entries(spark, place)
    assert [({*entry.kinds}, {*entry.means} - {""}) for entry in logged] == [
        ({kind}, {means} - {""}) for kind, means in asked.values()
    ]
    assert all(
        (entry.files < entry.files_listed) == (means != "")
        for entry, (_, means) in zip(logged, asked.values(), strict=True)
    )
    found = report(spark, place)
    assert found.kinds == {"aggregates": 2 / 6, "where": 2 / 6, "limit": 1 / 6, "top-k": 1 / 6}
    assert found.skipped.keys() == {"where", "top-k", "limit", "aggregates"} and min(found.skipped.values()) > 0.5


@pytest.mark.long
def test_a_log_does_not_make_a_table_look_half_written(spark: SparkSession, copy: str) -> None:
    """Or another table could be written over it. When that is asked for, the log stays."""
    QueryLog.of(spark, copy).append([entry_of(1)])
    before = spark.read.parquet(copy).count()
    layout = hr.learn(
        spark,
        copy,
        hr.Workload.from_sql(["SELECT id FROM events WHERE id < 99"]),
        options=hr.LearnOptions(block_rows=5000),
    )
    other = spark.read.parquet(copy).where("id < 50")
    with pytest.raises(HedgerowError, match="is not empty"):
        hr.apply(spark, other, layout, copy)
    with pytest.raises(HedgerowError, match="no layout of Hedgerow in it"):
        hr.table(spark, copy)
    assert spark.read.parquet(copy).count() == before
    rows = spark.createDataFrame(other.toArrow())  # the source is what is replaced
    assert hr.apply(spark, rows, layout, copy, overwrite=True).verify()["rows"] == 50
    assert [entry.query for entry in entries(spark, copy)] == ["q1"]


def test_redacted(spark: SparkSession, copy: str) -> None:
    spark.read.parquet(copy).createOrReplaceTempView("events")
    for _ in range(2):
        with hr.log(spark, copy, redact="our key"):
            spark.sql("SELECT id FROM events WHERE id = 77 AND id <> 78").collect()
    first, second = entries(spark, copy)
    assert first.redacted and first.conditions == second.conditions and "#" in first.conditions[0]
    assert "77" not in first.conditions[0].replace("#", "") or "77" in first.conditions[0].partition("#")[2]
    with pytest.raises(WorkloadError, match="its literals were redacted"):
        hr.logged(spark, copy)


@pytest.mark.long
def test_a_process_that_is_killed(spark: SparkSession, copy: str, tmp_path: Path) -> None:
    """Another process runs queries and is killed; what it had taken from the JVM is in the next log."""
    program = f"""
import time
import hedgerow as hr
from hedgerow.pipeline import log
from hedgerow.spark.start.session import local_session
log._TAKEN_EVERY = 0.1
spark = local_session("1g", "local[1]")
noted = hr.log(spark, {copy!r})
spark.read.parquet({copy!r}).createOrReplaceTempView("events")
spark.sql("SELECT count(*) FROM events WHERE id < 11").collect()
noted._listener.wait()
time.sleep(2)
print("now", flush=True)
time.sleep(100)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "now\n"
        process.send_signal(signal.SIGKILL)
    with hr.log(spark, copy):
        pass
    (entry,) = entries(spark, copy)
    assert entry.conditions == ["(id < 11L)"]


def entry_of(number: int) -> dict[str, Any]:
    counts = dict.fromkeys(("files", "files_listed", "bytes", "rows", "rows_kept"), 1)
    texts = {
        "query": f"q{number}",
        "source": "session",
        "conditions": [f"id < {number}"],
        "keys": [""],
        "joins": [""],
        "columns": ["id"],
    }
    kinds = {"kinds": ["where"], "means": ["where"]}
    return {**texts, **counts, **kinds, "at": 1_700_000_000_000 + number, "seconds": 0.1, "redacted": False}


def test_rubbish_is_passed_over(spark: SparkSession, copy: str, tmp_path: Path) -> None:
    """Spilled lines that are not whole, and files in the log's folder that are none of ours."""
    log, folder = QueryLog.of(spark, copy), tmp_path / "waiting"
    folder.mkdir()
    lines: Sequence[str] = [json.dumps(entry_of(1)), '{"query": "q', "[1, 2]", json.dumps({**entry_of(2), "at": "x"})]
    lines = [*lines, json.dumps({**entry_of(3), "conditions": 5}), "null", '{"at": 3}', json.dumps(entry_of(4))[:-9]]
    (folder / "left.jsonl").write_text("\n".join(lines), encoding="utf-8")
    waiting = Waiting(log, folder)
    waiting.add([entry_of(5), entry_of(5)])
    assert waiting.append_to(log) == 3
    waiting.close()
    assert not list(folder.iterdir())
    side = Path(copy) / "_hedgerow" / "log"
    (side / "x.parquet").write_bytes(b"no parquet at all")
    (side / "y.parquet.ab.partial").write_bytes(b"half")
    assert [entry.query for entry in entries(spark, copy)] == ["q1", "q5"]


def test_waiting_on_a_full_disk(spark: SparkSession, copy: str, tmp_path: Path) -> None:
    waiting = Waiting(QueryLog.of(spark, copy), tmp_path / "waiting")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 10, limits[1]))  # Python ignores the signal and gets an error
    try:
        with pytest.raises(HedgerowError, match=r"queries cannot be kept on this machine: .*File too large"):
            waiting.add([entry_of(i) for i in range(50)])
        waiting.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_no_place_to_wait_in(spark: SparkSession, copy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    with pytest.raises(HedgerowError, match=r"queries cannot be kept on this machine: .*Not a directory"):
        hr.log(spark, copy)


def test_a_log_that_cannot_be_written_loses_nothing(spark: SparkSession, copy: str, tmp_path: Path) -> None:
    log, folder = QueryLog.of(spark, copy), tmp_path / "waiting"
    side = Path(copy) / "_hedgerow"
    side.write_text("a file where a folder has to be")
    waiting = Waiting(log, folder)
    waiting.add([entry_of(1)])
    with pytest.raises(HedgerowError, match=r"the log .* cannot be written"):
        waiting.append_to(log)
    waiting.close()
    side.unlink()
    again = Waiting(log, folder)
    assert again.append_to(log) == 1
    again.close()
    assert [entry.query for entry in entries(spark, copy)] == ["q1"]


def test_two_logs_at_once(spark: SparkSession, copy: str, tmp_path: Path) -> None:
    """Neither takes over what the other still holds."""
    log = QueryLog.of(spark, copy)
    one, other = Waiting(log, tmp_path), Waiting(log, tmp_path)
    one.add([entry_of(1)])
    other.add([entry_of(2)])
    assert (one.append_to(log), other.append_to(log)) == (1, 1)
    one.close(), other.close()
    assert len(entries(spark, copy)) == 2


def test_what_is_refused(spark: SparkSession, copy: str, tmp_path: Path) -> None:
    for words, message in [
        ((copy, 0), "above 0"),
        ((str(tmp_path / "no"),), "cannot be read"),
        (([],), "at least one"),
    ]:
        with pytest.raises(HedgerowError, match=message):
            hr.log(spark, *words)
    with pytest.raises(HedgerowError, match=r"no queries of .* were logged"):
        hr.logged(spark, copy)
    file = next(Path(copy).glob("*.parquet"))
    with pytest.raises(HedgerowError, match="single file"):
        hr.log(spark, str(file))
    QueryLog.of(spark, copy).append([{**entry_of(1), "at": 0}])
    with pytest.raises(WorkloadError, match="has no queries since 2026"):
        hr.logged(spark, copy, since="2026-01-01")


# --- past queries ---


def test_a_time_to_come_leaves_the_others_their_weight(spark: SparkSession, copy: str) -> None:
    """As a clock that goes wrong would note it."""
    log, now = QueryLog.of(spark, copy), datetime.now(timezone.utc).timestamp() * 1e6
    log.append([{**entry_of(n), "at": round(now - n * 1e6)} for n in range(3)])
    log.append([{**entry_of(3), "at": round(now + 300_000 * 365 * 86_400e6 / 3)}])
    weights = [query.weight for query in RecentLog.read(log, 7.0).workload("events", 200)]
    assert sum(weights) == pytest.approx(4, rel=1e-3)


@pytest.mark.long
def test_logging_costs_little(spark: SparkSession, events: str) -> None:
    """Pairs of the same hundred queries, with and without a log."""
    spark.read.parquet(events).createOrReplaceTempView("events")
    asked = [f"SELECT id FROM events WHERE {c}" for c in conditions(3, 100)]

    def seconds() -> float:
        start = time.perf_counter()
        for sql in asked:
            spark.sql(sql).collect()
        return time.perf_counter() - start

    seconds()
    ratios = []
    for turn in range(6):
        took = {}
        for logs in (True, False) if turn % 2 else (False, True):
            if logs:
                with hr.log(spark, events):
                    took[logs] = seconds()
            else:
                took[logs] = seconds()
        ratios.append(took[True] / took[False])
    assert sorted(ratios)[2] < 1.02, ratios


def test_the_file_is_parquet_that_anybody_reads(spark: SparkSession, copy: str) -> None:
    log = QueryLog.of(spark, copy)
    log.append([entry_of(1)])
    (file,) = (Path(copy) / "_hedgerow" / "log").glob("*.parquet")
    assert pq.read_table(file).to_pylist()[0]["conditions"] == ["id < 1"]
