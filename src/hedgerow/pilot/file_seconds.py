"""Estimates the seconds that queries take now in each file of a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.core.arrays import Bools, Floats
from hedgerow.core.learning.seconds import Speed
from hedgerow.core.workload.queries import Query
from hedgerow.core.workload.score import Score
from hedgerow.spark.compute.measure_speed import columns_read
from hedgerow.spark.storage.source import Source
from hedgerow.sql.workload import Workload


def seconds_as_it_is(source: Source, queries: Sequence[Query], speed: Speed) -> float:
    """Return the mean seconds of the queries in a table of which they open every file."""
    count = len(source.files)
    sizes = np.full(count, source.size / max(1, count))
    return speed.query + float(seconds_in_files(source, speed, sizes, [(q, sizes >= 0) for q in queries]).sum())


def seconds_in_files(source: Source, speed: Speed, sizes: Floats, opened: Sequence[tuple[Query, Bools]]) -> Floats:
    """Return the mean seconds that a query spends in each of the table's files; `opened`: the files that each opens."""
    whole, weights, seconds = sum(source.widths.values()) or 1.0, 0.0, np.zeros(len(sizes))
    for query, files in opened:
        read = sum(source.widths[name] for name in columns_read(source, query)) / whole
        own = speed.of_query(query.id)
        seconds[files] += query.weight * (own.file + own.byte * own.unskipped * read * sizes[files])
        weights += query.weight
    return seconds / weights


def mean_seconds(score: Score, workload: Workload, source: Source, speed: Speed) -> float:
    """Return the mean seconds of the workload's queries in the table as it is, from the share that each reads."""
    weights = {query.id: query.weight for query in workload}
    seconds = [
        weights[q.id] * speed.now(q.id, q.blocks_read * score.blocks, source.size * q.bytes_read) for q in score.queries
    ]
    return sum(seconds) / sum(weights[q.id] for q in score.queries)
