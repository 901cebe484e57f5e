"""Times a rewrite of some files by Spark alone, for a table whose rewrites have never been timed."""

from __future__ import annotations

from time import perf_counter

from hedgerow.spark.compute.measure_speed import frame_of
from hedgerow.spark.start.session import spark_errors
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.source import Source

_BYTES = 64 << 20
_CHECKS_AND_INDEX = 1.5  # with these, a rewrite takes this many times as long as by Spark alone


def seconds_to_rewrite(source: Source, folder: str) -> float | None:
    """Return the seconds that a rewrite takes for each byte: some files are read, divided, sorted and written.

    The files are written to a new folder, which is then deleted. None if the table's files are not known, or cannot be
    read by themselves."""
    files = source.files[: max(1, int(_BYTES * len(source.files) / max(1.0, source.size)))]
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
