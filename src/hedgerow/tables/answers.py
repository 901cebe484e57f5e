"""Answers the optimizer rule of a session: for a table and a condition, the files to open.

The rule (`PruningRule.java`) sends the requests of `spark/wire`. To `Open` a table, it sends the session's settings and
the columns that the query sees. The answer lists the indexed files and the SQL texts of the index's expressions, which
Spark parses. To `Choose` files, it sends a query's condition. `Judge` asks which settings and options are harmless.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, ClassVar
from uuid import uuid4

from hedgerow.core.errors import HedgerowError
from hedgerow.core.index.sums import is_sum
from hedgerow.core.predicates.nodes import (
    Column,
    CompareTerms,
    Feature,
    Predicate,
    atoms_of,
    columns_in,
    conjunction,
    is_evaluated_by_spark,
    terms_of,
)
from hedgerow.core.predicates.sql_text import feature_text, quote_name, term_text
from hedgerow.core.workload.references import Joined, Reference
from hedgerow.spark import wire
from hedgerow.spark.judged import is_harmless_option
from hedgerow.spark.optimizer.jvm_facts import is_dated
from hedgerow.spark.session_settings import is_harmless_setting, relevant_settings
from hedgerow.spark.storage.column_identity import column_identities
from hedgerow.spark.storage.delta_changes import changed_keys
from hedgerow.spark.write.copies import COPY
from hedgerow.sql.joined_conditions import column_of, on_joined, outside, struct_of
from hedgerow.tables import more_than_where
from hedgerow.tables.entry import schema_of_fields
from hedgerow.tables.opened_table import JoinedCondition, JoinedEquality, OpenedTable, RowCondition
from hedgerow.tables.parquet.folder import folder_of, side_of
from hedgerow.tables.part import Part, join_parts, parts_of
from hedgerow.tables.settings_fit import difference
from hedgerow.tables.state import TableState, read_state
from hedgerow.tables.stored import StoredTable
from hedgerow.tables.stored_joins import schema_of_joins
from hedgerow.tables.wire_conditions import ConditionReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_FORGOTTEN = wire.Refused("too many tables were opened meanwhile", forget=True)
MAX_OPENED_TABLES, MAX_REMEMBERED_CHANGES = 100, 1000


class Answers:
    """Answers the rule of one session, on any number of threads; Java calls `apply`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._opened: dict[str, tuple[OpenedTable, ConditionReader]] = {}
        self._parts: dict[str, tuple[Part, ...]] = {}  # of each table, in the state that was opened last
        self._name = uuid4().hex  # a process that takes the place of another must not know its handles
        self._numbers = count()
        self._changed: dict[tuple[str, str, str, str], list[tuple[int, int]] | None] = {}

    class Java:
        implements: ClassVar = ["java.util.function.Function"]

    def apply(self, request: str) -> str:
        """Answer a request, JSON to JSON; an error becomes a reason to open all files."""
        try:
            return wire.write(self._answer(wire.read(request)))
        except Exception as error:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            return wire.write(wire.Refused(reason, again=True))

    def _answer(self, request: wire.Request) -> wire.Answer:
        match request:
            case wire.Judge(settings, options):
                return wire.Harmless(
                    list(filter(is_harmless_setting, settings)), list(filter(is_harmless_option, options))
                )
            case wire.Open():
                return self._open(request)
            case wire.Choose():
                return self._choose(request)
            case wire.KeyBounds(handle, key):
                return self._key_bounds(handle, key)
            case wire.ChooseRows() | wire.Aggregate():
                opened = self._opened.get(request.handle)
                return _FORGOTTEN if opened is None else more_than_where.answer(*opened, request)
        raise ValueError(f"no request: {request}")

    def _open(self, request: wire.Open) -> wire.Opened | wire.Refused:
        settings = relevant_settings(request.settings)
        if len(self._opened) >= MAX_OPENED_TABLES:
            self._opened.clear()
            self._parts.clear()
        side = side_of(self._spark, request.path)
        state = read_state(side, request.state)
        parts = parts_of(side, state.parts, self._parts.get(request.path, ()))
        table = _open_table(self._spark, request, settings, state, parts)
        if isinstance(table, str):
            return wire.Refused(table)
        self._parts[request.path] = parts
        handle = f"{self._name}-{next(self._numbers)}"
        is_exact = settings["spark.sql.caseSensitive"] == "true"
        self._opened[handle] = table, ConditionReader(table.schema, table.items, is_exact)
        names, sizes = zip(*table.files, strict=True) if table.files else ((), ())
        groups, starts = table.row_groups
        return wire.Opened(handle, table.name, names, sizes, groups, starts, *_texts(table))

    def _choose(self, request: wire.Choose) -> wire.Answer:
        opened = self._opened.get(request.handle)
        if opened is None:
            return _FORGOTTEN
        table, reader = opened
        own = [reader.read(request.where), *self._by_partners(table, request.partners)]
        joined = _joined(table, reader, request.joined)
        equal = [e for e in (_equality(table, joined, columns) for columns in request.equal) if e is not None]
        return table.choose(RowCondition(conjunction(*own), joined, self.changed, equal), request)

    def _key_bounds(self, handle: str, key: wire.Side) -> wire.Answer:
        if handle not in self._opened:
            return _FORGOTTEN
        table, reader = self._opened[handle]
        try:
            return table.key_bounds(reader.typed_term(key))
        except (HedgerowError, ValueError) as error:
            return wire.Refused(str(error))

    def changed(self, root: str, before: str, now: str, column: str) -> list[tuple[int, int]] | None:
        """Return the keys whose rows may differ between two versions of a table; None if that is not known."""
        key = root, before, now, column
        if key not in self._changed:
            if len(self._changed) >= MAX_REMEMBERED_CHANGES:
                self._changed.clear()
            self._changed[key] = changed_keys(self._spark, root, before, now, column)
        return self._changed[key]

    def _by_partners(self, table: OpenedTable, partners: Sequence[wire.Partner]) -> Iterator[Predicate]:
        """Yield the conditions of rows with a partner in those files of other tables that the query opens."""
        for partner in partners:
            other, reader = self._opened.get(partner.handle, (None, None))
            if other is None or reader is None:
                continue
            on_joined = _joined(other, reader, partner.joined)
            condition = RowCondition(reader.read(partner.where), on_joined, self.changed)
            for pair in partner.columns:
                column = quote_name(pair.mine)
                if str(table.schema.get(column)) == pair.type == str(other.schema.get(quote_name(pair.theirs))):
                    yield other.within(condition, Column((pair.theirs,)), Column((pair.mine,)))


