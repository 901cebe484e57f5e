"""Random problems for learners of trees, and Algorithm 1 of the qd-tree paper, written out slowly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa

from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.block_counter import RowCounter
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates.nodes import And, Compare, Const, Not, Or, Predicate, col, lit
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.row_truth import truth
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.pruning.row_batch import Rows
from tests.support.random_cases import Table, a_predicate, a_table, bits, some_rows

x = col("x")


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


def counting(whole: Rows, problem: Problem) -> Problem:
    """The problem with what all rows say of each cell."""
    return replace(problem, counter=RowCounter(whole))


def sampled(seed: int) -> tuple[Rows, Problem]:
    """A table of which the problem knows a part only."""
    random, r = Random(seed), np.random.default_rng(seed)
    n = random.choice((50, 400, 3000))
    null = r.random(n) < 0.1
    table = pa.table(
        {"x": pa.array(r.integers(0, 100, n), mask=null), "y": r.integers(0, 8, n), "z": r.uniform(0, 1, n)}
    )
    queries = []
    for _ in range(12):
        low, z = random.randint(0, 90), random.random()
        near = And((Compare(x, ">=", lit(low)), Compare(x, "<", lit(low + 10))))
        one = Compare(col("y"), "=", lit(random.randint(0, 7)))
        queries.append(random.choice((near, And((near, one)), Or((one, Compare(col("z"), "<", lit(z)))))))
    sample = Sample.of_table(table).part(max(30, n // 3), seed)
    problem = Problem.build(sample, tuple(queries), random.choice((1, 10, 60, 100)), seed=seed)
    return Rows.of_table(table), counting(Rows.of_table(table), problem)
