"""Adds the outlook of queries to a learned layout: their seconds, and the kinds that gain or lose."""

from __future__ import annotations

from dataclasses import replace

from hedgerow.core.learning.seconds import Speed, estimate, estimates
from hedgerow.core.workload.queries import in_rounds
from hedgerow.pipeline.block_sizes import usual_speed
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.query_kinds import Scores, kinds_of
from hedgerow.pipeline.table_problem import TableProblem


def with_outlook(
    table_problem: TableProblem,
    learned: Learned,
    scores: Scores,
    speed: Speed | None,
) -> Learned:
    """Return the layout with the estimates of seconds and the kinds of queries.

    `speed`: as measured; None if the table is small or cannot be timed: then rows decide what gains."""
    source, asked = table_problem.source, table_problem.asked
    queries = in_rounds(asked, len(scores.then.queries) // len(asked))
    if speed is None:
        return replace(learned, kinds=kinds_of(queries, source.name, scores))
    weights, usual = [query.weight for query in queries], usual_speed(source)
    each, usual_each = (estimates(scores.then, s, scores.now, source.size) for s in (speed, usual))
    mean, usual_mean = (estimate(scores.then, weights, s, scores.now, source.size) for s in (speed, usual))
    kinds = kinds_of(queries, source.name, scores, each, usual_each)
    return replace(learned, estimate=mean, usual=usual_mean, kinds=kinds)