def _open_table(
    spark: SparkSession, request: wire.Open, now: Mapping[str, str], state: TableState, parts: Sequence[Part]
) -> OpenedTable | str:
    """Return the table in the state that the rule names, or the reason why its index cannot be used."""
    path, is_delta = request.path, request.delta is not None
    if is_delta != (state.kind == "delta"):
        return f"its index was written while it was a {state.kind.capitalize()} table"
    differing = [difference(part.entry.settings, now) for part in parts]
    if differing and all(d is not None and d[0] == "reading" for d in differing):
        return next(d[1] for d in differing if d is not None)
    fields = tuple(json.loads(request.delta or request.schema)["fields"])
    types = {name.lower(): kind for name, kind in schema_of_fields(fields).items()}
    schema = {n: kind for part in parts for n, kind in part.entry.schema.items() if types.get(n.lower()) == kind}
    joined = [j for part in parts for j in part.entry.joined]
    names = {*schema, *schema_of_joins(joined), *(quote_name(j.name) for j in joined)}
    items = dict.fromkeys(item for part in parts for item in _spark_items(part.entry.statistics))
    copies = None if is_delta or COPY in types else StoredTable(folder_of(spark, path, state), state)
    return OpenedTable(
        state.name,
        join_parts(parts, now, column_identities(fields) if is_delta else parts[-1].entry.columns),
        {**schema, **schema_of_joins(joined)},
        [item for item in items if _column_names(item) <= names],
        joined,
        copies,
        now,
    )


