"""The queries of the benches by themselves: the distributions of the thesis' chapter 2, over the benches' tables.

The chapter describes tables and queries of customers. Ours are generated or published benchmarks, so this says which
workloads the other suites stand for, and nothing about those of users; `hedgerow log` prints the same of a user's log.
Left out are the sizes of files (Fig. 2.2), which each suite chooses, and filters on partitions: no table has any.

A line is a table. Its `ratio` is the share of the filtering queries that have a condition other than columns compared
with literals. The last line is of all tables together, each query counted once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from bench.data import errorlog_data, errorlog_queries, tpcds_tables, tpcds_texts, tpch_tables, tpch_texts, web_log
from bench.data.zcurves_tables import SHAPES, queries, table_of
from bench.matching import outcomes
from bench.options import Options
from bench.record import line, progress
from bench.several import schemas_of
from bench.suites import correlated_like, tpch
from hedgerow.core.arrays import Bits
from hedgerow.core.errors import LayoutError
from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates.nodes import Const, Predicate, atoms_of, columns_in, is_evaluated_by_spark, terms_of
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.pruning.block_stats import T_BIT
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.core.workload.statistics import statistics
from hedgerow.sql.workload import Workload

ROWS = {"quick": 5_000, "full": 100_000}
QUERIES = {"quick": 40, "full": 400}
PER_TEMPLATE = {"quick": 1, "full": 8}
SCALE = 0.05  # of TPC-H and TPC-DS
MOST_ROWS = 50_000  # of a table, on which matching rows are counted
MANY = 10  # literals from which a Z-order pays: the default of `sop_zorder`


def run(options: Options) -> Iterator[dict[str, Any]]:
    lines = []
    for name, rows, workload in tables(options):
        progress(f"workloads: {name}, {len(workload)} queries")
        lines.append(_measured(name, rows, workload, options))
        yield lines[-1]
    yield _of_all(lines, options)


def tables(options: Options) -> Iterator[tuple[str, pa.Table, Workload]]:
    """Yield the name of each table, some of its rows, and the queries on it."""
    rows, n, seed = ROWS[options.form], QUERIES[options.form], options.seed
    for name in SHAPES:
        table = table_of(name, rows, seed)
        yield name, table, Workload.from_sql(queries(name, table, n, seed))
    for shape in (errorlog_data.INTERNAL, errorlog_data.EXTERNAL):
        texts = errorlog_queries.queries(shape, seed, n)
        yield shape.name, errorlog_data.rows_of(shape, rows, 0, rows), Workload.from_sql(texts)
    texts = [f"SELECT * FROM runs WHERE {condition}" for condition in correlated_like.conditions(seed, n)]
    yield "correlated-like", correlated_like.rows_of(rows, 0, rows), Workload.from_sql(texts)
    texts = [text for _, text in web_log.questions(n, rows, seed)]
    yield "web log", pq.read_table(web_log.web_log(rows)), Workload.from_sql(texts)
    lineitem = _some_rows(tpch_tables.tables(SCALE) / "lineitem")
    yield "lineitem", lineitem, Workload.from_sql(tpch.questions(n, SCALE, seed))
    texts = [text for _, text in tpch.dashboard(n, SCALE, seed)]
    yield "lineitem, dashboards", lineitem, Workload.from_sql(texts)
    folder = tpch_tables.tables(SCALE)
    texts = tpch_texts.queries(seed, PER_TEMPLATE[options.form])
    yield from _several("tpch", folder, Workload.from_sql(texts, schemas_of(folder)))
    folder = tpcds_tables.tables(SCALE)
    texts = tpcds_texts.queries(tpcds_tables.values_of(folder), seed, PER_TEMPLATE[options.form])
    yield from _several("tpcds", folder, Workload.from_sql(texts, schemas_of(folder), "duckdb"))


def _several(suite: str, folder: Path, workload: Workload) -> Iterator[tuple[str, pa.Table, Workload]]:
    for table in sorted(set(workload.tables()) & {own.name for own in folder.iterdir()}):
        yield f"{suite} {table}", _some_rows(folder / table), workload.on(table)


def _some_rows(folder: Path) -> pa.Table:
    return ds.dataset(folder).head(MOST_ROWS)


def _measured(name: str, rows: pa.Table, workload: Workload, options: Options) -> dict[str, Any]:
    table = name.split(" ")[-1] if name.startswith("tpc") else workload.tables()[0]
    found = statistics(workload, table)
    predicates = [q.predicate(table) for q in workload.bind({table: rows.schema})]
    filtering = [p for p in predicates if not isinstance(p, Const)]
    points = list(found.points.values())
    return line(
        suite="workloads",
        params={"form": options.form, "table": name},
        rows=len(rows),
        queries=len(workload),
        ratio=round(found.complex / found.filtered, 3) if found.filtered else None,
        details={
            **{k: v for k, v in asdict(found).items() if k not in ("queries", "on_partitions", "points", "frequent")},
            "columns": rows.num_columns,
            "expressions": len(_expressions(filtering)),
            "frequent": [round(share, 3) for share in found.frequent.values()],
            "points": points,
            "filtered_out": [round(1 - share, 3) for share in shares_left(rows, filtering)],
        },
        seed=options.seed,
    )


def shares_left(rows: pa.Table, predicates: Sequence[Predicate]) -> list[float]:
    """Return the share of the rows on which each predicate is TRUE; predicates that need Spark are left out."""
    truths: dict[Predicate, Bits] = {}
    for part in {atom for p in predicates for atom in atoms_of(p) if is_evaluated_by_spark(atom)}:
        with suppress(duckdb.Error):
            truths.update(outcomes(rows, [part]))
    columns = {column.path[0] for p in predicates for atom in atoms_of(p) for column in columns_in(atom)}
    evaluated = Rows(Sample.of_table(rows.select(sorted(columns & set(rows.column_names)))).rows.columns, truths)
    shares = []
    for p in predicates:
        with suppress(LayoutError):  # it has an expression that only Spark computes
            shares.append(float((evaluated.evaluate(p) == T_BIT).mean()))
    return shares


def _expressions(predicates: Sequence[Predicate]) -> set[str]:
    """Return the different terms that the predicates filter on, whatever they are compared with."""
    atoms = (atom for p in predicates for atom in atoms_of(p))
    return {term_text(term) for atom in atoms for term in terms_of(atom) or columns_in(atom)}


def _of_all(lines: list[dict[str, Any]], options: Options) -> dict[str, Any]:
    details = [own["details"] for own in lines]
    filtered_out = np.array([share for own in details for share in own["filtered_out"]])
    filtering = [own for own in details if own["filtered"]]
    points = np.array([n for own in details for n in own["points"]])
    complex_, filtered = (
        sum(own["details"][kind] * own["queries"] for own in lines) for kind in ("complex", "filtered")
    )
    return line(
        suite="workloads",
        params={"form": options.form, "table": "all"},
        queries=sum(own["queries"] for own in lines),
        ratio=round(complex_ / filtered, 3),
        details={
            "tables": len(lines),
            "shares": {
                "queries that filter out more than 75 % of the rows": _share(filtered_out > 0.75),
                "queries that filter out more than 90 % of the rows": _share(filtered_out > 0.9),
                "tables filtered on by one or two expressions": _share([own["expressions"] <= 2 for own in filtering]),
                "tables with a column in more than half of their queries": _share(
                    [own["frequent"][0] > 0.5 for own in filtering]
                ),
                "filtering queries with a condition other than columns compared with literals": round(
                    complex_ / filtered, 3
                ),
                "expressions compared with one literal only": _share(points == 1),
                f"expressions compared with {MANY} literals or more": _share(points >= MANY),
                "expressions compared with more than 1,000 literals": _share(points > 1000),
            },
        },
        seed=options.seed,
    )


def _share(holds: Any) -> float:
    return round(float(np.mean(holds)), 3)
