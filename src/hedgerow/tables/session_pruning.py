"""What the rule in a session's optimizer asks: of the files of a table, which can a condition not need?

The rule (`spark/Pruning.java`) asks twice. To `open` a table it sends the session's settings and the columns that the
query sees; it learns the files that the index knows and the texts of the index's expressions, which Spark itself then
reads. After that it sends each query's condition as JSON: columns and expressions of the index against literals in
Spark's own values, so that no session can change their meaning. What is neither is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from hedgerow.core.errors import SchemaError, WorkloadError
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.layouts.base import sql_of
from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.binding import bind
from hedgerow.core.predicates.nodes import (
    FLIPPED_OP,
    And,
    Cast,
    Column,
    Compare,
    CompareTerms,
    Const,
    Expr,
    In,
    IsNull,
    Literal,
    Not,
    Opaque,
    Or,
    Predicate,
    Prefix,
    Term,
    atoms,
    lit,
    terms,
)
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import quote_name, term_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import canonical
from hedgerow.core.pruning.block_stats import Bools
from hedgerow.spark.compute.evaluate import Item
from hedgerow.spark.storage.delta_log import columns_of
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.source import schema_of
from hedgerow.spark.write.copies import COPY
from hedgerow.tables.delta.segments import Segment, read_list
from hedgerow.tables.delta.snapshot_files import schema_of_fields
from hedgerow.tables.known_files import SIDE
from hedgerow.tables.parquet.table import ParquetTable
from hedgerow.tables.settings_fit import difference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Json = Mapping[str, Any]
MAX_REMEMBERED = 100  # tables


class Table(Protocol):
    """A managed table under some settings, with the columns that some queries see; `files` are names and sizes."""

    @property
    def name(self) -> str: ...

    @property
    def files(self) -> Sequence[tuple[str, int]]: ...

    @property
    def items(self) -> Sequence[Item]:
        """What the index knows beside columns: expressions, and conditions that only Spark understands."""
        ...

    @property
    def schema(self) -> Mapping[str, Type]: ...

    def answer(self, p: Predicate, asked: Json) -> dict[str, Any]:
        """Which of `files` to open, or which other files instead."""
        ...


class Answers:
    """One for each session; Java calls `apply`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._opened: dict[str, tuple[Table, _Reader]] = {}
        self._numbers = count()

    class Java:
        implements: ClassVar = ["java.util.function.Function"]

    def apply(self, request: str) -> str:
        """JSON to JSON; what goes wrong is a `reason` to open all files."""
        try:
            asked = json.loads(request)
            return json.dumps(self._open(asked) if "open" in asked else self._ask(asked))
        except Exception as error:
            return json.dumps({"reason": f"{type(error).__name__}: {' '.join(str(error).split())}", "again": True})

    def _open(self, asked: Json) -> dict[str, Any]:
        table = _opened(self._spark, asked)
        if isinstance(table, str):
            return {"reason": table}
        if len(self._opened) >= MAX_REMEMBERED:
            self._opened.clear()
        handle = str(next(self._numbers))
        is_exact = asked["settings"]["spark.sql.caseSensitive"] == "true"
        self._opened[handle] = table, _Reader(table.schema, table.items, is_exact)
        texts = [sql_of(item) for item in table.items]
        return {"handle": handle, "name": table.name, "files": list(table.files), "items": texts}

    def _ask(self, asked: Json) -> dict[str, Any]:
        found = self._opened.get(asked["ask"])
        if found is None:
            return {"reason": "too many tables were opened meanwhile", "forget": True}
        table, reader = found
        return table.answer(normalise(reader.read(asked["where"])), asked)


def _opened(spark: SparkSession, asked: Json) -> Table | str:
    """The table as its list says, or why nothing can be said of it."""
    kind, _, number = asked["list"].removesuffix(".json").partition("-")
    settings: Mapping[str, str] = asked["settings"]
    if kind == "manifest":
        table = ParquetTable.open(spark, asked["open"], int(number))
        differs = difference(table.manifest["settings"], settings)
        if differs is not None and differs[0] == "reading":
            return differs[1]
        return _Parquet(table, settings, _schema(asked["schema"]))
    side = Folder(spark, f"{asked['open']}/{SIDE}")
    listed = read_list(side, int(number))
    segments = [Segment(side, meta) for meta in listed["segments"]]
    differing = [difference(segment.meta["settings"], settings) for segment in segments]
    if differing and all(d is not None and d[0] == "reading" for d in differing):
        return next(d[1] for d in differing if d is not None)
    return _Delta(str(listed["name"]), segments, settings, asked["delta"]["fields"])


def _schema(json_of_spark: Json) -> dict[str, Type]:
    from pyspark.sql.types import StructType

    return schema_of(StructType.fromJson(dict(json_of_spark)))


