"""Evaluate conditions and expressions on rows in memory with DuckDB, which shares no code with Hedgerow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from hedgerow.core.arrays import Bits
from hedgerow.core.predicates.nodes import Expr, Predicate, Term
from hedgerow.core.predicates.sql_text import predicate_text, term_text
from hedgerow.core.pruning.block_stats import F_BIT, N_BIT, T_BIT


def matching(table: pa.Table, conditions: Sequence[str]) -> list[float]:
    """Return the share of the rows on which each condition is TRUE: no layout can read less."""
    database = _database_of(table)
    return [database.sql(f"SELECT count(*) FROM t WHERE {c}").fetchall()[0][0] / table.num_rows for c in conditions]


def outcomes(table: pa.Table, conditions: Iterable[Predicate]) -> dict[Predicate, Bits]:
    """Return the outcome of each condition on each row."""
    database = _database_of(table)
    outcomes_of = {}
    for p in conditions:
        truth = database.sql(f"SELECT {predicate_text(p)} AS truth FROM t").fetchnumpy()["truth"]
        bits = np.where(np.ma.getdata(truth).astype(bool), T_BIT, F_BIT)
        outcomes_of[p] = np.where(np.ma.getmaskarray(truth), N_BIT, bits).astype(np.uint8)
    return outcomes_of


def computed(table: pa.Table, expressions: Sequence[Expr]) -> dict[Term, pa.ChunkedArray]:
    """Return the value of each expression on each row."""
    if not expressions:
        return {}
    database = _database_of(table)
    return {term: database.sql(f"SELECT {term_text(term)} AS v FROM t").to_arrow_table()["v"] for term in expressions}


def _database_of(table: pa.Table) -> Any:
    import duckdb

    database = duckdb.connect(config={"threads": 2})
    database.execute("SET enable_progress_bar = false")  # it would write to stdout, which is for records
    database.register("arrow", table)
    database.execute("CREATE TABLE t AS SELECT * FROM arrow")  # many queries read it
    return database
