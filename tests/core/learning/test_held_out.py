"""Queries held out: which they are, what a trial knows, what it reads, and what a learner makes of it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from bench.matching import outcomes
from hedgerow.core.layouts.layout_json import layout_to_json
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.held_out import LEAST_HELD_OUT, HeldOut, problem_of
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.trees.greedy import cells_by_trial, greedy
from hedgerow.core.predicates.nodes import And, Compare, Like, Predicate, atoms_of, col, lit
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.learners.qdtree.qdtree import QdTree

ROWS, BLOCK_ROWS = 2_000, 100
SEEDS = 0, 1  # of which one takes single leaves and one joins them
WORDS = ("amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath")
everywhere = TreeLayout((), ())


def a_table(random: Random) -> pa.Table:
    return pa.table(
        {
            "x": [random.randrange(1_000) for _ in range(ROWS)],
            "y": [random.randrange(1_000) for _ in range(ROWS)],
            "note": [" ".join(random.sample(WORDS, 2)) for _ in range(ROWS)],
        }
    )


def about(column: str, start: int, width: int) -> Predicate:
    return And((Compare(col(column), ">=", lit(start)), Compare(col(column), "<", lit(start + width))))


def searching(word: str) -> Like:
    return Like(col("note"), f"%{word}%")


def sampled(table: pa.Table, queries: list[Predicate]) -> Sample:
    """All rows, with the outcomes of the searches, which only an engine evaluates."""
    sample = Sample.of_table(table)
    searches = list(dict.fromkeys(a for q in queries for a in atoms_of(q) if isinstance(a, Like)))
    return replace(sample, rows=Rows(sample.rows.columns, outcomes(table, searches)))


def learned_from(table: pa.Table, queries: list[Predicate], **options: object) -> Problem:
    return problem_of(sampled(table, queries), queries, [1.0] * len(queries), BLOCK_ROWS, **options)  # type: ignore[arg-type]


def some_queries(random: Random, n: int) -> list[Predicate]:
    kinds = (
        lambda: about("x", random.randrange(900), 50),
        lambda: And((about("y", random.randrange(900), 80), searching(random.choice(WORDS)))),
    )
    return [kinds[i % 2]() for i in range(n)]


def a_trial(table: pa.Table, queries: list[Predicate], **options: object) -> HeldOut | None:
    problem = learned_from(table, queries, **options)
    return problem.trial() if problem.trial else None  # type: ignore[return-value]


def test_the_last_third_of_each_shape_is_held_out() -> None:
    queries = [about(column, 10 * i, 30) for i in range(30) for column in ("x", "y")]
    assert a_trial(a_table(Random(0)), queries).queries == tuple(queries[40:])  # type: ignore[union-attr]


@pytest.mark.parametrize("shapes", [1, 2])
def test_few_queries_prove_nothing(shapes: int) -> None:
    table, least = a_table(Random(0)), 3 * LEAST_HELD_OUT
    queries = [about("xy"[i % shapes], 10 * i, 30) for i in range(least)]
    assert a_trial(table, queries) is not None
    assert a_trial(table, queries[: least - 1]) is None
    assert a_trial(table, [Compare(col("x"), op, lit(1)) for op in ("<", ">", "=", "<=", ">=")]) is None


def test_with_recurrence_1_only_the_queries_seen_count() -> None:
    assert a_trial(a_table(Random(0)), [about("x", 10 * i, 30) for i in range(60)], recurrence=1) is None


def test_a_trial_knows_nothing_of_the_queries_held_out() -> None:
    """With other queries in the last third, the trial's problem is the same."""
    random, table = Random(0), a_table(Random(0))
    queries, others = some_queries(random, 90), some_queries(random, 90)
    one, other = (a_trial(table, [*queries[:60], *last[60:]]) for last in (queries, others))
    assert one is not None and other is not None
    assert one.queries != other.queries
    assert one.problem.predicates == other.problem.predicates
    assert one.problem.cuts == other.problem.cuts
    assert one.noted == other.noted


@pytest.mark.parametrize("seed", range(4))
def test_a_query_held_out_reads_no_less_than_its_rows(seed: int) -> None:
    random = Random(seed)
    trial = a_trial(a_table(random), some_queries(random, 90))
    assert trial is not None
    layout = greedy(trial.problem, BLOCK_ROWS // 2, 0.2, False)
    shares = [trial.sample.selectivity(q) or 0.0 for q in trial.queries]
    assert np.mean(shares) <= trial.reads(layout) + 1e-12 <= 1 + 1e-9
    assert trial.reads(everywhere) == pytest.approx(1)


def test_blocks_that_answer_the_queries_held_out_are_all_they_read() -> None:
    table = pa.table({"x": list(range(ROWS))})
    queries: list[Predicate] = [about("x", 100 * (i % 20), 100) for i in range(60)]
    trial = a_trial(table, queries, recurrence=0.5)
    assert trial is not None
    half = TreeLayout((Compare(col("x"), "<", lit(ROWS // 2)),), ((0, ~0, ~1),))
    assert trial.reads(half) == pytest.approx(0.5)


@pytest.mark.long
def test_single_leaves_are_taken_only_if_they_read_clearly_less() -> None:
    """The answer is that of the two layouts, made and asked one by one."""
    chosen = set()
    for seed in SEEDS:
        random = Random(seed)
        table, queries = a_table(random), some_queries(random, 120)
        trial, problem = a_trial(table, queries), learned_from(table, queries)
        assert trial is not None
        of_leaves, of_cells = (trial.reads(QdTree(cells=n).fit(trial.problem)) for n in (1, 6))
        found = cells_by_trial(problem, lambda part, n: QdTree(cells=n).fit(part))
        assert found == (1 if of_leaves < 0.99 * of_cells else None)
        learned = QdTree().fit(problem)
        assert layout_to_json(learned) == layout_to_json(QdTree(cells=found).fit(replace(problem, trial=None)))
        assert layout_to_json(learned) == layout_to_json(QdTree().fit(problem))
        chosen.add(found)
    assert chosen == {1, None}


def test_literals_that_recur_are_drawn_as_often_as_they_recurred() -> None:
    table = a_table(Random(0))
    starts = [0, 0, 0, 0, 0, 0, 0, 500]
    queries = [about("x", start, 50) for start in starts]
    problem = learned_from(table, queries, recurrence=0)
    drawn = [p for p in problem.predicates if p not in queries]
    again = sum(w for p, w in zip(problem.predicates, problem.weights, strict=True) if p in queries)
    assert drawn, "other bounds are drawn too"
    assert again / sum(problem.weights) > 0.25 + 0.75 * 0.5  # seven of eight had the bounds of one before
