"""A table of twenty rows and six queries, small enough to choose features of by hand."""

from __future__ import annotations

import pyarrow as pa

from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates.nodes import And, Compare, Predicate, col, lit

x, y, z = col("x"), col("y"), col("z")
X9, X5, X2 = (Compare(x, "<", lit(v)) for v in (9, 5, 2))
Y1, Z1 = Compare(y, "=", lit(1)), Compare(z, "=", lit(1))
# x < 9 is TRUE on 9 of 20 rows, x < 5 on 5, x < 2 on 2, y = 1 on 10, z = 1 on 4
TABLE = pa.table({"x": range(20), "y": [i % 2 for i in range(20)], "z": [i % 5 for i in range(20)]})
QUERIES: tuple[Predicate, ...] = (X9, X5, And((X5, Y1)), And((X2, Y1)), Y1, Z1)


def problem(queries: tuple[Predicate, ...] = QUERIES, **more: object) -> Problem:
    return Problem.build(Sample.of_table(TABLE), queries, 4, **more)  # type: ignore[arg-type]
