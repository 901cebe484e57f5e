"""Measures how fast queries run over some files of a table here."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.core.arrays import Floats
from hedgerow.core.learning.seconds import Speed
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.workload.columns_read import read_columns
from hedgerow.core.workload.queries import Query, shape
from hedgerow.spark.start.session import configured, spark_errors
from hedgerow.spark.storage.delta_log import delta_log
from hedgerow.spark.storage.paths import escape_glob
from hedgerow.spark.storage.source import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MAX_SHAPES = 5  # of queries that are timed
_READ_BYTES = 64 << 20  # in the columns of a query
_MAX_FILES = 32
_PARTS = 4  # of a table, in which Spark skips what it can
_COUNTS = 3  # of which the fastest counts
_LEAST_SECONDS_OF_A_FILE = 0.0005


def measured_speed(source: Source, queries: Sequence[Query], read: Sequence[str] = ()) -> Speed | None:
    """How fast queries read the table: some of each common shape are timed. None if that cannot be done.

    `read`: the files that queries read, the most read first, if that is known; else some of all."""
    if not source.files:
        return None
    shapes = _by_shape(source, queries)[:_MAX_SHAPES]
    sizes = [source.rows * sum(source.widths[name] for name in columns_read(source, some[0])) for some in shapes]
    share = min(_MAX_FILES / len(source.files), _READ_BYTES * len(shapes) / max(1.0, sum(sizes)))
    # As many as are read at once: of one file alone all rows may be read by one task, which the others wait for.
    least = min(_MAX_FILES, len(source.files), source.frame.sparkSession.sparkContext.defaultParallelism)
    count = max(least, int(min(1.0, share) * len(source.files)))
    parts = [read[:count]] if read else _spread(source.files, count)
    count = len(parts[0])
    sizes = [max(1.0, size * count / len(source.files)) for size in sizes]
    try:
        frames = [frame_of(source, files) for files in parts]
        short = frame_of(source, parts[0][:1])
        for some in shapes:  # Java compiles what a query does when it first runs
            _seconds(_job(short, source, some[0]))
        took = _took(source, frames, shapes)
        start, file = _fixed_parts(source, shapes)  # last: Java is slower at first
        spent, by_itself = (np.maximum(0.0, seconds - start - file * count) for seconds in took)
        start += _planning(source, shapes[0][0], frames[0])
    except spark_errors():
        return None  # a condition fails on some row, or asks for a column that is in the names of folders
    rates, unskipped = (spent / sizes).tolist(), np.minimum(1, by_itself / np.maximum(1e-9, spent)).tolist()
    return Speed(
        start,
        file,
        float(spent.sum() / sum(sizes)),
        min(1.0, float(by_itself.sum() / max(1e-9, spent.sum()))),
        {query.id: rate for some, rate in zip(shapes, rates, strict=True) for query in some},
        {query.id: part for some, part in zip(shapes, unskipped, strict=True) for query in some},
    )


def _spread(files: Sequence[str], count: int) -> list[Sequence[str]]:
    """Parts of the table, each of so many files from all over it."""
    step = len(files) // count
    starts = [(2 * i + 1) * step // (2 * _PARTS) for i in range(_PARTS)]
    return [files[start::step][:count] for start in starts]


def _took(source: Source, parts: Sequence[DataFrame], shapes: Sequence[Sequence[Query]]) -> tuple[Floats, Floats]:
    """The seconds of each shape: of a query that has to read everything; and the mean of some as it is.

    What Spark skips depends on the literals, and on where in the table their rows are. The first query of a shape has
    run already; others have Spark write new code for their literals, as most that users ask do."""
    with configured(source.frame.sparkSession, parquet__filterPushdown=False):
        whole = [_seconds(_job(parts[0], source, some[-1])) for some in shapes]
    as_it_is = [
        fmean(_seconds(_job(part, source, some[(i + 1) * len(some) // len(parts) - 1])) for i, part in enumerate(parts))
        for some in shapes
    ]
    return np.array(whole), np.array(as_it_is)


def _by_shape(source: Source, queries: Sequence[Query]) -> list[list[Query]]:
    """The queries, those together that differ in literals only; what is asked most comes first."""
    found: dict[tuple[str, ...], list[Query]] = {}
    for query in queries:
        found.setdefault((shape(query.predicate(source.name)), *columns_read(source, query)), []).append(query)
    return sorted(found.values(), key=lambda some: -sum(query.weight for query in some))


def _fixed_parts(source: Source, shapes: Sequence[Sequence[Query]]) -> tuple[float, float]:
    """The seconds of a query that has one row to read, and those of opening a file, which is all that a count does.

    As many files as can be share a task, as small files do: of large ones each part would be a task, which takes longer
    than to open it."""
    some = source.files[:_MAX_FILES]
    first, all_ = frame_of(source, some[:1]), frame_of(source, some)
    with configured(source.frame.sparkSession, files__maxPartitionBytes="1t", files__openCostInBytes="0"):
        one, many = (_fastest(frame.groupBy().count()) for frame in (first, all_))
        took = [[_seconds(_job(first.limit(1), source, query)) for query in (some[0], some[-1])] for some in shapes]
        anyhow = fmean(seconds for _, seconds in took)  # the first has Java compile what such queries do
    file = max(_LEAST_SECONDS_OF_A_FILE, (many - one) / max(1, len(some) - 1))
    return max(0.0, one - file, anyhow - file), file


def _fastest(job: DataFrame) -> float:
    """The fastest of some runs, after one in which Java compiles what the job does."""
    _seconds(job)
    return min(_seconds(job) for _ in range(_COUNTS))


def _planning(source: Source, query: Query, files: DataFrame) -> float:
    """How much longer a query of a Delta table is planned than one of its files: Delta asks its log for each."""
    if source.version is None:
        return 0.0
    spark = source.frame.sparkSession
    table = spark.read.format("delta").load(delta_log(spark, source.origin).path)

    def seconds(frame: DataFrame) -> float:
        begun = perf_counter()
        frame.where(predicate_text(query.predicate(source.name))).inputFiles()
        return perf_counter() - begun

    own, plain = (min(seconds(frame) for _ in range(_COUNTS)) for frame in (table, files))
    return max(0.0, own - plain)


def frame_of(source: Source, files: Sequence[str]) -> DataFrame:
    """Return the rows of some of the source's files."""
    return source.frame.sparkSession.read.parquet(*map(escape_glob, files))


def columns_read(source: Source, query: Query) -> list[str]:
    """Return the source's columns that the query reads."""
    names = read_columns(query.columns(source.name), query.predicate(source.name))
    lower = None if names is None else {name.lower() for name in names}
    return [name for name in source.widths if lower is None or name.lower() in lower]


def _job(frame: DataFrame, source: Source, query: Query) -> DataFrame:
    """Reads what the query reads. What it does with the rows is not known: a query of all columns most likely returns
    them, another one may sum them up."""
    from pyspark.sql import functions as f

    columns = columns_read(source, query)
    rows = frame.where(predicate_text(query.predicate(source.name)))
    return rows if len(columns) == len(source.widths) else rows.agg(f.count("*"), *(f.count(f.col(c)) for c in columns))


def _seconds(job: DataFrame) -> float:
    again = job.select("*")  # a plan of its own: a plan that has run keeps what it shuffled
    begun = perf_counter()
    again.write.format("noop").mode("overwrite").save()
    return perf_counter() - begun
