"""The greedy tree against Algorithm 1 written out slowly, its bound against the true optimum, and large trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from math import e, log2
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.options import Options
from bench.suites import fig3
from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.block_counter import RowCounter
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates.nodes import And, Compare, Const, Not, Or, Predicate, Prefix, col, lit
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.row_truth import truth
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.core.workload.conditions_to_note import conditions_to_note
from hedgerow.learners.qdtree.qdtree import QdTree
from tests.support.random_cases import Table, a_predicate, a_table, bits, some_rows

PLAIN = QdTree("skip", cells=1)
x = col("x")
randoms = st.integers(0, 2**32).map(Random)


# --- Algorithm 1, slowly --------------------------------------------------------------------------


class Slow:
    """Sets of rows are tuples of row numbers; the gain of a cut is how much more weight x rows is skipped."""

    def __init__(self, rows: Sequence[dict], problem: Problem) -> None:
        self.least = problem.sample_block_rows
        self.cuts = problem.cuts
        self.true = {
            predicate_text(c): frozenset(i for i, r in enumerate(rows) if truth(c, r) is True) for c in problem.cuts
        }
        self.queries = [(normalise(p), w) for p, w in zip(problem.predicates, problem.weights, strict=True)]

    def may(self, p: Predicate, here: frozenset[int]) -> bool:
        match p:
            case Const(value):
                return value is True
            case And(kids):
                return all(self.may(k, here) for k in kids)
            case Or(kids):
                return any(self.may(k, here) for k in kids)
            case Not(kid) if predicate_text(p) not in self.true:
                return predicate_text(kid) not in self.true or bool(here - self.true[predicate_text(kid)])
        return predicate_text(p) not in self.true or bool(here & self.true[predicate_text(p)])

    def skipped(self, here: frozenset[int]) -> float:
        return len(here) * sum(w for q, w in self.queries if not self.may(q, here))

    def sides(self, cut: Predicate, here: frozenset[int]) -> tuple[frozenset[int], frozenset[int]]:
        return here & self.true[predicate_text(cut)], here - self.true[predicate_text(cut)]

    def gain(self, cut: Predicate, here: frozenset[int]) -> float | None:
        """None where a child would be too small."""
        left, right = self.sides(cut, here)
        if min(len(left), len(right)) < self.least:
            return None
        return self.skipped(left) + self.skipped(right) - self.skipped(here)

    def best(self, here: frozenset[int]) -> float:
        return max((g for c in self.cuts if (g := self.gain(c, here)) is not None), default=0.0)


def walked(tree: TreeLayout, slow: Slow, rows: int) -> list[tuple[frozenset[int], Predicate | None]]:
    """Every node's rows with its cut, of leaves None."""
    found: list[tuple[frozenset[int], Predicate | None]] = []
    todo = [(0 if tree.nodes else -1, frozenset(range(rows)))]
    while todo:
        node, here = todo.pop()
        cut = tree.cuts[tree.nodes[node][0]] if node >= 0 else None
        found.append((here, cut))
        if cut is not None:
            todo += zip(tree.nodes[node][1:], slow.sides(cut, here), strict=True)
    return found


def a_problem(random: Random, most_rows: int = 40) -> tuple[Table, Problem]:
    """Ranges, IN, columns against each other, OR, conditions only Spark knows, NULL and NaN."""
    table = some_rows(random, a_table(random), most_rows)
    queries = tuple(a_predicate(random, table, random.choice((0, 1, 1, 2))) for _ in range(random.randint(0, 6)))
    weights = tuple(float(random.randint(1, 4)) for _ in queries)
    rows = Rows(table.columns, {p: bits(p, table) for p in table.opaque})
    return table, Problem.build(Sample(rows, len(table), {}), queries, random.randint(1, 5), weights)


@given(random=randoms)
def test_greedy_is_algorithm_1(random: Random) -> None:
    for _ in range(4):
        table, problem = a_problem(random)
        slow = Slow(table.rows, problem)
        for here, cut in walked(PLAIN.fit(problem), slow, len(table)):
            best = slow.best(here)
            if cut is None:
                assert best == 0
                assert len(here) >= min(problem.sample_block_rows, len(table))
            else:
                assert slow.gain(cut, here) == best > 0


def test_the_random_problems_are_worth_solving() -> None:
    sizes = [PLAIN.fit(a_problem(Random(seed))[1]).blocks for seed in range(60)]
    assert sum(n > 1 for n in sizes) > 25
    assert max(sizes) > 4


