"""Assigns each row its block inside Spark: by a SQL expression where the layout has one, else on Arrow batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hedgerow.core.errors import LayoutError
from hedgerow.core.index.session_safe import is_session_safe
from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.curve import CurveLayout
from hedgerow.core.layouts.layout_json import layout_from_json, layout_to_json
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.predicates.nodes import Column, Compare, Feature, In, Predicate, Prefix, columns_in
from hedgerow.core.predicates.sql_text import feature_text, predicate_text, quote_name
from hedgerow.core.predicates.types import Type
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
from hedgerow.spark.helper_columns import helper_name
from hedgerow.spark.start.ship import ship_modules

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

BLOCK = helper_name("block")
_MAX_SQL_NODES = 10_000  # of a tree; Spark needs minutes and gigabytes to plan a much larger one
_MAX_COMPILED_SQL = 20_000  # characters; Spark may fail to compile longer expressions into one method for the stage


def settings_for(layout: Layout, beside: Sequence[Feature] = ()) -> dict[str, int | bool]:
    """Return settings for `configured`, with which Spark is fast at routing rows and at evaluating more items."""
    length = len(layout.assign_sql() or "") + sum(len(feature_text(item)) for item in beside)
    whole_stage = {"codegen__wholeStage": False} if length > _MAX_COMPILED_SQL else {}
    return {**whole_stage, **settings_of([*layout.features, *beside])}


def with_block(frame: DataFrame, layout: Layout, schema: Mapping[str, Type], joins: Joins = NO_JOINS) -> DataFrame:
    """Add the column `BLOCK`, the block id of each row."""
    own_columns = [quote_name(name) for name in frame.columns]
    needs_joins = bool(joins.needed(layout.features))
    frame, schema = joins.widened(frame, layout.features), {**schema, **joins.schema}
    predicates = [x for x in layout.features if isinstance(x, Predicate)]
    terms = [x for x in layout.features if not isinstance(x, Predicate)]
    wanted = needed(predicates, terms)
    items, refused = analysable(frame, wanted, schema)
    existing = {name.lower() for name in (*own_columns, *(quote_name(joined.name) for joined in joins.joined))}
    used = sorted({quote_name(column.path[0]) for item in wanted for column in columns_in(item)})
    missing = [name for name in used if name.lower() not in existing]
    if missing:
        raise LayoutError(f"the layout does not fit the table, which has no column {missing[0]}")
    why = "has values that cannot be compared, or lacks a field that it had"
    refused += [f"{feature_text(item)} {why}" for item in wanted if item not in items]
    if refused:
        raise LayoutError(f"the layout does not fit the table: {refused[0]}")
    routed = _routed_by_sql(frame, layout)
    if routed is None:
        routed = _routed_by_arrow(frame, layout, computed(items))
    return routed.select(*own_columns, BLOCK) if needs_joins else routed


def order_inside(layout: Layout, sort_by: Sequence[str], by_key: bool) -> list[str | SparkColumn]:
    """Return the sort order inside a file; with `by_key`, the key of the layout's curve comes first, if it has one.

    That makes the bounds of a row group narrow in all columns of the curve."""
    from pyspark.sql import functions as f

    if not (by_key and isinstance(layout, CurveLayout) and all(map(is_session_safe, layout.features))):
        return list(sort_by)
    key = layout.key_sql()
    return list(sort_by) if key is None else [f.expr(key), *sort_by]


def _routed_by_sql(frame: DataFrame, layout: Layout) -> DataFrame | None:
    """Assign blocks inside the JVM; expressions that may fail, or are used often, become temporary columns."""
    from pyspark.sql import functions as f

    if isinstance(layout, TreeLayout) and len(layout.nodes) > _MAX_SQL_NODES:
        return None
    guarded: dict[Feature, str] = {}

    def column_of(feature: Feature) -> str:
        return guarded.setdefault(feature, helper_name(f"feature_{len(guarded)}"))

    def feature_sql(feature: Feature) -> str:
        if is_session_safe(feature):
            return feature_text(feature)
        if isinstance(feature, Compare | In | Prefix):  # NULL where its term is NULL, so conditions share a column
            return predicate_text(replace(feature, term=Column((column_of(feature.term),))))
        return column_of(feature)

    parts: dict[str, str] = {}

    def part_column(part: str) -> str:
        return parts.setdefault(part, helper_name(f"part_{len(parts)}"))

    sql = layout.assign_sql(feature_sql, part_column)
    if sql is None:
        return None
    wide = frame.withColumns({name: value_or_null(feature_text(feature)) for feature, name in guarded.items()})
    for part, name in parts.items():
        wide = wide.withColumn(name, f.expr(part))
    return wide.withColumn(BLOCK, f.expr(f"CAST({sql} AS INT)")).drop(*guarded.values(), *parts.values())


def _routed_by_arrow(frame: DataFrame, layout: Layout, names: Mapping[str, Feature]) -> DataFrame:
    from pyspark.sql import functions as f
    from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # missing in PySpark's stubs

    if not names:
        return frame.withColumn(BLOCK, f.lit(0))
    layout_json = layout_to_json(layout)
    ship_modules(frame.sparkSession)

    @arrow_udf("int")  # type: ignore[untyped-decorator]
    def block(*arrays: pa.Array) -> pa.Array:
        batch = pa.record_batch(list(arrays), names=list(names))
        return pa.array(_cached_layout(layout_json).assign(rows_of(batch, names)).astype(np.int32))

    return frame.withColumn(BLOCK, block(*spark_columns(names)))


@lru_cache(maxsize=4)
def _cached_layout(layout_json: str) -> Layout:
    """Parse a layout once per worker, not once per batch."""
    return layout_from_json(layout_json)
