"""Parse the conditions of a plan as Spark prints them: columns have numbers, and literals have no quotes.

    ((d#3 >= 1994-02-01) AND s#2 LIKE %9_%)   ->   d >= DATE '1994-02-01' AND s LIKE '%9_%'

Only the following text shows where a literal ends, so the parser tries the possible ends one after the other. Only
learning uses the result, so a wrong reading can make a layout worse, but no answer wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.core.predicates.types import Type

_COLUMN = re.compile(r"([A-Za-z_]\w*)#\d+L?((?:\.[A-Za-z_]\w*)*)")
_OPERATOR = re.compile(r" (<=>|<=|>=|=|<|>) ")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:E-?\d+)?(?![\w.:-])")
_CALL = re.compile(r"[a-z_]\w*\(")
_CAST_TYPE = re.compile(r" as \w+")
_UNQUOTED_TEXT = re.compile(r"[A-Za-z_]\w*(?![\w(])|, *[,)]|\( *,")  # a text without quotes, or an empty text
_TEXT_TESTS = {"StartsWith": "{}%", "EndsWith": "%{}", "Contains": "%{}%"}
_QUOTED = {
    kinds.DATE: "DATE ",
    kinds.TIME: "TIME ",
    kinds.TIMESTAMP: "TIMESTAMP ",
    kinds.TIMESTAMP_NTZ: "TIMESTAMP_NTZ ",
    kinds.STRING: "",
}
_MAX_LENGTH, _MAX_STEPS = 20_000, 20_000
Schema = Mapping[str, Type]
Parses = Iterator[tuple[str, int]]  # possible SQL texts, each with the place after it


def conditions_of(text: str, schema: Schema) -> tuple[list[str], int]:
    """Return the conjuncts of a printed condition as SQL, and the number of conjuncts that could not be parsed.

    >>> conditions_of("((a#1L > 5) AND (b#2 = it's (so), yes))", {"a": Type.parse("bigint"), "b": Type.parse("string")})
    (['a > 5', "b = 'it\\\\'s (so), yes'"], 0)
    """
    conditions: list[str] = []
    failed = 0
    for part in _conjuncts(text.strip()):
        sql = next((sql for sql, end in _Parser(part, schema).condition(0) if end == len(part)), None)
        if sql is None:
            failed += 1
        else:
            conditions.append(sql)
    return conditions, failed


def _conjuncts(text: str) -> list[str]:
    """Return the conjuncts of `(a AND b)`; the text itself if it has no AND inside the outermost brackets."""
    if len(text) > _MAX_LENGTH or not (text.startswith("(") and text.endswith(")")):
        return [text]
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 1 and text.startswith(" AND ", at):
            return [*_conjuncts(text[1:at]), *_conjuncts(text[at + 5 : -1])]
        if depth == 0 and at < len(text) - 1:
            break
    return [text]


class _Parser:
    """A backtracking parser: each method yields all ways to parse the text from a place."""

    def __init__(self, text: str, schema: Schema) -> None:
        self.text = text
        self.schema = {name.lower(): (name, kind) for name, kind in schema.items()}
        self.steps = 0

    def condition(self, at: int) -> Parses:
        self.steps += 1
        if self.steps > _MAX_STEPS:
            return
        text = self.text
        if text.startswith("NOT ", at):
            yield from ((f"NOT ({sql})", end) for sql, end in self.condition(at + 4))
        for name, pattern in _TEXT_TESTS.items():
            if text.startswith(f"{name}(", at):
                for term, kind, end in self.term(at + len(name) + 1):
                    if kind == kinds.STRING and text.startswith(", ", end):
                        for word, close in self.words(end + 2, ")"):
                            escaped = re.sub(r"([\\%_])", r"\\\1", word)
                            yield f"{term} LIKE {_quoted(pattern.format(escaped))}", close + 1
        for name, test in (("isnotnull", "IS NOT NULL"), ("isnull", "IS NULL")):
            if text.startswith(f"{name}(", at):
                yield from (
                    (f"{term} {test}", end + 1)
                    for term, _, end in self.term(at + len(name) + 1)
                    if text.startswith(")", end)
                )
        if text.startswith("(", at):
            yield from self.bracketed(at + 1)
        for term, kind, end in self.term(at):
            if text.startswith(" LIKE ", end):
                yield from ((f"{term} LIKE {_quoted(word)}", close) for word, close in self.ends(end + 6))
            for word in (" IN (", " INSET "):
                if text.startswith(word, end):
                    yield from self.values(term, kind, end + len(word), ")" if word == " IN (" else "")
            if kind == kinds.BOOLEAN:
                yield term, end

    def bracketed(self, at: int) -> Parses:
        text = self.text
        for left, end in self.condition(at):
            for word in (" AND ", " OR "):
                if text.startswith(word, end):
                    for right, close in self.condition(end + len(word)):
                        if text.startswith(")", close):
                            yield f"({left}{word}{right})", close + 1
        for term, kind, end in self.term(at):
            operator = _OPERATOR.match(text, end)
            if operator is None:
                continue
            for right, _, close in self.term(operator.end()):
                if text.startswith(")", close):
                    yield f"{term} {operator[1]} {right}", close + 1
            for value, close in self.literal(kind, operator.end(), ")"):
                yield f"{term} {operator[1]} {value}", close + 1

    def term(self, at: int) -> Iterator[tuple[str, str, int]]:
        """Yield a column, or a call whose arguments are columns and numbers, with the kind of its values."""
        column = _COLUMN.match(self.text, at)
        if column is not None:
            named = self.schema.get(quote_name(column[1]).lower())
            if named is not None:
                path = ".".join([named[0], *map(quote_name, column[2].split(".")[1:])])
                kind = self.schema.get(path.lower(), named)[1].kind if column[2] else named[1].kind
                yield path, kind, column.end()
        call = _CALL.match(self.text, at)
        if call is not None:
            depth = 1
            for end in range(call.end(), len(self.text)):
                depth += (self.text[end] == "(") - (self.text[end] == ")")
                if depth == 0:
                    sql = re.sub(r", (?:Some|None)\S*(?=\))", "", self.text[at : end + 1])
                    if not _UNQUOTED_TEXT.search(_CAST_TYPE.sub("", _COLUMN.sub("0", sql))):
                        yield _COLUMN.sub(lambda c: quote_name(c[1]) + c[2], sql), "any", end + 1
                    return

    def literal(self, kind: str, at: int, end: str) -> Parses:
        if kind in (kinds.INT, kinds.FLOAT, kinds.DECIMAL, "any"):
            number = _NUMBER.match(self.text, at)
            if number is not None and self.text.startswith(end, number.end()):
                yield number[0], number.end()
                return
        if kind in _QUOTED or kind == "any":
            yield from ((_QUOTED.get(kind, "") + _quoted(word), close) for word, close in self.words(at, end))
        if kind == kinds.BOOLEAN:
            yield from ((word, close) for word, close in self.words(at, end) if word in ("true", "false"))

    def values(self, term: str, kind: str, at: int, end: str) -> Parses:
        """Yield the condition of a list: `(1,2)` of IN, or `1, 2` of INSET, which ends with the condition."""
        for listed, close in self.words(at, ")") if end else self.ends(at):
            values = listed.split(",") if end else listed.split(", ")
            if any("more fields" in value for value in values):
                return
            quoted = [
                value if kind in (kinds.INT, kinds.FLOAT, kinds.DECIMAL) else _QUOTED.get(kind, "") + _quoted(value)
                for value in values
            ]
            yield f"{term} IN ({', '.join(quoted)})", close + len(end)

    def words(self, at: int, end: str) -> Parses:
        """Yield the texts up to each place that `end` follows."""
        close = self.text.find(end, at)
        while close != -1:
            yield self.text[at:close], close
            close = self.text.find(end, close + 1)

    def ends(self, at: int) -> Parses:
        """Yield the texts up to each place where a condition may end."""
        for match in re.finditer(r"(?= AND | OR |\)|$)", self.text[at:]):
            yield self.text[at : at + match.start()], at + match.start()


def _quoted(word: str) -> str:
    return "'" + re.sub(r"(['\\])", r"\\\1", word) + "'"
