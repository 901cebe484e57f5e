"""Gives look-ups of ids less weight, because the filters of look-ups will serve them, not the cuts of a layout.

    WHERE event_id = '7f3a...'    cuts of a tree on event_id help this query, and no query for another id;
                                  a filter opens the file with the value, and few others, for any id

A filter still lets a few files pass that do not hold the value (its false positives). Only this share of its reads
can be saved by cuts, so it is the factor of the query's weight.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.virtual_blocks import distinct_in_table
from hedgerow.core.predicates.nodes import Column, Predicate
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.types import OTHER, Type
from hedgerow.core.pruning.spark_hash import is_hashable
from hedgerow.core.pruning.value_filter import LEAST_BYTES, best_shape, looked_up

_MAX_ROWS_OF_A_VALUE = 2.0  # rows of one value in more files are better brought together
_MARGIN = 0.8  # of the bytes that filters may take, for the written table may be smaller than its source


def without_served(
    predicates: Sequence[Predicate], weights: Sequence[float], sample: Sample, block_rows: int, share: float
) -> list[float]:
    """Return the weights of the queries; look-ups that filters will serve weigh less.

    `share`: see `WriteOptions.lookup_share`."""
    by_query = [[column for column, _ in looked_up([p])] for p in predicates]
    served = _served({c for columns in by_query for c in columns}, sample, block_rows, share)
    factors = [min((served[c] for c in columns if c in served), default=1.0) for columns in by_query]
    return [weight * factor for weight, factor in zip(weights, factors, strict=True)]


def _served(columns: Iterable[Column], sample: Sample, block_rows: int, share: float) -> dict[Column, float]:
    """Return the columns of many values that will get a filter, each with the false positives of the filter."""
    blocks = max(1, sample.table_rows // block_rows)
    left, served = _MARGIN * share * sum(sample.width.values()) * sample.table_rows, dict[Column, float]()
    for column in sorted(columns, key=term_text):
        if left < LEAST_BYTES or not is_hashable(sample.schema.get(term_text(column), Type(OTHER))):
            continue
        different = distinct_in_table(sample, column) if sample.rows.distinct(column) else 0.0
        if sample.table_rows > _MAX_ROWS_OF_A_VALUE * different:
            continue
        of_blocks = np.full(blocks, max(1, round(different / blocks)))
        shape = best_shape(of_blocks, left)
        if shape is not None:
            served[column] = shape.false_positives(of_blocks)
            left -= shape.stored_bytes(of_blocks)
    return served