def test_a_cut_counts_where_its_own_query_is_skipped_already() -> None:
    """Right of a = 1 nobody asks for b = 1 any more; yet it divides as z = 1 OR w = 1 does, which no other cut can."""
    a, b, z, w = [1] * 10 + [0] * 30, [1] * 20 + [0] * 20, [0] * 10 + [1] * 5 + [0] * 25, [0] * 15 + [1] * 5 + [0] * 20
    one = {name: Compare(col(name), "=", lit(1)) for name in "abzw"}
    queries = And((one["a"], one["b"])), Or((one["z"], one["w"]))
    problem = Problem.build(Sample.of_table(pa.table({"a": a, "b": b, "z": z, "w": w})), queries, 5, (2.0, 1.0))
    assert PLAIN.fit(problem) == TreeLayout((one["a"], one["b"]), ((0, ~0, 1), (1, ~1, ~2)))


# --- the optimum ----------------------------------------------------------------------------------


def optimum(slow: Slow, rows: int) -> float:
    @cache
    def best(here: frozenset[int]) -> float:
        legal = (slow.sides(c, here) for c in slow.cuts)
        return max(
            [slow.skipped(here), *(best(a) + best(b) for a, b in legal if min(len(a), len(b)) >= slow.least)],
        )

    return best(frozenset(range(rows)))


def box_problem(random: Random) -> tuple[list[dict], Problem]:
    """Queries that are boxes: a lower and an upper bound, or one of them, on one column or two."""
    n = random.randint(12, 16)
    table = pa.table({name: [random.randint(0, 12) for _ in range(n)] for name in "xy"})

    def box() -> Predicate:
        bounds: list[Predicate] = []
        for name in random.sample("xy", random.randint(1, 2)):
            low = random.randint(0, 11)
            ends = Compare(col(name), ">=", lit(low)), Compare(col(name), "<", lit(random.randint(low + 1, 13)))
            bounds += random.choice((ends, ends, ends[:1], ends[1:]))
        return And(tuple(bounds))

    queries = tuple(box() for _ in range(random.randint(2, 4)))
    sample = Sample.of_table(table)
    return table.to_pylist(), Problem.build(sample, queries, random.randint(2, 3))


def test_the_bound_of_the_paper() -> None:
    """Theorem 2 (b): greedy skips at least (1 - (b / n) ^ (b log2 e / 2 n)) of what the best tree does. How near it
    truly comes is printed."""
    ratios = []
    for seed in range(200):
        rows, problem = box_problem(Random(seed))
        slow, n, b = Slow(rows, problem), len(rows), problem.sample_block_rows
        most = optimum(slow, n)
        tree = PLAIN.fit(problem)
        greedy = sum(slow.skipped(here) for here, cut in walked(tree, slow, n) if cut is None)
        assert most + 1e-9 >= greedy >= (1 - (b / n) ** (b * log2(e) / (2 * n))) * most
        if most:
            ratios.append(greedy / most)
    found = np.array(ratios)
    assert len(found) > 150
    print(
        f"\ngreedy / optimum in {len(found)} cases: mean {found.mean():.4f}, min {found.min():.4f}, "
        f"optimal in {(found > 1 - 1e-9).mean():.0%}"
    )
    assert found.mean() > 0.9


# --- the default: cells, joined -------------------------------------------------------------------


def counting(whole: Rows, problem: Problem) -> Problem:
    """The problem with what all rows say of each cell."""
    return replace(problem, counter=RowCounter(whole))


