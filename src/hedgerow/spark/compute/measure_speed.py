"""Measures how fast queries of a table run in this session, over some of its files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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

_MAX_SHAPES = 8  # the number of shapes of queries that are timed
_READ_BYTES = 64 << 20  # a timed query reads about so many bytes, in its columns
_MAX_FILES = 32  # a timed query reads at most so many files
_PARTS = 4  # the parts of the table in which queries are timed while Spark skips row groups
_REPEATS = 3  # a short job runs so often
_SHORT = 2.0  # seconds of a run that is repeated
_MOST_SECONDS = 40.0  # for timing whole queries
_WARMING = 5  # short jobs of each shape before anything is timed
_PLANNED = 20  # plans of a query: with Delta the first takes a second, and the twentieth a tenth of that
# The seconds of opening a file, and each column of it on one core. Few files cannot tell. Parquet fetches the columns
# of a whole row group at once, so the files of another writer would show the seconds of their own large groups.
_MIN_FILE_SECONDS, _COLUMN_SECONDS = 0.002, 0.0008
_ROWS_UNTIL_COMPILED = 100_000  # a query with new literals reads so many rows slowly: 60,000 in each of some tasks


def measured_speed(source: Source, queries: Sequence[Query]) -> Speed | None:
    """Return how fast queries read the table, from timing some queries of each common shape; None if that fails."""
    if not source.files:
        return None
    shapes = _by_shape(source, queries)[:_MAX_SHAPES]
    sizes = [source.rows * sum(source.widths[name] for name in columns_read(source, alike[0])) for alike in shapes]
    share = min(_MAX_FILES / len(source.files), _READ_BYTES * len(shapes) / max(1.0, sum(sizes)))
    # At least one file for each core: a single file may be read by one task while the other cores wait.
    least = min(_MAX_FILES, len(source.files), source.frame.sparkSession.sparkContext.defaultParallelism)
    count = max(least, int(min(1.0, share) * len(source.files)))
    parts = _spread(source.files, count)[: 2 if count == len(source.files) else _PARTS]
    sizes = [max(1.0, size * count / len(source.files)) for size in sizes]
    try:
        frames = [frame_of(source, files) for files in parts]
        short = frame_of(source, parts[0][:1])
        for i in range(_WARMING):  # Java is slow at first: at new queries, too
            for alike in shapes:
                _seconds(_job(short, source, alike[i % len(alike)]))
        full, skipping = _times(source, frames, shapes)
        shapes, sizes = shapes[: len(full)], sizes[: len(full)]
        again, starts, first, file = _fixed_parts(source, shapes)
        full = np.maximum(0.0, full - again - file * count)
        skipping = np.maximum(0.0, skipping - starts - file * count)
        starts += _planning(source, shapes[0][0], frames[0])
    except spark_errors():
        return None  # such as a condition that fails on some row
    of_shapes, rows = [], max(1.0, source.rows * count / len(source.files))
    for start, opening, reading, slow, skipped, size in zip(starts, file, full, first, skipping, sizes, strict=True):
        speed = Speed(start, opening, max(1e-15, reading / size), 1.0, slow, size / rows * _ROWS_UNTIL_COMPILED)
        of_shapes.append(replace(speed, unskipped=min(1.0, speed.read_in(skipped) / size)))
    return Speed(
        float(starts.mean()),
        float(file.mean()),
        float(full.sum() / sum(sizes)),
        float(np.average([speed.unskipped for speed in of_shapes], weights=full + 1e-9)),
        float(first.mean()),
        float(np.mean([speed.first_bytes for speed in of_shapes])),
        {query.id: speed for alike, speed in zip(shapes, of_shapes, strict=True) for query in alike},
    )


def _spread(files: Sequence[str], count: int) -> list[Sequence[str]]:
    """Return `_PARTS` parts of the table, each of `count` files from all over it."""
    step = len(files) // count
    starts = [(2 * i + 1) * step // (2 * _PARTS) for i in range(_PARTS)]
    return [files[start::step][:count] for start in starts]


def _times(source: Source, parts: Sequence[DataFrame], shapes: Sequence[Sequence[Query]]) -> tuple[Floats, Floats]:
    """Return for each shape the seconds without Spark's skipping of row groups, and the mean seconds with it.

    Those without are of a query that has run already. The rows that Spark skips depend on the literals, and on the part
    of the table, so those with it are of several queries, for which Java compiles new code. When the time for it is
    over, the rarest shapes are left out."""
    full, skipping = [], []
    begun = perf_counter()
    for alike in shapes:
        with configured(source.frame.sparkSession, parquet__filterPushdown=False):
            seconds = _seconds(_job(parts[0], source, alike[0]))
            if seconds < _SHORT:  # a long run errs less
                seconds = min(seconds, _seconds(_job(parts[1], source, alike[0])))
        full.append(seconds)
        queries = [alike[(i + 1) * len(alike) // len(parts) - 1] for i in range(len(parts))]
        skipping.append(fmean(_seconds(_job(part, source, q)) for part, q in zip(parts, queries, strict=True)))
        if perf_counter() - begun > _MOST_SECONDS:
            break
    return np.array(full), np.array(skipping)


def _by_shape(source: Source, queries: Sequence[Query]) -> list[list[Query]]:
    """Return the queries in lists that differ only in literals; the list with the largest weight comes first."""
    shapes: dict[tuple[str, ...], list[Query]] = {}
    for query in queries:
        shapes.setdefault((shape(query.predicate(source.name)), *columns_read(source, query)), []).append(query)
    return sorted(shapes.values(), key=lambda alike: -sum(query.weight for query in alike))


def _fixed_parts(source: Source, shapes: Sequence[Sequence[Query]]) -> tuple[Floats, Floats, Floats, Floats]:
    """Return for each shape the seconds of a query that reads one row, if it runs again and if its literals are new.

    Also return what a query with new literals, as most are, takes longer for all rows of a file: the first of them are
    slow, until Java has compiled the query's code. The last result is the seconds of opening a file.

    All files share one task, as small files do. Otherwise each part of a large file would be a task of its own, which
    takes longer than opening the file. The limit to one row is a stage of its own, whose time does not count."""
    spark, files = source.frame.sparkSession, source.files[:_MAX_FILES]
    first, all_ = frame_of(source, files[:1]), frame_of(source, files)
    with configured(spark, files__maxPartitionBytes="1t", files__openCostInBytes="0"):
        one_file, limited, many_files = (_fastest(f.groupBy().count()) for f in (first, first.limit(1), all_))
        row = first.limit(1)
        again = np.array([_fastest(_job(row, source, alike[0])) for alike in shapes])
        new = np.array([min(_seconds(_job(row, source, query)) for query in alike[-_REPEATS:]) for alike in shapes])
    with configured(spark, parquet__filterPushdown=False):
        rows_again = np.array([min(_seconds(_job(first, source, alike[0])) for _ in range(2)) for alike in shapes])
        rows_new = np.array([min(_seconds(_job(first, source, q)) for q in alike[-_REPEATS:]) for alike in shapes])
    widths = np.array([len(columns_read(source, alike[0])) for alike in shapes])
    each = max(_MIN_FILE_SECONDS, (many_files - one_file) / max(1, len(files) - 1))
    file = each + widths * _COLUMN_SECONDS / spark.sparkContext.defaultParallelism
    least, stage = max(0.0, one_file - file.min()), max(0.0, limited - one_file)
    again, new = (np.maximum(least, seconds - stage - file) for seconds in (again, np.maximum(again, new)))
    return again, new, np.maximum(0.0, rows_new - rows_again - (new - again)), file


def _fastest(job: DataFrame) -> float:
    """Return the seconds of the fastest run, after one in which Java compiles the job's code."""
    _seconds(job)
    return min(_seconds(job) for _ in range(_REPEATS))


