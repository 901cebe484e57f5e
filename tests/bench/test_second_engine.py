"""DuckDB on the files of written tables."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.second_engine import condition_of, seconds_in_duckdb

TEXTS = ["SELECT sum(x) FROM t WHERE x BETWEEN 3 AND 5", "SELECT x, count(*) FROM t GROUP BY x"]


def written(path: Path, values: list[int]) -> list[str]:
    pq.write_table(pa.table({"x": values}), path)
    return [str(path)]


def test_each_way_is_timed(tmp_path: Path) -> None:
    ways = {"up": written(tmp_path / "up", [1, 3, 5, 7]), "down": written(tmp_path / "down", [7, 5, 3, 1])}
    took = seconds_in_duckdb("t", TEXTS, ways, turns=1)
    assert took.keys() == ways.keys()
    assert all(seconds > 0 for seconds in took.values())


def test_files_are_chosen_for_each_condition(tmp_path: Path) -> None:
    low, high = written(tmp_path / "low", [1, 3]), written(tmp_path / "high", [5, 7])
    seen: list[str | None] = []

    def choose(con: duckdb.DuckDBPyConnection, where: str | None) -> duckdb.DuckDBPyRelation:
        seen.append(where)
        return con.read_parquet([*low, *high])

    took = seconds_in_duckdb("t", TEXTS, {"all": [*low, *high]}, 1, {"chosen": choose})
    assert took.keys() == {"all", "chosen"} and took["chosen"] > 0
    assert seen == ["x BETWEEN 3 AND 5", None] * 2


def test_conditions_of_one_table() -> None:
    assert condition_of("SELECT * FROM t WHERE t.x < 3 AND y LIKE 'a' LIMIT 5", "t") == "x < 3 AND y LIKE 'a'"
    for text in ("SELECT 1 FROM t", "SELECT 1 FROM u WHERE x = 1", "SELECT 1 FROM t JOIN u WHERE x = 1"):
        assert condition_of(text, "t") is None
    assert condition_of("SELECT 1 FROM t WHERE x = (SELECT max(x) FROM t)", "t") is None
    assert condition_of("SELECT 1 FROM t WHERE x = 1 UNION ALL SELECT 2 FROM t", "t") is None


def test_other_rows_are_noticed(tmp_path: Path) -> None:
    ways = {"all": written(tmp_path / "all", [1, 3, 5, 7]), "one less": written(tmp_path / "less", [1, 5, 7])}
    with pytest.raises(AssertionError, match="one less gives another answer"):
        seconds_in_duckdb("t", TEXTS, ways, turns=1)
