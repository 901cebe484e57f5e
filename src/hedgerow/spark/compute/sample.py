"""Draws a sample in one Spark job, with the values of expressions that only Spark understands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.core.effort import NORMAL
from hedgerow.core.errors import HedgerowError
from hedgerow.core.index.session_safe import is_session_safe
from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates.nodes import Feature, Predicate, Term
from hedgerow.core.predicates.sql_text import feature_text, predicate_text
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.spark.compute.evaluate import (
    analysable,
    computed,
    needed,
    rows_of,
    settings_of,
    spark_columns,
    value_or_null,
)
from hedgerow.spark.compute.joins import NO_JOINS, Joins
from hedgerow.spark.start.session import configured, first_line, spark_errors
from hedgerow.spark.storage.source import Source

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

MIN_SAMPLE_ROWS, MAX_SAMPLE_ROWS = 10_000, 1_000_000
UNCOUNTED = 3  # times as many rows are sampled if cells are counted in nothing else
_MAX_RARE_CONDITIONS = 200


def sample_size(table_rows: int, block_rows: int, each: int = NORMAL.rows) -> int:
    """Return the default number of sample rows: `each` for each block of `block_rows` rows, within limits."""
    wanted = each * -(-table_rows // block_rows)
    return min(table_rows, max(MIN_SAMPLE_ROWS, min(MAX_SAMPLE_ROWS, wanted)))


def draw(
    source: Source,
    predicates: Sequence[Predicate],
    rows: int,
    seed: int,
    terms: Sequence[Term] = (),
    joins: Joins = NO_JOINS,
) -> tuple[Sample, list[str]]:
    """Return a sample of about `rows` rows, and a sentence for each item that Spark could not evaluate."""
    if not source.rows:
        raise HedgerowError(f"the table {source.name} is empty, so there is nothing to learn from")
    wanted, schema = needed(predicates, terms), {**source.schema, **joins.schema}
    items, refused = analysable(joins.widened(source.frame, wanted), wanted, schema)
    if not items:
        raise HedgerowError(f"no query filters {source.name} on a column that Hedgerow can compare")
    drawn = source.frame.sample(rows / source.rows, seed) if rows < source.rows else source.frame
    arrow, failed = _evaluated(joins.widened(drawn, items), items)
    if not arrow.num_rows:  # a tiny table may give an empty sample
        arrow, failed = _evaluated(joins.widened(source.frame.limit(rows), items), items)
    names = computed(item for item in items if item not in failed)
    sample = Sample(rows_of(arrow, names), source.rows, schema, source.widths, source.unpacked_widths)
    return sample, refused + [f"{feature_text(item)} is left out: {why}" for item, why in failed.items()]


def with_rare_rows(
    source: Source, sample: Sample, conditions: Iterable[Predicate], few: int, most: int, joins: Joins = NO_JOINS
) -> Rows:
    """Return the sample's rows, and after them all rows of the table on which a rare condition is TRUE.

    The few rows that a sample has of a rare condition do not show the blocks of the others. The rarest conditions come
    first. Their number is limited, because each is evaluated on every row of the table.

    Args:
        few: a condition is rare if it is TRUE on at most so many rows of the sample.
        most: about so many rows are fetched.
    """
    from pyspark.sql import functions as f

    if sample.fraction == 1:
        return sample.rows
    shares = {predicate_text(p): sample.selectivity(p) for p in conditions}
    rare = sorted((s, text) for text, s in shares.items() if s is not None and s * len(sample) <= few)
    expected = np.cumsum([max(s * sample.table_rows, 1 / sample.fraction) for s, _ in rare])
    chosen = [text for (_, text), rows in zip(rare, expected, strict=True) if rows <= most][:_MAX_RARE_CONDITIONS]
    if not chosen:
        return sample.rows
    items: list[Feature] = [*sample.rows.columns, *sample.rows.truths]
    holds = f.array_contains(f.array(*map(value_or_null, chosen)), True)  # hundreds of ORs would be nested too deeply
    rare_rows = joins.widened(source.frame, items).where(holds)
    try:
        with configured(rare_rows.sparkSession, **settings_of(items)):
            arrow = rare_rows.select(*spark_columns(computed(items))).toArrow()
    except spark_errors():
        return sample.rows
    return sample.rows.followed_by(rows_of(arrow, computed(items)))


def _evaluated(frame: DataFrame, items: Sequence[Feature]) -> tuple[pa.Table, dict[Feature, str]]:
    """Return the items' values on the rows, and an error for each missing item; a user's function may fail the job."""

    def values(wanted: Sequence[Feature]) -> pa.Table:
        with configured(frame.sparkSession, **settings_of(items)):
            return frame.select(*spark_columns(computed(wanted))).toArrow()

    try:
        return values(items), {}
    except spark_errors() as error:
        if all(map(is_session_safe, items)):
            raise HedgerowError(f"the table cannot be sampled: {first_line(error)}") from error
    failed: dict[Feature, str] = {}
    for item in (i for i in items if not is_session_safe(i)):
        try:
            values([item])
        except spark_errors() as error:
            failed[item] = first_line(error)
    return values([item for item in items if item not in failed]), failed
