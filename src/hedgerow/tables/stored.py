"""A table in one stored state: its parts, the files that it has now, and the files that a query opens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hedgerow.core.layouts.base import Layout
from hedgerow.core.predicates.types import Type
from hedgerow.spark.compute.joins import Joins
from hedgerow.spark.optimizer.jvm_facts import settings
from hedgerow.tables.formats import Format, Snapshot, schema_at
from hedgerow.tables.indexed_files import IndexedFiles
from hedgerow.tables.known_files import KnownFiles
from hedgerow.tables.part import JoinedParts, Part, join_parts, parts_of
from hedgerow.tables.state import TableState
from hedgerow.tables.stored_joins import readable_joins, stale

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class StoredTable:
    """A table that Hedgerow wrote, in the state of one `_hedgerow/state-<n>.json`."""

    format: Format
    state: TableState

    @property
    def spark(self) -> SparkSession:
        return self.format.spark

    @property
    def path(self) -> str:
        return self.format.path

    @property
    def name(self) -> str:
        """The table's name in the workload that it was learned from."""
        return self.state.name

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts, the newest last."""
        return parts_of(self.format.side, self.state.parts)

    @cached_property
    def written(self) -> dict[str, int]:
        """The sizes of all files that the parts describe, by name; some may not exist any more."""
        return {name: size for part in self.parts for name, size in part.known.sizes_by_name.items()}

    @property
    def newest(self) -> Part:
        """The part of the last completed write."""
        committed = (part for part in reversed(self.parts) if self.was_committed(part.entry.write))
        return next(committed, self.parts[-1])

    def was_committed(self, write: str) -> bool:
        """True if the write's version is listed, or its files exist: it may have been killed before the listing."""
        if any(o.get("part") == write and "version" in o for o in self.state.newest_operations(self.format.side)):
            return True
        present = self.format.snapshot().files.place
        return any(name in present for part in self.parts if part.id == write for name in part.known.names)

    @property
    def layout(self) -> Layout:
        return self.newest.layout

    @property
    def schema(self) -> dict[str, Type]:
        return schema_at(self.format.snapshot())

    @property
    def known(self) -> KnownFiles:
        """The indexed files that still exist."""
        return self.indexed().known

    def indexed(self, now: Mapping[str, str] | None = None, snapshot: Snapshot | None = None) -> IndexedFiles:
        """Return the files of a snapshot, by default the newest, with the index as it is valid under these settings.

        `now`: the settings of a query that uses no joined rows; None: the session's settings, with joined rows."""
        snapshot, lost = snapshot or self.format.snapshot(), self.stale if now is None else all_joined
        now = settings(self.spark) if now is None else now
        key = lost is all_joined, tuple(sorted(now.items())), tuple(sorted(snapshot.columns.items()))
        if key not in self._joined:
            self._joined[key] = join_parts(self.parts, now, snapshot.columns, lost)
        return IndexedFiles(snapshot, self._joined[key])

    @cached_property
    def _joined(self) -> dict[Any, list[JoinedParts]]:
        return {}

    def stale(self, part: Part) -> set[str]:
        """Return the names of joined rows whose tables have changed since the part was indexed, or cannot be read."""
        return self._stale_names[part.id]

    @cached_property
    def _stale_names(self) -> dict[str, set[str]]:
        return {p.id: stale(p.entry.joined, self.joins) if p.entry.joined else set() for p in self.parts}

    @cached_property
    def joins(self) -> Joins:
        """The joined rows that the index describes, as they are now; none if a table cannot be read."""
        return readable_joins(self.spark, [j for part in self.parts for j in part.entry.joined])


def all_joined(part: Part) -> set[str]:
    """Return the names of all joined rows that a part describes."""
    return {j.name.lower() for j in part.entry.joined}