def _planning(source: Source, query: Query, files: DataFrame) -> float:
    """Return the extra seconds of planning a query of a Delta table, because Delta reads its log for each query."""
    if source.version is None:
        return 0.0
    spark = source.frame.sparkSession
    table = spark.read.format("delta").load(delta_log(spark, source.origin).path)

    def seconds(frame: DataFrame) -> float:
        begun = perf_counter()
        frame.where(predicate_text(query.predicate(source.name))).inputFiles()
        return perf_counter() - begun

    of_delta, of_files = (min(seconds(frame) for _ in range(_PLANNED)) for frame in (table, files))
    return max(0.0, of_delta - of_files)


def frame_of(source: Source, files: Sequence[str]) -> DataFrame:
    """Return the rows of these files, with the values that are in the names of their folders only."""
    if source.physical:
        snapshot, wanted = delta_log(source.frame.sparkSession, source.origin).snapshot(), set(files)
        return snapshot.frame([name for name in snapshot.files.names if snapshot.full_path(name) in wanted])
    reader, root = source.frame.sparkSession.read, _root_of_partitions(source, files[0])
    if root is not None:
        reader = reader.schema(source.frame.schema).option("basePath", root)
    return reader.parquet(*map(escape_glob, files))


def _root_of_partitions(source: Source, file: str) -> str | None:
    """Return the folder above the folders of partitions, such as `day=2024-05-01`; None if there are none."""
    parts, names = file.split("/"), set(source.frame.columns)
    for i, part in enumerate(parts[:-1]):
        if part.partition("=")[0] in names and "=" in part:
            return "/".join(parts[:i])
    return None


def columns_read(source: Source, query: Query) -> list[str]:
    """Return the source's columns that the query reads."""
    names = read_columns(query.columns(source.name), query.predicate(source.name))
    lower = None if names is None else {name.lower() for name in names}
    return [name for name in source.widths if lower is None or name.lower() in lower]


def _job(frame: DataFrame, source: Source, query: Query) -> DataFrame:
    """Return a job that reads the same rows and columns as the query.

    The rest of the query is not known. A query of all columns likely returns the rows; another one likely sums them up.
    """
    from pyspark.sql import functions as f

    columns = columns_read(source, query)
    rows = frame.where(predicate_text(query.predicate(source.name)))
    return rows if len(columns) == len(source.widths) else rows.agg(f.count("*"), *(f.count(f.col(c)) for c in columns))


def _seconds(job: DataFrame) -> float:
    new_plan = job.select("*")  # a plan that has run would reuse its shuffled rows
    begun = perf_counter()
    new_plan.write.format("noop").mode("overwrite").save()
    return perf_counter() - begun
