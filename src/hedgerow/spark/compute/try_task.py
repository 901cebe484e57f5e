"""Runs a task in an executor's Python, to see whether it has what Hedgerow's tasks need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from hedgerow.core.compiled_loop import HAS_NUMBA
from hedgerow.spark.compute import collect_stats as collect_stats  # imports what tasks need
from hedgerow.spark.start.ship import ship_modules
from hedgerow.spark.storage import footers as footers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def try_task(spark: SparkSession) -> bool:
    """Return whether executors have numba; one of `spark_errors` if they cannot run Hedgerow's tasks."""
    ship_modules(spark)
    rows = spark.range(1).mapInArrow(_imported, "numba boolean").collect()
    return all(row.numba for row in rows)


def _imported(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield whether numba is at hand. A worker that gets here has imported this module, so all that tasks need."""
    yield from (pa.record_batch({"numba": [HAS_NUMBA]}) for _ in batches)
