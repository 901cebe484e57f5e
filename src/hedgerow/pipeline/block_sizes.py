"""Chooses the size of blocks, if the user did not, by the seconds of queries.

Smaller blocks leave less to read, but there are more files to open. A draft of the layout, learned for some of the
queries from the sample only, shows what blocks of a size leave to read. The seconds of a file and of a byte are the
usual ones of a disk or of an object store. Measured ones differ from run to run, and the same table and queries should
get the same blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hedgerow.core.learning.problem import Learner, Problem
from hedgerow.core.learning.row_order import best_order, some_queries
from hedgerow.core.learning.seconds import Speed, estimate
from hedgerow.core.workload.queries import Query, Scan, shape
from hedgerow.core.workload.score import Score
from hedgerow.pipeline.estimate_seconds import sampled_score
from hedgerow.pipeline.learner_names import AUTO, DEFAULT, NamedLearner
from hedgerow.pipeline.table_problem import TableProblem
from hedgerow.spark.start.progress import step
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.source import Source

_QUERIES = 100
_SECONDS = 5.0  # for a learner that searches as long as it may
DISK, STORE = Speed(0.13, 0.004, 1e-8), Speed(0.3, 0.1, 2e-8)  # measured on two cores; a store has slow requests
_NEARLY = 1.1  # times the least seconds: small files are many to keep, and estimates have errors


def in_best_blocks(table_problem: TableProblem, learner: NamedLearner, speed: Speed | None) -> TableProblem:
    """Return the problem with the blocks in which queries, those to come too, are expected to be fastest.

    Of sizes that are nearly as fast as the fastest, the largest is taken.

    `speed`: as measured; None if the table is small or cannot be timed: then nothing is changed."""
    source = table_problem.source
    sizes = table_problem.options.sizes(source)
    if speed is None or len(sizes) == 1:
        return table_problem
    model = (NamedLearner(DEFAULT) if learner.name == AUTO else learner).limited_to(_SECONDS).make()
    with step(source.frame.sparkSession, "choosing a size of blocks"):
        (draft, queries), usual = _draft(table_problem), usual_speed(source)
        seconds = [_seconds(source, draft.with_block_rows(rows), queries, model, usual) for rows in sizes]
    best = next(r for r, s in zip(sizes, seconds, strict=True) if s <= _NEARLY * min(seconds))
    return table_problem.with_block_rows(best)


def usual_speed(source: Source) -> Speed:
    """Return how fast queries are read from the kind of place where the table's files are."""
    in_store = bool(source.files) and Folder(source.frame.sparkSession, source.files[0]).is_store
    return STORE if in_store else DISK


def _draft(table_problem: TableProblem) -> tuple[Problem, list[Query]]:
    """Return a problem of some queries, and these: each reads the columns that the observed one of its shape reads."""
    source, problem = table_problem.source, table_problem.problem
    by_shape = {shape(query.predicate(source.name)): query for query in table_problem.queries}
    queries = []
    for p, weight in some_queries(problem, _QUERIES):
        query = by_shape.get(shape(p), table_problem.queries[0])
        queries.append(replace(query, scans=(Scan(source.name, p, query.columns(source.name)),), weight=weight))
    predicates, weights = tuple(q.scans[0].predicate for q in queries), tuple(q.weight for q in queries)
    cuts = table_problem.options.cuts
    drawn = Problem.build(problem.sample, predicates, problem.block_rows, weights, cuts, problem.seed, problem.amounts)
    return replace(drawn, observed_share=problem.observed_share), queries


def _seconds(source: Source, draft: Problem, queries: Sequence[Query], learner: Learner, speed: Speed) -> float:
    """Return the mean seconds of the draft's queries; infinity if they cannot be estimated."""
    layout = learner.fit(draft)
    score = sampled_score(source, queries, layout, best_order(layout, draft), draft.sample, draft.block_rows)
    if score is None:
        return float("inf")
    now = Score.of_everything(queries, len(source.files))  # only the seconds in the layout are compared
    return estimate(score, [query.weight for query in queries], speed, now, source.size).then
