"""Give each row its block, inside Spark: as a SQL expression where the layout has one, else on Arrow batches."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hedgerow.core.errors import LayoutError
from hedgerow.core.expr import Predicate
from hedgerow.core.layout import Layout, layout_from_json, layout_to_json
from hedgerow.core.types import Type
from hedgerow.spark.evaluate import columns, computed, needed, rows_of, usable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BLOCK = "_hedgerow_block"


@lru_cache(maxsize=4)
def _layout(stored: str) -> Layout:
    """A worker sees the same layout with every batch."""
    return layout_from_json(stored)


def with_block(frame: DataFrame, layout: Layout, schema: Mapping[str, Type]) -> DataFrame:
    """The frame with one more column, the block id."""
    from pyspark.sql import functions as f
    from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # its stubs forget it

    sql = layout.assign_sql()
    if sql is not None:
        return frame.withColumn(BLOCK, f.expr(f"CAST({sql} AS INT)"))
    predicates = [x for x in layout.features if isinstance(x, Predicate)]
    terms = [x for x in layout.features if not isinstance(x, Predicate)]
    items, refused = usable(frame, needed(predicates, terms), schema)
    if refused:
        raise LayoutError(f"the layout does not fit the table: {refused[0]}")
    if not items:
        return frame.withColumn(BLOCK, f.lit(0))
    names = computed(items)
    stored = layout_to_json(layout)

    @arrow_udf("int")  # type: ignore[untyped-decorator]
    def block(*arrays: pa.Array) -> pa.Array:
        batch = pa.record_batch(list(arrays), names=list(names))
        return pa.array(_layout(stored).assign(rows_of(batch, names)).astype(np.int32))

    return frame.withColumn(BLOCK, block(*columns(names)))
