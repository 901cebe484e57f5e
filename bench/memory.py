"""Learn from a table in memory and score the layout, as `hedgerow.learn`, `apply` and `score` do, without Spark.

The learner sees a sample, and candidate blocks are counted on all rows. The index holds the same as that of a written
table: bounds and few values of each column, and the outcomes of learned conditions that only Spark could evaluate, such
as LIKE. Here DuckDB evaluates those.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from bench.matching import computed, outcomes
from bench.options import Case
from bench.read_by_trees import TreeIndex
from bench.record import line, progress
from bench.report.learning_curve import drawn, few
from hedgerow.core.arrays import Bits, Ints
from hedgerow.core.effort import Effort, amounts_of
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.layouts.base import BlockIds, Layout
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.learning import held_out
from hedgerow.core.learning.problem import Learner, Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.synthetic_queries import Recurrence
from hedgerow.core.learning.virtual_blocks import index_of_assignment, virtual_index
from hedgerow.core.predicates.nodes import Column, Expr, Feature, Predicate, atoms_of, is_evaluated_by_spark
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.pruning.block_stats import Stats, TermStats, collect
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.core.pruning.words import searched_for_words, words_in_texts
from hedgerow.core.workload.candidate_cuts import USUAL, Kind
from hedgerow.core.workload.conditions_to_note import conditions_to_note
from hedgerow.learners.pando.pando import Pando
from hedgerow.learners.woodblock.woodblock import Point, Woodblock
from hedgerow.pipeline.learner_names import make_learner
from hedgerow.spark.compute.sample import sample_size
from hedgerow.sql.workload import Workload

MOST_FEATURES = 200  # cuts of a tree whose outcomes are noted, as in `apply`
AT_ONCE = 250_000
NOT_THE_LEARNERS = (
    "recurrence",
    "exact",
    "cuts",
    "index",
    "effort",
)  # parameters of a run; all others are the learner's
AS_IT_CAME = "default"  # no learner: blocks of the rows in the order they have


@dataclass(frozen=True, eq=False)
class InMemory:
    """The columns of a table that queries filter on, and two bound workloads, with the mean share of rows that match.

    `fields` and `params` are added to every line. `expressions` are indexed beside columns.
    """

    suite: str
    table: pa.Table
    learned: Workload
    unseen: Workload
    bounds: tuple[float, float]
    block_rows: int
    fields: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    expressions: Sequence[Expr] = ()
    evaluated: dict[Predicate, Bits] = field(default_factory=dict)  # by DuckDB, so far

    @cached_property
    def predicates(self) -> tuple[Predicate, ...]:
        return predicates_of(self.learned)

    @cached_property
    def all_rows(self) -> Sample:
        """Every row, with the outcomes of the learned conditions that only an engine evaluates."""
        sample = Sample.of_table(self.table)
        ranked = {**sample.rows.ranked, **Rows(computed(self.table, self.expressions)).ranked}
        return replace(sample, rows=Rows(ranked, self.opaque(self.predicates)))

    def opaque(self, predicates: Iterable[Predicate]) -> dict[Predicate, Bits]:
        """Return the outcomes, on all rows, of those parts of the predicates that only an engine evaluates."""
        parts = sorted({a for p in predicates for a in atoms_of(p) if is_evaluated_by_spark(a)}, key=predicate_text)
        self.evaluated.update(outcomes(self.table, [p for p in parts if p not in self.evaluated]))
        return {p: self.evaluated[p] for p in parts}

    @cached_property
    def noted(self) -> dict[Predicate, Bits]:
        """The outcomes that an index notes with any layout."""
        rows = self.all_rows.rows
        return {p: rows.evaluate(p) for p in conditions_to_note(self.predicates, self.all_rows.rows.distinct)}

    def sample(self, seed: int, each: int) -> Sample:
        n = len(self.all_rows)
        picked = np.sort(np.random.default_rng(seed).choice(n, sample_size(n, self.block_rows, each), replace=False))
        return replace(self.all_rows, rows=self.all_rows.rows.take(picked))


def bound(texts: Sequence[str], table: pa.Table) -> Workload:
    """Parse queries that read only this table, and bind them to the types of its columns."""
    workload = Workload.from_sql(texts)
    (name,) = workload.tables()
    workload = workload.bind({name: table.schema})
    assert not workload.skipped, workload.skipped
    return workload


def predicates_of(workload: Workload) -> tuple[Predicate, ...]:
    """Return the condition of each query on the only table that they read."""
    (name,) = workload.tables()
    return tuple(q.predicate(name) for q in workload)


def measured(data: InMemory, case: Case, form: str, seed: int) -> dict[str, Any]:
    learner, params = case
    shown = ", ".join(f"{name}={value}" for name, value in {**data.params, **params}.items())
    progress(f"{data.suite}: seed {seed}, {learner}({shown})")
    _ = data.noted  # computed before the clock starts
    curve: tuple[Point, ...] = ()
    seconds = 0.0
    index: BlockIndex | TreeIndex
    if learner == AS_IT_CAME:
        index = as_it_came(data)
    else:
        own = {name: value for name, value in params.items() if name != "index"}
        problem, layout, curve, seconds = _learned(data, learner, json.dumps(own), seed)
        index = indexed(layout, data, problem, case)
    for row in drawn(curve):
        progress(row)
    reads, unseen = (reads_of(index, workload) for workload in (data.learned, data.unseen))
    blocks = index.blocks.rows[index.home_blocks & (index.blocks.rows > 0)]
    return line(
        suite=data.suite,
        learner=learner,
        params={"form": form, **data.params, **params},
        **data.fields,
        rows=len(data.all_rows),
        blocks=len(blocks),
        block_rows=data.block_rows,
        least_block=int(blocks.min()),
        queries=len(data.learned),
        queries_unseen=len(data.unseen),
        bound=_rounded(data.bounds[0]),
        bound_unseen=_rounded(data.bounds[1]),
        rows_read=_rounded(reads[0]),
        rows_read_unseen=_rounded(unseen[0]),
        blocks_read=_rounded(reads[1]),
        blocks_read_unseen=_rounded(unseen[1]),
        fit_seconds=round(seconds, 1),
        trees=round(curve[-1].trees) if curve else None,
        trees_per_s=round(curve[-1].trees / curve[-1].seconds, 1) if curve else None,
        curve=[[_rounded(x, 5) for x in point] for point in few(curve)] or None,
        seed=seed,
    )


@lru_cache(maxsize=1)  # cases that differ in their index follow each other
def _learned(data: InMemory, learner: str, params: str, seed: int) -> tuple[Problem, Layout, tuple[Point, ...], float]:
    """Return the problem, the layout with its learning curve, and the seconds of learning; `params` are JSON."""
    own = json.loads(params)
    options = own.get("recurrence", "auto"), own.get("cuts", USUAL), seed, own.get("effort", "normal")
    problem = counted(data, problem_of(data, *options), own)
    start = time.perf_counter()
    layout, curve = fitted(problem, (learner, own))
    return problem, layout, curve, time.perf_counter() - start


@lru_cache(maxsize=2)  # for one table: the queries as they are, and redrawn ones
def problem_of(
    data: InMemory,
    recurrence: Recurrence = "auto",
    cuts: Kind = USUAL,
    seed: int = 0,
    effort: Effort = "normal",
    each: int | None = None,
) -> Problem:
    """Return a sample of the table with the queries to learn from; `each`: rows a block, by default the effort's."""
    weights = [q.weight for q in data.learned]
    amounts = amounts_of(effort)
    sample = data.sample(seed, each or amounts.rows)
    return held_out.problem_of(sample, data.predicates, weights, data.block_rows, recurrence, cuts, seed, amounts)


