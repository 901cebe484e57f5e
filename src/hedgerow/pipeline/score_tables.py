"""score_tables: the cost of a workload in several tables, if they had the layouts that were learned for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import LayoutError
from hedgerow.core.workload.queries import Workload
from hedgerow.core.workload.score import Score
from hedgerow.pipeline.inputs import bound_to, opened_tables
from hedgerow.pipeline.learned_tables import ONE_BLOCK, LearnedTables
from hedgerow.pipeline.score import score_source
from hedgerow.spark.compute.joins import Joins
from hedgerow.spark.start.session import in_own_session
from hedgerow.sql.joined_conditions import with_joined

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@in_own_session
def score_tables(
    spark: SparkSession,
    sources: str | Mapping[str, Any],
    workload: Workload,
    layouts: LearnedTables,
    sample_rows: int | None = None,
    seed: int = 1,
    exact: bool = False,
) -> dict[str, Score]:
    """Return a score for each table that some query reads; the arguments are those of `learn_tables` and `score`."""
    if not isinstance(layouts, LearnedTables):
        raise LayoutError("this is the layout of one table: score it with score")
    tables = opened_tables(spark, sources)
    bound = bound_to(tables, workload)
    by_name = {name.lower(): source for name, source in tables.items()}
    scores = {}
    for name in (name for name in layouts if name in tables):
        joined = layouts[name].joined
        names, others = {j.name for j in joined}, {step.other for j in joined for step in j.steps}
        missing = sorted(name for name in others if name.lower() not in by_name)
        if missing:
            raise LayoutError(f"the layout of {name} depends on {missing[0]}, which is none of the given tables")
        keys = dict.fromkeys((*layouts.references, *(step for j in joined for step in j.steps)))
        queries = [with_joined(query, name, tuple(keys), known=names)[0] for query in bound if query.reads(name)]
        joins = Joins(joined, {name.lower(): by_name[name.lower()] for name in others})
        if queries and layouts[name].layout != ONE_BLOCK:
            scores[name] = score_source(tables[name], queries, layouts[name], sample_rows, seed, exact, joins)
        elif queries:
            scores[name] = Score.of_everything(queries, 1)
    return scores
