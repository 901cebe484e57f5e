"""Estimates what queries take now in each file of a table, and times what a rewrite takes."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np

from hedgerow.core.arrays import Bools, Floats
from hedgerow.core.learning.seconds import Speed
from hedgerow.core.workload.queries import Query
from hedgerow.core.workload.score import Score
from hedgerow.spark.compute.measure_speed import columns_read, frame_of
from hedgerow.spark.start.session import spark_errors
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.source import Source
from hedgerow.sql.workload import Workload

_TRIAL_BYTES = 64 << 20  # rewritten to time a rewrite
_CHECKS_AND_INDEX = 1.5  # with these, a rewrite takes this many times as long as by Spark alone


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
        seconds[files] += query.weight * (speed.file + speed.of_a_byte_now(query.id) * read * sizes[files])
        weights += query.weight
    return seconds / weights


def mean_seconds(score: Score, workload: Workload, source: Source, speed: Speed) -> float:
    """Return the mean seconds of the workload's queries in the table as it is, from the share that each reads."""
    weights = {query.id: query.weight for query in workload}
    seconds = [
        weights[q.id] * speed.now(q.id, q.blocks_read * score.blocks, source.size * q.bytes_read) for q in score.queries
    ]
    return sum(seconds) / sum(weights[q.id] for q in score.queries)


def seconds_to_rewrite(source: Source, folder: str) -> float | None:
    """Return the seconds that a rewrite takes for each byte: some files are read, divided, sorted and written.

    The files are written to a new folder, which is then deleted. None if the table's files are not known, or cannot be
    read by themselves."""
    files = source.files[: max(1, int(_TRIAL_BYTES * len(source.files) / max(1.0, source.size)))]
    if not files:
        return None
    frame = frame_of(source, files)
    column = next(iter(source.widths))
    target = Folder(frame.sparkSession, folder)
    begun = perf_counter()
    try:
        frame.repartitionByRange(column).sortWithinPartitions(column).write.parquet(folder)
        return _CHECKS_AND_INDEX * (perf_counter() - begun) / (source.size * len(files) / len(source.files))
    except spark_errors():
        return None
    finally:
        target.delete()
