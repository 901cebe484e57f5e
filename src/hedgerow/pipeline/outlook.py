"""Adds the outlook of queries to a learned layout: their seconds, and the kinds that gain or lose."""

from __future__ import annotations

from dataclasses import replace

from hedgerow.core.learning.seconds import Speed, estimate, estimates
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.query_kinds import Scores, kinds_of
from hedgerow.pipeline.table_problem import TableProblem


def with_outlook(
    table_problem: TableProblem,
    learned: Learned,
    scores: Scores,
    speed: Speed | None,
) -> Learned:
    """Return the layout with the estimate of seconds and the kinds of queries; `speed`: None if it is unknown."""
    source, queries = table_problem.source, table_problem.asked
    if speed is None:
        return replace(learned, kinds=kinds_of(queries, source.name, scores, None))
    each = estimates(scores.then, speed, scores.now, source.size)
    mean = estimate(scores.then, [query.weight for query in queries], speed, scores.now, source.size)
    return replace(learned, estimate=mean, kinds=kinds_of(queries, source.name, scores, each))
