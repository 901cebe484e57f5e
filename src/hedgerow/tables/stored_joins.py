"""Remembers to which rows of other tables an index refers, and in which versions of these tables.

What an index says of joined rows holds for the versions from which it was collected. A query that reads another version
asks for no joined row of it, until `repair` has collected the statistics again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import FormatError, HedgerowError
from hedgerow.core.predicates.schema import Schema, Session, path_of
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.core.predicates.types import Type
from hedgerow.core.workload.queries import Workload
from hedgerow.core.workload.references import Joined, Reference
from hedgerow.spark.compute.evaluate import Item
from hedgerow.spark.compute.joins import NO_JOINS, Joins, key_types_of
from hedgerow.spark.optimizer.rule import state_of
from hedgerow.spark.storage.source import open_source
from hedgerow.sql.joined import with_joined

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class StoredJoin:
    """The joined rows of one chain of keys.

    Args:
        places: where the table of each step is.
        versions: those of these tables when the statistics were collected.
        key_types: the types of each step's key columns: whether two keys are equal depends on their type.
        fields: the types of the fields that the index describes, by their SQL names in the struct.
    """

    joined: Joined
    places: tuple[str, ...]
    versions: tuple[str, ...]
    key_types: tuple[tuple[str, ...], ...]
    fields: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.joined.name

    def to_dict(self) -> dict[str, Any]:
        """These keys are stored: they stay what they are, whatever the fields are called."""
        return {
            "steps": [step.to_dict() for step in self.joined.steps],
            "places": list(self.places),
            "versions": list(self.versions),
            "key_types": list(map(list, self.key_types)),
            "fields": dict(self.fields),
        }

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> StoredJoin:
        steps = tuple(map(Reference.from_dict, stored["steps"]))
        places, versions = map(tuple, (stored["places"], stored["versions"]))
        key_types = tuple(map(tuple, stored["key_types"]))
        if not len(steps) == len(places) == len(versions) == len(key_types) > 0:
            raise FormatError("a stored join is damaged")
        return StoredJoin(Joined(steps), places, versions, key_types, dict(stored["fields"]))


def to_store(joins: Joins, items: Iterable[Item]) -> tuple[StoredJoin, ...]:
    """The joined rows that the items mention, in the versions that `joins` reads."""
    needed = joins.needed(items)
    versions = _versions(joins, map(Joined, needed))
    found = []
    for steps, wanted in needed.items():
        names = [step.other.lower() for step in steps]
        joined = Joined(steps)
        prefix = f"{quote_name(joined.name)}."
        fields = {k.removeprefix(prefix): str(t) for k, t in joins.schema.items() if k.startswith(prefix)}
        kept = {name: kind for name, kind in fields.items() if path_of(name)[0] in wanted}
        places = tuple(_absolute(joins.others[name].origin) for name in names)
        key_types = tuple(tuple(key_types_of(joins.others[step.other.lower()], step.other_columns)) for step in steps)
        found.append(StoredJoin(joined, places, versions[joined], key_types, kept))
    return tuple(found)


def _absolute(place: str) -> str:
    return os.path.abspath(place) if os.path.exists(place) else place


def _versions(joins: Joins, joined: Iterable[Joined]) -> dict[Joined, tuple[str, ...]]:
    """The present versions of the tables on the way to these joined rows."""
    ways = {j: [step.other.lower() for step in j.steps] for j in joined}
    by_name = {name: _version(joins, name) for name in dict.fromkeys(name for way in ways.values() for name in way)}
    return {j: tuple(by_name[name] for name in way) for j, way in ways.items()}


def _version(joins: Joins, name: str) -> str:
    source = joins.others[name]
    version = state_of(source) if source.is_files or source.version else None
    if version is None:
        raise HedgerowError(f"{source.name} has no version that Hedgerow can tell from others: name a table of files")
    return version


def opened(spark: SparkSession, stored: Sequence[StoredJoin]) -> Joins:
    """The joined rows in the present versions of their tables."""
    if not stored:
        return NO_JOINS
    places = {s.other.lower(): (p, s.other) for j in stored for s, p in zip(j.joined.steps, j.places, strict=True)}
    others = {key: open_source(spark, place, name) for key, (place, name) in places.items()}
    return Joins(tuple(dict.fromkeys(j.joined for j in stored)), others)


def usable(joins: Callable[[], Joins]) -> Joins:
    """The joined rows, or none if one of their tables cannot be read any more."""
    try:
        return joins()
    except HedgerowError:
        return NO_JOINS


def schema_of_joins(stored: Sequence[StoredJoin]) -> dict[str, Type]:
    """The fields of the joined rows, by the names that they have in conditions on the table."""
    return {f"{quote_name(j.name)}.{field}": Type.parse(kind) for j in stored for field, kind in j.fields.items()}


def stale(stored: Sequence[StoredJoin], joins: Joins) -> set[str]:
    """The names, in lower case, of joined rows that come from other versions of their tables than the stored ones."""
    readable = [j.joined for j in stored if all(step.other.lower() in joins.others for step in j.joined.steps)]
    now = _versions(joins, readable)
    return {j.name.lower() for j in stored if j.versions != now.get(j.joined)}


def bound_with_joins(
    workload: Workload, table: str, schema: Schema, stored: Sequence[StoredJoin], joins: Joins, session: Session
) -> Workload:
    """The queries of the table, with those conditions of joined tables of which the index can tell something."""
    schemas = {source.name: source.schema for source in joins.others.values()}
    bound = workload.on(table).bind({**schemas, table: schema}, session)
    if not stored:
        return bound
    keys = tuple(dict.fromkeys(step for j in stored for step in j.joined.steps))
    lost = stale(stored, joins)
    known = {j.name for j in stored if j.name.lower() not in lost}
    queries = (with_joined(query, table, keys, known=known)[0] for query in bound)
    return replace(bound, queries=tuple(queries))
