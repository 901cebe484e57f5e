"""Divides the files of a table into waves: parts of limited size that are rewritten one after the other.

    files by path   a.parquet  b.parquet | c.parquet  d.parquet  e.parquet | f.parquet
    waves           1                    | 2                               | 3

A file belongs to one wave, so each row is read once. A wave of plain files is a range of paths, and the ranges of all
waves together are all paths, so no file can be missing.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from hedgerow.spark.storage.folder import sizes_of_statuses
from hedgerow.spark.storage.paths import paths_in_metadata, plain_scan
from hedgerow.spark.storage.source import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Wave:
    """Some of a source's rows. `size`: the bytes of their files."""

    frame: DataFrame
    size: int


def divided(sizes: Mapping[str, int], most: float) -> list[list[str]]:
    """Return the files in the order of their names, as lists of at most so many bytes, or of one larger file.

    More files at the end leave the lists before them as they are.

    >>> divided({"c": 5, "a": 3, "b": 4, "d": 1}, 7)
    [['a', 'b'], ['c', 'd']]
    """
    lists: list[list[str]] = []
    left = 0.0
    for name in sorted(sizes):
        if not lists or sizes[name] > left:
            lists.append([])
            left = most
        lists[-1].append(name)
        left -= sizes[name]
    return lists


def waves_of(source: Source, most: float) -> list[Wave]:
    """Return the rows of a source in waves of at most so many bytes of files; [] if it cannot be divided.

    Only a table of Delta or of plain files can be divided."""
    sizes = _sizes(source)
    lists = divided(sizes, most)
    if len(lists) < 2:
        return []
    snapshot = source.snapshot
    if snapshot is not None:
        frames = [snapshot.frame(names) for names in lists]
    else:
        frames = _by_ranges(source.frame, [names[0] for names in lists[1:]])
    return [Wave(frame, sum(map(sizes.__getitem__, names))) for frame, names in zip(frames, lists, strict=True)]


def free_shuffles(spark: SparkSession) -> None:
    """Let Spark delete the shuffle files of a wave that is written: it does so when no object of the plan is left."""
    gc.collect()
    spark._jvm.System.gc()  # type: ignore[union-attr]


def _sizes(source: Source) -> dict[str, int]:
    """Return the bytes of each file of a source that can be divided, by the name or path that Spark gives it."""
    if source.snapshot is not None:
        files = source.snapshot.files
        return dict(zip(files.names, files.sizes.tolist(), strict=True))
    scan = plain_scan(source.frame)
    if scan is None:
        return {}
    to_java = source.frame.sparkSession._jvm.scala.jdk.javaapi.CollectionConverters.asJava  # type: ignore[union-attr]
    sizes = (size for _, size in sizes_of_statuses(to_java(scan.allFiles())))
    return dict(zip(paths_in_metadata(scan), sizes, strict=True))


def _by_ranges(frame: DataFrame, firsts: list[str]) -> list[DataFrame]:
    """Return the rows of the files before the first of these paths, of those between two, and of those after the last.

    Spark does not list a file whose path does not match."""
    path = frame.metadataColumn("_metadata")["file_path"]
    frames = [frame.where(path < firsts[0])]
    frames += [frame.where((path >= low) & (path < high)) for low, high in pairwise(firsts)]
    return [*frames, frame.where(path >= firsts[-1])]