@dataclass(frozen=True)
class _TableCounter:
    """A counter of blocks over all rows, as the pipeline's counter does with Spark."""

    data: InMemory

    def count(self, layout: Layout) -> Stats:
        return _noted(layout.features, self.data).stats(blocks_of(layout, self.data), layout.blocks)

    def count_together(self, layouts: Sequence[Layout]) -> tuple[Ints, Ints]:
        blocks = np.array([blocks_of(layout, self.data) for layout in layouts], np.int64)
        combinations, rows = np.unique(blocks, axis=1, return_counts=True)
        return combinations, rows


def counted(data: InMemory, problem: Problem, params: Mapping[str, Any] = MappingProxyType({})) -> Problem:
    """Return the problem with a counter of cells over all rows, unless the parameters have `exact=False`."""
    return replace(problem, counter=_TableCounter(data) if params.get("exact", True) else None)


def fitted(problem: Problem, case: Case) -> tuple[Layout, tuple[Point, ...]]:
    """Return the layout that a learner finds, and its learning curve if it has one."""
    model = _model(case)
    return model.search(problem) if isinstance(model, Woodblock) else (model.fit(problem), ())


def _model(case: Case) -> Learner:
    learner, params = case
    return make_learner(learner, **{name: value for name, value in params.items() if name not in NOT_THE_LEARNERS})


def indexed(
    layout: Layout, data: InMemory, problem: Problem, case: Case, loads: Sequence[int] = ()
) -> BlockIndex | TreeIndex:
    """Return the index that the case names: of bounds, of the learner's trees, or, by default, ours.

    `loads`: the rows of each append, which has blocks of its own.
    """
    match case[1].get("index"):
        case "bounds":
            return bounds_of(layout, data)
        case "trees":
            model = _model(case)
            assert isinstance(model, Pando), case
            trees = model.trees(problem)
            return TreeIndex.of(trees, [blocks_of(tree, data) for tree in trees], _stored_blocks(layout, data, loads))
    return index_of(layout, data, loads)


