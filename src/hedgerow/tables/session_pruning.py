"""Answers the optimizer rule of a session: for a table and a condition, the files to open.

The rule (`spark/optimizer/Pruning.java`) sends two kinds of requests. To `open` a table, it sends the session's
settings and the columns that the query sees. The answer lists the indexed files and the SQL texts of the index's
expressions, which Spark parses. To `ask`, it sends a query's condition as JSON: columns and indexed expressions against
literals in Spark's internal form, whose meaning no setting changes. Any other part of a condition is unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from hedgerow.core.arrays import Bools
from hedgerow.core.errors import SchemaError, WorkloadError
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.values_in import values_in
from hedgerow.core.layouts.base import sql_of
from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.binding import bind
from hedgerow.core.predicates.nodes import (
    FLIPPED_OP,
    TRUE,
    And,
    Cast,
    Column,
    Compare,
    CompareTerms,
    Const,
    Expr,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Opaque,
    Or,
    Predicate,
    Prefix,
    Term,
    atoms_of,
    columns_in,
    conjunction,
    disjunction,
    is_evaluated_by_spark,
    lit,
    terms_of,
)
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import quote_name, term_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import canonical
from hedgerow.core.workload.references import Joined, Reference
from hedgerow.spark.compute.evaluate import Item
from hedgerow.spark.storage.delta_changes import changed_keys
from hedgerow.spark.storage.delta_log import column_identities
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.source import schema_of
from hedgerow.spark.write.copies import COPY
from hedgerow.sql.joined import outside, struct_of
from hedgerow.tables.delta.segment_list import read_list
from hedgerow.tables.delta.segments import Segment
from hedgerow.tables.delta.snapshot_files import schema_of_fields
from hedgerow.tables.known_files import SIDE
from hedgerow.tables.parquet.table import ParquetTable
from hedgerow.tables.settings_fit import difference
from hedgerow.tables.stored_joins import StoredJoin, schema_of_joins

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Json = Mapping[str, Any]
Changed = Callable[[str, str, str, str], "list[tuple[int, int]] | None"]
MAX_OPENED_TABLES, MAX_REMEMBERED_CHANGES = 100, 1000


class OpenedTable(Protocol):
    """A managed table under certain settings, with the columns that a query sees; `files` are names and sizes."""

    @property
    def name(self) -> str: ...

    @property
    def files(self) -> Sequence[tuple[str, int]]: ...

    @property
    def items(self) -> Sequence[Item]:
        """The index's expressions, and its conditions that only Spark understands; plain columns are not among them."""
        ...

    @property
    def schema(self) -> Mapping[str, Type]: ...

    @property
    def joined(self) -> Sequence[StoredJoin]:
        """The rows of other tables that the index describes, in all versions for which it does."""
        ...

    def answer(self, asked: _Asked, request: Json) -> dict[str, Any]:
        """The files to open: bits for `files`, or other files instead."""
        ...

    def within(self, asked: _Asked, column: Column, seen_as: Column) -> Predicate:
        """What the values of a column satisfy in the files to open; `seen_as`: its name in the predicate."""
        ...


@dataclass(frozen=True)
class _JoinedCondition:
    """A condition on joined rows; `versions` and `roots` are of the tables on the way that the query reads, `seen` the
    columns and types that it sees in the last one."""

    joined: Joined
    versions: tuple[str, ...]
    roots: tuple[str, ...]
    seen: Mapping[str, Type]
    condition: Predicate


@dataclass(frozen=True)
class _Asked:
    """What a query asks of a table's rows: a condition on its columns, and conditions on joined rows."""

    own: Predicate
    joined: Sequence[_JoinedCondition]
    changed: Changed

    def of(self, stored: Sequence[StoredJoin]) -> Predicate:
        """The whole condition for an index that describes these joined rows, perhaps in older versions."""
        known = {j.joined: j for j in stored}
        asked = [self._weakened(c, known[c.joined]) for c in self.joined if c.joined in known]
        return normalise(conjunction(self.own, *asked))

    def _weakened(self, asked: _JoinedCondition, stored: StoredJoin) -> Predicate:
        """The condition, or that a key on the way is one of those whose rows have changed since."""
        if any(str(asked.seen.get(name.lower())) != kind for name, kind in stored.fields.items()):
            return TRUE  # the query reads the same files with other types
        ways = [asked.condition]
        for place, (before, now, root) in enumerate(zip(stored.versions, asked.versions, asked.roots, strict=True)):
            if before != now:
                ranges = self.changed(root, before, now, stored.joined.steps[place].other_columns[0])
                if ranges is None:
                    return TRUE
                key = stored.joined.key_of(place)
                ways += [And((Compare(key, ">=", lit(low)), Compare(key, "<=", lit(high)))) for low, high in ranges]
        return disjunction(*ways)


