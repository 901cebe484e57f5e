"""Keeps paths as exact texts, as Hadoop's `Path` does: `x%20y` and `x y` are two folders.

Three sources write paths encoded as URLs. Each is decoded by one function of this module, and nowhere else:

    Delta's log: the path of an added file               `added_path`, `added_name`
    Spark's lists of files, but not those of Delta       `files_by_folder`, `input_files`

A file's path in the column `_metadata.file_path` stays encoded: `paths_in_metadata`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from hedgerow.core.predicates.sql_text import in_backticks
from hedgerow.spark.start.session import spark_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SLASHES = re.compile(r"^file:/+")
_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")
_GLOB = re.compile(r"([\\{}\[\]*?])")
_NO_SOURCES = ("LocalRelation", "OneRowRelation")  # rows that are part of a plan
_IN_BACKTICKS = re.compile(r"(?i)(delta|parquet)\.`((?:[^`]|``)+)`")


def plain_path(path: str) -> str:
    """Return the path without `file:`, as users write it.

    >>> plain_path("file:///lake/x%20y"), plain_path("s3a://lake/t")
    ('/lake/x%20y', 's3a://lake/t')
    """
    return _SLASHES.sub("/", path)


def escape_glob(path: str) -> str:
    """Escape a path for Spark's reader, which reads brackets and braces as patterns."""
    return _GLOB.sub(r"\\\1", path)


def has_pattern(path: str) -> bool:
    """True if Spark's reader takes the path for a pattern."""
    return _GLOB.search(path) is not None


def path_in_backticks(name: str, kind: str) -> str | None:
    """Return the path that a name such as delta.`/lake/orders` holds; None for another name.

    >>> path_in_backticks("delta.`/lake/a``b`", "delta")
    '/lake/a`b'
    """
    match = _IN_BACKTICKS.fullmatch(name)
    return match[2].replace("``", "`") if match and match[1].lower() == kind else None


def added_path(name: str, root: str) -> str:
    """Return the path of a file that Delta's log names; those of a shallow clone lie outside of the table.

    >>> added_path("day=a%2520b/x.parquet", "/lake/a%20b")
    '/lake/a%20b/day=a%20b/x.parquet'
    """
    return unquote(name) if _ABSOLUTE.match(name) else f"{root}/{unquote(name)}"


def added_name(name: str) -> str:
    """Return the last part of that path, as in the column `_metadata.file_name`."""
    return unquote(name).rsplit("/", 1)[-1]


def input_roots(frame: DataFrame) -> list[str]:
    """Return the folders and files that the frame's rows are read from, as far as Spark's plan names them."""
    locations = _locations(frame._jdf.queryExecution().analyzed().collectLeaves())
    return [str(root.toString()) for location in locations for root in _each(location.rootPaths())]


def input_bytes(frame: DataFrame) -> int:
    """Return the bytes of the files that the frame's rows are read from, as far as Spark's plan names them."""
    to_seq = frame.sparkSession._jvm.org.apache.spark.api.python.PythonUtils.toSeq  # type: ignore[union-attr]

    def size(location: Any) -> int:
        if location.getClass().getSimpleName() == "CatalogFileIndex":  # its own size may be a huge guess
            location = location.filterPartitions(to_seq([]))
        return int(location.sizeInBytes())

    return sum(map(size, _locations(frame._jdf.queryExecution().analyzed().collectLeaves())))


def folders_read(frame: DataFrame) -> list[str]:
    """Return the same as `input_roots` with the folders of Delta tables, which only an optimised plan names."""
    locations = _locations(frame._jdf.queryExecution().optimizedPlan().collectLeaves())
    return [str(root.toString()) for location in locations for root in _each(location.rootPaths())]


def is_over(name: str, frame: DataFrame) -> bool:
    """True if a name in SQL, such as that of a view or delta.`/a/place`, stands for the files of the frame."""
    kind, path = _as_path(name)
    parts = (kind, path) if path else name.split(".")
    try:
        folders = folders_read(frame.sparkSession.table(".".join(map(in_backticks, parts))))
    except spark_errors():
        return False
    return bool(folders) and folders == folders_read(frame)


