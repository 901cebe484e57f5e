"""Reads and writes the manifest of a managed Parquet table, `_hedgerow/manifest-<n>.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hedgerow.core.errors import FormatError
from hedgerow.core.predicates.predicate_json import decode, encode
from hedgerow.spark.compute.checksum import Checksum
from hedgerow.spark.compute.evaluate import Item
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.write.writing import Writing
from hedgerow.tables.stored_joins import StoredJoin

MANIFEST_FORMAT = 1
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
    statistics: tuple[Item, ...]
    checksum: Checksum
    files: str = ""
    index: str = ""
    copy_of: str | None = None
    written: str | None = None
    operation: str | None = None
    joined: tuple[StoredJoin, ...] = ()
    origin: Mapping[str, Any] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """These keys are stored: they stay what they are, whatever the fields are called."""
        stored = {
            "version": MANIFEST_FORMAT,
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
            **({} if self.copy_of is None else {"copy_of": self.copy_of}),
            "written": self.written,
            **({} if self.operation is None else {"operation": self.operation}),
            **({"joined": [j.to_dict() for j in self.joined]} if self.joined else {}),
        }
        return json.dumps(stored, indent=1).encode()

    @staticmethod
    def of_bytes(data: bytes, place: str) -> Manifest:
        """What `to_bytes` made, in this version of Hedgerow or an earlier one; FormatError otherwise."""
        try:
            stored = json.loads(data)
            version = stored.pop("version")
            if version > MANIFEST_FORMAT:
                raise FormatError(f"{place} was written by a newer Hedgerow (format {version})")
            known = {key: stored.pop(key) for key in _KINDS}
            if not all(isinstance(known[key], kind) for key, kind in _KINDS.items()):
                raise TypeError("a value of another type")
            return Manifest(
                **known,
                writing=Writing.from_dict(stored.pop("writing")),
                statistics=tuple(decode(item) for item in stored.pop("statistics")),
                checksum=Checksum(**stored.pop("checksum")),
                copy_of=stored.pop("copy_of", None),
                written=stored.pop("written", None),
                operation=stored.pop("operation", None),
                joined=tuple(map(StoredJoin.from_dict, stored.pop("joined", ()))),
                origin=stored,
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FormatError(f"the manifest of {place} is damaged") from error


def manifest_numbers(side: Folder) -> list[int]:
    """The numbers of the manifests in a `_hedgerow` folder, the newest first."""
    return side.numbers("manifest")


def read_manifest(side: Folder, number: int, table: str) -> Manifest:
    return Manifest.of_bytes(side.read(manifest_name(number)), table)


def manifest_name(number: int) -> str:
    return f"manifest-{number}.json"
