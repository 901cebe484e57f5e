"""The condition in place of ORDER BY with LIMIT keeps the first rows of the sample, and no more than ties make it."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.top_rows import with_thresholds
from hedgerow.core.predicates.nodes import TRUE, Compare, Predicate, col, lit
from hedgerow.core.pruning.block_stats import T_BIT
from hedgerow.core.workload.queries import Query, Scan
from hedgerow.core.workload.wanted_rows import Top

VALUES = st.lists(st.one_of(st.none(), st.integers(0, 9)), min_size=1, max_size=30)
CONDITIONS = st.sampled_from([TRUE, Compare(col("y"), "<", lit(3)), Compare(col("y"), ">", lit(20))])


@given(VALUES, CONDITIONS, st.booleans(), st.integers(1, 40), st.integers(1, 12))
def test_the_first_rows_are_kept(
    values: list[int | None], p: Predicate, descending: bool, rows: int, block_rows: int
) -> None:
    sample = Sample.of_table(pa.table({"x": pa.array(values, pa.int64()), "y": [i % 5 for i in range(len(values))]}))
    (query,) = with_thresholds(
        [Query("q", (Scan("t", p, wanted=Top(col("x"), descending, rows)),))], "t", sample, block_rows
    )
    k = max(rows, block_rows)
    kept = [v for v, bit in zip(values, sample.rows.evaluate(query.predicate("t")), strict=True) if bit == T_BIT]
    matching = [v for v, bit in zip(values, sample.rows.evaluate(p), strict=True) if bit == T_BIT]
    # NULL is the least value, as Spark orders by default.
    ordered = sorted(matching, key=lambda v: -1 if v is None else v, reverse=descending)
    if query.predicate("t") != p:
        assert kept == [v for v in matching if v in ordered[:k]]
        assert len(kept) >= k
    else:
        assert k >= len(matching) or None in ordered[:k]


def test_other_tables_are_left_alone() -> None:
    sample = Sample.of_table(pa.table({"x": list(range(100))}))
    query = Query("q", (Scan("u", wanted=Top(col("x"), True, 1)),))
    assert with_thresholds([query], "t", sample, 1) == (query,)
