"""DuckDB's own texts of TPC-H and TPC-DS, from the extensions' wheels: no network."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any


def connection(benchmark: str) -> Any:
    """Open a database with the extension for `tpch` or `tpcds`."""
    import duckdb

    spec = importlib.util.find_spec(f"duckdb_extension_{benchmark}")
    if spec is None or spec.origin is None:
        raise SystemExit(f"the texts of {benchmark} need: pip install duckdb-extension-{benchmark}")
    file = next(Path(spec.origin).parent.rglob(f"{benchmark}.duckdb_extension"))
    con = duckdb.connect()
    con.execute("SET enable_progress_bar = false")  # it would write to stdout, which is for records
    con.execute(f"LOAD '{file}'")
    return con


@cache
def texts(benchmark: str) -> dict[int, str]:
    """Return the queries by the number of their template, with the literals of the specification's validation run."""
    con = connection(benchmark)
    return dict(con.execute(f"SELECT query_nr, query FROM {benchmark}_queries() ORDER BY 1").fetchall())