def _texts(table: OpenedTable) -> tuple[list[wire.Item], list[wire.Key]]:
    """Return the numbered items for Spark to parse: over the table's own columns, and over joined rows by key.

    An item over columns of several tables is not recognised in queries."""
    own: list[wire.Item] = []
    by_struct: dict[str, list[wire.Item]] = {}
    names = {j.name for j in table.joined}
    for number, item in enumerate(table.items):
        struct = struct_of(item)
        if struct in names:
            by_struct.setdefault(struct, []).append(wire.Item(number, feature_text(outside(item))))
        elif not any(c.path[0] in names for c in columns_in(item)):
            own.append(wire.Item(number, feature_text(item)))

    def below(steps: tuple[Reference, ...]) -> list[wire.Key]:
        keys: dict[tuple[Reference, str], wire.Key] = {}
        for j in table.joined:
            at = len(steps)
            if len(j.joined.steps) > at and j.joined.steps[:at] == steps:
                step, version = j.joined.steps[at], j.versions[at]
                if (step, version) not in keys:
                    name = Joined((*steps, step)).name
                    keys[step, version] = wire.Key(
                        name,
                        _ways(table).index((*steps, step)),
                        step.columns,
                        step.other_columns,
                        j.key_types[at],
                        version,
                        by_struct.get(name, []),
                        below((*steps, step)),
                    )
        return list(keys.values())

    return own, below(())


def _ways(table: OpenedTable) -> list[tuple[Reference, ...]]:
    """Return the chains of keys that the index describes, and their beginnings: the rule sends their numbers."""
    chains = [j.joined.steps[:n] for j in table.joined for n in range(1, len(j.joined.steps) + 1)]
    return list(dict.fromkeys(chains))


def _joined(
    table: OpenedTable,
    reader: ConditionReader,
    rows: Sequence[wire.JoinedRows],
    versions: tuple[str, ...] = (),
    roots: tuple[str, ...] = (),
) -> list[JoinedCondition]:
    """Return the conditions on joined rows, also on the tables in between."""
    conditions = []
    for some in rows:
        at, places = (*versions, some.version), (*roots, some.root)
        joined = Joined(_ways(table)[some.number])
        fields = schema_of_fields(tuple(json.loads(some.schema)["fields"]))
        types = {name.lower(): kind for name, kind in fields.items()}
        if joined.summaries:
            condition = on_joined(ConditionReader(fields, (), reader.is_exact).read(some.where), joined)
        else:
            condition = replace(reader, struct=joined.name).read(some.where)
        conditions.append(JoinedCondition(joined, at, places, types, condition))
        conditions += _joined(table, reader, some.joined, at, places)
    return conditions


def _equality(
    table: OpenedTable, joined: Sequence[JoinedCondition], columns: wire.EqualColumns
) -> JoinedEquality | None:
    """Return the equality of two columns; None if the index describes one of them not, or with another type.

    Of rows that are only summarised, the index describes no column."""
    sides = [
        (None if place < 0 else joined[place], name)
        for place, name in ((columns.left, columns.left_column), (columns.right, columns.right_column))
    ]
    equal = [column_of(None if on is None else on.joined, name) for on, name in sides]
    if any(on is not None and on.joined.summaries for on, _ in sides):
        return None
    if any(str(table.schema.get(term_text(column))) != columns.type for column in equal):
        return None
    return JoinedEquality(tuple(on for on, _ in sides if on is not None), CompareTerms(equal[0], "=", equal[1]))


def _spark_items(items: Sequence[Feature]) -> list[Feature]:
    """Return the expressions and opaque conditions in the items, which Spark parses from their texts."""
    parsed: dict[Feature, None] = {}
    for item in items:
        if isinstance(item, Predicate):
            parsed.update(dict.fromkeys(t for t in sorted(terms_of(item), key=term_text) if not isinstance(t, Column)))
            parsed.update(dict.fromkeys(a for a in atoms_of(item) if is_evaluated_by_spark(a)))
        elif not isinstance(item, Column) and not is_sum(item):
            parsed[item] = None
    return list(filter(is_dated, parsed))


def _column_names(item: Feature) -> set[str]:
    """Return the names of an expression's columns, and of the structs around them."""
    return {term_text(Column(c.path[:n])) for c in columns_in(item) for n in range(1, len(c.path) + 1)}
