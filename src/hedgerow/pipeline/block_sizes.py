"""Chooses how large blocks are, where nobody asked for a size, by the seconds that queries take.

Smaller blocks leave less to read, but there are more files to open. What a file costs beside a byte depends on where
the table lies, and what is read of it on how many columns queries read; so seconds are measured there. What blocks of
a size leave to read is told by a draft, learned for some of the queries from the sample alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hedgerow.core.learning.problem import Learner, Problem
from hedgerow.core.learning.row_order import best_order, some_queries
from hedgerow.core.learning.seconds import Speed
from hedgerow.core.workload.queries import Query, Scan, shape
from hedgerow.pipeline.estimate_seconds import seconds_in
from hedgerow.pipeline.learner_names import AUTO, SECONDS_OF, make_learner
from hedgerow.pipeline.table_problem import How, TableProblem
from hedgerow.spark.start.progress import step

_QUERIES = 100
_SECONDS = 5.0  # for a learner that searches as long as it may
_NEARLY = 1.1  # times the least seconds: small files are many to keep, and estimates have errors


def in_best_blocks(posed: TableProblem, speed: Speed | None) -> TableProblem:
    """The problem with blocks in which queries, those to come too, are expected to be fastest.

    Of sizes that are nearly as fast as the fastest, the largest is taken. Without a speed, nothing is changed."""
    sizes = posed.how.sizes(posed.source)
    if speed is None or len(sizes) == 1:
        return posed
    learner = How.learner if posed.how.learner == AUTO else posed.how.learner
    bound = {SECONDS_OF[learner]: _SECONDS} if learner in SECONDS_OF else {}
    drafted = make_learner(learner, **{**posed.how.params, **bound})
    with step(posed.source.frame.sparkSession, "choosing a size of blocks"):
        draft, queries = _draft(posed)
        seconds = [_seconds(posed, draft.with_block_rows(rows), queries, drafted, speed) for rows in sizes]
    return posed.with_block_rows(next(r for r, s in zip(sizes, seconds, strict=True) if s <= _NEARLY * min(seconds)))


def _draft(posed: TableProblem) -> tuple[Problem, list[Query]]:
    """A problem of some of the queries, and these: each reads the columns that the observed one of its shape reads."""
    source, problem = posed.source, posed.problem
    like = {shape(query.predicate(source.name)): query for query in posed.queries}
    queries = []
    for p, weight in some_queries(problem, _QUERIES):
        query = like.get(shape(p), posed.queries[0])
        queries.append(replace(query, scans=(Scan(source.name, p, query.columns(source.name)),), weight=weight))
    predicates, weights = tuple(q.scans[0].predicate for q in queries), tuple(q.weight for q in queries)
    drawn = Problem.build(problem.sample, predicates, problem.block_rows, weights, posed.how.cuts, problem.seed)
    return replace(drawn, observed_share=problem.observed_share), queries


def _seconds(posed: TableProblem, draft: Problem, queries: Sequence[Query], learner: Learner, speed: Speed) -> float:
    """The mean seconds of the draft's queries; infinite, if they cannot be told."""
    layout = learner.fit(draft)
    found = seconds_in(posed.source, queries, layout, best_order(layout, draft), draft.sample, speed)
    return float("inf") if found is None else found.then
