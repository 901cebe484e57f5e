"""score: the cost of a workload in a table, if the table had a layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.base import Layout
from hedgerow.core.learning.score_layout import score_layout
from hedgerow.core.learning.top_rows import ordered_by
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.workload.conditions_to_note import conditions_to_note
from hedgerow.core.workload.queries import Query, Workload
from hedgerow.core.workload.score import Score
from hedgerow.pipeline.estimate_seconds import seconds_of, with_runs
from hedgerow.pipeline.inputs import at_least_one, opened_with_queries
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.learned_partitions import LearnedPartitions
from hedgerow.pipeline.learned_tables import LearnedTables
from hedgerow.spark.compute.joins import NO_JOINS, Joins
from hedgerow.spark.compute.sample import draw, sample_size
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import in_own_session
from hedgerow.spark.storage.source import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@in_own_session
def score(
    spark: SparkSession,
    source: str | Sequence[str] | DataFrame,
    workload: Workload,
    layout: Layout | Learned,
    sample_rows: int | None = None,
    seed: int = 1,
    exact: bool = False,
    *,
    table: str | None = None,
) -> Score:
    """Return the shares of the table that the workload would read in the layout, estimated from a fresh sample.

    The seconds of a query, now and in the layout, are estimated too, measured on some files of the table.

    Args:
        exact: score on all rows.
        table: the source's name in the workload; by default the name in the learned layout.
    """
    if isinstance(layout, LearnedPartitions):
        raise LayoutError("these are the layouts of several partitions: score one of them, or the written table")
    if isinstance(layout, LearnedTables):
        raise LayoutError("these are the layouts of several tables: score them with score_tables")
    if isinstance(layout, Learned) and layout.joined:
        raise LayoutError(f"the layout of {layout.table} depends on other tables: score them with score_tables")
    with step(spark, "looking at the table"):
        name = table or (layout.table if isinstance(layout, Learned) else None)
        opened, queries, skipped = opened_with_queries(spark, source, workload, name)
    result = score_source(opened, queries, layout, sample_rows, seed, exact, timed=True)
    with step(spark, "measuring"):
        seconds = seconds_of(opened, queries, result)
    workload.warn_of_left_out(skipped)
    return replace(result, seconds=seconds.then, seconds_now=seconds.now) if seconds else result


def score_source(
    source: Source,
    queries: Sequence[Query],
    layout: Layout | Learned,
    sample_rows: int | None,
    seed: int,
    exact: bool,
    joins: Joins = NO_JOINS,
    timed: bool = False,
) -> Score:
    """Return the cost of the queries in the layout, with an index that describes their conditions.

    `timed`: include the bytes that Parquet would skip, which only an estimate of seconds needs."""
    spark = source.frame.sparkSession
    plain = layout.layout if isinstance(layout, Learned) else layout
    predicates = [q.predicate(source.name) for q in queries]
    predicates += [x for x in plain.features if isinstance(x, Predicate)]
    summed = layout.summed if isinstance(layout, Learned) else ()
    terms = [x for x in plain.features if not isinstance(x, Predicate)]
    terms += [*ordered_by(queries, source.name), *summed]
    rows = at_least_one("sample_rows", sample_rows) or sample_size(source.rows, max(1, source.rows // plain.blocks))
    with step(spark, "scoring"):
        sample, _ = draw(source, predicates, source.rows if exact else rows, seed, terms, joins)
        noted = layout.noted if isinstance(layout, Learned) else conditions_to_note(predicates, sample.rows.distinct)
        sample = sample.noting(noted)
        result = score_layout(plain, sample, queries, source.name, summed)
        if not (timed and isinstance(layout, Learned)):
            return result
        return with_runs(result, plain, layout.sort_by, sample, queries, source.name)
