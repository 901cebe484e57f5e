"""Checks that a table may be written to a place, and lists the contents that it would replace.

Only a table at exactly that place is replaced:

    a table of Hedgerow's     part-....parquet   _hedgerow/ with the names that Hedgerow writes
    a plain Parquet table     *.parquet of the same columns, also in folders `column=value`; _SUCCESS, _metadata

An error names anything else that is in the way: other folders and files, links, a Delta table, tables around the place,
or a source of the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.core.errors import HedgerowError
from hedgerow.spark.storage.folder import PARTIAL, Folder, is_within
from hedgerow.spark.storage.footer import UNREADABLE
from hedgerow.spark.storage.footers import footers_of
from hedgerow.tables.known_files import CLAIM, PARTITION, SIDE, TRIAL, WAVE
from hedgerow.tables.lookups import FOLDER
from hedgerow.tables.parquet.folder import bring_back, is_half_done
from hedgerow.tables.parquet.runs import DRAFT
from hedgerow.tables.state import PART_FILE, STATE_FILE, newest_state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DELTA = "_delta_log"
_DATA = re.compile(r"[^_.].*\.parquet")
_OF_SPARK = re.compile(r"_SUCCESS|_metadata|_common_metadata|\..+\.crc")
_SIDE_FILE = re.compile(rf"{STATE_FILE}|{PART_FILE}|{CLAIM}|(?:{WAVE}|auto\.lock|rewrite_cost\.json)(?:{PARTIAL})?")
_OWN_FOLDERS = re.compile(rf"{DRAFT}|{TRIAL}|{FOLDER}")  # drafts and trials of killed runs, and filters
_IN_SIDE_FOLDERS = {
    "copies": _DATA,
    "log": re.compile(rf"[0-9a-f]{{32}}\.parquet({PARTIAL})?"),
    "decisions": re.compile(rf"(?:waiting|.+-[0-9a-f]{{8}})\.json({PARTIAL})?"),
}
_SHOWN = 3


@dataclass(frozen=True)
class Contents:
    """The contents of a folder as a table.

    Args:
        files: the sizes of the data files.
        state: the number of the newest state, 0 if there is none.
        in_the_way: the paths that do not belong to a table.
        is_half_done: True if a write in an object store did not end.
    """

    files: Mapping[str, int]
    state: int
    in_the_way: tuple[str, ...]
    is_half_done: bool
    is_empty: bool


def look(folder: Folder) -> Contents:
    """List the contents of the folder as those of a table; no file is opened."""
    state = newest_state(Folder(folder.spark, f"{folder.root}/{SIDE}"))
    half_done = is_half_done(folder.spark, folder.root)
    files: dict[str, int] = {}
    others = tuple(sorted(_others(folder, "", bool(state or half_done), half_done, files)))
    return Contents(files, state, others, half_done, not (folder.sizes() or folder.links()))


def _entries(folder: Folder, at: str) -> Iterator[tuple[str, str, int | None]]:
    """Yield the name, the path and the size of each entry in a folder: -1 for a folder, None for a link."""
    sizes, links = folder.sizes(at), folder.links(at)
    for name in {*sizes, *links}:
        yield name, f"{at}/{name}".lstrip("/"), None if name in links else sizes[name]


def _others(folder: Folder, at: str, managed: bool, half_done: bool, files: dict[str, int]) -> Iterator[str]:
    """Yield the paths below `at` that do not belong to a table, and add its data files to `files`."""
    for name, path, size in _entries(folder, at):
        if size is None:
            yield f"the link {path}"
        elif size >= 0 and _DATA.fullmatch(name):
            files[path] = size
        elif size < 0 and name == SIDE and not at:
            yield from _others_in_side(folder, path)
        elif size < 0 and PARTITION.fullmatch(name) and not managed:
            yield from _others(folder, path, managed, half_done, files)
        elif not (size >= 0 and _OF_SPARK.fullmatch(name)) and not (half_done and name == "_temporary"):
            yield path


def _others_in_side(folder: Folder, side: str) -> Iterator[str]:
    """Yield the paths in `_hedgerow` that Hedgerow does not write."""
    for name, path, size in _entries(folder, side):
        if size is None:
            yield f"the link {path}"
        elif size < 0 and (name == "replicas" or name in _IN_SIDE_FOLDERS):
            yield from _others_in_side_folder(folder, path, _IN_SIDE_FOLDERS.get(name))
        elif not (_SIDE_FILE if size >= 0 else _OWN_FOLDERS).fullmatch(name) and not _OF_SPARK.fullmatch(name):
            yield path


def _others_in_side_folder(folder: Folder, at: str, own: re.Pattern[str] | None) -> Iterator[str]:
    """Yield the paths in a folder of `_hedgerow` that are not files with names as `own`; None: not replicas."""
    for name, path, size in _entries(folder, at):
        if size is None:
            yield f"the link {path}"
        elif own is None and size < 0:
            contents = look(Folder(folder.spark, f"{folder.root}/{path}"))
            yield from (f"{path}/{in_the_way}" for in_the_way in contents.in_the_way)
        elif own is None or size < 0 or not (own.fullmatch(name) or _OF_SPARK.fullmatch(name)):
            yield path


def check_target(
    spark: SparkSession,
    to: str,
    overwrite: bool,
    source: Sequence[str],
    others: Mapping[str, Sequence[str]],
    is_replica: bool = False,
) -> tuple[str, Contents]:
    """Return the resolved place for a table, with its present contents; HedgerowError if no table may be written there.

    Args:
        source: the folders and files that the rows are read from. The table at `to` may be the source itself.
        others: the folders and files of other tables that are read, by the tables' names.
    """
    place = Folder(spark, to).resolved()
    target = Folder(spark, place)
    obstacle = target.occupied_by()
    if obstacle is not None:
        raise HedgerowError(f"{to} is {obstacle}, where no table is written: name a folder of its own")
    if not is_replica:
        _check_around(spark, to, place)
    if not is_replica or target.is_store:  # on a disk, a replica may be the source of its own replacement
        _check_sources(spark, to, place, source, others, is_replica)
    bring_back(spark, place)
    contents = look(target)
    is_free = contents.is_empty or (target.is_store and contents.is_half_done and not contents.in_the_way)
    if target.exists(_DELTA):
        raise HedgerowError(f"{to} is a Delta table, which is not replaced: rewrite it in place, or name another path")
    if is_free:
        return place, contents
    if not overwrite:
        raise HedgerowError(f"{to} is not empty: name another place, or ask to overwrite it")
    if target.is_store and not is_replica:
        raise HedgerowError(
            f"{to} lies in an object store, which cannot replace a folder in one step: name a new place"
        )
    in_the_way = contents.in_the_way or _not_of_one_table(target, contents)
    if in_the_way:
        more = f" and {len(in_the_way) - _SHOWN} more" if len(in_the_way) > _SHOWN else ""
        shown = ", ".join(in_the_way[:_SHOWN]) + more
        raise HedgerowError(f"{to} is not replaced, for it holds more than one table's files: {shown}")
    return place, contents


def _check_around(spark: SparkSession, to: str, place: str) -> None:
    """Raise HedgerowError if the place is inside of a table."""
    parts = place.split("/")
    if len(parts) > 1 and parts[-2] == SIDE and re.fullmatch(TRIAL, parts[-1]):
        return  # a rewrite that is only timed
    for end in range(len(parts) - 1, 3, -1):  # the first three are the file system
        around = "/".join(parts[:end])
        if parts[end - 1] in (SIDE, _DELTA) or any(Folder(spark, around).exists(name) for name in (SIDE, _DELTA)):
            raise HedgerowError(f"{to} lies inside of the table {around.removeprefix('file://')}: name a place outside")


def _check_sources(
    spark: SparkSession,
    to: str,
    place: str,
    source: Sequence[str],
    others: Mapping[str, Sequence[str]],
    is_replica: bool,
) -> None:
    """Raise HedgerowError if writing there would delete or change rows that are read."""

    def spelled(roots: Sequence[str]) -> list[str]:
        return [Folder(spark, root).resolved() for root in roots]

    for read in spelled(source):
        if is_within(read, place) and (read != place or is_replica):
            raise HedgerowError(f"{to} is not replaced, for the source {read.removeprefix('file://')} lies in it")
        if read != place and is_within(place, read) and not is_replica:
            raise HedgerowError(f"{to} lies inside of the source {read.removeprefix('file://')}: name a place outside")
    for name, roots in others.items():
        if any(is_within(read, place) or is_within(place, read) for read in spelled(roots)):
            raise HedgerowError(f"{to} is the place of {name}, which is read: name another place")


def _not_of_one_table(target: Folder, contents: Contents) -> list[str]:
    """Return the files that are not Parquet, and in a plain table those with other columns than the first has."""
    if contents.is_half_done or not contents.files:
        return []
    names = sorted(contents.files)
    footers = footers_of(target, {name: contents.files[name] for name in names})
    broken = [f"{names[i]} (not Parquet)" for i in np.flatnonzero(footers.rows == UNREADABLE).tolist()]
    full = np.flatnonzero(footers.rows > 0)
    if contents.state or not len(full):
        return broken
    present = [sizes[full] > 0 for sizes in footers.columns.values()]  # a column with rows has some bytes
    differs = np.logical_or.reduce([is_present != is_present[0] for is_present in present])
    return broken + [f"{names[i]} (other columns than {names[full[0]]})" for i in full[differs].tolist()]