def index_of(layout: Layout, data: InMemory, loads: Sequence[int] = ()) -> BlockIndex:
    """Return the index of the table in a layout; `loads` as in `indexed`."""
    noted = replace(data.all_rows, rows=_noted(layout.features, data))
    if isinstance(layout, OverlapLayout):  # it assigns the rows itself, by all of its cuts
        cuts = data.opaque(f for f in layout.features if isinstance(f, Predicate))
        return virtual_index(layout, replace(noted, rows=noted.rows.with_truths(cuts)))
    blocks = _stored_blocks(layout, data, loads)
    return _with_words(index_of_assignment(blocks, layout.blocks * (len(loads) or 1), noted), blocks, data)


def _stored_blocks(layout: Layout, data: InMemory, loads: Sequence[int]) -> BlockIds:
    """Return the block of each row, where every load has its own blocks."""
    blocks = blocks_of(layout, data)
    blocks += layout.blocks * np.repeat(np.arange(len(loads)), loads) if loads else 0
    return blocks


def _with_words(index: BlockIndex, blocks: BlockIds, data: InMemory) -> BlockIndex:
    """Add the words of searched columns to the index; a written table has them from the dictionaries of its files."""
    stats, terms = index.blocks, dict(index.blocks.terms)
    for column in searched_for_words(data.predicates):
        ranked = data.all_rows.rows.ranks(Column((column,)))
        values = [set[str]() for _ in range(len(stats))]
        for pair in np.unique(blocks * (len(ranked.values) + 1) + ranked.places + 1).tolist():
            block, place = divmod(pair, len(ranked.values) + 1)
            if place:
                values[block].add(ranked.values[place - 1])
        repeat = [len(own) <= n / 2 for own, n in zip(values, stats.rows, strict=True)]  # else it has no dictionary
        sets = [words_in_texts(own) if r else None for own, r in zip(values, repeat, strict=True)]
        terms[column] = replace(terms[column], words=TermStats.of_sets(ranked.type, sets))
    return replace(index, blocks=replace(stats, terms=terms))


def bounds_of(layout: Layout, data: InMemory) -> BlockIndex:
    """Return the index that any Parquet reader has: each column's least and greatest value in a block."""
    stats = collect(data.all_rows.rows.ranked, None, blocks_of(layout, data), layout.blocks, max_distinct=0)
    return BlockIndex(stats)


def as_it_came(data: InMemory) -> BlockIndex:
    blocks = np.arange(len(data.all_rows)) // data.block_rows
    return index_of_assignment(blocks, int(blocks[-1]) + 1, replace(data.all_rows, rows=_noted((), data)))


def _noted(features: Sequence[Feature], data: InMemory) -> Rows:
    """Return all rows, with the outcomes that the index of a layout by these features would note."""
    cuts = [f for f in features[:MOST_FEATURES] if isinstance(f, Predicate)]
    rows = data.all_rows.rows
    return Rows(rows.columns, {**data.opaque(cuts), **rows.truths, **data.noted})


def blocks_of(layout: Layout, data: InMemory) -> BlockIds:
    """Return the block of each row, in chunks: the outcomes of many cuts on all rows would need much memory."""
    r = np.random.default_rng(0)
    rows = data.all_rows.rows
    rows = Rows(rows.columns, {**data.opaque(f for f in layout.features if isinstance(f, Predicate)), **rows.truths})
    assigned = []
    for start in range(0, len(rows), AT_ONCE):
        chunk = rows.take(np.arange(start, min(len(rows), start + AT_ONCE)))
        # An expression of a layout is a hash of the row, so a random number serves as well.
        columns = dict(chunk.columns)
        columns |= {f: pa.array(_evenly(r, len(chunk))) for f in layout.features if isinstance(f, Expr)}
        assigned.append(layout.assign(Rows(columns, chunk.truths)))
    return np.concatenate(assigned)


def _evenly(r: np.random.Generator, n: int) -> Ints:
    return r.integers(-(1 << 63), (1 << 63) - 1, n, np.int64, endpoint=True)


def reads_of(index: BlockIndex | TreeIndex, workload: Workload) -> tuple[float, float]:
    """Return the shares of rows and of blocks that the queries open, on average."""
    rows = index.blocks.rows
    opened = np.array([index.to_open(p) for p in predicates_of(workload)])
    return float((opened @ rows).mean() / rows[index.home_blocks].sum()), float(opened.mean(0).sum() / (rows > 0).sum())


def _rounded(share: float, digits: int = 3) -> float:
    """Round to so many significant digits, because a share may be tiny."""
    return float(f"{share:.{digits}g}")
