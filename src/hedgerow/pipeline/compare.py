"""compare: runs a query as it is, and again with skipping, and times both."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING

from hedgerow.core.errors import HedgerowError
from hedgerow.pipeline.route import route
from hedgerow.spark.compute.checksum import checksum
from hedgerow.spark.start.jar import gateway
from hedgerow.spark.start.progress import step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROUNDS = 2  # the first round fills the caches; the faster one counts


@dataclass(frozen=True)
class Side:
    """One way to run a query: the files that it opens, with their bytes, its seconds, and its rows."""

    name: str
    files: int
    bytes: int
    seconds: float
    rows: int


def compare(spark: SparkSession, sql: str) -> tuple[Side, Side]:
    """Run the query as it is and routed, in turn; HedgerowError if the results differ."""
    sides: dict[str, Side] = {}
    answers = set()
    for _ in range(_ROUNDS):
        for name, frame in (("plain", spark.sql(sql)), ("skipping", route(spark, sql))):
            with step(spark, f"running the query, {name}"):
                begun = perf_counter()
                answer = checksum(frame)
                seconds = perf_counter() - begun
            if name not in sides:
                files, size = json.loads(gateway(spark).listed(frame._jdf))
                sides[name] = Side(name, files, size, seconds, answer.rows)
            sides[name] = replace(sides[name], seconds=min(seconds, sides[name].seconds))
            answers.add(answer)
    if len(answers) > 1:
        raise HedgerowError("the two results differ: does the query return the same rows each time?")
    return sides["plain"], sides["skipping"]
