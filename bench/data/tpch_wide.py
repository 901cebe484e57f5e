"""TPC-H joined into one wide table, the lines shipped in one month: the 68 columns of the qd-tree paper (7.2).

Rows are in the order of their keys, l_orderkey and l_linenumber, in a few Parquet files: the lines of one order are
neighbours, and beyond that TPC-H's keys say nothing about the rest.
"""

from __future__ import annotations

import hashlib
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.data.cache import cache_folder, partial, publish
from bench.data.tpch_generator import generate
from bench.record import progress

MONTHS = ("1995-03", "1996-09")
FILES = 4
TABLES = ("lineitem", "orders", "customer", "part", "supplier", "partsupp", "nation", "region")


def _of_place(prefix: str) -> str:
    """Return the columns of the nation and the region of a customer (c) or a supplier (s)."""
    n, r = f"{prefix}n", f"{prefix}r"
    return (
        f"{n}.n_nationkey AS {prefix}_n_nationkey, {n}.n_name AS {prefix}_nation, "
        f"{n}.n_regionkey AS {prefix}_n_regionkey, {n}.n_comment AS {prefix}_n_comment, "
        f"{r}.r_regionkey AS {prefix}_r_regionkey, {r}.r_name AS {prefix}_region, {r}.r_comment AS {prefix}_r_comment"
    )


WIDE = f"""
SELECT lineitem.*, orders.*, customer.*, {_of_place("c")}, part.*, supplier.*, {_of_place("s")}, partsupp.*
FROM lineitem
JOIN orders ON o_orderkey = l_orderkey
JOIN customer ON c_custkey = o_custkey
JOIN nation AS cn ON cn.n_nationkey = c_nationkey
JOIN region AS cr ON cr.r_regionkey = cn.n_regionkey
JOIN part ON p_partkey = l_partkey
JOIN supplier ON s_suppkey = l_suppkey
JOIN nation AS sn ON sn.n_nationkey = s_nationkey
JOIN region AS sr ON sr.r_regionkey = sn.n_regionkey
JOIN partsupp ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey
"""


def wide(scale: float, month: str) -> Path:
    """Return the folder of the month's Parquet files; missing ones of the usual months are made along with it."""
    version = hashlib.sha256(WIDE.encode()).hexdigest()[:8]  # another table is kept under another name
    folder = cache_folder() / f"tpch-wide-{version}" / f"sf{scale:g}"
    if not (folder / month).exists():
        missing = [m for m in dict.fromkeys((month, *MONTHS)) if not (folder / m).exists()]
        progress(f"tpch-month: making {', '.join(missing)} of scale factor {scale:g}, once")
        with partial(folder) as here:
            generate(here / "tables", scale, TABLES, 4)
            for month_folder in _months(here, missing):
                publish(month_folder, folder / month_folder.name)
    return folder / month


def _months(here: Path, months: list[str]) -> list[Path]:
    import duckdb

    con = duckdb.connect(config={"memory_limit": "8GB", "threads": 2, "temp_directory": str(here / "spill")})
    con.execute("SET enable_progress_bar = false")  # it would write to stdout, which is for records
    for name in TABLES:
        con.execute(f"CREATE VIEW {name} AS FROM read_parquet('{here}/tables/{name}/*.parquet')")
    # lineitem is scanned once for all months.
    inside = " OR ".join(_shipped_in(m) for m in months)
    con.execute(f"CREATE TABLE wide AS {WIDE} WHERE {inside} ORDER BY l_orderkey, l_linenumber")
    return [_written(con, here, m) for m in months]


def _written(con: Any, here: Path, month: str) -> Path:
    folder = here / month
    folder.mkdir()
    con.execute(f"CREATE OR REPLACE TABLE month AS FROM wide WHERE {_shipped_in(month)}")
    ((rows,),) = con.sql("SELECT count(*) FROM month").fetchall()
    edges = [rows * i // FILES for i in range(FILES + 1)]
    for i, (start, end) in enumerate(pairwise(edges)):
        rows_sql = f"FROM month WHERE rowid >= {start} AND rowid < {end}"
        con.execute(f"COPY ({rows_sql}) TO '{folder}/part-{i}.parquet' (FORMAT parquet, COMPRESSION zstd)")
    return folder


def _shipped_in(month: str) -> str:
    return f"(l_shipdate >= DATE '{month}-01' AND l_shipdate < DATE '{month}-01' + INTERVAL 1 MONTH)"
