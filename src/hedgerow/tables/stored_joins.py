"""Stores the rows of other tables that an index describes, with the versions of these tables.

The index's statistics of joined rows hold for the versions from which they were collected. A query that reads another
version does not use them, until `repair` has collected them again.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from hedgerow.core.errors import FormatError, HedgerowError, counted, warn
from hedgerow.core.predicates.nodes import Feature, columns_in
from hedgerow.core.predicates.schema import Schema, path_of
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.core.predicates.types import Type
from hedgerow.core.workload.queries import Workload
from hedgerow.core.workload.references import Joined
from hedgerow.spark.compute.constants import computed
from hedgerow.spark.compute.joins import NO_JOINS, Joins, key_types_of
from hedgerow.spark.optimizer.jvm_facts import state_of
from hedgerow.spark.start.stable_functions import meaning
from hedgerow.spark.storage.source import open_source
from hedgerow.sql.joined_conditions import with_joined
from hedgerow.sql.open_values import OpenValue
from hedgerow.sql.workload import Workload as SqlWorkload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class StoredJoin:
    """The joined rows of one chain of keys.

    Args:
        places: the place of each step's table.
        versions: the versions of these tables when the statistics were collected.
        key_types: the types of each step's key columns; the equality of keys depends on their types.
        fields: the types of the fields that the index describes, by their SQL names in the struct.
        summarised: the types of the other table's columns that summaries are about, by their SQL names.
    """

    joined: Joined
    places: tuple[str, ...]
    versions: tuple[str, ...]
    key_types: tuple[tuple[str, ...], ...]
    fields: Mapping[str, str]
    summarised: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not len(self.joined.steps) == len(self.places) == len(self.versions) == len(self.key_types) > 0:
            raise FormatError("a stored join is damaged")

    @property
    def name(self) -> str:
        return self.joined.name

    @property
    def described(self) -> Hashable:
        """The rows that the statistics describe: parts with equal ones can be joined."""
        return self.joined, self.versions, self.key_types, tuple(self.fields.items()), tuple(self.summarised.items())

    @property
    def columns(self) -> Mapping[str, str]:
        """The types of the other table's columns on which the statistics rest, by their SQL names."""
        return self.summarised if self.joined.summaries else self.fields


def to_store(joins: Joins, items: Iterable[Feature]) -> tuple[StoredJoin, ...]:
    """Return the joined rows that the items mention, in the versions that `joins` reads."""
    needed = joins.needed(items)
    versions = _versions(joins, map(Joined, needed))
    stored = []
    for steps, wanted in needed.items():
        joined, sources = Joined(steps), [joins.others[step.other.lower()] for step in steps]
        prefix = f"{quote_name(joined.name)}."
        schema = {k.removeprefix(prefix): str(t) for k, t in joins.schema.items() if k.startswith(prefix)}
        fields = {name: kind for name, kind in schema.items() if path_of(name)[0] in wanted}
        places = tuple(_absolute(source.origin) for source in sources)
        key_types = tuple(tuple(key_types_of(s, step.other_columns)) for s, step in zip(sources, steps, strict=True))
        read = {c.path[0] for s in joined.summaries if s.name in wanted for c in columns_in(s.of)}
        summarised = {name: str(t) for name, t in sources[-1].schema.items() if path_of(name)[0] in read}
        stored.append(StoredJoin(joined, places, versions[joined], key_types, fields, summarised))
    return tuple(stored)


def _absolute(place: str) -> str:
    return os.path.abspath(place) if os.path.exists(place) else place


def _versions(joins: Joins, joined: Iterable[Joined]) -> dict[Joined, tuple[str, ...]]:
    """Return the present versions of the tables in the chains of these joined rows."""
    chains = {j: [step.other.lower() for step in j.steps] for j in joined}
    by_name = {name: _version(joins, name) for names in chains.values() for name in names}
    return {j: tuple(by_name[name] for name in names) for j, names in chains.items()}


