"""`hedgerow auto` shows what the last decision was based on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.pilot.decision import Decision, Figures, Outcome
from hedgerow.pilot.decision_notes import note
from hedgerow.spark.storage.folder import Folder
from tests.support.events_table import write_events

FIGURES = Figures(9e9, 3e9, 900.0, 2.5, 0.5, 1e-7, seconds_described=1.5, fixed_seconds=5.0, bytes_rewritten=4.5e9)
DONE = Decision("worst files", ("it pays",), FIGURES, 1800.0, 300.0, 12.5, Outcome(280.0, "/lake/t", 3e9, 7))


def test_explain(spark: SparkSession, run: Callable[..., Any], tmp_path: Path) -> None:
    table = write_events(spark, str(tmp_path / "events"), 100)
    nothing = run("auto", table, "--explain")
    assert nothing.exit_code == 1 and "has decided nothing about" in nothing.output
    note(Folder(spark, table), DONE)
    shown = run("auto", table, "--explain")
    assert shown.exit_code == 0, shown.output
    for text in (
        "worst files",
        "it pays",
        "900 expected",
        "2.50 s now, 0.50 s after the rewrite, 1.50 s with new statistics",
        "2.8 GB of 8.4 GB, 5.0 s and 107 s for each GB",
        "1,800 s, for 300 s",
        "50.00 % of the table rewritten",
        "280.0 s, estimated 300.0 s",
        "12.5 s for a layout",
    ):
        assert text in shown.output, text
    shown_json = json.loads(run("auto", table, "--explain", "--json").output)
    assert shown_json["figures"]["queries"] == 900 and shown_json["before"] is None
    note(Folder(spark, table), Decision("nothing", ("too soon",)))  # has no figures
    shown = run("auto", table, "--explain")
    for text in ("too soon", f"worst files, {DONE.at}", "900 expected"):
        assert text in shown.output, text
    shown_json = json.loads(run("auto", table, "--explain", "--json").output)
    assert shown_json["figures"] is None and shown_json["before"]["figures"]["queries"] == 900


def test_decisions_as_a_table(spark: SparkSession, tmp_path: Path) -> None:
    """A row for each, with NULL for what a decision does not have."""
    table = write_events(spark, str(tmp_path / "events"), 100)
    assert hr.decision_table(spark, table).count() == 0
    for decision in (DONE, Decision("nothing", ("too soon",))):
        note(Folder(spark, table), decision)
    hr.decision_table(spark, table).createOrReplaceTempView("decisions")
    rows = spark.sql(
        "SELECT action, seconds_now - seconds_then, rewrite_seconds, reasons[0] FROM decisions ORDER BY at"
    )
    assert list(map(tuple, rows.collect())) == [
        ("worst files", 2.0, 280.0, "it pays"),
        ("nothing", None, None, "too soon"),
    ]
