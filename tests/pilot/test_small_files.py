"""Files that inserts leave in each block are joined: seldom enough, and only where queries open them."""

from __future__ import annotations

from math import inf, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.core.learning.seconds import Speed
from hedgerow.pilot import look, search
from hedgerow.pilot.decision import Decision
from hedgerow.pilot.decision_notes import note
from hedgerow.pilot.settings import AutopilotSettings
from hedgerow.pilot.small_files import runs_to_join
from hedgerow.spark.storage.folder import Folder
from hedgerow.tables.query_log import QueryLog
from tests.support.past_queries import past_query

BLOCKS = 4
inserts = st.lists(st.lists(st.floats(1, 100), min_size=BLOCKS, max_size=BLOCKS), min_size=1, max_size=60)


@given(inserts, st.sampled_from([1.0, 3.0, inf]), st.integers(2, 6))
def test_bytes_are_rewritten_seldom(inserted: list[list[float]], most: float, join_at: int) -> None:
    """All files that may be joined are joined after each insert."""
    settings = AutopilotSettings(new_rewrites=most, join_at=join_at)
    blocks, sizes, times = np.empty(0, np.int64), np.empty(0), np.empty(0)
    for files in inserted:
        blocks = np.append(blocks, np.arange(BLOCKS))
        sizes, times = np.append(sizes, files), np.append(times, np.zeros(BLOCKS))
        for run in list(runs_to_join(blocks, sizes, times, settings)):
            assert len(run) >= join_at and len(set(blocks[run])) == 1
            assert sizes[run].max() <= sizes[run].sum() / 2
        runs = list(runs_to_join(blocks, sizes, times, settings))
        joined = np.concatenate([*runs, np.empty(0, np.int64)])
        assert len(joined) == len(set(joined))
        more = [(blocks[run[0]], sizes[run].sum(), times[run].max() + 1) for run in runs]
        keep = np.setdiff1d(np.arange(len(blocks)), joined)
        blocks, sizes, times = (
            np.append(old[keep], np.array([new[i] for new in more], old.dtype))
            for i, old in enumerate((blocks, sizes, times))
        )
        assert times.max() <= min(most, log2(100 * 100 * len(inserted)))
    if most == inf:
        assert np.bincount(blocks).max() <= join_at * (2 + log2(100 * 100 * len(inserted)))
    total = sum(map(sum, inserted))
    assert abs(sizes.sum() - total) < 1e-6 * total


def test_files_of_a_block() -> None:
    blocks = np.array([3, 3, 3, 3, 3, 9, 9, -1, -1, -1, -1])
    sizes = np.array([1.0, 1, 2, 1, 60, 1, 60, 1, 1, 1, 1])
    (run,) = runs_to_join(blocks, sizes, np.zeros(11), AutopilotSettings())
    assert sorted(run.tolist()) == [0, 1, 2, 3]
    assert not list(runs_to_join(blocks, sizes, np.full(11, 3.0), AutopilotSettings()))


@pytest.mark.usefixtures("seconds_follow_rows")
def test_inserts(spark: SparkSession, delta_table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "learn_layout", None)  # nothing is learned
    monkeypatch.setattr(look, "usual_speed", lambda source: Speed(0.01, 0.01, 1e-9))  # files take long, bytes do not
    asked = hr.Workload.from_sql(["SELECT id FROM t WHERE number < 100"])
    options = hr.LearnOptions(block_rows=2000)
    learned = hr.learn(spark, delta_table, asked, "range", options, columns=["number"], table="t")
    table = hr.apply(spark, delta_table, learned)
    asked_for = [past_query(f"number < {50 + i % 20}", i / 30, i) for i in range(60)]
    QueryLog.of(spark, delta_table).append(asked_for)
    note(Folder(spark, delta_table), Decision("nothing", (), search_seconds=1e9))  # too soon for a search
    settings = AutopilotSettings(least_bytes=0, least_new=0, horizon=365)
    some = spark.read.format("delta").load(delta_table).where("id % 20 = 0").localCheckpoint()
    for number in range(4):
        assert hr.autopilot(spark, delta_table, settings=settings).action == "nothing", number
        table = table.append(some)
    before = table.read().count()
    assert len(table.files()) == 5 * learned.blocks
    found = hr.autopilot(spark, delta_table, settings=settings)
    assert found.action == "small files" and found.done and "small files, " in found.reasons[-1], found
    table = hr.table(spark, delta_table)
    assert len(table.files("number < 50")) == 2 and len(table.files()) < 5 * learned.blocks
    assert table.read().count() == before and not table.describe()["unknown_files"]
    table.verify()
    for _ in range(2):
        last = hr.autopilot(spark, delta_table, settings=settings)
        assert last.action == "nothing"
    assert last.figures is None  # after one look at the joined files, the log alone tells that there is nothing to do
