"""The autopilot comes to rest: it does not fight others' layouts."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
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
pytestmark = pytest.mark.usefixtures("seconds_follow_rows")


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