class Answers:
    """Answers the rule of one session; Java calls `apply`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._opened: dict[str, tuple[OpenedTable, _ConditionReader]] = {}
        self._numbers = count()
        self._changed: dict[tuple[str, str, str, str], list[tuple[int, int]] | None] = {}

    class Java:
        implements: ClassVar = ["java.util.function.Function"]

    def apply(self, request_json: str) -> str:
        """Answers a request, JSON to JSON; an error becomes a `reason` to open all files."""
        try:
            request = json.loads(request_json)
            return json.dumps(self._open(request) if "open" in request else self._ask(request))
        except Exception as error:
            return json.dumps({"reason": f"{type(error).__name__}: {' '.join(str(error).split())}", "again": True})

    def _open(self, request: Json) -> dict[str, Any]:
        table = _open_table(self._spark, request)
        if isinstance(table, str):
            return {"reason": table}
        if len(self._opened) >= MAX_OPENED_TABLES:
            self._opened.clear()
        handle = str(next(self._numbers))
        is_exact = request["settings"]["spark.sql.caseSensitive"] == "true"
        self._opened[handle] = table, _ConditionReader(table.schema, table.items, is_exact)
        texts, joined = _texts(table)
        files = list(table.files)
        return {"handle": handle, "name": table.name, "files": files, "items": texts, "joined": joined}

    def _ask(self, request: Json) -> dict[str, Any]:
        opened = self._opened.get(request["ask"])
        if opened is None:
            return {"reason": "too many tables were opened meanwhile", "forget": True}
        table, reader = opened
        own = [reader.read(request["where"]), *self._by_partners(table, request.get("partners", ()))]
        return table.answer(
            _Asked(conjunction(*own), _joined(table, reader, request.get("joined", ())), self.changed), request
        )

    def changed(self, root: str, before: str, now: str, column: str) -> list[tuple[int, int]] | None:
        """The keys whose rows may differ between two versions of a table; None if that is not known."""
        key = root, before, now, column
        if key not in self._changed:
            found = changed_keys(self._spark, root, before, now, column)
            if len(self._changed) >= MAX_REMEMBERED_CHANGES:
                self._changed.clear()
            self._changed[key] = found
        return self._changed[key]

    def _by_partners(self, table: OpenedTable, partners: Sequence[Json]) -> Iterator[Predicate]:
        """What rows must satisfy to have a partner in the files that the query opens of other tables."""
        for partner in partners:
            other, reader = self._opened.get(partner["ask"], (None, None))
            if other is None or reader is None:
                continue
            asked = _Asked(reader.read(partner["where"]), _joined(other, reader, partner["joined"]), self.changed)
            for mine, theirs, kind in partner["columns"]:
                column = quote_name(mine)
                if str(table.schema.get(column)) == kind == str(other.schema.get(quote_name(theirs))):
                    yield other.within(asked, Column((theirs,)), Column((mine,)))


def _open_table(spark: SparkSession, request: Json) -> OpenedTable | str:
    """The table in the state of its list, or the reason why its index cannot be used."""
    kind, _, number = request["list"].removesuffix(".json").partition("-")
    settings: Mapping[str, str] = request["settings"]
    if kind == "manifest":
        table = ParquetTable.open(spark, request["open"], int(number))
        differs = difference(table.manifest.settings, settings)
        if differs is not None and differs[0] == "reading":
            return differs[1]
        return _OpenedParquet(table, settings, _schema(request["schema"]))
    side = Folder(spark, f"{request['open']}/{SIDE}")
    listed = read_list(side, int(number))
    segments = [Segment(side, entry) for entry in listed.segments]
    differing = [difference(segment.entry.settings, settings) for segment in segments]
    if differing and all(d is not None and d[0] == "reading" for d in differing):
        return next(d[1] for d in differing if d is not None)
    return _OpenedDelta(listed.name, segments, settings, request["delta"]["fields"])


def _schema(json_of_spark: Json) -> dict[str, Type]:
    from pyspark.sql.types import StructType

    return schema_of(StructType.fromJson(dict(json_of_spark)))


@dataclass(frozen=True)
class _OpenedParquet:
    """A Parquet table; `seen`: the columns and types that the query sees."""

    table: ParquetTable
    settings: Mapping[str, str]
    seen: Mapping[str, Type]

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def schema(self) -> Mapping[str, Type]:
        return {**self.table.schema, **schema_of_joins(self.joined)}

    @cached_property
    def index(self) -> BlockIndex:
        return self.table.index_under(self.settings)

    @cached_property
    def files(self) -> list[tuple[str, int]]:
        return list(self.table.known.sizes_by_name.items())

    @cached_property
    def items(self) -> list[Item]:
        """The items whose columns the query sees with the table's types."""
        seen = {name.lower(): kind for name, kind in self.seen.items()}
        same = {name for name, kind in self.table.schema.items() if seen.get(name.lower()) == kind}
        for j in self.joined:
            same |= {quote_name(j.name), *(f"{quote_name(j.name)}.{field}" for field in j.fields)}
        return [item for item in _spark_items(self.table.manifest.statistics) if _column_names(item) <= same]

    @property
    def joined(self) -> Sequence[StoredJoin]:
        return self.table.manifest.joined

    def within(self, asked: _Asked, column: Column, seen_as: Column) -> Predicate:
        return values_in(
            [(self.index, self.index.choose_files(asked.of(self.joined), copies=False).opened)], column, seen_as
        )

    def answer(self, asked: _Asked, request: Json) -> dict[str, Any]:
        p = asked.of(self.joined)
        sees_copies = COPY in map(str.lower, self.seen)  # as a column of its own, which only copies have
        if not request.get("own", True) and not sees_copies:
            reads = request["columns"]
            columns = None if reads is None else [quote_name(name) for name in reads]
            opening = self.table.opening(p, columns, self.settings)
            if opening.table is not self.table or not self.table.known.visible[opening.opened].all():
                sizes, path = opening.table.known.sizes_by_name, opening.table.path
                other: dict[str, Any] = {"files": [[f"{path}/{name}", sizes[name]] for name in opening.files]}
                if opening.copied_cells is not None:
                    codes = [opening.table.copy_code(block, cell) for block, cell in opening.copied_cells]
                    other |= {"codes": codes, "column": COPY}
                return {"instead": other}
        return {"bits": _bit_text(self.index.choose_files(p, copies=False).opened)}


