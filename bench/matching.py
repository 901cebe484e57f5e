"""How many rows really match, as DuckDB counts them: the least anyone can read, told by somebody else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

AT_ONCE = 100


def matching(folder: Path, conditions: Sequence[str]) -> tuple[int, list[float]]:
    """The rows of the Parquet files, and the share of them on which each condition is TRUE."""
    import duckdb

    found: list[float] = []
    with duckdb.connect(config={"threads": 2}) as con:
        con.execute("SET enable_progress_bar = false")  # it would write to stdout, which is for records
        table = f"'{folder}/*.parquet'"
        ((rows,),) = con.sql(f"SELECT count(*) FROM {table}").fetchall()
        for i in range(0, len(conditions), AT_ONCE):
            counts = ", ".join(f"count(*) FILTER (WHERE {c})" for c in conditions[i : i + AT_ONCE])
            found += con.sql(f"SELECT {counts} FROM {table}").fetchall()[0]
    return rows, [n / rows for n in found]
