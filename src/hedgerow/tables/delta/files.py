"""The format of a Delta table: Delta keeps the list of files in each version, and others may change it.

orders/  _delta_log/ ...   the list of files in each version
         part-00000-....   written by us or by others
         _hedgerow/        see `tables/state`; Delta neither reads nor vacuums it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from hedgerow.core.errors import HedgerowError
from hedgerow.spark.storage.delta_log import DeltaLog, Snapshot, delta_log
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.paths import plain_path
from hedgerow.tables.known_files import SIDE
from hedgerow.tables.state import TableState, newest_state, read_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class DeltaFiles:
    """The files of a Delta table, from its log."""

    log: DeltaLog
    kind: Literal["delta"] = "delta"
    is_shared: bool = True

    @property
    def spark(self) -> SparkSession:
        return self.log.spark

    @property
    def path(self) -> str:
        return self.log.path

    @cached_property
    def side(self) -> Folder:
        return Folder(self.spark, f"{self.path}/{SIDE}")

    def snapshot(self, version: int | None = None) -> Snapshot:
        return self.log.snapshot(version)

    def rows(self, version: int | None = None) -> DataFrame:
        at = {} if version is None else {"versionAsOf": self.snapshot(version).version}
        return self.spark.read.format("delta").options(**at).load(self.path)

    def file_names(self, paths: Sequence[str], version: int | None = None) -> list[str]:
        listed = set(map(plain_path, paths))
        return [name for name in self.snapshot(version).files.names if plain_path(self.log.full_path(name)) in listed]


def open_delta(spark: SparkSession, target: str) -> tuple[DeltaFiles, TableState]:
    """Open a Delta table, by its path or its name in the catalog, in its newest state."""
    return in_newest_state(DeltaFiles(delta_log(spark, target)))


def in_newest_state(files: DeltaFiles) -> tuple[DeltaFiles, TableState]:
    """Return a Delta table with its newest state."""
    number = newest_state(files.side)
    state = read_state(files.side, number) if number else TableState("delta")
    if state.kind != "delta" or not state.parts:
        raise HedgerowError(
            f"{files.path} is no table that Hedgerow wrote: it is a Delta table to which no layout was applied, "
            "and advise says whether one would pay"
        )
    return files, state
