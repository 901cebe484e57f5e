"""Describes the schema and the files of one version of a Delta table in the terms of the index."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hedgerow.core.layouts.base import sql_of
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import TermStats
from hedgerow.core.pruning.words import searched_for_words
from hedgerow.spark.compute.evaluate import Item
from hedgerow.spark.storage.delta_log import Snapshot
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.footers import Footer, footers_of, known_terms
from hedgerow.spark.storage.paths import added_name
from hedgerow.spark.storage.source import schema_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def schema_at(snapshot: Snapshot) -> dict[str, Type]:
    return schema_of_fields(list(snapshot.fields.values()))


def spark_schema_at(snapshot: Snapshot) -> StructType:
    return _struct(list(snapshot.fields.values()))


def schema_of_fields(fields: Sequence[Any]) -> dict[str, Type]:
    """The schema, from the columns in Delta's JSON."""
    return schema_of(_struct(fields))


def _struct(fields: Sequence[Any]) -> StructType:
    from pyspark.sql.types import StructType

    return StructType.fromJson({"type": "struct", "fields": deepcopy(fields)})  # fromJson changes its input


def file_names(names: Iterable[str]) -> list[str]:
    """The last part of each file's path, as in the column `_metadata.file_name`."""
    return list(map(added_name, names))


def footers_at(
    snapshot: Snapshot, sizes: Mapping[str, int], sets_of: Collection[str] = (), words_of: Collection[str] = ()
) -> list[Footer]:
    """The footers of the files, with the table's own names of columns; `sets_of`, `words_of`: see `footers_of`."""
    names = {quote_name(p): quote_name(name) for p, name in snapshot.physical.items()}
    of_sets, of_words = ({p for p, name in names.items() if name in some} for some in (sets_of, words_of))
    paths = {snapshot.log.full_path(n): size for n, size in sizes.items()}
    found = footers_of(Folder(snapshot.log.spark, ""), paths, of_sets, of_words)

    def renamed(by_column: Mapping[str, Any]) -> dict[str, Any]:
        return {names[p]: value for p, value in by_column.items() if p in names}

    return [replace(f, columns=renamed(f.columns), values=renamed(f.values)) for f in found]


def footers_and_terms(
    snapshot: Snapshot, sizes: Mapping[str, int], items: Sequence[Item]
) -> tuple[list[Footer], dict[str, TermStats]]:
    """The footers of the files, and the statistics of those items that they are certain of."""
    wanted = set(map(sql_of, items))
    footers = footers_at(snapshot, sizes, wanted, searched_for_words(items))
    return footers, known_terms(footers, schema_at(snapshot), wanted)
