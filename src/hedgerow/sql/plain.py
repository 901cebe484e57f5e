"""Conditions so plain that nothing has to be known of the session: columns of a table against literals of their type.

    number BETWEEN 3 AND 5 AND word IN ('a', 'b') AND day >= DATE '2024-05-01' AND kind IS NOT NULL

Over Spark Connect there is no plan to look at, so this is all that skips files there. Everything else in a text, such
as a function, OR, NOT, a cast, an escape, a comment or a decimal, makes it no plain one.
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
_NESTED = re.compile(r"\b(?:SELECT|FROM|WHERE|UNION|EXCEPT|MINUS|INTERSECT|JOIN|HAVING)\b", re.IGNORECASE)

Token = tuple[str, str]


class _NotPlainError(Exception):
    """The text has something in it that only Spark can read."""


@dataclass(frozen=True)
class PlainQuery:
    """`SELECT list FROM table WHERE condition tail`, one table and nothing inside another."""

    list: str
    table: str
    condition: str
    tail: str

    def with_condition(self, more: str) -> str:
        """The query's text with one more condition."""
        return f"SELECT {self.list} FROM {self.table} WHERE {self.condition} AND {more}{self.tail}"


def plain_query(sql: str) -> PlainQuery | None:
    """The query, if it is a plain one.

    >>> plain_query("SELECT a, count(*) FROM t WHERE b = 3 GROUP BY a").condition
    'b = 3'
    >>> plain_query("SELECT a FROM t, u WHERE b = 3")
    """
    found = _QUERY.fullmatch(sql)
    if found is None or any(_NESTED.search(found[part]) for part in ("list", "tail")):
        return None
    return PlainQuery(found["list"], found["table"], found["condition"], found["tail"])


def plain_condition(text: str, schema: Mapping[str, Type]) -> Predicate | None:
    """The condition about the table's columns; None if any of it is not plain.

    >>> from hedgerow.core.predicates.schema import as_schema
    >>> from hedgerow.core.predicates.nodes import text as text_of
    >>> schema = as_schema({"Number": "int", "word": "string"})
    >>> text_of(plain_condition("number BETWEEN 3 AND 5 AND word <> 'x'", schema))
    "Number >= 3 AND Number < 6 AND word <> 'x'"
    >>> plain_condition("word = 5", schema), plain_condition("upper(word) = 'X'", schema)
    (None, None)
    """
    try:
        reader = _Reader(_tokens(text), schema)
        atoms = [reader.atom()]
        while reader.tokens:
            reader.expect("and")
            atoms.append(reader.atom())
    except _NotPlainError:
        return None
    return normalise(bind(And(tuple(atoms)), schema))


def _tokens(text: str) -> list[Token]:
    found: list[Token] = []
    at, text = 0, text.rstrip(" \t\n")
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise _NotPlainError
        found.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return found


class _Reader:
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
            found = [self.literal(kind)]
            while (mark := self.next()[1]) == ",":
                found.append(self.literal(kind))
            if mark == ")":
                return In(column, tuple(found))
        if sign == "is":
            negated = self.tokens[:1] and self.tokens[0][1].lower() == "not"
            if negated:
                self.next()
            self.expect("null")
            return Not(IsNull(column)) if negated else IsNull(column)
        raise _NotPlainError

    def column(self) -> tuple[Column, str]:
        group, text = self.next()
        # A bare word may be a function's name to Spark, such as current_date.
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
