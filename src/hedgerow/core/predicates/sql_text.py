"""The canonical text of terms and predicates, which is also their Spark SQL.

The text identifies a predicate: equal texts mean equal predicates. Spark evaluates this same text, so Python and Spark
cannot drift apart.
"""

from __future__ import annotations

import re
from functools import lru_cache

from hedgerow.core.errors import assert_never
from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.nodes import (
    And,
    Cast,
    Column,
    Compare,
    CompareTerms,
    Const,
    Expr,
    Feature,
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
)
from hedgerow.core.predicates.values import NAN, clock_text, date_text, timestamp_text

_UNQUOTED_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_QUOTED_OR_TYPED = re.compile(r"'(?:[^'\\]|\\.)*'|`(?:[^`]|``)*`|\b\d[\d.]*(?:e[-+]?\d+)?B?D\b")
# Words that Spark reserves in ANSI mode, or that it may not read as a column.
_RESERVED = frozenset(
    """
    all and anti any array as at authorization between binary both by case cast check collate column
    constraint create cross cube current_date current_time current_timestamp current_user date day deallocate
    decimal default distinct drop else end escape except exists extract false fetch filter for foreign from
    full grant group grouping having hour in inner insert intersect interval into is join lateral leading left
    like map minute minus month natural not null offset on only or order outer overlaps primary references
    right select semi session_user set some struct table then time timestamp to trailing true union unique
    unknown user using values when where with within year
    """.split()  # noqa: SIM905
)


def quote_name(name: str) -> str:
    if _UNQUOTED_NAME.match(name) and name.lower() not in _RESERVED:
        return name
    return in_backticks(name)


def in_backticks(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def quote_string(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


@lru_cache(maxsize=1 << 16)
def term_text(term: Term) -> str:
    match term:
        case Column(path):
            return ".".join(quote_name(part) for part in path)
        case Cast(column, type_):
            return f"CAST({term_text(column)} AS {str(type_).upper()})"
        case Expr(sql):
            return sql
    assert_never(term)


def literal_text(literal: Literal) -> str:
    value = literal.value
    match literal.kind:
        case kinds.INT:
            return str(value)
        case kinds.DECIMAL:
            whole, _, fraction = format(value, "f").partition(".")
            fraction = fraction.rstrip("0")
            # 5BD: 5 would be an INT, and 5.0 needs a digit more than a column of 38 digits has.
            return f"{whole}.{fraction}" if fraction else f"{whole}BD"
        case kinds.FLOAT if value is NAN:
            return "double('NaN')"
        case kinds.FLOAT if value in (float("inf"), float("-inf")):
            return f"double('{'-' if value < 0 else ''}Infinity')"
        case kinds.FLOAT:
            return f"{value!r}D"
        case kinds.STRING:
            return quote_string(value)
        case kinds.BINARY:
            return f"X'{value.hex().upper()}'"
        case kinds.BOOLEAN:
            return "TRUE" if value else "FALSE"
        case kinds.DATE:
            return f"DATE '{date_text(value)}'"
        case kinds.TIME:
            return f"TIME '{clock_text(value // 1000)}'"
        case kinds.TIMESTAMP:
            return f"TIMESTAMP_LTZ '{timestamp_text(value)} UTC'"
        case kinds.TIMESTAMP_LOCAL:
            return f"TIMESTAMP '{timestamp_text(value)}'"
        case kinds.TIMESTAMP_NTZ:
            return f"TIMESTAMP_NTZ '{timestamp_text(value)}'"
    raise ValueError(f"a literal cannot have the kind {literal.kind!r}")


@lru_cache(maxsize=1 << 16)
def predicate_text(p: Predicate) -> str:
    """Return the canonical text: equal texts have equal meanings. `normalise` first, so that more texts are equal."""
    match p:
        case Const(value):
            return {True: "TRUE", False: "FALSE", None: "CAST(NULL AS BOOLEAN)"}[value]
        case Compare(term, op, literal):
            return f"{term_text(term)} {op} {literal_text(literal)}"
        case CompareTerms(left, op, right):
            return f"{term_text(left)} {op} {term_text(right)}"
        case In(term, ()):
            return f"{term_text(term)} <> {term_text(term)}"  # even NaN equals itself in Spark
        case In(term, literals):
            return f"{term_text(term)} IN ({', '.join(map(literal_text, literals))})"
        case Prefix(term, prefix):
            return f"startswith({term_text(term)}, {quote_string(prefix)})"
        case Like(term, pattern):
            return f"({term_text(term)} LIKE {quote_string(pattern)})"
        case IsNull(term):
            return f"{term_text(term)} IS NULL"
        case Opaque(sql):
            return f"({sql})"
        case Not(IsNull(term)):
            return f"{term_text(term)} IS NOT NULL"
        case Not(In(term, literals)) if literals:
            return f"{term_text(term)} NOT IN ({', '.join(map(literal_text, literals))})"
        case Not(child):
            return f"NOT ({predicate_text(child)})"
        case And(kids):
            return (
                " AND ".join(f"({predicate_text(k)})" if isinstance(k, Or) else predicate_text(k) for k in kids)
                or "TRUE"
            )
        case Or(kids):
            return (
                " OR ".join(f"({predicate_text(k)})" if isinstance(k, And) else predicate_text(k) for k in kids)
                or "FALSE"
            )
    assert_never(p)


def readable(text: str) -> str:
    """Return a canonical text as it is shown to people; it may no longer be SQL.

    >>> readable("`day` = 1.5D AND `order_id->orders/customer_id->customers`.segment = 'a `day`'")
    "day = 1.5 AND orders[order_id].customers[customer_id].segment = 'a `day`'"
    """
    return _QUOTED_OR_TYPED.sub(lambda part: _readable_part(part[0]), text)


def _readable_part(part: str) -> str:
    if part.startswith("'"):
        return part
    if not part.startswith("`"):
        return part.rstrip("BD")
    name = part[1:-1]
    if _UNQUOTED_NAME.match(name):
        return name
    steps = [step.partition("->") for step in name.split("/")]
    if all(columns and other for columns, _, other in steps):  # the name of joined rows
        return ".".join(f"{other}[{columns.replace(',', ', ')}]" for columns, _, other in steps)
    return part


def feature_text(feature: Feature) -> str:
    """Return the canonical text of a term or a predicate."""
    return predicate_text(feature) if isinstance(feature, Predicate) else term_text(feature)