def _version(joins: Joins, name: str) -> str:
    source = joins.others[name]
    version = state_of(source) if source.is_files or source.version else None
    if version is None:
        raise HedgerowError(f"Hedgerow does not know the version of {source.name}: name a table of files")
    return version


def open_joins(
    spark: SparkSession, stored: Sequence[StoredJoin], moved: Mapping[str, str] = MappingProxyType({})
) -> Joins:
    """Return the joined rows in the present versions of their tables. `moved`: new places, by lower-case name."""
    if not stored:
        return NO_JOINS
    places = {s.other.lower(): (p, s.other) for j in stored for s, p in zip(j.joined.steps, j.places, strict=True)}
    others = {key: open_source(spark, moved.get(key, place), name) for key, (place, name) in places.items()}
    return Joins(tuple(dict.fromkeys(j.joined for j in stored)), others)


def joins_of(spark: SparkSession, stored: Sequence[StoredJoin], frame: DataFrame) -> Joins:
    """Return the joined rows for new rows; HedgerowError if a table is missing or a key does not fit any more."""
    joins = open_joins(spark, stored)
    if stale(stored, joins):
        joins.check(open_source(spark, frame, joins.joined[0].steps[0].table))
    return joins


def readable_joins(spark: SparkSession, stored: Sequence[StoredJoin]) -> Joins:
    """Return the joined rows in the present versions of their tables; none if a table cannot be read any more."""
    try:
        return open_joins(spark, stored)
    except HedgerowError:
        return NO_JOINS


def schema_of_joins(stored: Sequence[StoredJoin]) -> dict[str, Type]:
    """Return the fields of the joined rows, by the names that they have in conditions on the table."""
    return {f"{quote_name(j.name)}.{field}": Type.parse(kind) for j in stored for field, kind in j.fields.items()}


def stale(stored: Sequence[StoredJoin], joins: Joins) -> set[str]:
    """Return the lower-case names of joined rows whose tables now have other versions than the stored ones."""
    readable = [j.joined for j in stored if all(step.other.lower() in joins.others for step in j.joined.steps)]
    now = _versions(joins, readable)
    return {j.name.lower() for j in stored if j.versions != now.get(j.joined)}


def _at_present(spark: SparkSession, opened: Sequence[OpenValue]) -> dict[OpenValue, str]:
    """Return the value of each expression with a clock at the present time; parameters have none."""
    texts = {value: value.at("NOW()") for value in opened if not value.has_parameter()}
    literals = computed(spark, dict.fromkeys(texts.values()))
    return {value: literals[text] for value, text in texts.items() if text in literals}


def bound_with_joins(
    workload: Workload,
    table: str,
    paths: Sequence[str],
    schema: Schema,
    stored: Sequence[StoredJoin],
    joins: Joins,
    spark: SparkSession,
    lost: Collection[str],
) -> Workload:
    """Return the queries of the table, with the conditions of joined tables that the index describes.

    `lost`: the joined rows that it cannot describe any more. A condition on others, as `with_joined` makes it, stays.
    Clocks show the present time. A warning names conditions with parameters, which have no values. `paths`: other names
    of the table in the queries."""
    schemas = {source.name: source.schema for source in joins.others.values()}
    session, described = meaning(spark), [j for j in stored if j.name.lower() not in lost]
    own = {**schema, **schema_of_joins(described)}
    bound = workload.on(table, paths).bind({**schemas, table: own}, session)
    if isinstance(bound, SqlWorkload):
        bound, unknown = bound.with_values({table: schema}, session, lambda opened: [_at_present(spark, opened)])
        warn(f"counted as TRUE: {counted(len(unknown), 'condition')} that more than the row decides", unknown)
    if not stored:
        return bound
    keys = tuple(dict.fromkeys(step for j in stored for step in j.joined.steps))
    names = {j.name for j in described}
    types = {name.lower(): schema_ for name, schema_ in {**schemas, table: schema}.items()}
    queries = (with_joined(query, table, keys, known=names, schemas=types)[0] for query in bound)
    return replace(bound, queries=tuple(queries))
