"""Give each row its block, inside Spark: as a SQL expression where the layout has one, else on Arrow batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hedgerow.core.errors import LayoutError
from hedgerow.core.index.session_safe import steady
from hedgerow.core.layouts.base import Feature, Layout, layout_from_json, layout_to_json, sql_of
from hedgerow.core.layouts.curve import CurveLayout
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.predicates.types import Type
from hedgerow.spark.compute.evaluate import columns, computed, needed, rows_of, settings_of, tried, usable
from hedgerow.spark.helper_columns import helper_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BLOCK = helper_name("block")
_HUGE_TEXT = 40_000  # of so long a text Spark cannot compile one method for a whole stage, so that is not tried


def settings_for(layout: Layout) -> dict[str, int | bool]:
    """With which `configured` makes the routing of rows fast."""
    huge = len(layout.assign_sql() or "") > _HUGE_TEXT
    whole = {"codegen__wholeStage": False} if huge else {}
    return {**whole, **settings_of(layout.features)}


def with_block(frame: DataFrame, layout: Layout, schema: Mapping[str, Type]) -> DataFrame:
    """The frame with one more column, the block id."""
    predicates = [x for x in layout.features if isinstance(x, Predicate)]
    terms = [x for x in layout.features if not isinstance(x, Predicate)]
    items, refused = usable(frame, needed(predicates, terms), schema)
    if refused:
        raise LayoutError(f"the layout does not fit the table: {refused[0]}")
    by_sql = _by_sql(frame, layout)
    return _by_arrow(frame, layout, computed(items)) if by_sql is None else by_sql


def order_inside(layout: Layout, sort_by: Sequence[str], by_key: bool) -> list[str | Column]:
    """What the rows of a file are sorted by: with `by_key` first along the curve that the layout follows, if any, so
    that the bounds of a row group are narrow in all columns of the curve."""
    from pyspark.sql import functions as f

    if not (by_key and isinstance(layout, CurveLayout) and all(map(steady, layout.features))):
        return list(sort_by)
    key = layout.key_sql()
    return list(sort_by) if key is None else [f.expr(key), *sort_by]


def _by_sql(frame: DataFrame, layout: Layout) -> DataFrame | None:
    """Rows never leave the JVM. What may fail and what is used often become columns for a while."""
    from pyspark.sql import functions as f

    guarded: dict[Feature, str] = {}

    def write(feature: Feature) -> str:
        if steady(feature):
            return sql_of(feature)
        return guarded.setdefault(feature, helper_name(f"feature_{len(guarded)}"))

    parts: dict[str, str] = {}

    def let(part: str) -> str:
        return parts.setdefault(part, helper_name(f"part_{len(parts)}"))

    sql = layout.assign_sql(write, let)
    if sql is None:
        return None
    wide = frame.withColumns({name: tried(sql_of(feature)) for feature, name in guarded.items()})
    for part, name in parts.items():
        wide = wide.withColumn(name, f.expr(part))
    return wide.withColumn(BLOCK, f.expr(f"CAST({sql} AS INT)")).drop(*guarded.values(), *parts.values())


def _by_arrow(frame: DataFrame, layout: Layout, names: Mapping[str, Feature]) -> DataFrame:
    from pyspark.sql import functions as f
    from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # its stubs forget it

    if not names:
        return frame.withColumn(BLOCK, f.lit(0))
    stored = layout_to_json(layout)

    @arrow_udf("int")  # type: ignore[untyped-decorator]
    def block(*arrays: pa.Array) -> pa.Array:
        batch = pa.record_batch(list(arrays), names=list(names))
        return pa.array(_layout(stored).assign(rows_of(batch, names)).astype(np.int32))

    return frame.withColumn(BLOCK, block(*columns(names)))


@lru_cache(maxsize=4)
def _layout(stored: str) -> Layout:
    """A worker sees the same layout with every batch."""
    return layout_from_json(stored)
