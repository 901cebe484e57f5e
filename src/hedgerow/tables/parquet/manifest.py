"""Reads and writes the manifest of a managed Parquet table, `_hedgerow/manifest-<n>.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hedgerow.core.errors import FormatError
from hedgerow.core.predicates.nodes import Feature
from hedgerow.core.predicates.predicate_json import decode, encode
from hedgerow.spark.compute.checksum import Checksum
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.write.writing import Writing
from hedgerow.tables.sealed import read_sealed, sealed, unsealed
from hedgerow.tables.stored_joins import StoredJoin

_KINDS = {"number": int, "name": str, "schema": dict, "settings": dict, "files": str, "index": str}


@dataclass(frozen=True)
class Manifest:
    """One state of a table.

    Args:
        number: 1 for the first state, and one more for each append.
        name: the table's name in workloads.
        schema: the schema, as Spark writes it in JSON.
        settings: those of the session that wrote the table.
        statistics: the expressions and conditions that the index describes.
        checksum: of all rows.
        files, index: names of files in `_hedgerow/`.
        seals: the digests of these files and of the layout, by name.
        copy_of: of a replica, the list of files of the table that it equals.
        operation: what made this state, if neither `apply` nor `append`.
        joined: the rows of other tables that the index describes as columns.
        origin: where the rows and the layout came from: `source`, `learner`, `seed` and others, for people.
    """

    number: int
    name: str
    schema: Mapping[str, Any]
    settings: Mapping[str, str]
    writing: Writing
    statistics: tuple[Feature, ...]
    checksum: Checksum
    files: str = ""
    index: str = ""
    seals: Mapping[str, str] = field(default_factory=dict)
    copy_of: str | None = None
    written: str | None = None
    operation: str | None = None
    joined: tuple[StoredJoin, ...] = ()
    origin: Mapping[str, Any] = field(default_factory=dict)

    def as_copy_of(self, other: Manifest) -> Manifest:
        """The manifest of a replica that equals a table in the state of `other`."""
        seals = {name: seal for name, seal in other.seals.items() if name == other.files}
        return replace(self, copy_of=other.files, seals={**self.seals, **seals})

    def to_bytes(self) -> bytes:
        """These keys are stored: they stay what they are, whatever the fields are called."""
        stored = {
            "number": self.number,
            "name": self.name,
            **self.origin,
            "schema": self.schema,
            "settings": self.settings,
            "writing": self.writing.to_dict(),
            "statistics": list(map(encode, self.statistics)),
            "checksum": self.checksum.to_dict(),
            "files": self.files,
            "index": self.index,
            "seals": dict(self.seals),
            **({} if self.copy_of is None else {"copy_of": self.copy_of}),
            "written": self.written,
            **({} if self.operation is None else {"operation": self.operation}),
            **({"joined": [j.to_dict() for j in self.joined]} if self.joined else {}),
        }
        return sealed(stored)

    @staticmethod
    def of_bytes(data: bytes, place: str) -> Manifest:
        """What `to_bytes` made, in this version of Hedgerow or an earlier one; FormatError otherwise."""
        stored = unsealed(data, f"the manifest of {place}")
        try:
            known = {key: stored.pop(key) for key in _KINDS}
            if not all(isinstance(known[key], kind) for key, kind in _KINDS.items()):
                raise TypeError("a value of another type")
            return Manifest(
                **known,
                writing=Writing.from_dict(stored.pop("writing")),
                statistics=tuple(decode(item) for item in stored.pop("statistics")),
                checksum=Checksum(**stored.pop("checksum")),
                seals=stored.pop("seals", {}),
                copy_of=stored.pop("copy_of", None),
                written=stored.pop("written", None),
                operation=stored.pop("operation", None),
                joined=tuple(map(StoredJoin.from_dict, stored.pop("joined", ()))),
                origin=stored,
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FormatError(f"the manifest of {place} is damaged") from error


def manifest_numbers(side: Folder) -> list[int]:
    """The numbers of the manifests in a `_hedgerow` folder, the newest first."""
    return side.numbers("manifest")


def read_manifest(side: Folder, number: int, table: str) -> Manifest:
    return Manifest.of_bytes(read_sealed(side, manifest_name(number), {}), table)


def manifest_name(number: int) -> str:
    return f"manifest-{number}.json"
