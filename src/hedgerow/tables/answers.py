"""What the rule in a session's optimizer asks: of the files of a table, which can a condition not need?

The rule (`spark/Pruning.java`) writes the plan's condition as JSON. Columns against literals come in Spark's own
values, so that no session can change their meaning; the rest as SQL text, if all in it is Spark's own and evaluated
as usual; what is neither is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from hedgerow.core import types as kinds
from hedgerow.core.bind import Session, bind
from hedgerow.core.errors import SchemaError, WorkloadError
from hedgerow.core.expr import (
    FLIPPED_OP,
    TRUE,
    And,
    Column,
    Compare,
    CompareTerms,
    Const,
    In,
    IsNull,
    Literal,
    Not,
    Opaque,
    Or,
    Predicate,
    Prefix,
    lit,
    term_text,
)
from hedgerow.core.rewrite import normalise
from hedgerow.core.stats import Bools
from hedgerow.core.types import Type
from hedgerow.core.values import canonical
from hedgerow.spark.delta import columns_of
from hedgerow.spark.folder import Folder
from hedgerow.sql.workload import exactly
from hedgerow.tables.delta import schema_of_fields
from hedgerow.tables.parquet import SIDE, ParquetTable
from hedgerow.tables.segments import Segment, read_list

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ZONE = "spark.sql.session.timeZone"
_MOST = 100  # tables that are remembered


class Table(Protocol):
    """A managed table as it was when it was last looked at; `files` are names and sizes."""

    @property
    def handle(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def files(self) -> Sequence[tuple[str, int]]: ...

    def to_open(self, asked: Mapping[str, Any]) -> Bools:
        """For each of `files`, whether it may hold a row on which the condition is TRUE."""
        ...


class Answers:
    """One for each session; Java calls `apply`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._tables: dict[str, Table] = {}  # by their root

    class Java:
        implements: ClassVar = ["java.util.function.Function"]

    def apply(self, request: str) -> str:
        """Three lines: which list of files, the table's name, and for each file 1 to open or 0 to skip it.

        A single line says what went wrong.
        """
        try:
            if request.startswith("files "):
                return self._files(request.removeprefix("files "))
            asked = json.loads(request)
            table = self._table(asked["root"], asked["lists"])
            return f"{table.handle}\n{table.name}\n{_bits(table.to_open(asked))}"
        except Exception as error:
            return f"{type(error).__name__}: {' '.join(str(error).split())}"

    def _files(self, handle: str) -> str:
        found = [table for table in self._tables.values() if table.handle == handle]
        return "\n".join(f"{size} {name}" for name, size in found[0].files) if found else ""

    def _table(self, root: str, lists: Sequence[str]) -> Table:
        """The table as its newest list says."""
        kind, number = max((_numbered(name) for name in lists), key=lambda one: one[1])
        handle = f"{kind} {number} {root}"
        found = self._tables.get(root)
        if found is None or found.handle != handle:
            found = _opened(self._spark, root, kind, number, handle)
            if len(self._tables) > _MOST:
                self._tables.clear()
            self._tables[root] = found
        return found


def _numbered(name: str) -> tuple[str, int]:
    kind, _, number = name.removesuffix(".json").partition("-")
    return kind, int(number)


def _bits(opened: Bools) -> str:
    return (opened.astype(np.uint8) + ord("0")).tobytes().decode()


def _opened(spark: SparkSession, root: str, kind: str, number: int, handle: str) -> Table:
    if kind == "manifest":
        return _Parquet(handle, ParquetTable.open(spark, root))
    side = Folder(spark, f"{root}/{SIDE}")
    listed = read_list(side, number)
    return _Delta(handle, str(listed["name"]), [Segment(side, meta) for meta in listed["segments"]])


@dataclass(frozen=True)
class _Parquet:
    handle: str
    table: ParquetTable

    @property
    def name(self) -> str:
        return self.table.name

    @cached_property
    def files(self) -> list[tuple[str, int]]:
        return list(self.table.known.by_name.items())

    def to_open(self, asked: Mapping[str, Any]) -> Bools:
        p = predicate(asked, self.table.schema)
        return self.table.index_under(asked["settings"]).cover(p, copies=False).opened  # the plan knows no copies


