"""TPC-H's eight tables, 22 templates, eight queries each: half to learn from, half unseen (Pando, 8.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

from bench import whole_queries
from bench.data.cache import cache_folder, partial, publish
from bench.data.tpch_generator import generate
from bench.data.tpch_texts import PLACES, queries
from bench.data.tpch_wide import TABLES
from bench.options import ALGORITHM_1, MTO, PANDO, Case, Options
from bench.record import progress
from bench.several import Several, run, schemas_of

SCALE = {"quick": 0.05, "full": 1.0}
PER_TEMPLATE = {"quick": 2, "full": 4}  # to learn from, and as many unseen
BLOCK_ROWS = 10_000  # a unit of scale; Pando has a million at scale factor 100
PHYSICAL_SCALE = {"quick": 0.1, "full": 10.0}
PHYSICAL_BLOCK_ROWS_PER_SF, LEAST_PHYSICAL_BLOCK = 100_000, 50_000  # about 60 files of lineitem
SORTED_BY = {  # Pando, 8.2: lineitem by its ship date, orders by its date, all else by its key
    **{"lineitem": "l_shipdate", "orders": "o_orderdate", "customer": "c_custkey", "part": "p_partkey"},
    **{"supplier": "s_suppkey", "partsupp": "ps_partkey", "nation": "n_nationkey", "region": "r_regionkey"},
}
CASES: dict[str, tuple[Case, ...]] = {
    "quick": (("range", {}), ("qdtree", {}), ("mto", {})),
    "full": (("range", {}), ALGORITHM_1, ("qdtree", {}), MTO, PANDO[0], ("mto", {}), ("pando", {})),
}


def tables(scale: float) -> Path:
    folder = cache_folder() / "tpch-tables" / f"sf{scale:g}"
    if not folder.exists():
        progress(f"tpch: making scale factor {scale:g}, once")
        with partial(folder) as here:
            generate(here / "tables", scale, TABLES, 4)
            publish(here / "tables", folder)
    return folder


def measure(options: Options) -> Iterator[dict[str, Any]]:
    scale = options.sf or SCALE[options.form]
    data = _data(options, scale, round(BLOCK_ROWS * max(1.0, scale)))
    return run(data, CASES[options.form], options)


def physical(options: Options) -> Iterator[dict[str, Any]]:
    """Time whole queries on written tables, one query of each template."""
    scale = options.sf or PHYSICAL_SCALE[options.form]
    data = _data(options, scale, max(LEAST_PHYSICAL_BLOCK, round(PHYSICAL_BLOCK_ROWS_PER_SF * scale)))
    return whole_queries.run(replace(data, unseen_sql=data.unseen_sql[: len(PLACES)]), options)


def _data(options: Options, scale: float, block_rows: int) -> Several:
    from hedgerow.sql.workload import Workload

    form = options.form
    # Seeds of learned queries are 0 or more, so ~seed, which is negative, is never one of them.
    folder = tables(scale)
    schemas = schemas_of(folder)
    texts = [queries(seed, PER_TEMPLATE[form]) for seed in (options.seed, ~options.seed)]
    learned, unseen = (Workload.from_sql(sql, schemas) for sql in texts)
    unseen_sql = tuple(zip(cycle(PLACES), texts[1], strict=False))
    return Several("tpch", folder, scale, learned, unseen, SORTED_BY, block_rows, unseen_sql)
