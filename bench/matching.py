"""What DuckDB says of rows in memory: which of them match is told by somebody else."""

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
    """The share of the rows on which each condition is TRUE: the least anyone can read."""
    con = _asking(table)
    return [con.sql(f"SELECT count(*) FROM asked WHERE {c}").fetchall()[0][0] / table.num_rows for c in conditions]


def outcomes(table: pa.Table, conditions: Iterable[Predicate]) -> dict[Predicate, Bits]:
    """What each condition says of each row."""
    con = _asking(table)
    found = {}
    for p in conditions:
        truth = con.sql(f"SELECT {predicate_text(p)} AS truth FROM asked").fetchnumpy()["truth"]
        bits = np.where(np.ma.getdata(truth).astype(bool), T_BIT, F_BIT)
        found[p] = np.where(np.ma.getmaskarray(truth), N_BIT, bits).astype(np.uint8)
    return found


def computed(table: pa.Table, expressions: Sequence[Expr]) -> dict[Term, pa.ChunkedArray]:
    """The value of each expression on each row."""
    if not expressions:
        return {}
    con = _asking(table)
    return {term: con.sql(f"SELECT {term_text(term)} AS v FROM asked").to_arrow_table()["v"] for term in expressions}


def _asking(table: pa.Table) -> Any:
    import duckdb

    con = duckdb.connect(config={"threads": 2})
    con.execute("SET enable_progress_bar = false")  # it would write to stdout, which is for records
    con.register("given", table)
    con.execute("CREATE TABLE asked AS SELECT * FROM given")  # many questions of it follow
    return con
