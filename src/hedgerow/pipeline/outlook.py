"""Adds the outlook of queries to a learned layout: their seconds, and the kinds that gain or lose."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from hedgerow.core.learning.seconds import Speed, estimate, estimates
from hedgerow.core.predicates.nodes import Column
from hedgerow.core.workload.score import Score
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.means import means_of
from hedgerow.pipeline.query_kinds import kinds_of
from hedgerow.pipeline.table_problem import TableProblem


def with_outlook(
    table_problem: TableProblem,
    learned: Learned,
    now: Score,
    then: Score,
    speed: Speed | None,
    lookups: Collection[Column] = (),
) -> Learned:
    """Return the layout with the estimate of seconds and the kinds of queries.

    Args:
        now, then: the score of the queries in the table as it is, and in the layout.
        speed: None if it is unknown.
        lookups: the columns that would get filters of look-ups.
    """
    source, queries = table_problem.source, table_problem.asked
    means = means_of(source, queries, lookups)
    if speed is None:
        return replace(learned, kinds=kinds_of(queries, source.name, now, then, None, means))
    each = estimates(then, speed, now, source.size)
    mean = estimate(then, [query.weight for query in queries], speed, now, source.size)
    return replace(learned, estimate=mean, kinds=kinds_of(queries, source.name, now, then, each, means))
