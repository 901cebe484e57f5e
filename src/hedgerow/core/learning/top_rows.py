"""Learns from ORDER BY x DESC LIMIT k as from a condition: `x >= v`, where v is the k-th value in a sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hedgerow.core.errors import LayoutError
from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates.nodes import Column, Compare, Literal, Predicate, conjunction
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.pruning.block_stats import T_BIT
from hedgerow.core.workload.queries import Query, Scan
from hedgerow.core.workload.wanted_rows import Top


def with_thresholds(queries: Sequence[Query], table: str, sample: Sample, block_rows: int) -> tuple[Query, ...]:
    """Return the queries with a condition that keeps the first rows of the table, where a query needs no others.

    The condition keeps at least as many rows as a block has, because no layout can divide rows more finely.
    """

    def bounded(scan: Scan) -> Scan:
        if not isinstance(scan.wanted, Top) or scan.table != table:
            return scan
        top = replace(scan.wanted, rows=max(scan.wanted.rows, block_rows))
        threshold = _threshold(scan.predicate, top, sample)
        return scan if threshold is None else replace(scan, predicate=normalise(conjunction(scan.predicate, threshold)))

    return tuple(replace(query, scans=tuple(map(bounded, query.scans))) for query in queries)


def ordered_by(queries: Sequence[Query], table: str) -> list[Column]:
    """Return the columns by whose order queries need the first rows of the table."""
    scans = (scan for query in queries for scan in query.scans if scan.table == table)
    return [scan.wanted.column for scan in scans if isinstance(scan.wanted, Top)]


def _threshold(p: Predicate, top: Top, sample: Sample) -> Predicate | None:
    """Return a condition that holds for about the first matching rows; None if there is none.

    >>> import pyarrow as pa
    >>> from hedgerow.core.predicates.nodes import TRUE, col
    >>> from hedgerow.core.predicates.sql_text import predicate_text
    >>> sample = Sample.of_table(pa.table({"x": [3, 1, 4, 1, 5, 9, 2, 6]}))
    >>> predicate_text(_threshold(TRUE, Top(col("x"), True, 3), sample))
    'x >= 5'
    """
    try:
        column, matches = sample.rows.ranks(top.column), sample.rows.evaluate(p) == T_BIT
    except LayoutError:
        return None
    places = np.sort(column.places[matches])
    if top.descending:
        places = places[::-1]
    needed = max(1, math.ceil(top.rows * sample.fraction))
    if needed >= len(places) or (places[:needed] < 0).any():  # NULL and NaN are no bounds
        return None
    literal = Literal(column.type.kind, column.values[int(places[needed - 1])])
    return Compare(top.column, ">=" if top.descending else "<=", literal)
