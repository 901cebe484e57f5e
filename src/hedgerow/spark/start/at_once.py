"""Does several pieces of work at once, each in a session of its own that has the settings of the caller's.

The jobs share the cores of one Spark application; with `spark.scheduler.mode=FAIR` they get equal shares of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, TypeVar

from hedgerow.core.errors import HedgerowError
from hedgerow.spark.start.progress import without_bars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
U = TypeVar("U")


def each_at_once(
    spark: SparkSession, work: Callable[[SparkSession, T], U], items: Sequence[T], most: int
) -> Iterator[tuple[T, U | HedgerowError]]:
    """Do the work for at most so many items at once; yield each item with its result, or with the error that ended it.

    They come in the order in which they end. If the caller stops, work that has begun goes on, and no other begins."""
    from pyspark import inheritable_thread_target

    def one(item: T) -> U | HedgerowError:
        own = spark.__class__(spark.sparkContext, spark._jsparkSession.cloneSession())
        own.sparkContext.setLocalProperty("spark.scheduler.pool", f"hedgerow-{items.index(item) % most}")
        with without_bars():
            try:
                return work(own, item)
            except HedgerowError as error:
                return error

    threads = ThreadPoolExecutor(most)
    try:
        running = {threads.submit(inheritable_thread_target(spark)(one), item): item for item in items}
        for done in as_completed(running):
            yield running[done], done.result()
    finally:
        threads.shutdown(cancel_futures=True)
