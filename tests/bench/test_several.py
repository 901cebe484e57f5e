"""Reads of several tables add up, and every query counts every table that it reads."""

from __future__ import annotations

from pathlib import Path

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from bench import several
from bench.data import tpch_tables
from bench.data.tpch_texts import queries
from bench.options import Options
from bench.several import Reads, Several
from hedgerow.core.workload.score import QueryScore, Score
from hedgerow.sql.workload import Workload
from tests.support.digest import digest


def test_reads_add_up() -> None:
    reads = Reads()
    scores = [QueryScore("a", 0.5, 0.25, 0.5, None), QueryScore("b", 1.0, 1.0, 1.0, None)]
    reads.add(Score.mean(scores, [1, 1], 4), rows=1000, blocks=4)
    reads.whole(100, 1, ["b", "c"])
    assert (reads.rows, reads.all_rows) == (1500 + 200, 2000 + 200)
    assert (reads.blocks, reads.all_blocks) == (5 + 2, 8 + 2)
    assert reads.queries == {"a", "b", "c"}


def test_the_same_rows_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGEROW_BENCH_CACHE", str(tmp_path))
    folder = tpch_tables.tables(0.01)
    first = [ds.dataset(folder / name).head(3).to_pylist() for name in sorted(tpch_tables.SORTED_BY)]
    assert digest(first) == "6e12af00945cd369"


@pytest.mark.long
def test_a_line(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGEROW_BENCH_CACHE", str(tmp_path / "cache"))
    learned, unseen = (Workload.from_sql(queries(seed, 1)) for seed in (0, ~0))
    data = Several("tpch", tpch_tables.tables(0.01), 0.01, learned, unseen, tpch_tables.SORTED_BY, 1000)
    params = {"criterion": "skip", "cells": 1, "recurrence": 1}
    lines = [
        several.measured(spark, data, case, Options("quick"), tmp_path / "table")
        for case in (("range", {}), ("qdtree", params))
    ]
    assert lines[0]["rows"] == sum(data.rows().values())
    for line in lines:
        assert 0 < line["rows_read"] < 1 and 0 < line["rows_read_unseen"] < 1
    assert lines[1]["rows_read"] < lines[0]["rows_read"]
