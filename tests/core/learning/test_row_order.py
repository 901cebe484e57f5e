"""The column by which rows are sorted inside a block: the one that the tree has left to skip by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from hedgerow.core.layouts.curve import CurveLayout
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.row_order import best_order, runs_in, work
from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.nodes import And, Compare, CompareTerms, Like, Predicate, col, lit
from hedgerow.learners.curves.zorder import ZOrder

x, y, z, word = col("x"), col("y"), col("z"), col("word")
R = np.random.default_rng(0)
N = 8000
SAMPLE = replace(
    Sample.of_table(pa.table({"x": R.permutation(N), "y": R.permutation(N), "z": R.integers(0, 3, N)})),
    table_rows=1000 * N,
)
BY_X = TreeLayout((Compare(x, "<", lit(N // 2)),), ((0, ~0, ~1),))


def below(term: object, value: int) -> Predicate:
    return Compare(term, "<", lit(value))  # type: ignore[arg-type]


def best(*predicates: Predicate, weights: tuple[float, ...] | None = None) -> str | None:
    return best_order(BY_X, Problem.build(SAMPLE, predicates, 500 * N, weights))


def test_the_column_that_most_is_skipped_by() -> None:
    assert best(below(y, 100)) == "y"
    assert best(below(x, N // 2), below(y, 100)) == "y"  # the tree has cut x there
    assert best(below(x, 100), below(y, N - 100)) == "x"
    assert best(below(x, 100), below(y, 100), weights=(1.0, 4.0)) == "y"
    assert best(And((below(y, 4000), below(z, 1)))) == "z"


def test_many_queries_are_drawn_by_weight() -> None:
    many = [below(y, i) for i in range(1, 1200)]
    assert best(*many, below(x, 10)) == "y"
    assert best(*many, below(x, 10), weights=(*(1e-6 for _ in many), 1.0)) == "x"


def test_a_long_text_takes_work_by_its_length() -> None:
    table = pa.table({"x": pa.array([1]), "y": pa.array([1.5]), "word": pa.array(["w" * 24])})
    sample = replace(Sample.of_table(table), unpacked={"x": 0.1, "y": 8.0, "word": 21.0})
    search = Like(word, "%a%")
    assert work(sample, below(x, 1)) == work(sample, below(y, 1)) == 3
    assert work(sample, search) == 24
    assert work(sample, And((below(x, 1), search, below(x, 9)))) == 27
    assert work(replace(sample, unpacked={}, width={"word": 13.0}), search) == 16  # without footers


def test_no_column() -> None:
    assert best(below(x, N // 2)) is None
    assert best(Like(word, "%a%")) is None
    problem = Problem.build(SAMPLE, (below(y, 100),), 100_000)
    curve = ZOrder().fit(problem)
    assert isinstance(curve, CurveLayout)
    assert best_order(curve, problem) is None  # a curve orders the rows itself


def test_spark_skips_no_rows_by_wall_clock_times() -> None:
    """It compares no bounds of TIMESTAMP_NTZ in Parquet's files, so sorting by such a column saves nothing."""
    times = pa.array(R.permutation(N))
    columns = {"x": times, "wall": times.cast(pa.timestamp("us")), "ts": times.cast(pa.timestamp("us", "UTC"))}
    sample = replace(Sample.of_table(pa.table(columns)), table_rows=1000 * N)
    early = {"wall": lit(80, kinds.TIMESTAMP_NTZ), "ts": lit(80, kinds.TIMESTAMP)}
    left = {c: runs_in(BY_X, sample, c).to_open(Compare(col(c), "<", end)).mean() for c, end in early.items()}
    assert left["wall"] == 1.0 and left["ts"] < 0.02


def test_runs_tell_what_parquet_skips_inside_a_block() -> None:
    noted = SAMPLE.noting([CompareTerms(x, "<", y)])
    runs = runs_in(BY_X, noted, "y")
    rows = runs.blocks.rows

    def left(p: Predicate) -> float:
        return float(rows[runs.to_open(p)].sum() / rows.sum())

    assert left(below(y, 80)) < 0.02  # two runs, one in each block
    assert left(And((below(x, N // 2), below(y, 80)))) < 0.01
    assert left(CompareTerms(x, "<", y)) > 0.5  # no condition is noted for a run
    assert runs_in(BY_X, noted, None).to_open(below(y, 80)).sum() > 50
