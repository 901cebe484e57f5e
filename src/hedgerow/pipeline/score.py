"""score: what a workload would read under a layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from hedgerow.core.errors import LayoutError, warn
from hedgerow.core.layouts.base import Layout
from hedgerow.core.learning.score_layout import score_layout
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.workload.conditions_to_note import conditions_to_note
from hedgerow.core.workload.queries import Query, Workload
from hedgerow.core.workload.score import QueryScore, Score
from hedgerow.pipeline.estimate_seconds import seconds_of, with_runs
from hedgerow.pipeline.inputs import at_least_one, opened_with_queries
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.several_tables import WHOLE, LearnedTables, bound_to, opened_tables, tables_in
from hedgerow.spark.compute.joins import NO_JOINS, Joins
from hedgerow.spark.compute.sample import draw, sample_size
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import in_own_session
from hedgerow.spark.storage.source import Source
from hedgerow.sql.joined_conditions import with_joined

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@overload
def score(
    spark: SparkSession,
    source: str | Mapping[str, Any],
    workload: Workload,
    layout: LearnedTables,
    *args: Any,
    **how: Any,
) -> dict[str, Score]: ...
@overload
def score(
    spark: SparkSession,
    source: str | Sequence[str] | DataFrame,
    workload: Workload,
    layout: Layout | Learned,
    *args: Any,
    **how: Any,
) -> Score: ...
@in_own_session
def score(
    spark: SparkSession,
    source: str | Sequence[str] | DataFrame | Mapping[str, Any],
    workload: Workload,
    layout: Layout | Learned | LearnedTables,
    sample_rows: int | None = None,
    seed: int = 1,
    exact: bool = False,
    *,
    table: str | None = None,
) -> Score | dict[str, Score]:
    """The share of the table that the workload would read under the layout: of a fresh sample, or of all rows.

    With an estimate of the seconds that a query takes now and would take, measured on some files of the table. Of
    several tables, as they were learned, a score for each that some query reads."""
    if isinstance(layout, LearnedTables):
        return _scores(spark, source, workload, layout, sample_rows, seed, exact)
    if isinstance(source, Mapping):
        raise LayoutError("several tables need the layouts of several tables")
    if isinstance(layout, Learned) and layout.joined:
        raise LayoutError(f"the layout of {layout.table} looks at other tables: score it together with them")
    with step(spark, "looking at the table"):
        named = table or (layout.table if isinstance(layout, Learned) else None)
        opened, queries, skipped = opened_with_queries(spark, source, workload, named)
    result = scored(opened, queries, layout, sample_rows, seed, exact, timed=True)
    with step(spark, "measuring"):
        seconds = seconds_of(opened, queries, result)
    warn(f"{len(skipped)} of {len(workload)} queries are left out", skipped)
    return replace(result, seconds=seconds.then, seconds_now=seconds.now) if seconds else result


def _scores(
    spark: SparkSession,
    source: Any,
    workload: Workload,
    learned: LearnedTables,
    sample_rows: int | None,
    seed: int,
    exact: bool,
) -> dict[str, Score]:
    tables = opened_tables(spark, tables_in(spark, source) if isinstance(source, str) else source)
    bound = bound_to(tables, workload)
    by_name = {name.lower(): source for name, source in tables.items()}
    found = {}
    for name in (name for name in learned if name in tables):
        joined = learned[name].joined
        known, others = {j.name for j in joined}, {step.other for j in joined for step in j.steps}
        missing = sorted(other for other in others if other.lower() not in by_name)
        if missing:
            raise LayoutError(f"the layout of {name} looks at {missing[0]}: score it together with that")
        queries = [with_joined(query, name, learned.references, known=known)[0] for query in bound if query.reads(name)]
        joins = Joins(joined, {other.lower(): by_name[other.lower()] for other in others})
        if queries and learned[name].layout != WHOLE:
            found[name] = scored(tables[name], queries, learned[name], sample_rows, seed, exact, joins)
        elif queries:
            whole = [QueryScore(query.id, 1.0, 1.0, 1.0, None) for query in queries]
            found[name] = Score.mean(whole, [query.weight for query in queries], 1)
    return found


def scored(
    opened: Source,
    queries: Sequence[Query],
    layout: Layout | Learned,
    sample_rows: int | None,
    seed: int,
    exact: bool,
    joins: Joins = NO_JOINS,
    timed: bool = False,
) -> Score:
    """What the queries would read under the layout, with an index that describes what they ask.

    `timed`: also what Parquet would skip, which only an estimate of seconds needs."""
    spark = opened.frame.sparkSession
    plain = layout.layout if isinstance(layout, Learned) else layout
    predicates = [q.predicate(opened.name) for q in queries]
    feature_terms = [x for x in plain.features if not isinstance(x, Predicate)]
    predicates += [x for x in plain.features if isinstance(x, Predicate)]
    wanted = at_least_one("sample_rows", sample_rows) or sample_size(opened.rows, max(1, opened.rows // plain.blocks))
    with step(spark, "scoring"):
        sample, _ = draw(opened, predicates, opened.rows if exact else wanted, seed, feature_terms, joins)
        noted = layout.noted if isinstance(layout, Learned) else conditions_to_note(predicates, sample.rows.distinct)
        known = sample.noting(noted)
        result = score_layout(plain, known, queries, opened.name)
        if not (timed and isinstance(layout, Learned)):
            return result
        return with_runs(result, plain, layout.sort_by, known, queries, opened.name)