@dataclass(frozen=True)
class _Parquet:
    """`seen`: the columns as the query has them."""

    table: ParquetTable
    settings: Mapping[str, str]
    seen: Mapping[str, Type]

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def schema(self) -> Mapping[str, Type]:
        return self.table.schema

    @cached_property
    def index(self) -> BlockIndex:
        return self.table.index_under(self.settings)

    @cached_property
    def files(self) -> list[tuple[str, int]]:
        return list(self.table.known.by_name.items())

    @cached_property
    def items(self) -> list[Item]:
        """Of columns that the query sees as they are in the table."""
        seen = {name.lower(): kind for name, kind in self.seen.items()}
        same = {name for name, kind in self.schema.items() if seen.get(name.lower()) == kind}
        return [item for item in _asked_as_text(self.table.statistics) if _columns(item) <= same]

    def answer(self, p: Predicate, asked: Json) -> dict[str, Any]:
        if not asked.get("own", True):
            reads = asked["columns"]
            columns = None if reads is None else [quote_name(name) for name in reads]
            found = self.table.opening(p, columns, self.settings)
            if found.table is not self.table or any(not own for own in self.table.known.own[found.known]):
                sizes, path = found.table.known.by_name, found.table.path
                other: dict[str, Any] = {"files": [[f"{path}/{name}", sizes[name]] for name in found.files]}
                if found.taken is not None:
                    codes = [found.table.copy_code(block, cell) for block, cell in found.taken]
                    other |= {"codes": codes, "column": COPY}
                return {"instead": other}
        return {"bits": _bits(self.index.cover(p, copies=False).opened)}


@dataclass(frozen=True)
class _Delta:
    name: str
    segments: list[Segment]
    settings: Mapping[str, str]
    fields: Sequence[Any]

    @cached_property
    def files(self) -> list[tuple[str, int]]:
        return [file for segment in self.segments for file in segment.known.by_name.items()]

    @cached_property
    def schema(self) -> dict[str, Type]:
        return schema_of_fields(self.fields)

    @cached_property
    def items(self) -> list[Item]:
        """Of all segments; each leaves aside what speaks of columns that are others by now."""
        return list(dict.fromkeys(item for segment in self.segments for item in _asked_as_text(segment.items)))

    @cached_property
    def _indexes(self) -> list[BlockIndex]:
        columns = columns_of(self.fields)
        return [segment.index(self.settings, columns) for segment in self.segments]

    def answer(self, p: Predicate, asked: Json) -> dict[str, Any]:
        return {"bits": _bits(np.concatenate([*(index.to_open(p) for index in self._indexes), np.zeros(0, bool)]))}


def _asked_as_text(items: Sequence[Item]) -> list[Item]:
    """The expressions and opaque conditions in them."""
    found: dict[Item, None] = {}
    for item in items:
        if isinstance(item, Predicate):
            found.update(dict.fromkeys(t for t in sorted(terms(item), key=term_text) if not isinstance(t, Column)))
            found.update(dict.fromkeys(a for a in atoms(item) if isinstance(a, Opaque)))
        elif not isinstance(item, Column):
            found[item] = None
    return list(found)


def _columns(item: Item) -> set[str]:
    """The names of an expression's columns, and of the structs that they lie in."""
    own = (item.column,) if isinstance(item, Cast) else item.columns if isinstance(item, Expr | Opaque) else ()
    return {term_text(Column(c.path[:n])) for c in own for n in range(1, len(c.path) + 1)}


def _bits(opened: Bools) -> str:
    return (opened.astype(np.uint8) + ord("0")).tobytes().decode()


# --- conditions ---


@dataclass
class _Reader:
    """Conditions of a plan, about the table's columns; `items` are what a number stands for."""

    schema: Mapping[str, Type]
    items: Sequence[Item]
    is_exact: bool = False  # whether letter case tells names apart
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
            found = bind(self._atom(word, rest), self.schema)
        except (SchemaError, WorkloadError, ValueError):
            return self._unknown()
        is_clear = word == "item" or not any(isinstance(atom, Opaque) for atom in atoms(found))
        return found if is_clear else self._unknown()

    def _unknown(self) -> Opaque:
        """Each time another one: two conditions that are not known may well be two things."""
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
            case _, [term, {"lit": _} as literal] if "lit" not in term:
                return _compare(self._term(term), word, _literal(literal))
            case _, [{"lit": _} as literal, term] if (word in FLIPPED_OP or word == "<=>") and "lit" not in term:
                return _compare(self._term(term), FLIPPED_OP.get(word, word), _literal(literal))
            case _, [left, right] if word in FLIPPED_OP and "lit" not in left and "lit" not in right:
                return CompareTerms(self._term(left), word, self._term(right))
        raise ValueError("unknown")

    def _term(self, node: Json) -> Term:
        """A column that the query reads with the type that the table has, or an expression of the index."""
        kind = Type.parse(node["type"])
        if "item" in node:
            item = self.items[node["item"]]
            if isinstance(item, Predicate):
                raise ValueError("unknown")
            return replace(item, type=kind) if isinstance(item, Expr) else item
        column = Column(tuple(node["col"]))
        name = self.names.get(term_text(column) if self.is_exact else term_text(column).lower())
        if name is None or self.schema[name] != kind:
            raise ValueError("the query sees another column")
        return Cast(column, Type.parse(node["cast"])) if "cast" in node else column


def _compare(term: Term, op: str, literal: Literal) -> Predicate:
    if op == "<=>":  # TRUE or FALSE, never NULL
        return And((Compare(term, "=", literal), Not(IsNull(term))))
    if op not in FLIPPED_OP:
        raise ValueError("unknown")
    return Compare(term, op, literal)


def _literal(node: Mapping[str, Any]) -> Literal:
    """From Spark's own form of the value: days, microseconds, digits."""
    kind, value = Type.parse(node["type"]).kind, node["lit"]
    match kind:
        case kinds.INT | kinds.DATE | kinds.TIMESTAMP | kinds.TIMESTAMP_NTZ:
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
