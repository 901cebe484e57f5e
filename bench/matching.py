"""How many rows really match, as DuckDB counts them: the least anyone can read, told by somebody else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def matching(folder: Path, conditions: Sequence[str], columns: Sequence[str] = ("*",)) -> tuple[int, list[float]]:
    """The rows of the Parquet files, and the share on which each condition is TRUE; `columns` are all it takes."""
    import duckdb

    with duckdb.connect(config={"threads": 2}) as con:
        con.execute("SET enable_progress_bar = false")  # it would write to stdout, which is for records
        con.execute(f"CREATE TABLE asked AS SELECT {', '.join(columns)} FROM '{folder}/*.parquet'")
        ((rows,),) = con.sql("SELECT count(*) FROM asked").fetchall()
        found = [con.sql(f"SELECT count(*) FROM asked WHERE {c}").fetchall()[0][0] for c in conditions]
    return rows, [n / rows for n in found]
