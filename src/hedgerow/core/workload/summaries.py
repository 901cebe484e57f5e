"""Summaries of the rows that refer to a row: the least, the greatest, and whether a condition holds on any of them.

    lineitem                      orders, with `o_orderkey<-lineitem.l_orderkey`
    l_orderkey  l_shipdate        o_orderkey  min(l_shipdate)  max(l_shipdate)  any(l_returnflag = 'R')
             1  1995-02-11                 1       1995-02-11       1995-04-02                     TRUE
             1  1995-04-02                 2             NULL             NULL                     NULL

    SELECT ... FROM orders JOIN lineitem ON ... WHERE l_shipdate < DATE '1995-03-01' AND l_returnflag = 'R'
    an order matters only if   min(l_shipdate) < DATE '1995-03-01' AND any(l_returnflag = 'R') = TRUE

A query needs an order only if its condition is TRUE on one of the order's lines. Then `min` and `max` are no NULL, and
`any` is TRUE; else `any` is NULL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hedgerow.core.index.session_safe import is_session_safe
from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.implication import implies
from hedgerow.core.predicates.nodes import (
    TRUE,
    And,
    Column,
    Compare,
    Const,
    In,
    Like,
    Literal,
    Or,
    Predicate,
    Prefix,
    atoms_of,
    columns_in,
    columns_of,
    conjunction,
    disjunction,
    lit,
)
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.schema import Schema
from hedgerow.core.predicates.sql_text import feature_text, term_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import prefix_end

MAX_CONDITIONS = 100  # the number of conditions in the summaries of one key
_MAX_LISTED = 16  # an IN list of at most this many values is looked at value by value
# min <= the value of one row <= max
_OF_MIN = {"<": "<", "<=": "<=", "=": "<="}
_OF_MAX = {">": ">", ">=": ">=", "=": ">="}


@dataclass(frozen=True, slots=True)
class Summary:
    """A value of all rows with one key: `min` or `max` of a column, or whether `any` row meets a condition."""

    function: str
    of: Column | Predicate

    @property
    def name(self) -> str:
        """The name of its column.

        >>> Summary("any", Compare(Column(("l_tax",)), "=", lit(0))).name
        'any(l_tax = 0)'
        """
        return f"{self.function}({feature_text(self.of)})"

    @property
    def sql(self) -> str:
        """The aggregate that computes it. `any` is TRUE or NULL: synthetic queries ask for no other value."""
        return f"max(CASE WHEN {feature_text(self.of)} THEN TRUE END)" if self.function == "any" else self.name

    def type_in(self, schema: Schema) -> Type:
        return schema[term_text(self.of)] if isinstance(self.of, Column) else Type(kinds.BOOLEAN)


def on_summaries(p: Predicate, summaries: Sequence[Summary], struct: str) -> Predicate:
    """Return a condition on a row that holds if `p` is TRUE on one of the rows that its summaries describe.

    `struct`: the struct column that has the summaries as fields. A part of `p` that no summary is about is left out.
    """
    known = {(s.function, s.of) for s in summaries}
    stored = [s.of for s in summaries if isinstance(s.of, Predicate)]

    def compared(function: str, of: Column | Predicate, op: str, literal: Literal) -> Predicate:
        is_known = (function, of) in known
        return Compare(Column((struct, Summary(function, of).name)), op, literal) if is_known else TRUE

    def weaker(p: Predicate) -> Predicate:
        implied = _strongest([c for c in stored if columns_of(c) <= columns_of(p) and implies(p, c)])
        on_any = [compared("any", c, "=", lit(True)) for c in implied]
        match p:
            case Const():
                return p
            case And(kids):
                return conjunction(*on_any, *map(weaker, kids))
            case Or(kids):
                return conjunction(*on_any, disjunction(*map(weaker, kids)))
            case In(term, literals) if p not in implied and len(literals) <= _MAX_LISTED:
                return conjunction(*on_any, disjunction(*(weaker(Compare(term, "=", x)) for x in literals)))
            case Compare(Column() as column, op, literal) if p not in implied:
                on_any += [compared("min", column, _OF_MIN[op], literal)] if op in _OF_MIN else []
                on_any += [compared("max", column, _OF_MAX[op], literal)] if op in _OF_MAX else []
            case Prefix(Column() as column, prefix):
                end = prefix_end(prefix)
                on_any.append(compared("max", column, ">=", lit(prefix)))
                on_any += [] if end is None else [compared("min", column, "<", lit(end))]
        return conjunction(*on_any)

    return normalise(weaker(normalise(p)))


def _strongest(conditions: Sequence[Predicate]) -> list[Predicate]:
    """Drop each condition that another one implies."""
    kept: list[Predicate] = []
    for c in conditions:
        if not any(implies(other, c) for other in kept):
            kept = [other for other in kept if not implies(c, other)] + [c]
    return kept


def choose_summaries(
    asked: Iterable[tuple[Predicate, float]],
    schema: Schema,
    keys: Iterable[str] = (),
    least_queries: int = 1,
    limit: int = MAX_CONDITIONS,
) -> tuple[tuple[Summary, ...], int]:
    """Return the summaries that serve these conditions best, and the number of conditions beyond the limit.

    Args:
        asked: the conditions of queries, with the queries' weights.
        keys: the columns of the key, of which no summary is needed.
        least_queries: a condition of fewer queries is left out: the next query will hardly have it again.
    """
    columns, queries, weights = set[Column](), Counter[Predicate](), dict[Predicate, float]()
    own = {Column((name,)) for name in keys}
    for p, weight in asked:
        parts = [part for part in _parts(normalise(p)) if _is_usable(part, schema)]
        for condition in {c for part in (*parts, normalise(conjunction(*parts))) for c in _offered(part)}:
            if not columns_of(condition) <= own:
                queries[condition] += 1
                weights[condition] = weights.get(condition, 0.0) + weight
        columns |= {c for part in parts for c in _compared_columns(part)} - own
    often = [c for c in weights if queries[c] >= least_queries]
    often.sort(key=lambda c: (-weights[c], feature_text(c)))
    found = [Summary(name, c) for c in sorted(columns, key=term_text) for name in ("min", "max")]
    return (*found, *(Summary("any", c) for c in often[:limit])), max(0, len(often) - limit)


def _parts(p: Predicate) -> tuple[Predicate, ...]:
    return p.children if isinstance(p, And) else (p,)


def _is_usable(p: Predicate, schema: Schema) -> bool:
    """True if the condition has one meaning in every session and needs no more than columns of known types."""
    searched = {column for a in atoms_of(p) if isinstance(a, Like) for column in columns_in(a.term)}
    types = {column: schema.get(term_text(column), Type(kinds.OTHER)).kind for column in columns_of(p)}
    return (
        is_session_safe(p)
        and kinds.OTHER not in types.values()
        and all(types[column] == kinds.STRING for column in searched)
    )


def _offered(p: Predicate) -> list[Predicate]:
    """Return the conditions that `any` may be asked of; the bounds of a column decide a range."""
    match p:
        case Const() | In(literals=()):
            return []
        case Compare(op="<" | "<=" | ">" | ">="):
            return []
        case In(term, literals) if len(literals) <= _MAX_LISTED:
            return [p, *(Compare(term, "=", literal) for literal in literals)]
    return [p]


def _compared_columns(p: Predicate) -> set[Column]:
    """Return the columns whose bounds say something of the condition."""
    match p:
        case And(kids) | Or(kids):
            return {column for kid in kids for column in _compared_columns(kid)}
        case Compare(Column() as column, op) if op != "<>":
            return {column}
        case In(Column() as column, literals) if len(literals) <= _MAX_LISTED:
            return {column}
        case Prefix(Column() as column):
            return {column}
    return set()
