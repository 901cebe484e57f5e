"""The suite measures what it says, on a month of a few hundred rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bench.options import Options
from bench.report.quality import check
from bench.suites import tpch_month

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.long
def test_a_line(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGEROW_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(tpch_month.PER_TEMPLATE, "quick", (1, 2))
    monkeypatch.setitem(tpch_month.BLOCK_ROWS_PER_SF, "quick", 5000)
    options = Options("quick", seed=1, sf=0.01)
    month = tpch_month.month_of(options, "1995-03")
    assert (month.rows, month.block_rows, len(month.learned), len(month.unseen)) == (769, 50, 15, 30)

    params = {"criterion": "skip", "cells": 1}
    found = tpch_month.measured(spark, month, ("qdtree", params), options, tmp_path / "table")
    assert found["params"] == {"form": "quick", **params}
    assert (found["suite"], found["learner"], found["seed"], found["sf"]) == ("tpch-month", "qdtree", 1, 0.01)
    assert found["least_block"] >= 50  # the sample is the whole table
    assert 1 < found["blocks"] <= 769 // 50
    assert 2 / 15 < found["bound"] < found["rows_read"] < 1  # two templates match everything
    check([found], "random", *tpch_month.SHARES)
