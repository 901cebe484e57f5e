"""Describes one part of a table, the files of one write, as the table's state stores it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from hedgerow.core.predicates.nodes import Feature
from hedgerow.core.predicates.predicate_json import decode, encode
from hedgerow.core.predicates.types import Type
from hedgerow.spark.compute.checksum import Checksum
from hedgerow.spark.storage.column_identity import column_identities
from hedgerow.spark.storage.source import schema_of
from hedgerow.spark.write.writing import Writing
from hedgerow.tables.stored_joins import StoredJoin

Fields = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Entry:
    """All that is stored of a part beside its index, its list of files and its layout.

    Args:
        id: the id in the name of its list of files, `files-<id>.arrow`.
        writes: the ids of the writes whose files it has, in the order of its list, with their numbers of files. An
            append may be joined to earlier ones.
        index: the id in the name of its index, which `repair` and `relearn` write anew.
        layout: the id in the name of its layout, its own where a rewrite wrote it; an append shares that of a rewrite.
        fields: the table's columns when the files were written, as Spark's JSON.
        settings: the settings of the session that wrote the files.
        statistics: the expressions and conditions that the index describes.
        checksum: that of all rows and columns; None if it was not taken.
        joined: the rows of other tables that the index describes as columns.
        seals: the digests of the part's files, by name.
        origin: where the rows and the layout came from: `source`, `learner`, `seed` and others, for people.
    """

    id: str
    index: str
    layout: str
    fields: Fields
    settings: Mapping[str, str]
    writing: Writing
    statistics: tuple[Feature, ...]
    checksum: Checksum | None = None
    joined: tuple[StoredJoin, ...] = ()
    seals: Mapping[str, str] = field(default_factory=dict)
    origin: Mapping[str, Any] = field(default_factory=dict)
    writes: tuple[tuple[str, int], ...] = ()

    @property
    def files(self) -> int:
        """The number of its files."""
        return sum(files for _, files in self.writes)

    @property
    def was_appended(self) -> bool:
        return self.id != self.layout

    @property
    def names(self) -> tuple[str, str, str]:
        """The names of its index, its list of files and its layout in the side folder."""
        return f"index-{self.index}.arrow", f"files-{self.id}.arrow", f"layout-{self.layout}.json"

    @property
    def columns(self) -> dict[str, str]:
        """The identity of each column, which tells a column from a later one of the same name."""
        return column_identities(self.fields)

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as JSON. These keys are stored: a renamed field keeps its key."""
        return {
            "id": self.id,
            "index": self.index,
            "layout": self.layout,
            "fields": list(self.fields),
            "settings": dict(self.settings),
            "writing": self.writing.to_dict(),
            "statistics": list(map(encode, self.statistics)),
            "checksum": None if self.checksum is None else self.checksum.to_dict(),
            "joined": [j.to_dict() for j in self.joined],
            "seals": dict(self.seals),
            "origin": dict(self.origin),
            "writes": [list(write) for write in self.writes],
        }

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> Entry:
        """Return the entry that `to_dict` wrote; errors of many kinds if it did not."""
        fields = tuple(stored["fields"])
        column_identities(fields)
        return Entry(
            id=str(stored["id"]),
            index=str(stored["index"]),
            layout=str(stored["layout"]),
            fields=fields,
            settings=dict(stored["settings"]),
            writing=Writing.from_dict(stored["writing"]),
            statistics=tuple(map(decode, stored["statistics"])),
            checksum=None if stored["checksum"] is None else Checksum(**stored["checksum"]),
            joined=tuple(map(StoredJoin.from_dict, stored["joined"])),
            seals=dict(stored["seals"]),
            origin=dict(stored["origin"]),
            writes=tuple((str(write), int(files)) for write, files in stored["writes"]),
        )


def struct_of(fields: Fields) -> Any:
    """Return the columns as Spark's StructType."""
    from pyspark.sql.types import StructType

    return StructType.fromJson({"type": "struct", "fields": deepcopy(list(fields))})  # fromJson changes its input


def schema_of_fields(fields: Fields) -> dict[str, Type]:
    """Return the names and types of the columns, from Spark's JSON."""
    return schema_of(struct_of(fields))


def total(parts: Sequence[Entry]) -> Checksum:
    """Return the checksum of the rows of all parts, each of which has one in a Parquet table."""
    return sum((entry.checksum for entry in parts if entry.checksum), Checksum(0, 0, 0))
