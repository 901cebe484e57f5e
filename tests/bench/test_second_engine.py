"""DuckDB on the files of written tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.second_engine import seconds_in_duckdb

TEXTS = ["SELECT sum(x) FROM t WHERE x BETWEEN 3 AND 5", "SELECT x, count(*) FROM t GROUP BY x"]


def written(path: Path, values: list[int]) -> list[str]:
    pq.write_table(pa.table({"x": values}), path)
    return [str(path)]


def test_each_way_is_timed(tmp_path: Path) -> None:
    ways = {"up": written(tmp_path / "up", [1, 3, 5, 7]), "down": written(tmp_path / "down", [7, 5, 3, 1])}
    took = seconds_in_duckdb("t", TEXTS, ways, turns=1)
    assert took.keys() == ways.keys()
    assert all(seconds > 0 for seconds in took.values())


def test_other_rows_are_noticed(tmp_path: Path) -> None:
    ways = {"all": written(tmp_path / "all", [1, 3, 5, 7]), "one less": written(tmp_path / "less", [1, 5, 7])}
    with pytest.raises(AssertionError, match="one less gives another answer"):
        seconds_in_duckdb("t", TEXTS, ways, turns=1)
