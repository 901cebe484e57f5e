"""Parse simple conditions, which mean the same in every session: columns of a table against literals of their type.

    number BETWEEN 3 AND 5 AND word IN ('a', 'b') AND day >= DATE '2024-05-01' AND kind IS NOT NULL

Spark Connect gives no access to a query's plan, so only simple conditions skip files there. A text with anything else,
such as a function, OR, a cast, an escape, a comment or a decimal, is not simple.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.binding import bind
from hedgerow.core.predicates.nodes import And, Column, Compare, In, IsNull, Literal, Not, Predicate
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.core.predicates.types import Type
from hedgerow.sql.predicates import predicate_from_sql

# Words, names, integers, strings and signs: sqlglot reads texts of these as Spark does, in every session.
_TOKENS = re.compile(
    r"(?:[A-Za-z_]\w*(?!\w)|`[A-Za-z_]\w*`|-?\d{1,18}(?![\w.])|'[^'\\${}\n]*'(?!')|[<>=!,() \t\n])*", re.ASCII
)
_KINDS = (kinds.INT, kinds.STRING, kinds.DATE)
_QUERY = re.compile(
    r"""
    \s* SELECT \s+ (?P<list> [\w\s,*().]+? )
    \s+ FROM \s+ (?P<table> (?:[A-Za-z_]\w*\.)* [A-Za-z_]\w* | parquet\.`[^`${}]+` )
    \s+ WHERE \s+ (?P<condition> .+? )
    (?P<tail> (?: \s+ (?:GROUP|ORDER) \s+ BY \s+ [\w\s,.]+? )* (?: \s+ LIMIT \s+ \d+ )? ) \s* ;? \s*
    """,
    re.ASCII | re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
# Other functions, such as rand(3), may have another value for a row if fewer files are read.
_CALL = re.compile(r"(\w+)\s*\(")
_ALLOWED_CALLS = frozenset({"count", "sum", "min", "max", "avg"})
_NESTED = re.compile(r"\b(?:SELECT|FROM|WHERE|UNION|EXCEPT|MINUS|INTERSECT|JOIN|HAVING)\b", re.IGNORECASE)


class _NotSimpleError(Exception):
    """Raised for a text that only Spark can parse."""


@dataclass(frozen=True)
class SimpleQuery:
    """A query `SELECT list FROM table WHERE condition tail` over one table, without subqueries."""

    list: str
    table: str
    condition: str
    tail: str

    def with_condition(self, condition: str) -> str:
        """Return the query's text with one more condition."""
        return f"SELECT {self.list} FROM {self.table} WHERE {self.condition} AND {condition}{self.tail}"


def simple_query(sql: str) -> SimpleQuery | None:
    """Parse a query; return None if it is not simple.

    >>> simple_query("SELECT a, count(*) FROM t WHERE b = 3 GROUP BY a").condition
    'b = 3'
    >>> simple_query("SELECT a FROM t, u WHERE b = 3")
    >>> simple_query("SELECT a, rand(3) FROM t WHERE b = 3")
    """
    match = _QUERY.fullmatch(sql)
    if match is None or any(_NESTED.search(match[part]) for part in ("list", "tail")):
        return None
    if "_metadata" in match["list"].lower() or {name.lower() for name in _CALL.findall(match["list"])} - _ALLOWED_CALLS:
        return None
    return SimpleQuery(match["list"], match["table"], match["condition"], match["tail"])


def simple_condition(text: str, schema: Mapping[str, Type]) -> Predicate | None:
    """Parse a condition on the table's columns; return None if any part of it is not simple.

    >>> from hedgerow.core.predicates.schema import as_schema
    >>> from hedgerow.core.predicates.sql_text import predicate_text
    >>> schema = as_schema({"Number": "int", "word": "string"})
    >>> predicate_text(simple_condition("number BETWEEN 3 AND 5 AND word <> 'x'", schema))
    "Number >= 3 AND Number < 6 AND word <> 'x'"
    >>> simple_condition("word = 5", schema), simple_condition("upper(word) = 'X'", schema)
    (None, None)
    """
    if not _TOKENS.fullmatch(text):
        return None
    names = {name.lower(): name for name in schema}

    def column_of(node: exp.Column) -> Column:
        # Spark may read a bare word as a function, such as current_date.
        is_name = node.this.args.get("quoted") or quote_name(node.name) == node.name
        name = names.get(node.name.lower()) if is_name else None
        if name is None:
            raise _NotSimpleError
        return Column((name,))

    try:
        p = predicate_from_sql(sqlglot.parse_one(text, read="spark", into=exp.Condition), column_of)
    except (_NotSimpleError, SqlglotError, ValueError, RecursionError):
        return None
    return normalise(bind(p, schema)) if _is_simple(p, schema) else None


def _is_simple(p: Predicate, schema: Mapping[str, Type]) -> bool:
    """True if the predicate has only comparisons of columns with literals of their own type."""

    def are_comparable(column: Column, literals: tuple[Literal, ...]) -> bool:
        kind = schema[column.path[0]].kind
        return kind in _KINDS and all(literal.kind == kind for literal in literals)

    match p:
        case And(kids):
            return all(_is_simple(kid, schema) for kid in kids)
        case Compare(Column() as column, _, literal):
            return are_comparable(column, (literal,))
        case In(Column() as column, literals):
            return are_comparable(column, literals)
        case IsNull(Column() as column) | Not(IsNull(Column() as column)):
            return are_comparable(column, ())
    return False
