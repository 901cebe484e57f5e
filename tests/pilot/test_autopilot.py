"""The autopilot on real tables: what it does, what it leaves alone, and what it writes down."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.core.learning.seconds import Estimate, RewriteCost, Speed
from hedgerow.pilot import autopilot, look, search
from hedgerow.pilot.autopilot import kept_options
from hedgerow.pilot.decision import Decision, Figures
from hedgerow.pilot.decision_notes import note
from hedgerow.pilot.history import History
from hedgerow.pilot.lock import table_lock
from hedgerow.pilot.settings import AutopilotSettings
from hedgerow.pipeline.calibrated_cost import calibrated_cost
from hedgerow.pipeline.learn_options import QUICK
from hedgerow.spark.storage.folder import Folder
from hedgerow.tables.query_log import QueryLog
from tests.pilot.conftest import SPEED
from tests.support.delta_tables import data_files
from tests.support.past_queries import past_query

ANY_SIZE = AutopilotSettings(least_bytes=0, least_new=0)
ALWAYS_SEARCH = replace(ANY_SIZE, search_interval=0)
YEAR = replace(ANY_SIZE, horizon=365)
LARGE_BLOCKS = replace(QUICK, block_rows=2000)
HOW: dict[str, Any] = {"options": LARGE_BLOCKS, "settings": ANY_SIZE}


def fill_log(spark: SparkSession, table: str, times: int = 40, days: float = 2.0) -> None:
    asked = [past_query(f"number < {i % 20 * 10}", days * i / times, i) for i in range(times)]
    QueryLog.of(spark, table).append(asked)


def rows(spark: SparkSession, place: str, kind: str = "delta") -> Any:
    return spark.read.format(kind).load(place).selectExpr("count(*)", "sum(hash(id, number))").first()


def actions(spark: SparkSession, table: str) -> Sequence[str]:
    return [d.action for d in reversed(hr.decisions(spark, table))]


pytestmark = pytest.mark.usefixtures("seconds_follow_rows")


@pytest.mark.long
def test_a_delta_table(spark: SparkSession, delta_table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Laid out when it pays, then left alone; later only its new files are rewritten."""
    fill_log(spark, delta_table)
    before = rows(spark, delta_table)
    first = hr.autopilot(spark, delta_table, options=LARGE_BLOCKS, settings=YEAR)
    assert first.action == "whole table" and first.done and rows(spark, delta_table) == before
    assert first.outcome is not None and first.outcome.bytes > 0
    # On a slow machine the log's 40 s would not pay for ten looks.
    again = hr.autopilot(spark, delta_table, **{**HOW, "settings": replace(ANY_SIZE, search_interval=1)})
    assert again.action == "nothing" and not again.done and "since the last look" in again.reasons[0]
    monkeypatch.setattr(History, "rewrites", [])  # how long the rewrite took is the machine's affair
    add_rows(spark, delta_table)
    grown, table = rows(spark, delta_table), hr.table(spark, delta_table)
    assert table.describe()["unknown_files"]
    third = hr.autopilot(
        spark, delta_table, options=replace(QUICK, block_rows=500), settings=replace(ALWAYS_SEARCH, horizon=365)
    )
    assert third.action == "new files" and third.outcome is not None and rows(spark, delta_table) == grown
    assert third.figures is not None and third.outcome.bytes < 0.6 * third.figures.table_bytes
    assert not hr.table(spark, delta_table).describe()["unknown_files"]
    hr.table(spark, delta_table).verify()
    assert actions(spark, delta_table) == ["whole table", "nothing", "new files"]


