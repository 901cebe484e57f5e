"""TPC-DS's tables and 46 of its templates, four queries each: half to learn from, half unseen (Pando, 8.1)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import sqlglot

from bench.data.cache import cache_folder, partial, publish
from bench.data.duck import connection
from bench.data.tpcds_texts import MOST, SOLD, TEMPLATES, Values, queries
from bench.data.tpch_tables import CASES
from bench.options import Options
from bench.record import progress
from bench.several import Several, run, schemas_of

SCALE = {"quick": 0.05, "full": 1.0}
PER_TEMPLATE = {"quick": 1, "full": 2}  # to learn from, and as many unseen
BLOCK_ROWS = {
    "quick": 40_000,
    "full": 10_000,
}  # Pando has a million at scale factor 100; ours grow in the same proportion


def tables(scale: float) -> Path:
    folder = cache_folder() / "tpcds-tables" / f"sf{scale:g}"
    if not folder.exists():
        progress(f"tpcds: making scale factor {scale:g}, once")
        with partial(folder) as here, connection("tpcds") as con:
            con.execute(f"SET temp_directory = '{here}/spill'")
            con.execute(f"CALL dsdgen(sf={scale})")
            for (name,) in con.execute("SHOW TABLES").fetchall():
                (here / "tables" / name).mkdir(parents=True)
                con.execute(f"COPY {name} TO '{here}/tables/{name}/part-0.parquet' (FORMAT parquet, COMPRESSION zstd)")
            publish(here / "tables", folder)
    return folder


def values_of(folder: Path) -> Values:
    """Return some values of every column, the same in every run."""
    values = {}
    with connection("tpcds") as con:
        for table in sorted(folder.iterdir()):
            source = f"FROM '{table}/*.parquet' {f'WHERE {SOLD}' if table.name == 'date_dim' else ''}"
            for column in con.execute(f"SELECT * {source} LIMIT 0").to_arrow_table().column_names:
                chosen = (
                    f"(SELECT {column} AS v {source}) WHERE v IS NOT NULL GROUP BY v ORDER BY hash(v), v LIMIT {MOST}"
                )
                values[column] = [v for (v,) in con.execute(f"SELECT v FROM {chosen}").fetchall()]
    return {column: occurring for column, occurring in values.items() if occurring}


def measure(options: Options) -> Iterator[dict[str, Any]]:
    from hedgerow.sql.workload import Workload

    form = options.form
    scale = options.sf or SCALE[form]
    folder = tables(scale)
    schemas = schemas_of(folder)
    values = values_of(folder)
    # Seeds of learned queries are 0 or more, so ~seed, which is negative, is never one of them.
    seeds = (options.seed, ~options.seed)
    texts = [queries(values, seed, PER_TEMPLATE[form]) for seed in seeds]
    learned, unseen = (Workload.from_sql(sql, schemas, "duckdb") for sql in texts)
    in_spark = (sqlglot.transpile(sql, read="duckdb", write="spark")[0] for sql in texts[1])
    unseen_sql = tuple(zip(cycle(TEMPLATES), in_spark, strict=False))
    by_key = {name: schema.names[0] for name, schema in schemas.items()}  # a day of sale, or the key
    block_rows = round(BLOCK_ROWS[form] * max(1.0, scale))
    data = Several("tpcds", folder, scale, learned, unseen, by_key, block_rows, unseen_sql)
    return run(data, CASES[form], options)