@dataclass(frozen=True)
class _OpenedDelta:
    name: str
    segments: list[Segment]
    settings: Mapping[str, str]
    fields: Sequence[Any]

    @cached_property
    def files(self) -> list[tuple[str, int]]:
        return [file for segment in self.segments for file in segment.known.sizes_by_name.items()]

    @cached_property
    def schema(self) -> dict[str, Type]:
        return {**schema_of_fields(self.fields), **schema_of_joins(self.joined)}

    @cached_property
    def joined(self) -> Sequence[StoredJoin]:
        return [j for segment in self.segments for j in segment.entry.joined]

    @cached_property
    def items(self) -> list[Item]:
        """The items of all segments; each segment ignores those with columns that were replaced since then."""
        return list(dict.fromkeys(item for segment in self.segments for item in _spark_items(segment.entry.statistics)))

    @cached_property
    def _indexes(self) -> list[BlockIndex]:
        columns = column_identities(self.fields)
        return [segment.index(self.settings, columns) for segment in self.segments]

    def _opened(self, asked: _Asked) -> list[Bools]:
        by_segment = zip(self.segments, self._indexes, strict=True)
        return [index.to_open(asked.of(segment.entry.joined)) for segment, index in by_segment]

    def within(self, asked: _Asked, column: Column, seen_as: Column) -> Predicate:
        return values_in(list(zip(self._indexes, self._opened(asked), strict=True)), column, seen_as)

    def answer(self, asked: _Asked, request: Json) -> dict[str, Any]:
        return {"bits": _bit_text(np.concatenate([*self._opened(asked), np.zeros(0, bool)]))}


