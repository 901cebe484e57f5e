"""DuckDB with its TPC extensions, loaded from their wheels: no network."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import duckdb
import pyarrow as pa


def with_data(benchmark: str, sf: float) -> duckdb.DuckDBPyConnection:
    """An in-memory database with the tables of `tpch` or `tpcds`."""
    con = duckdb.connect()
    spec = importlib.util.find_spec(f"duckdb_extension_{benchmark}")
    assert spec is not None and spec.origin is not None
    found = next(Path(spec.origin).parent.rglob(f"{benchmark}.duckdb_extension"))
    con.execute(f"LOAD '{found}'")
    con.execute(f"CALL {'dbgen' if benchmark == 'tpch' else 'dsdgen'}(sf={sf})")
    return con


def schemas(con: duckdb.DuckDBPyConnection) -> dict[str, pa.Schema]:
    names = [row[0] for row in con.execute("SHOW TABLES").fetchall()]
    return {name: con.execute(f"SELECT * FROM {name} LIMIT 0").to_arrow_table().schema for name in names}


def queries(con: duckdb.DuckDBPyConnection, benchmark: str) -> dict[int, str]:
    return dict(con.execute(f"SELECT query_nr, query FROM {benchmark}_queries() ORDER BY 1").fetchall())