def test_no_kind_of_query_gets_much_slower(spark: SparkSession, delta_table: str, tmp_path: Path) -> None:
    """Delta skips by ids now, which a layout by numbers undoes."""
    place = str(tmp_path / "by_id")
    spark.read.format("delta").load(delta_table).repartitionByRange(4, "id").write.format("delta").save(place)
    fill_log(spark, place)
    QueryLog.of(spark, place).append([past_query("id BETWEEN 100 AND 200", 1.0, 40)])
    how: dict[str, Any] = {"mode": "dry_run", "settings": YEAR}
    refused = hr.autopilot(spark, place, options=LARGE_BLOCKS, **how)
    assert refused.action == "nothing" and "slower than allow_slower permits: id >= 100" in str(refused)
    allowed = hr.autopilot(spark, place, options=replace(LARGE_BLOCKS, allow_slower=100.0), **how)
    assert allowed.action == "whole table"


def add_rows(spark: SparkSession, table: str) -> None:
    """As others would, who know nothing of our layout."""
    new = spark.read.format("delta").load(table).where("id % 2 = 0")
    new.write.format("delta").mode("append").save(table)


def test_new_files_get_the_layout_there_is(
    spark: SparkSession, delta_table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as it is too soon to look for another one, and only if it still serves the queries."""
    monkeypatch.setattr(search, "learn_layout", None)  # nothing is learned
    asked = hr.Workload.from_sql(["SELECT id FROM t WHERE number < 100"])
    hr.apply(
        spark,
        delta_table,
        hr.learn(spark, delta_table, asked, "range", hr.LearnOptions(block_rows=500), columns=["number"], table="t"),
    )
    fill_log(spark, delta_table)
    monkeypatch.setattr(look, "usual_speed", lambda source: Speed(0.01, 1e-4, 1e-4))
    long_search = Decision("nothing", (), search_seconds=1e9)
    note(Folder(spark, delta_table), long_search)
    add_rows(spark, delta_table)
    grown, table = rows(spark, delta_table), hr.table(spark, delta_table)
    new = set(table.describe()["unknown_files"])
    old = set(table.files()) - new
    assert new and hr.autopilot(spark, delta_table, settings=AutopilotSettings(least_bytes=0)).action == "nothing"
    found = hr.autopilot(spark, delta_table, settings=YEAR)
    assert found.action == "new files" and found.done and found.search_seconds == 0, found
    assert "to look for a layout took" in found.reasons[0]
    now = hr.table(spark, delta_table)
    written = set(now.files()) - old
    assert rows(spark, delta_table) == grown
    assert old < set(now.files()) and not written & new and not now.describe()["unknown_files"]
    assert 0 < len(written & set(now.files("number < 50"))) < len(written)
    now.verify()
    add_rows(spark, delta_table)
    QueryLog.of(spark, delta_table).append([past_query(f"id % 7 = {i % 7}", 0, 100 + i) for i in range(4000)])
    assert hr.autopilot(spark, delta_table, settings=YEAR).action == "nothing"
    assert actions(spark, delta_table) == ["nothing", "nothing", "new files", "nothing"]


@pytest.mark.long
def test_of_a_table_of_others_the_files_that_queries_read(
    spark: SparkSession, delta: SparkSession, tmp_path: Path
) -> None:
    """Delta's own statistics tell that queries for the newest rows open few of its files: only these are laid out."""
    place = str(tmp_path / "by_id")
    frame = delta.range(0, 8000, 1, 8).selectExpr("id", "pmod(hash(id), 1000) AS number", "repeat('x', 50) AS text")
    frame.write.format("delta").save(place)
    before, old = rows(spark, place), set(delta.read.format("delta").load(place).inputFiles())
    QueryLog.of(spark, place).append(
        [past_query(f"id >= 6000 AND number < {i % 20 * 10}", i / 20, i) for i in range(40)]
    )
    found = hr.autopilot(spark, place, options=replace(QUICK, block_rows=250), settings=YEAR)
    assert found.action == "worst files" and found.done, found
    kept = old & set(delta.read.format("delta").load(place).inputFiles())
    assert len(old) == 8 and len(kept) == 6 and rows(spark, place) == before
    hr.table(spark, place).verify()


@pytest.mark.long
def test_the_worst_files_alone(spark: SparkSession, delta_table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries for the newest rows: only the files of these are laid out anew, and not again soon after."""
    monkeypatch.setattr(History, "rewrites", [])  # how long the rewrite took is the machine's affair
    asked = hr.Workload.from_sql(["SELECT id FROM t WHERE id < 1000"])
    hr.apply(
        spark,
        delta_table,
        hr.learn(spark, delta_table, asked, "range", hr.LearnOptions(block_rows=1000), columns=["id"], table="t"),
    )
    QueryLog.of(spark, delta_table).append(
        [past_query(f"id >= 6000 AND number < {i % 20 * 10}", i / 20, i) for i in range(40)]
    )
    table, before = hr.table(spark, delta_table), rows(spark, delta_table)
    files, newest = set(table.files()), set(table.files("id >= 6000"))
    assert 0 < len(newest) <= 3 < len(files)
    found = hr.autopilot(spark, delta_table, options=replace(QUICK, block_rows=250), settings=ALWAYS_SEARCH)
    assert found.action == "worst files" and found.done and rows(spark, delta_table) == before
    now = hr.table(spark, delta_table)
    assert files - set(now.files()) == newest
    assert len(now.files("id >= 6000 AND number < 50")) < len(now.files("id >= 6000"))
    assert not now.describe()["unknown_files"]
    now.verify()
    assert found.outcome is not None and found.figures is not None
    assert found.outcome.bytes == found.figures.candidate_bytes < 0.5 * found.figures.table_bytes
    QueryLog.of(spark, delta_table).append([past_query(f"id >= 6000 AND id % 7 = {i % 7}", 0, i) for i in range(900)])
    soon = hr.autopilot(spark, delta_table, options=replace(QUICK, block_rows=250), settings=ALWAYS_SEARCH)
    assert soon.action == "nothing" and "rewritten lately" in soon.reasons[-1]


@pytest.mark.long
def test_an_index_learns_what_queries_ask_now(
    spark: SparkSession, delta_table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows lie well, but the index does not know the expression that the new queries filter on."""
    monkeypatch.setattr(look, "assumed_cost", lambda byte: RewriteCost(0.0, 1e-5))
    early = hr.Workload.from_sql([f"SELECT id FROM t WHERE number < {n}" for n in range(10, 200, 10)])
    hr.apply(
        spark, delta_table, hr.learn(spark, delta_table, early, options=hr.LearnOptions(block_rows=500), table="t")
    )
    version = hr.table(spark, delta_table).describe()["version"]
    log = QueryLog.of(spark, delta_table)
    log.append([past_query(f"number + 1 < {i % 20 * 10}", i / 20, i) for i in range(40)])
    asked = hr.logged(spark, delta_table, "t")
    assert hr.table(spark, delta_table).score(asked).rows_read == pytest.approx(1)
    decision = hr.autopilot(spark, delta_table, options=replace(QUICK, block_rows=500), settings=ANY_SIZE)
    assert decision.action == "statistics" and decision.done
    table = hr.table(spark, delta_table)
    assert table.score(asked).rows_read < 0.5 and table.describe()["version"] == version
    table.verify()


@pytest.mark.long
def test_a_parquet_table_gets_a_new_generation_beside(spark: SparkSession, parquet: str, tmp_path: Path) -> None:
    fill_log(spark, parquet)
    refused = hr.autopilot(spark, parquet, **HOW)
    assert refused.action == "whole table" and not refused.done and "say with to=" in refused.reasons[-1]
    to = str(tmp_path / "generation-2")
    done = hr.autopilot(spark, parquet, to=to, **HOW)
    assert done.done and rows(spark, to, "parquet") == rows(spark, parquet, "parquet")
    hr.table(spark, to).verify()


@pytest.mark.long
def test_two_copies_where_storage_allows_them(
    spark: SparkSession, parquet: str, delta_table: str, tmp_path: Path
) -> None:
    """Half of the queries ask for one column, half for another, which has nothing to do with it."""
    for table in (parquet, delta_table):
        for first, (c, width) in enumerate((("id", 400), ("number", 50))):
            lows = [(i, i % 20 * width) for i in range(80)]
            asked = [past_query(f"{c} >= {low} AND {c} < {low + width}", i / 80, 2 * i + first) for i, low in lows]
            QueryLog.of(spark, table).append(asked)
    how: dict[str, Any] = {"settings": YEAR, "options": replace(QUICK, block_rows=250, storage=2)}
    one = hr.autopilot(spark, parquet, mode="dry_run", **{**how, "options": replace(QUICK, block_rows=250)})
    to = str(tmp_path / "generation-2")
    done = hr.autopilot(spark, parquet, to=to, **how)
    assert done.done and "the layout is for 2 copies of the table" in done.reasons, done
    assert done.outcome is not None and done.figures is not None
    assert done.outcome.bytes == 2 * done.figures.table_bytes
    assert list(hr.table(spark, to).replicas) == ["tree-2"] and hr.table(spark, to).verify()
    assert rows(spark, to, "parquet") == rows(spark, parquet, "parquet")
    assert one.figures is not None and one.figures.seconds_then > done.figures.seconds_then
    assert done.figures.seconds_per_byte > one.figures.seconds_per_byte  # two copies are written
    delta = hr.autopilot(spark, delta_table, mode="dry_run", **how)
    assert any("a Delta table cannot have replicas" in reason for reason in delta.reasons)


@pytest.mark.long
def test_what_is_left_alone(spark: SparkSession, delta_table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(hr.HedgerowError, match="no queries of"):
        hr.autopilot(spark, delta_table, **HOW)
    fill_log(spark, delta_table)
    small = hr.autopilot(spark, delta_table, options=LARGE_BLOCKS)
    assert small.action == "nothing" and "too little to gain" in small.reasons[0]

    def look_again(days: float, **changed: Any) -> Decision:
        settings = replace(ALWAYS_SEARCH, horizon=days)
        return hr.autopilot(spark, delta_table, options=LARGE_BLOCKS, settings=settings, **changed)

    rare = look_again(0.001)
    assert rare.action == "nothing" and "takes" in rare.reasons[0]
    with pytest.raises(hr.HedgerowError, match="mto learns from several tables"):
        look_again(1e6, learner="mto")
    with monkeypatch.context() as patch:
        patch.setattr(search, "learn_layout", None)  # there is no need to learn
        rarer = look_again(1e-6)
    assert rarer.action == "nothing" and "even if queries found nothing to read: whole table: saves" in rarer.reasons[0]
    assert rarer.figures is not None and rarer.figures.seconds_now > rarer.figures.seconds_then == SPEED.query
    monkeypatch.setattr("hedgerow.pipeline.learn.seconds_in", lambda *a: Estimate(1.0, 0.99))
    alike = look_again(1e6)
    assert alike.action == "nothing"  # within the error of the estimates


def test_the_same_facts_give_the_same_decision(
    spark: SparkSession, delta_table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dry run promises what the run then does: neither times anything, however busy the machine is."""
    monkeypatch.setattr("hedgerow.spark.compute.measure_speed._seconds", None)
    fill_log(spark, delta_table)
    dry, again = (hr.autopilot(spark, delta_table, mode="dry_run", **HOW) for _ in range(2))
    done = hr.autopilot(spark, delta_table, **HOW)
    assert dry.action == "whole table" and done.done
    for other in (again, done):
        assert (dry.action, dry.reasons, dry.gain, dry.cost) == (other.action, other.reasons, other.gain, other.cost)
        assert dry.figures == other.figures


@pytest.mark.long
def test_dry_run_and_shadow(spark: SparkSession, delta_table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_log(spark, delta_table)
    files = data_files(delta_table)
    dry = hr.autopilot(spark, delta_table, mode="dry_run", **HOW)
    assert dry.action == "whole table" and not dry.done and not hr.decisions(spark, delta_table)
    shadow = hr.autopilot(spark, delta_table, mode="shadow", **HOW)
    assert shadow.action == "whole table" and not shadow.done and hr.decisions(spark, delta_table) == [shadow]
    assert data_files(delta_table) == files
    assert {p.name for p in (Path(delta_table) / "_hedgerow").iterdir()} == {"log", "decisions"}


def test_the_lock_lets_one_work_at_a_time(spark: SparkSession, delta_table: str) -> None:
    fill_log(spark, delta_table)
    lock = Path(delta_table) / "_hedgerow" / "auto.lock"
    host = os.uname().nodename
    holder = {"host": host, "process": os.getpid(), "at": datetime.now(timezone.utc).isoformat(), "id": "x"}
    lock.write_text(json.dumps(holder))
    held = hr.autopilot(spark, delta_table, **HOW)
    assert held.action == "nothing" and f"process {os.getpid()} on {host}" in held.reasons[0]
    assert lock.exists() and not hr.decisions(spark, delta_table)
    with pytest.raises(hr.HedgerowError, match=f"another calibration or autopilot .* process {os.getpid()}"):
        hr.calibrate(spark, delta_table)
    folder = Folder(spark, delta_table)
    for left_behind in (
        {**holder, "process": 2**22 - 3},
        {"host": "elsewhere"},
        {**holder, "host": "x", "at": "2020-01-01T00:00:00+00:00"},
    ):
        lock.write_text(json.dumps(left_behind))
        (lock.parent / "calibrate-0a1b2c3d").mkdir()
        with table_lock(folder) as other:
            assert other is None and not (lock.parent / "calibrate-0a1b2c3d").exists()
        assert not lock.exists()


def test_it_follows_a_table_until_it_is_told_to_end(
    spark: SparkSession, delta_table: str, parquet: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks at once, and again at each version: its own rewrite needs nothing more, nor do other rows."""
    monkeypatch.setattr(History, "rewrites", [])  # how long the rewrite took is the machine's affair
    fill_log(spark, delta_table)
    table_rows, told = rows(spark, delta_table)[0], list[Decision]()

    def tell(decision: Decision) -> None:
        told.append(decision)
        if len(told) == 2:
            add_rows(spark, delta_table)
        if len(told) == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    how = {**HOW, "settings": replace(YEAR, pause=0.1, seconds_per_hour=3600.0, least_new=1e9)}
    last = hr.autopilot(spark, delta_table, follow=True, tell=tell, **how)
    assert [decision.action for decision in told] == ["whole table", "nothing", "nothing"], told
    assert last == told[-1] and told[0].done and rows(spark, delta_table)[0] == 1.5 * table_rows
    assert [d.action for d in hr.decisions(spark, delta_table)] == ["nothing", "whole table"]  # of a wait the last only
    assert not (Path(delta_table) / "_hedgerow" / "auto.lock").exists()
    with pytest.raises(hr.HedgerowError, match="follow= is for Delta tables"):
        hr.autopilot(spark, parquet, follow=True)


@pytest.mark.long
def test_damaged_notes_are_left_out(spark: SparkSession, delta_table: str) -> None:
    fill_log(spark, delta_table)
    kept = hr.autopilot(spark, delta_table, mode="shadow", **HOW)
    folder = Path(delta_table) / "_hedgerow" / "decisions"
    for number, text in enumerate(["", "[]", '{"at": "yesterday"}', json.dumps({"at": "x", "reasons": []})]):
        (folder / f"{number}.json").write_text(text)
    (noted,) = (path for path in folder.glob("*.json") if kept.at.replace(":", "") in path.name)
    shorter = folder / f"9{noted.name}"
    for path, name in ((noted, shorter), (folder / f".{noted.name}.crc", folder / f".{shorter.name}.crc")):
        name.write_bytes(path.read_bytes())
    shorter.write_text("{}")  # Hadoop's checksum beside it is that of another text
    assert hr.decisions(spark, delta_table) == [kept]


@pytest.mark.long
def test_a_rewrite_that_fails_is_noted(spark: SparkSession, delta_table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*args: Any, **named: Any) -> None:
        raise hr.HedgerowError("somebody else was faster")

    fill_log(spark, delta_table)
    monkeypatch.setattr(autopilot, "apply", failing)
    with pytest.raises(hr.HedgerowError, match="somebody else"):
        hr.autopilot(spark, delta_table, **HOW)
    (noted,) = hr.decisions(spark, delta_table)
    assert not noted.done and noted.reasons[-1] == "it failed: somebody else was faster"
    assert not (Path(delta_table) / "_hedgerow" / "auto.lock").exists()


def test_no_more_is_saved_than_queries_take(spark: SparkSession, delta_table: str) -> None:
    """By the log they take less than was measured here; of some it does not tell what they took."""
    log = QueryLog.of(spark, delta_table)
    asked = [past_query(f"number < {n}", 0, n) for n in range(40)]
    log.append([{**entry, "seconds": None if n % 2 else 0.02} for n, entry in enumerate(asked)])
    found = hr.autopilot(spark, delta_table, mode="dry_run", options=LARGE_BLOCKS, settings=YEAR)
    assert found.figures is not None and found.figures.seconds_now == pytest.approx(0.02)
    assert 0 < found.figures.seconds_then < 0.02


@pytest.mark.long
def test_seconds_are_those_of_queries_that_are_still_asked(spark: SparkSession, delta_table: str) -> None:
    """After a change the fast queries of before do not make the new ones seem fast."""
    gone = [past_query("id = 7 AND number = 1", 8 + n % 8, n) for n in range(160)]
    new = [past_query(f"number < {n}", n % 4, 1000 + n) for n in range(40)]
    log = QueryLog.of(spark, delta_table)
    log.append([{**entry, "seconds": 0.02 if entry in new else 0.001} for entry in (*gone, *new)])
    found = hr.autopilot(spark, delta_table, mode="dry_run", options=LARGE_BLOCKS, settings=YEAR)
    assert found.figures is not None and 0.015 < found.figures.seconds_now < 0.02


@pytest.mark.long
def test_a_few_megabytes_of_a_table_have_seconds_too(
    spark: SparkSession, delta_table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table so small is not measured; some files of a large one, whose speed is known, were told to be unknown."""
    monkeypatch.setattr("hedgerow.pipeline.estimate_seconds.SMALL_TABLE_BYTES", 1 << 40)
    fill_log(spark, delta_table)
    found = hr.autopilot(spark, delta_table, mode="dry_run", options=LARGE_BLOCKS, settings=YEAR)
    assert found.action == "whole table", found


def estimated(now: float, queries: float = 10.0) -> Figures:
    """The figures of a decision after which a query takes this many seconds."""
    return Figures(1e9, 1e9, queries, now, now, 0.0)


def forty_seconds_lately(spark: SparkSession, table: str) -> datetime:
    """Fills the log: 200 queries long ago, and 40 since the time that is returned, of a second each."""
    log, begun = QueryLog.of(spark, table), datetime.now(timezone.utc) - timedelta(days=1)
    log.append([past_query(f"number < {n}", 20, 100 + n) for n in range(200)])
    log.append([past_query(f"number < {n}", 0, n) for n in range(40)])
    return begun


@pytest.fixture
def search_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autopilot, "decide", lambda look, begun: (Decision("nothing", ("searched",)), None))


@pytest.mark.usefixtures("search_ends_at_once")
@pytest.mark.parametrize(("estimate", "too_soon"), [(0.9, True), (0.5, False)])
def test_queries_that_take_longer_than_estimated_bring_a_search(
    spark: SparkSession, delta_table: str, estimate: float, too_soon: bool
) -> None:
    """Sooner than those that take what the last look expected: 40 of them took a second each, and the look five."""
    begun = forty_seconds_lately(spark, delta_table).isoformat()
    last = Decision("nothing", (), estimated(estimate), search_seconds=5.0, at=begun)
    note(Folder(spark, delta_table), last)
    found = hr.autopilot(spark, delta_table, mode="dry_run", **HOW)
    assert ("since the last look queries took 40 s" in found.reasons[0]) == too_soon, found
    assert ("searched" in found.reasons) != too_soon, found


@pytest.mark.usefixtures("search_ends_at_once")
def test_a_decision_of_a_time_to_come_is_left_out(spark: SparkSession, delta_table: str) -> None:
    """Noted by a machine whose clock was wrong: since then queries would take no seconds for years."""
    forty_seconds_lately(spark, delta_table)
    at = (datetime.now(timezone.utc) + timedelta(days=4000)).isoformat()
    note(Folder(spark, delta_table), Decision("nothing", (), estimated(0.9), search_seconds=1.5, at=at))
    assert hr.autopilot(spark, delta_table, mode="dry_run", **HOW).reasons == ("searched",)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["parquet", "delta_table"])
def test_small_rewrites_tell_what_a_large_one_takes(spark: SparkSession, request: Any, kind: str) -> None:
    table = request.getfixturevalue(kind)
    fill_log(spark, table)
    format_ = "delta" if kind == "delta_table" else kind
    before = rows(spark, table, format_)
    cost = hr.calibrate(spark, table, options=replace(QUICK, block_rows=500))
    assert min(cost.fixed, cost.byte, cost.item) >= 0 and cost.seconds(1 << 30, 10) > 0
    side = Path(table, "_hedgerow")
    assert sorted(p.name for p in side.iterdir() if not p.name.startswith(".")) == ["log", "rewrite_cost.json"]
    assert rows(spark, table, format_) == before
    priced = hr.autopilot(spark, table, mode="dry_run", options=LARGE_BLOCKS, settings=replace(ANY_SIZE, price=36.0))
    assert priced.figures is not None and priced.figures.fixed_seconds == pytest.approx(cost.fixed)
    assert priced.figures.seconds_per_byte >= cost.byte and "(" in priced.reasons[-1]
    (side / "rewrite_cost.json").write_text("rubbish")
    without = hr.autopilot(spark, table, mode="dry_run", **HOW)
    assert without.figures is not None and without.figures.seconds_per_byte == 1e-8  # of `seconds_follow_rows`
    (side / ".rewrite_cost.json.crc").unlink()
    for text in (
        "rubbish",
        "[1]",
        '{"fixed": 1}',
        *(f'{{"fixed": 1, "byte": {x}, "item": 0}}' for x in ("[]", -1, "NaN")),
    ):
        (side / "rewrite_cost.json").write_text(text)
        assert calibrated_cost(Folder(spark, table)) is None


def test_the_options_for_writing_are_kept(spark: SparkSession, parquet: str, tmp_path: Path) -> None:
    asked = hr.Workload.from_sql(["SELECT id FROM events WHERE number < 100"])
    learned = hr.learn(spark, parquet, asked, options=hr.LearnOptions(block_rows=500))
    given = hr.WriteOptions(700, ["id"], {"compression": "zstd"}, lookup_share=0.2, file_bytes="1GB")
    for options in (given, hr.WriteOptions()):
        table = hr.apply(spark, parquet, learned, str(tmp_path / "t"), options, overwrite=True)
        again = hr.apply(spark, parquet, learned, str(tmp_path / "again"), kept_options(table), overwrite=True)
        assert again.newest.entry.writing == table.newest.entry.writing
        assert (again.newest.entry.writing.blocks_per_file > 1) == (options is given)
