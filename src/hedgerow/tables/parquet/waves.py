"""Writes a Parquet table in waves, and goes on with those that a killed or failed run has finished.

    .orders.hedgerow-partial-<run>/   part-00000-....parquet ...            the files of the waves so far
                                      _hedgerow/wave-1.json                 a finished wave: its checksum, and
                                                index-<id>.arrow ...        the names of its index and list of files

A wave is finished when its `wave-<n>.json` is written, after its rows were compared. All else in the folder is deleted
before the next run goes on. The waves of a run fit another one if the source, the layout and all options are the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from hedgerow.core.errors import HedgerowError, advise
from hedgerow.core.index.block_index import BlockIndex, concat_indexes
from hedgerow.core.index.index_file import index_bytes, index_of_bytes
from hedgerow.core.layouts.layout_json import layout_to_json
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.predicates.predicate_json import decode, encode
from hedgerow.core.progress import Progress
from hedgerow.core.time_left import TimeLeft
from hedgerow.spark.compute.checksum import Checksum
from hedgerow.spark.optimizer.jvm_facts import state_of
from hedgerow.spark.start.session import first_line, spark_errors
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.paths import input_bytes
from hedgerow.spark.storage.source import Source
from hedgerow.spark.storage.waves import Wave, free_shuffles, waves_of
from hedgerow.tables.entry import Entry
from hedgerow.tables.known_files import CLAIM, SIDE, WAVE, KnownFiles
from hedgerow.tables.parquet.folder import ParquetFolder
from hedgerow.tables.parquet.runs import killed_partials
from hedgerow.tables.part import new_id
from hedgerow.tables.rewrite_plan import Plan
from hedgerow.tables.sealed import digest, read_sealed, sealed, unsealed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Written = tuple[Checksum, BlockIndex, KnownFiles]


@dataclass(frozen=True)
class Finished:
    """A wave whose files are written and proved.

    `key`: see `key_of`. `seals`: the digests of its index and its list of files, by name."""

    side: Folder
    number: int
    key: str
    checksum: Checksum
    seals: dict[str, str]

    @property
    def name(self) -> str:
        return wave_name(self.number)

    @cached_property
    def written(self) -> Written:
        index, files = sorted(self.seals, reverse=True)  # index-..., files-...
        known = KnownFiles.of_bytes(read_sealed(self.side, files, self.seals), self.side.root)
        data = read_sealed(self.side, index, self.seals)
        return self.checksum, index_of_bytes(data, f"the index of {self.side.root}"), known


def wave_name(number: int) -> str:
    return f"wave-{number}.json"


def waves_of_plan(opened: Source, plan: Plan) -> list[Wave]:
    """Return the waves in which the rows of a source are written; one, if they are few or cannot be divided."""
    whole = [Wave(opened.frame, input_bytes(opened.frame))]
    if whole[0].size <= plan.wave_bytes:
        return whole
    why = "the layout keeps rows in several blocks"
    if not isinstance(plan.layout, OverlapLayout):
        waves = waves_of(opened, plan.wave_bytes)
        if waves:
            return waves
        why = "it is not a list of plain files, or only one"
    advise(f"{opened.origin} is larger than a wave, but is written at once, because {why}")
    return whole


def has_waves(side: Folder) -> bool:
    """True if there are records of finished waves."""
    return any(re.fullmatch(WAVE, name) for name in side.sizes())


def key_of(source: Source, plan: Plan, entry: Entry) -> str:
    """Return a text that is equal for two runs only if they would write the same waves."""
    described = encode(replace(entry, origin={}))
    state = state_of(source) or new_id()  # an unknown state is like no other
    facts = [state, described, layout_to_json(plan.layout), plan.wave_bytes]
    return digest(json.dumps(facts, sort_keys=True).encode())


def write_waves(
    folder: ParquetFolder,
    waves: Sequence[Wave],
    key: str,
    finished: dict[int, Finished],
    write: Callable[[DataFrame, Collection[str]], Written],
) -> Written:
    """Write each wave that is not finished yet; return the checksum, the index and the files of all.

    `write`: writes rows into the folder, which has files of these names already."""
    time_left = TimeLeft(sum(wave.size for i, wave in enumerate(waves, 1) if i not in finished))
    progress, of = Progress("apply"), f"of {len(waves)}"
    if finished:
        progress.report(f"{len(finished)} {of} waves are there from an earlier run, which was killed or failed")
    for number, wave in enumerate(waves, 1):
        if number in finished:
            continue
        names = {name for done in finished.values() for name in done.written[2].names}
        try:
            written = write(wave.frame, names)
        except spark_errors() as error:
            raise HedgerowError(
                f"wave {number} {of} of the table could not be written: {first_line(error)}; the {len(finished)} "
                "finished waves are kept, and the same apply goes on with it"
            ) from error
        finished[number] = _finish(folder, number, key, written)
        free_shuffles(folder.spark)
        progress.report(f"wave {number} {of} is written{time_left.after(wave.size)}")
    parts = [finished[number].written for number in sorted(finished)]
    checksum = sum((rows for rows, _, _ in parts), Checksum(0, 0, 0))
    return checksum, concat_indexes([i for _, i, _ in parts]), KnownFiles.concat([files for _, _, files in parts])


def forget_waves(side: Folder) -> None:
    """Delete the records of the waves of a table that is complete."""
    for record in _records(side):
        for name in (record.name, *record.seals):
            with suppress(HedgerowError):  # a later write deletes it
                side.delete(name)


def _finish(folder: ParquetFolder, number: int, key: str, written: Written) -> Finished:
    """Note that a wave is written and proved."""
    (checksum, index, files), part = written, new_id()
    data = {f"index-{part}.arrow": index_bytes(index), f"files-{part}.arrow": files.to_bytes()}
    for name, content in data.items():
        folder.side.write(name, content)
    seals = {name: digest(content) for name, content in data.items()}
    folder.side.write(wave_name(number), sealed({"key": key, "checksum": encode(checksum), "seals": seals}))
    return Finished(folder.side, number, key, checksum, seals)


def keep_finished(folder: ParquetFolder, key: str, waves: int) -> dict[int, Finished]:
    """Return the finished waves of this key whose files all exist, by number; delete all else in the folder."""
    finished, present = dict[int, Finished](), folder.data_files().items()
    for record in _records(folder.side):
        with suppress(HedgerowError):  # a damaged one is written again
            if record.key == key and record.number <= waves and record.written[2].visible_sizes.items() <= present:
                finished[record.number] = record
    _keep_only(folder, finished)
    return finished


def _records(side: Folder) -> Iterator[Finished]:
    """Yield the finished waves by their records; damaged records are left out."""
    for name in side.sizes():
        match = re.fullmatch(WAVE, name)
        if match is not None:
            with suppress(HedgerowError, KeyError):
                stored = unsealed(side.read(name), name)
                checksum = decode(stored["checksum"], (Checksum,))
                yield Finished(side, int(match[1]), stored["key"], checksum, stored["seals"])


def _keep_only(folder: ParquetFolder, finished: dict[int, Finished]) -> None:
    """Delete all in the folder but the finished waves, and the claim of this run."""
    root = Folder(folder.spark, folder.path)
    data = {name for done in finished.values() for name in done.written[2].names}
    side = {name for done in finished.values() for name in (done.name, *done.seals)}
    for name in folder.side.sizes().keys() - side:  # first, so that no state lists deleted files
        if not re.fullmatch(CLAIM, name):
            folder.side.delete(name)
    for name in root.sizes().keys() - data - {SIDE}:
        root.delete(name)


def take_over(spark: SparkSession, target: str, around: str, partial: str) -> None:
    """Take the folder of a killed run that finished waves of this table, as the folder `partial`."""
    parent = Folder(spark, around)
    for name in killed_partials(spark, target):
        if has_waves(Folder(spark, f"{around}/{name}/{SIDE}")):
            with suppress(HedgerowError):  # another run was faster
                parent.move(name, partial)
                return
