"""score: what a workload would read under a layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hedgerow.core.errors import warn
from hedgerow.core.layouts.base import Layout
from hedgerow.core.learning import score as cost
from hedgerow.core.learning.conditions_to_note import conditions_to_note
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.workload.queries import Workload
from hedgerow.pipeline.estimate_seconds import seconds_of
from hedgerow.pipeline.inputs import at_least_one, opened_with_queries
from hedgerow.pipeline.learned import Learned
from hedgerow.spark.compute.sample import draw, sample_size
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import in_own_session

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
) -> cost.Score:
    """The share of the table that the workload would read under the layout: of a fresh sample, or of all rows.

    With an estimate of the seconds that a query takes now and would take, measured on some files of the table."""
    plain = layout.layout if isinstance(layout, Learned) else layout
    with step(spark, "looking at the table"):
        named = table or (layout.table if isinstance(layout, Learned) else None)
        opened, queries, skipped = opened_with_queries(spark, source, workload, named)
    predicates = [q.predicate(opened.name) for q in queries]
    feature_terms = [x for x in plain.features if not isinstance(x, Predicate)]
    predicates += [x for x in plain.features if isinstance(x, Predicate)]
    wanted = at_least_one("sample_rows", sample_rows) or sample_size(opened.rows, max(1, opened.rows // plain.blocks))
    with step(spark, "scoring"):
        sample, _ = draw(opened, predicates, opened.rows if exact else wanted, seed, feature_terms)
        noted = layout.noted if isinstance(layout, Learned) else conditions_to_note(predicates, sample)
        result = cost.score(plain, sample.noting(noted), queries, opened.name)
        seconds = seconds_of(opened, queries, result)
    warn(f"{len(skipped)} of {len(workload)} queries are left out", skipped)
    return replace(result, seconds=seconds.then, seconds_now=seconds.now) if seconds else result