def _texts(table: OpenedTable) -> tuple[list[tuple[int, str]], list[Json]]:
    """The items for Spark to parse, numbered: those over the table's own columns, and those over joined rows by key.

    An item over columns of several tables is not recognised in queries."""
    own: list[tuple[int, str]] = []
    by_struct: dict[str, list[tuple[int, str]]] = {}
    names = {j.name for j in table.joined}
    for number, item in enumerate(table.items):
        struct = struct_of(item)
        if struct in names:
            by_struct.setdefault(struct, []).append((number, sql_of(outside(item))))
        elif not any(c.path[0] in names for c in columns_in(item)):
            own.append((number, sql_of(item)))

    def below(steps: tuple[Reference, ...]) -> list[Json]:
        found: dict[tuple[Reference, str], Json] = {}
        for j in table.joined:
            at = len(steps)
            if len(j.joined.steps) > at and j.joined.steps[:at] == steps:
                step = j.joined.steps[at]
                name = Joined((*steps, step)).name
                if (step, j.versions[at]) not in found:
                    found[step, j.versions[at]] = {
                        "name": name,
                        "number": _ways(table).index((*steps, step)),
                        "columns": step.columns,
                        "others": step.other_columns,
                        "types": j.key_types[at],
                        "version": j.versions[at],
                        "items": by_struct.get(name, []),
                        "joined": below((*steps, step)),
                    }
        return list(found.values())

    return own, below(())


def _ways(table: OpenedTable) -> list[tuple[Reference, ...]]:
    """The chains of keys that the index describes, and their beginnings: the rule sends their numbers."""
    chains = [j.joined.steps[:n] for j in table.joined for n in range(1, len(j.joined.steps) + 1)]
    return list(dict.fromkeys(chains))


def _joined(
    table: OpenedTable,
    reader: _ConditionReader,
    nodes: Sequence[Json],
    versions: tuple[str, ...] = (),
    roots: tuple[str, ...] = (),
) -> list[_JoinedCondition]:
    """The conditions on joined rows, those of the last tables on the way too."""
    found = []
    for node in nodes:
        at, places = (*versions, node["version"]), (*roots, node["root"])
        joined = Joined(_ways(table)[node["number"]])
        condition = replace(reader, struct=joined.name).read(node["where"])
        seen = {name.lower(): kind for name, kind in _schema(node["schema"]).items()}
        found.append(_JoinedCondition(joined, at, places, seen, condition))
        found += _joined(table, reader, node["joined"], at, places)
    return found


def _spark_items(items: Sequence[Item]) -> list[Item]:
    """The expressions and opaque conditions in the items, which Spark parses from their texts."""
    parsed: dict[Item, None] = {}
    for item in items:
        if isinstance(item, Predicate):
            parsed.update(dict.fromkeys(t for t in sorted(terms_of(item), key=term_text) if not isinstance(t, Column)))
            parsed.update(dict.fromkeys(a for a in atoms_of(item) if is_evaluated_by_spark(a)))
        elif not isinstance(item, Column):
            parsed[item] = None
    return list(parsed)


def _column_names(item: Item) -> set[str]:
    """The names of an expression's columns, and of the structs around them."""
    return {term_text(Column(c.path[:n])) for c in columns_in(item) for n in range(1, len(c.path) + 1)}


def _bit_text(opened: Bools) -> str:
    return (opened.astype(np.uint8) + ord("0")).tobytes().decode()


# --- conditions ---