def sampled(seed: int) -> tuple[Rows, Problem]:
    """A table of which the problem knows a part only."""
    random, r = Random(seed), np.random.default_rng(seed)
    n = random.choice((50, 400, 3000))
    null = r.random(n) < 0.1
    table = pa.table(
        {
            "x": pa.array(r.integers(0, 100, n), mask=null),
            "y": r.integers(0, 8, n),
            "z": r.uniform(0, 1, n),
        }
    )
    queries = []
    for _ in range(12):
        low, z = random.randint(0, 90), random.random()
        near = And((Compare(x, ">=", lit(low)), Compare(x, "<", lit(low + 10))))
        one = Compare(col("y"), "=", lit(random.randint(0, 7)))
        queries.append(random.choice((near, And((near, one)), Or((one, Compare(col("z"), "<", lit(z)))))))
    sample = Sample.of_table(table, max(30, n // 3), seed)
    problem = Problem.build(sample, tuple(queries), random.choice((1, 10, 60, 100)), seed=seed)
    return Rows.of_table(table), counting(Rows.of_table(table), problem)


@pytest.mark.parametrize("criterion", ["skip", "gain_ratio"])
@pytest.mark.parametrize("seed", range(12))
def test_blocks_hold_enough_of_all_rows(criterion: str, seed: int) -> None:
    rows, problem = sampled(seed)
    layout = QdTree(criterion).fit(problem)
    sizes = np.bincount(layout.assign(rows), minlength=layout.blocks)
    assert len(sizes) == layout.blocks
    assert sizes.min() >= min(problem.block_rows, len(rows))
    leaves = {~child for _, *kids in layout.nodes for child in kids if child < 0} or {0}
    assert leaves == set(range(layout.blocks))


@given(random=randoms)
def test_any_table_gets_dense_blocks_that_are_large_enough(random: Random) -> None:
    table, problem = a_problem(random)
    rows = Rows(table.columns, {p: bits(p, table) for p in table.opaque})
    for found in (problem, counting(rows, problem)):
        ids = QdTree().fit(found).assign(rows)
        assert np.bincount(ids).min() >= min(problem.block_rows, len(table))
        assert QdTree().fit(found) == QdTree().fit(found)


# --- the paper's example --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_fig_3(seed: int) -> None:
    """An OR that no single cut helps: greedy takes the strip and stops; cells find the four blocks of the paper."""
    greedy, _, default = islice(fig3.run(Options("quick", seed)), 3)
    assert greedy["rows_read"] == pytest.approx(0.505, abs=0.002)
    assert greedy["blocks"] == 2
    cpu, disk = (column.to_numpy() for column in fig3.machines(fig3.ROWS["quick"], seed).columns)
    strip, above = disk < 0.01, ((cpu < 10) | (cpu > 90)) & (disk >= 0.01)
    assert default["rows_read"] == pytest.approx(strip.mean() + above.mean() / 2, abs=1e-4)
    assert default["rows_read"] <= 0.112
    assert seed or default["rows_read"] <= 0.11  # other draws match more than 10.5 %


def test_the_cuts_of_section_3() -> None:
    """R.a < 10 OR R.b > 90, AND R.c IN (0, 4): the IN lets its rows be skipped at once, the sides of the OR only
    together."""
    r = np.random.default_rng(0)
    table = pa.table({"a": r.integers(0, 100, 2000), "b": r.integers(0, 100, 2000), "c": r.integers(0, 10, 2000)})
    either = Or((Compare(col("a"), "<", lit(10)), Compare(col("b"), ">", lit(90))))
    query = And((either, Or((Compare(col("c"), "=", lit(0)), Compare(col("c"), "=", lit(4))))))
    problem = Problem.build(Sample.of_table(table), (query,), 20)
    assert {predicate_text(c) for c in problem.cuts} == {"a < 10", "b > 90", "c IN (0, 4)"}
    assert [predicate_text(c) for c in PLAIN.fit(problem).cuts] == ["c IN (0, 4)"]
    cells = QdTree().fit(problem)
    assert len(cells.cuts) == 3
    ids = cells.assign(problem.sample.rows)
    matching = problem.sample.rows.evaluate(query) == 2
    assert matching[np.isin(ids, ids[matching])].all()


# --- odd corners ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("learner", "named"),
    [
        (QdTree("entropy"), "criterion"),
        (QdTree(cells=0), "cells must be .* not 0"),
        (QdTree(cells=-3), "cells must be .* not -3"),
    ],
)
def test_bad_parameters_are_one_sentence(learner: QdTree, named: str) -> None:
    _, problem = sampled(0)
    with pytest.raises(LayoutError, match=named) as found:
        learner.fit(problem)
    assert "\n" not in str(found.value)
    with pytest.raises(LayoutError, match="block_rows=0"):
        Problem.build(problem.sample, (), 0)


# --- columns of many values -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "about", [lambda word: Prefix(col("w"), word[:3]), lambda word: Compare(col("w"), "=", lit(word))]
)
def test_rows_are_divided_where_values_of_a_column_of_many_begin(about: Callable[[str], Predicate]) -> None:
    """The queries' own conditions hold on far too few rows for a block."""
    r = Random(0)
    words = ["".join(r.choices("abcdefgh", k=6)) for _ in range(4000)]
    sample = Sample.of_table(pa.table({"w": words, "n": pa.array(range(4000))}))
    asked = tuple(about(word) for word in words[:20])
    noted = sample.noting(conditions_to_note(asked, sample.rows.distinct))
    problem = Problem.build(noted, asked, block_rows=400)
    assert problem.reads(QdTree().fit(problem)) < 0.2
    assert problem.reads(PLAIN.fit(problem)) < 0.2
