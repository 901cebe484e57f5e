"""The autopilot comes to rest: right after a rewrite it proposes nothing, and it does not fight others' layouts."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.pilot.autopilot import Mode
from hedgerow.pilot.decision import Decision
from hedgerow.pilot.history import History
from hedgerow.pilot.settings import AutopilotSettings
from hedgerow.pipeline.learn_options import QUICK
from hedgerow.spark.start.session import temporary_settings
from hedgerow.tables.query_log import QueryLog
from tests.support.past_queries import past_query

# No limit keeps it from rewriting again, and no search is too soon.
RESTLESS = AutopilotSettings(
    least_bytes=0, least_new=0, horizon=365, search_interval=0, cooldown=0, rewrites=float("inf")
)
_SHAPES = (
    "number < {n}",
    "number >= {n} AND number < {n} + 20",
    "id >= {i} AND id < {i} + 400",
    "price > {p}",
    "day >= DATE '2024-0{d}-11'",
    "id % 7 = {w}",
    "number IN ({n}, {m})",
    "id < {i} AND price < {p}",
    "number < {n} OR id > {i}",
)
SHORT, ALL = {*range(10), 15}, 200  # 15: statistics of a tiny table cost next to nothing

pytestmark = pytest.mark.usefixtures("seconds_follow_rows")


def fill_log(spark: SparkSession, table: str, r: Random) -> None:
    """A random history: some shapes, old and new, with literals that recur or do not."""
    chosen, asked = r.sample(_SHAPES, r.randint(1, 4)), []
    for shape in chosen:
        begun, ended = sorted((r.uniform(0, 20), r.uniform(0, 20)))
        few = [_literals(r) for _ in range(r.choice((1, 3, 40)))]
        for _ in range(r.randint(5, 60)):
            condition = shape.format(**r.choice(few))
            asked.append(past_query(condition, r.uniform(begun, ended), len(asked)))
    QueryLog.of(spark, table).append(asked)


def _literals(r: Random) -> dict[str, int]:
    return {
        "n": r.randrange(200),
        "m": r.randrange(200),
        "i": r.randrange(8000),
        "p": r.randrange(100),
        "d": r.randint(1, 5),
        "w": r.randrange(7),
    }


@pytest.mark.parametrize("seed", [s if s in SHORT else pytest.param(s, marks=pytest.mark.long) for s in range(ALL)])
def test_right_after_a_rewrite_it_proposes_nothing(
    spark: SparkSession, delta_table: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """With another seed it may learn a better layout, but then it does not go back: layouts never take turns."""
    monkeypatch.setattr(History, "rewrites", [])  # how long the rewrite took is the machine's affair
    r = Random(seed)
    fill_log(spark, delta_table, r)
    options = replace(QUICK, block_rows=r.choice((250, 1000, 2000)))

    def look(other: int, mode: Mode = "dry_run") -> Decision:
        return hr.autopilot(
            spark, delta_table, mode=mode, settings=RESTLESS, options=replace(options, seed=options.seed + other)
        )

    first, again = look(0, "run"), look(0)
    assert again.action == "nothing", (first, first.figures, again, again.figures)
    better = look(1, "run")
    if better.done:
        for other in (1, 0):
            again = look(other)
            assert again.action == "nothing", (other, better, better.figures, again, again.figures)


def test_it_stands_back_from_what_others_do(
    spark: SparkSession, delta_table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it lays out anew what a ZORDER has replaced, and names that; the second time it says why it does not."""
    monkeypatch.setattr(History, "rewrites", [])
    QueryLog.of(spark, delta_table).append([past_query(f"number < {n % 20 * 10}", n / 20, n) for n in range(40)])
    how: dict[str, Any] = {"settings": RESTLESS, "options": replace(QUICK, block_rows=2000)}

    def others() -> None:
        with temporary_settings(spark, {"spark.databricks.delta.optimize.maxFileSize": "20000"}):
            spark.sql(f"OPTIMIZE delta.`{delta_table}` ZORDER BY (id)").collect()

    first = hr.autopilot(spark, delta_table, **how)
    others()
    second = hr.autopilot(spark, delta_table, **how)
    assert first.done and second.done
    assert re.search(r"OPTIMIZE ZORDER BY \(id\) in version \d has replaced its layout", str(second)), second
    others()
    third = hr.autopilot(spark, delta_table, **how)
    assert third.action == "nothing", third
    assert str(third).count("ZORDER BY (id)") == 2 and "stands back" in str(third)
    how["settings"] = replace(RESTLESS, stand_back=3)
    assert hr.autopilot(spark, delta_table, mode="dry_run", **how).action != "nothing"
