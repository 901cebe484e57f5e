"""The description of a part of a table, the files of one write, as the table's state stores it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hedgerow.core.predicates.nodes import Feature
from hedgerow.core.predicates.predicate_json import decode
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.value_filter import Shape
from hedgerow.core.workload.references import Joined, Reference
from hedgerow.core.workload.summaries import Summary
from hedgerow.spark.compute.checksum import Checksum
from hedgerow.spark.storage.column_identity import column_identities
from hedgerow.spark.storage.filter_files import FilterFile
from hedgerow.spark.storage.source import schema_of
from hedgerow.spark.write.writing import Writing
from hedgerow.tables.lookups import Lookup
from hedgerow.tables.stored_joins import StoredJoin

Fields = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Entry:
    """The facts of a part. Its index, its list of files and its layout are stored in files of their own.

    Args:
        id: the id in the name of its list of files, `files-<id>.arrow`.
        index: the id in the name of its index, which `repair` and `relearn` write again.
        layout: the id in the name of its layout: the part's own id if a rewrite wrote it, else the id of a rewrite.
        fields: the table's columns when the files were written, as Spark's JSON.
        settings: the settings of the session that wrote the files.
        writing: the options for writing the files.
        statistics: the expressions and conditions that the index describes.
        checksum: the checksum of all rows and columns; None if it was not computed.
        joined: the rows of other tables that the index describes as columns.
        seals: the digests of the part's files, by name.
        origin: the origin of the rows and the layout, for people: `source`, `learner`, `seed` and others.
        write: the id of the last write whose files the part has. Appends may be joined to one part.
        files: the number of its files.
        lookups: the filters for look-ups of values.
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
    write: str = ""
    files: int = 0
    lookups: tuple[Lookup, ...] = ()

    @property
    def was_appended(self) -> bool:
        return self.id != self.layout

    @property
    def names(self) -> tuple[str, str, str]:
        """The names of its index, its list of files and its layout in the side folder."""
        return f"index-{self.index}.arrow", f"files-{self.id}.arrow", f"layout-{self.layout}.json"

    @property
    def files_used(self) -> tuple[str, ...]:
        """The names of all its files and folders in the side folder."""
        return *self.names, *(lookup.name for lookup in self.lookups)

    @cached_property
    def columns(self) -> dict[str, str]:
        """The identity of each column; a later column of the same name has another one."""
        return column_identities(self.fields)

    @cached_property
    def schema(self) -> dict[str, Type]:
        """The types of the columns."""
        return schema_of_fields(self.fields)

    @staticmethod
    def of_json(stored: object) -> Entry:
        """Return the entry that `encode` wrote; errors of many kinds if it did not."""
        members = Writing, Checksum, StoredJoin, Joined, Reference, Summary, Lookup, Shape, FilterFile
        entry: Entry = decode(stored, (Entry, *members))
        column_identities(entry.fields)  # raises an error if a field is damaged
        return entry


def struct_of(fields: Fields) -> Any:
    """Return the columns as Spark's StructType."""
    from pyspark.sql.types import StructType

    return StructType.fromJson({"type": "struct", "fields": deepcopy(list(fields))})  # fromJson changes its input


def schema_of_fields(fields: Fields) -> dict[str, Type]:
    """Return the names and types of the columns, from Spark's JSON."""
    return schema_of(struct_of(fields))


def total(parts: Sequence[Entry]) -> Checksum:
    """Return the checksum of the rows of all parts; each part of a Parquet table has one."""
    return sum((entry.checksum for entry in parts if entry.checksum), Checksum(0, 0, 0))
