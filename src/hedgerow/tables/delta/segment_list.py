"""Reads and writes the list of a Delta table's segments, `_hedgerow/delta-<n>.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hedgerow.core.errors import FormatError
from hedgerow.core.predicates.nodes import Feature
from hedgerow.core.predicates.predicate_json import decode, encode
from hedgerow.spark.compute.checksum import Checksum
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.write.writing import Writing
from hedgerow.tables.sealed import read_sealed, sealed, unsealed
from hedgerow.tables.stored_joins import StoredJoin


@dataclass(frozen=True)
class SegmentEntry:
    """What the list says of one segment.

    Args:
        id: a part of the names of its index and its list of files.
        layout: the id of the segment whose layout it shares, or its own.
        columns: the identity of each column, which tells a column from a later one of the same name.
        schema: the type of each column, as text.
        settings: those of the session that wrote the files.
        statistics: the expressions and conditions that the index describes.
        hashed: the columns whose values the checksum is of; None if there is no checksum, as after an append.
        joined: the rows of other tables that the index describes as columns.
        seals: the digests of its files, by name.
        origin: where the rows and the layout came from: `source`, `learner`, `seed` and others, for people.
    """

    id: str
    layout: str
    columns: Mapping[str, str]
    schema: Mapping[str, str]
    settings: Mapping[str, str]
    writing: Writing
    statistics: tuple[Feature, ...]
    hashed: tuple[str, ...] = ()
    checksum: Checksum | None = None
    joined: tuple[StoredJoin, ...] = ()
    seals: Mapping[str, str] = field(default_factory=dict)
    origin: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """These keys are stored: they stay what they are, whatever the fields are called."""
        return {
            **self.origin,
            "columns": self.columns,
            "schema": self.schema,
            "settings": self.settings,
            "writing": self.writing.to_dict(),
            "statistics": list(map(encode, self.statistics)),
            "hashed": list(self.hashed),
            **({} if self.checksum is None else {"checksum": self.checksum.to_dict()}),
            "id": self.id,
            "layout": self.layout,
            "seals": dict(self.seals),
            **({"joined": [j.to_dict() for j in self.joined]} if self.joined else {}),
        }

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> SegmentEntry:
        """What `to_dict` made, in this version of Hedgerow or an earlier one."""
        rest = dict(stored)
        checksum = rest.pop("checksum", None)
        return SegmentEntry(
            id=str(rest.pop("id")),
            layout=str(rest.pop("layout")),
            columns=rest.pop("columns"),
            schema=rest.pop("schema"),
            settings=rest.pop("settings"),
            writing=Writing.from_dict(rest.pop("writing")),
            statistics=tuple(decode(item) for item in rest.pop("statistics")),
            hashed=tuple(rest.pop("hashed", ())),
            checksum=Checksum(**checksum) if checksum else None,
            joined=tuple(map(StoredJoin.from_dict, rest.pop("joined", ()))),
            seals=rest.pop("seals", {}),
            origin=rest,
        )


@dataclass(frozen=True)
class SegmentList:
    """The segments of a table, the newest last, and all operations so far, each as `history` shows it."""

    name: str = ""
    segments: tuple[SegmentEntry, ...] = ()
    operations: tuple[Mapping[str, Any], ...] = ()

    def to_bytes(self) -> bytes:
        segments = [entry.to_dict() for entry in self.segments]
        return sealed({"name": self.name, "segments": segments, "operations": list(self.operations)})

    @staticmethod
    def of_bytes(data: bytes, place: str) -> SegmentList:
        """What `to_bytes` made, in this version of Hedgerow or an earlier one; FormatError otherwise."""
        stored = unsealed(data, f"the list {place}")
        try:
            segments = tuple(map(SegmentEntry.from_dict, stored["segments"]))
            operations = tuple({**o, "operation": str(o["operation"])} for o in stored["operations"])
            return SegmentList(str(stored.get("name", "")), segments, operations)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FormatError(f"the list {place} is damaged") from error


def newest_list(side: Folder) -> int:
    """The number of the newest list, 0 if there is none."""
    return max(side.numbers("delta"), default=0)


def read_list(side: Folder, number: int) -> SegmentList:
    name = list_name(number)
    return SegmentList.of_bytes(read_sealed(side, name, {}), f"{side.root}/{name}")


def list_name(number: int) -> str:
    return f"delta-{number}.json"