def paths_over(names: Collection[str], rows: Callable[[], DataFrame]) -> list[str]:
    """Return the names that are paths in SQL, such as delta.`/a/place`, and stand for the files of the rows."""
    return [name for name in names if _as_path(name)[1] and is_over(name, rows())]


def _as_path(name: str) -> tuple[str, str]:
    """Return the format and the path in a name without backticks; an empty path if it is another name."""
    kind, _, path = name.partition(".")
    return kind, path if kind.lower() in ("delta", "parquet") and "/" in path else ""


def reads_only_files(frame: DataFrame) -> bool:
    """True if `files_by_folder` returns all sources of the frame's rows; a cache, for example, is no file."""
    leaves = _each(frame._jdf.queryExecution().optimizedPlan().collectLeaves())
    return all(_location(leaf) is not None or leaf.getClass().getSimpleName() in _NO_SOURCES for leaf in leaves)


def input_files(frame: DataFrame) -> list[str]:
    """Return the paths of the files that the frame's scans list."""
    return [file for files in files_by_folder(frame).values() for file in files]


def files_by_folder(frame: DataFrame) -> dict[str, list[str]]:
    """Return the files that the frame's scans list, each path once, by the folders that the scans read."""
    folders: dict[str, dict[str, None]] = {}
    for location in _locations(frame._jdf.queryExecution().optimizedPlan().collectLeaves()):
        files, roots = list(location.inputFiles()), [str(root.toString()) for root in _each(location.rootPaths())]
        if _is_of_delta(location) or (roots and not files):  # a Delta table may have files outside of its folder
            folders.setdefault(roots[0], {}).update(dict.fromkeys(files))
            continue
        files = [_SLASHES.sub("file:/", unquote(url)) for url in files]
        for file in files:
            around = [root for root in roots if file.startswith(f"{root}/")]
            folders.setdefault(max(around, key=len, default=file.rpartition("/")[0]), {})[file] = None
    return {folder: list(files) for folder, files in folders.items()}


def plain_scan(frame: DataFrame) -> Any | None:
    """Return the file index of a frame that is all rows of a list of plain files; None if it is anything else."""
    plan = frame._jdf.queryExecution().analyzed()
    while plan.getClass().getSimpleName() == "SubqueryAlias":
        plan = plan.child()
    location = _location(plan)
    return location if location is not None and location.getClass().getSimpleName() == "InMemoryFileIndex" else None


def paths_in_metadata(location: Any) -> list[str]:
    """Return the paths of the files of a file index, encoded as URLs, as in the column `_metadata.file_path`."""
    return [_SLASHES.sub("file:/", url) for url in location.inputFiles()]


def _locations(leaves: Any) -> Iterator[Any]:
    """Yield the file indexes in these leaves of a plan."""
    return (location for leaf in _each(leaves) if (location := _location(leaf)) is not None)


def _location(leaf: Any) -> Any | None:
    """Return the file index of a leaf of a plan, of either version of Spark's readers; None if it has none."""
    kind = leaf.getClass().getSimpleName()
    if kind.startswith("LogicalRelation") and leaf.relation().getClass().getSimpleName() == "HadoopFsRelation":
        return leaf.relation().location()
    if kind == "DataSourceV2ScanRelation" and leaf.scan().getClass().getSimpleName() == "ParquetScan":
        return leaf.scan().fileIndex()
    return None


def _is_of_delta(location: Any) -> bool:
    """True if this file index is Delta's own or is derived from one."""
    kind = location.getClass()
    while kind is not None and not str(kind.getName()).endswith(".TahoeFileIndex"):
        kind = kind.getSuperclass()
    return kind is not None


def _each(seq: Any) -> Iterator[Any]:
    return (seq.apply(i) for i in range(seq.size()))