@dataclass(frozen=True)
class _Delta:
    handle: str
    name: str
    segments: list[Segment]

    @cached_property
    def files(self) -> list[tuple[str, int]]:
        return [file for segment in self.segments for file in segment.known.by_name.items()]

    def to_open(self, asked: Mapping[str, Any]) -> Bools:
        fields = asked["schema"]["fields"]
        p, columns = predicate(asked, schema_of_fields(fields)), columns_of(fields)
        parts = [segment.index(asked["settings"], columns).to_open(p) for segment in self.segments]
        return np.concatenate([*parts, np.zeros(0, bool)])


# --- conditions ---


def predicate(asked: Mapping[str, Any], schema: Mapping[str, Type]) -> Predicate:
    """The condition of a plan, about the table's columns."""
    if asked["where"] is None:
        return TRUE
    return normalise(_Reader(schema, Session(asked["settings"][_ZONE])).read(asked["where"]))


class _Reader:
    def __init__(self, schema: Mapping[str, Type], session: Session) -> None:
        self.schema, self.session = schema, session
        self.names = {name.lower(): name for name in schema}
        self.unknown = count()

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
            return bind(self._atom(word, rest), self.schema, self.session)
        except (SchemaError, WorkloadError, ValueError):
            # Each is another: two that are not known may well be two things.
            return Opaque(f"unknown {next(self.unknown)}", ())

    def _atom(self, word: str, rest: Sequence[Any]) -> Predicate:
        match word, rest:
            case "const", [value]:
                return Const(value)
            case "is", [column]:
                return Compare(self._column(column), "=", lit(True))
            case "null", [column]:
                return IsNull(self._column(column))
            case "not null", [column]:
                return Not(IsNull(self._column(column)))
            case "in", [column, *literals]:
                return In(self._column(column), tuple(map(_literal, literals)))
            case "sql", [sql, *columns]:
                for column in columns:
                    self._column(column)
                if (p := exactly(sql)) is not None:
                    return p
            case (("starts" | "ends" | "contains" | "like"), [{"col": _} as column, {"lit": str() as pattern}]):
                return _text_match(word, self._column(column), pattern)
            case _, [{"col": _} as column, {"lit": _} as literal]:
                return _compare(self._column(column), word, _literal(literal))
            case _, [{"lit": _} as literal, {"col": _} as column] if word in FLIPPED_OP or word == "<=>":
                return _compare(self._column(column), FLIPPED_OP.get(word, word), _literal(literal))
            case _, [{"col": _} as left, {"col": _} as right] if word in FLIPPED_OP:
                return CompareTerms(self._column(left), word, self._column(right))
        raise ValueError("unknown")

    def _column(self, node: Mapping[str, Any]) -> Column:
        """A column that the query reads with the type that the table has."""
        column = Column(tuple(node["col"]))
        name = self.names.get(term_text(column).lower())
        if name is None or self.schema[name] != Type.parse(node["type"]):
            raise ValueError("the query sees another column")
        return column


def _compare(column: Column, op: str, literal: Literal) -> Predicate:
    if op == "<=>":  # TRUE or FALSE, never NULL
        return And((Compare(column, "=", literal), Not(IsNull(column))))
    if op not in FLIPPED_OP:
        raise ValueError("unknown")
    return Compare(column, op, literal)


def _text_match(word: str, column: Column, pattern: str) -> Predicate:
    """As the LIKE that it was, under whose text the index knows it."""
    if word == "starts":
        return Prefix(column, pattern)
    if any(c in pattern for c in ("\\'" if word == "like" else "\\'%_")):
        raise ValueError("unknown")
    pattern = {"ends": f"%{pattern}", "contains": f"%{pattern}%", "like": pattern}[word]
    return Opaque(f"{term_text(column)} LIKE '{pattern}'", (column,))


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
