"""Parses plain conditions, which mean the same in every session: columns of a table against literals of their type.

    number BETWEEN 3 AND 5 AND word IN ('a', 'b') AND day >= DATE '2024-05-01' AND kind IS NOT NULL

Spark Connect gives no access to a query's plan, so only plain conditions skip files there. A text with anything else,
such as a function, OR, NOT, a cast, an escape, a comment or a decimal, is not plain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.binding import bind
from hedgerow.core.predicates.nodes import And, Column, Compare, In, IsNull, Literal, Not, Predicate, lit
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.core.predicates.types import Type

_TOKEN = re.compile(
    r"[ \t\n]*(?:(?P<date>(?i:DATE)[ ]+'\d{4}-\d\d-\d\d')|(?P<word>[A-Za-z_]\w*)|(?P<quoted>`[A-Za-z_]\w*`)"
    r"|(?P<int>-?\d{1,18})(?![\w.])|(?P<string>'[^'\\${}\n]*')|(?P<sign><=|>=|<>|!=|=|<|>|,|\(|\)))",
    re.ASCII,
)
_SIGNS = {"=": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_QUERY = re.compile(
    r"""
    \s* SELECT \s+ (?P<list> [\w\s,*().]+? )
    \s+ FROM \s+ (?P<table> (?:[A-Za-z_]\w*\.)* [A-Za-z_]\w* | parquet\.`[^`${}]+` )
    \s+ WHERE \s+ (?P<condition> .+? )
    (?P<tail> (?: \s+ (?:GROUP|ORDER) \s+ BY \s+ [\w\s,.]+? )* (?: \s+ LIMIT \s+ \d+ )? ) \s* ;? \s*
    """,
    re.ASCII | re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
# Other functions, such as rand(3), may have another value in a row if fewer files are read.
_CALL = re.compile(r"(\w+)\s*\(")
_CALLED = frozenset({"count", "sum", "min", "max", "avg"})
_NESTED = re.compile(r"\b(?:SELECT|FROM|WHERE|UNION|EXCEPT|MINUS|INTERSECT|JOIN|HAVING)\b", re.IGNORECASE)

Token = tuple[str, str]


class _NotPlainError(Exception):
    """The text has a part that only Spark can parse."""


@dataclass(frozen=True)
class PlainQuery:
    """A query `SELECT list FROM table WHERE condition tail` over one table, without subqueries."""

    list: str
    table: str
    condition: str
    tail: str

    def with_condition(self, more: str) -> str:
        """The query's text with one more condition."""
        return f"SELECT {self.list} FROM {self.table} WHERE {self.condition} AND {more}{self.tail}"


def plain_query(sql: str) -> PlainQuery | None:
    """Parses a query; None if it is not plain.

    >>> plain_query("SELECT a, count(*) FROM t WHERE b = 3 GROUP BY a").condition
    'b = 3'
    >>> plain_query("SELECT a FROM t, u WHERE b = 3")
    >>> plain_query("SELECT a, rand(3) FROM t WHERE b = 3")
    """
    match = _QUERY.fullmatch(sql)
    if match is None or any(_NESTED.search(match[part]) for part in ("list", "tail")):
        return None
    if "_metadata" in match["list"].lower() or {name.lower() for name in _CALL.findall(match["list"])} - _CALLED:
        return None
    return PlainQuery(match["list"], match["table"], match["condition"], match["tail"])


def plain_condition(text: str, schema: Mapping[str, Type]) -> Predicate | None:
    """Parses a condition on the table's columns; None if any part of it is not plain.

    >>> from hedgerow.core.predicates.schema import as_schema
    >>> from hedgerow.core.predicates.sql_text import predicate_text
    >>> schema = as_schema({"Number": "int", "word": "string"})
    >>> predicate_text(plain_condition("number BETWEEN 3 AND 5 AND word <> 'x'", schema))
    "Number >= 3 AND Number < 6 AND word <> 'x'"
    >>> plain_condition("word = 5", schema), plain_condition("upper(word) = 'X'", schema)
    (None, None)
    """
    try:
        parser = _ConditionParser(_tokens(text), schema)
        atoms = [parser.atom()]
        while parser.tokens:
            parser.expect("and")
            atoms.append(parser.atom())
    except _NotPlainError:
        return None
    return normalise(bind(And(tuple(atoms)), schema))


def _tokens(text: str) -> list[Token]:
    tokens: list[Token] = []
    at, text = 0, text.rstrip(" \t\n")
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise _NotPlainError
        tokens.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return tokens


class _ConditionParser:
    """Parses a list of tokens from the left; raises _NotPlainError at the first that does not fit."""

    def __init__(self, tokens: Sequence[Token], schema: Mapping[str, Type]) -> None:
        self.tokens = list(tokens)
        self.schema = schema
        self.names = {name.lower(): name for name in schema}

    def next(self) -> Token:
        if not self.tokens:
            raise _NotPlainError
        return self.tokens.pop(0)

    def expect(self, text: str) -> None:
        if self.next()[1].lower() != text:
            raise _NotPlainError

    def atom(self) -> Predicate:
        column, kind = self.column()
        sign = self.next()[1].lower()
        if sign in _SIGNS:
            return Compare(column, _SIGNS[sign], self.literal(kind))
        if sign == "between":
            low = self.literal(kind)
            self.expect("and")
            return And((Compare(column, ">=", low), Compare(column, "<=", self.literal(kind))))
        if sign == "in":
            self.expect("(")
            literals = [self.literal(kind)]
            while (mark := self.next()[1]) == ",":
                literals.append(self.literal(kind))
            if mark == ")":
                return In(column, tuple(literals))
        if sign == "is":
            negated = self.tokens[:1] and self.tokens[0][1].lower() == "not"
            if negated:
                self.next()
            self.expect("null")
            return Not(IsNull(column)) if negated else IsNull(column)
        raise _NotPlainError

    def column(self) -> tuple[Column, str]:
        group, text = self.next()
        # Spark may read a bare word as a function, such as current_date.
        is_name = group == "quoted" or (group == "word" and quote_name(text) == text)
        name = self.names.get(text.strip("`").lower()) if is_name else None
        if name is None or "." in name or self.schema[name].kind not in _LITERALS:
            raise _NotPlainError
        return Column((name.strip("`"),)), self.schema[name].kind

    def literal(self, kind: str) -> Literal:
        group, text = self.next()
        wanted, read = _LITERALS[kind]
        if group != wanted:
            raise _NotPlainError
        try:
            return read(text)
        except ValueError:
            raise _NotPlainError from None


_LITERALS: Mapping[str, tuple[str, Callable[[str], Literal]]] = {
    kinds.INT: ("int", lambda text: lit(int(text))),
    kinds.STRING: ("string", lambda text: lit(text[1:-1])),
    kinds.DATE: ("date", lambda text: lit(date.fromisoformat(text[-11:-1]))),
}