@dataclass
class _ConditionReader:
    """Reads conditions of a plan, from JSON, as predicates; a number in them is a place in `items`."""

    schema: Mapping[str, Type]
    items: Sequence[Item]
    is_exact: bool = False  # whether column names are case-sensitive
    struct: str | None = None  # the struct column that holds the columns of the conditions
    unknown: Any = field(default_factory=count)

    @cached_property
    def names(self) -> dict[str, str]:
        return {name if self.is_exact else name.lower(): name for name in self.schema}

    def read(self, node: Sequence[Any]) -> Predicate:
        word, *rest = node
        match word:
            case "and":
                return And(tuple(map(self.read, rest)))
            case "or":
                return Or(tuple(map(self.read, rest)))
            case "not":
                return Not(self.read(rest[0]))
        try:
            bound = bind(self._atom(word, rest), self.schema)
        except (SchemaError, WorkloadError, ValueError):
            return self._unknown()
        is_known = word == "item" or not any(isinstance(atom, Opaque) for atom in atoms_of(bound))
        return bound if is_known else self._unknown()

    def _unknown(self) -> Opaque:
        """A new opaque condition each time: two unknown conditions need not be equal."""
        return Opaque(f"unknown {next(self.unknown)}", ())

    def _atom(self, word: str, rest: Sequence[Any]) -> Predicate:
        match word, rest:
            case "const", [value]:
                return Const(value)
            case "item", [int() as number]:
                item = self.items[number]
                if isinstance(item, Predicate):
                    return item
            case "is", [term]:
                return Compare(self._term(term), "=", lit(True))
            case "null", [term]:
                return IsNull(self._term(term))
            case "not null", [term]:
                return Not(IsNull(self._term(term)))
            case "in", [term, *literals]:
                return In(self._term(term), tuple(map(_literal, literals)))
            case "starts", [term, {"lit": str() as prefix}]:
                return Prefix(self._term(term), prefix)
            case "ends" | "contains" | "like", [term, {"lit": str() as text, "type": "string"}] if "lit" not in term:
                return _search(word, self._term(term), text)
            case _, [term, {"lit": _} as literal] if "lit" not in term:
                return _comparison(self._term(term), word, _literal(literal))
            case _, [{"lit": _} as literal, term] if (word in FLIPPED_OP or word == "<=>") and "lit" not in term:
                return _comparison(self._term(term), FLIPPED_OP.get(word, word), _literal(literal))
            case _, [left, right] if word in FLIPPED_OP and "lit" not in left and "lit" not in right:
                return CompareTerms(self._term(left), word, self._term(right))
        raise ValueError("unknown")

    def _term(self, node: Json) -> Term:
        """A column that the query reads with the table's type, or an expression of the index."""
        kind = Type.parse(node["type"])
        if "item" in node:
            item = self.items[node["item"]]
            if isinstance(item, Predicate):
                raise ValueError("unknown")
            return replace(item, type=kind) if isinstance(item, Expr) else item
        column = Column((*(() if self.struct is None else (self.struct,)), *node["col"]))
        name = self.names.get(term_text(column) if self.is_exact else term_text(column).lower())
        if name is None or self.schema[name] != kind:
            raise ValueError("the query sees another column")
        return Cast(column, Type.parse(node["cast"])) if "cast" in node else column


def _search(word: str, term: Term, text: str) -> Like:
    """LIKE, which also stands for what Spark makes of it; of a column of texts, it is the same in every session."""
    if not isinstance(term, Column):
        raise ValueError("unknown")
    plain = re.sub(r"([\\%_])", r"\\\1", text)
    pattern = {"ends": f"%{plain}", "contains": f"%{plain}%"}.get(word, text)
    return Like(term, pattern)


def _comparison(term: Term, op: str, literal: Literal) -> Predicate:
    if op == "<=>":  # TRUE or FALSE, never NULL
        return And((Compare(term, "=", literal), Not(IsNull(term))))
    if op not in FLIPPED_OP:
        raise ValueError("unknown")
    return Compare(term, op, literal)


def _literal(node: Mapping[str, Any]) -> Literal:
    """A literal from Spark's internal form of the value: days, microseconds, nanoseconds, digits."""
    kind, value = Type.parse(node["type"]).kind, node["lit"]
    match kind:
        case kinds.INT | kinds.DATE | kinds.TIME | kinds.TIMESTAMP | kinds.TIMESTAMP_NTZ:
            return Literal(kind, canonical(kind, int(value)))
        case kinds.FLOAT:
            return Literal(kind, canonical(kind, float(value)))
        case kinds.DECIMAL:
            return Literal(kind, canonical(kind, Decimal(value)))
        case kinds.BOOLEAN:
            return Literal(kind, value == "true")
        case kinds.BINARY:
            return Literal(kind, bytes.fromhex(value))
        case kinds.STRING:
            return Literal(kind, value)
    raise ValueError("unknown")
