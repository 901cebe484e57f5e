"""Bring predicates that mean the same to the same tree, in ordered passes that keep every row's truth.

Constants to the right, BETWEEN and NOT IN need no pass: the nodes of `core/expr` cannot say them otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from hedgerow.core.predicates.nodes import (
    FALSE,
    FLIPPED_OP,
    NEGATED_OP,
    TRUE,
    And,
    Compare,
    CompareTerms,
    Const,
    In,
    Not,
    Or,
    Predicate,
    Term,
    conjunction,
    disjunction,
)
from hedgerow.core.predicates.sql_text import term_text, text
from hedgerow.core.predicates.step_functions import and3, joined, not3, or3, predicate_of, stepwise


def push_negation(p: Predicate) -> Predicate:
    """NOT moves inward until it meets an atom that has no opposite of its own: NOT (a < 5) is a >= 5."""
    match p:
        case Not(Not(child)):
            return push_negation(child)
        case Not(And(kids)):
            return Or(tuple(push_negation(Not(k)) for k in kids))
        case Not(Or(kids)):
            return And(tuple(push_negation(Not(k)) for k in kids))
        case Not(Compare(term, op, literal)):
            return Compare(term, NEGATED_OP[op], literal)
        case Not(CompareTerms(left, op, right)):
            return CompareTerms(left, NEGATED_OP[op], right)
        case Not(Const(value)):
            return Const(not3(value))
        case And(kids):
            return And(tuple(map(push_negation, kids)))
        case Or(kids):
            return Or(tuple(map(push_negation, kids)))
    return p


def order_terms(p: Predicate) -> Predicate:
    """Of two compared terms the one with the smaller text stands left: b > a is a < b; a = a says a is not NULL."""
    match p:
        case CompareTerms(left, op, right) if left == right:
            return Not(In(left, ())) if op in ("=", "<=", ">=") else In(left, ())
        case CompareTerms(left, op, right) if term_text(left) > term_text(right):
            return CompareTerms(right, FLIPPED_OP[op], left)
    return _rebuilt(p, order_terms)


def flatten(p: Predicate) -> Predicate:
    """AND in AND and OR in OR become one; TRUE and FALSE vanish or decide; one child stands for itself."""
    match p:
        case And(kids):
            flat = _spliced(And, kids)
            return FALSE if FALSE in flat else conjunction(*flat)
        case Or(kids):
            flat = _spliced(Or, kids)
            return TRUE if TRUE in flat else disjunction(*flat)
    return _rebuilt(p, flatten)


def merge_steps(p: Predicate) -> Predicate:
    """Siblings about one term become one: duplicate, redundant and contradictory bounds merge, IN lists unite."""
    p = _rebuilt(p, merge_steps)
    match p:
        case And(kids):
            return flatten(And(_merged(kids, and3)))
        case Or(kids):
            return flatten(Or(_merged(kids, or3)))
    found = stepwise(p)
    return (found and predicate_of(found)) or p


def sort_children(p: Predicate) -> Predicate:
    """Order and repetition of siblings say nothing."""
    p = _rebuilt(p, sort_children)
    match p:
        case And(kids):
            return conjunction(*sorted(set(kids), key=_reading_order))
        case Or(kids):
            return disjunction(*sorted(set(kids), key=_reading_order))
    return p


PASSES: tuple[Callable[[Predicate], Predicate], ...] = (
    push_negation,
    order_terms,
    flatten,
    merge_steps,
    push_negation,
    flatten,
    sort_children,
)


def _reading_order(p: Predicate) -> str:
    return text(p).replace(">", "!")  # lower bounds before upper ones


@lru_cache(maxsize=1 << 14)
def normalise(p: Predicate) -> Predicate:
    """All passes in order.

    >>> from hedgerow.core.predicates.nodes import col, lit
    >>> text(normalise(Not(Or((Compare(col("x"), "<", lit(3)), Compare(col("x"), "<", lit(5)))))))
    'x >= 5'
    """
    while True:  # a merged or repeated sibling may give the passes before it something to do
        before = p
        for rewrite in PASSES:
            p = rewrite(p)
        if p == before:
            return p


def negate(p: Predicate) -> Predicate:
    """The predicate that is TRUE just where `p` is FALSE."""
    return normalise(Not(p))


def _rebuilt(p: Predicate, f: Callable[[Predicate], Predicate]) -> Predicate:
    match p:
        case And(kids):
            return And(tuple(map(f, kids)))
        case Or(kids):
            return Or(tuple(map(f, kids)))
        case Not(kid):
            return Not(f(kid))
    return p


def _spliced(node: type[And] | type[Or], kids: tuple[Predicate, ...]) -> tuple[Predicate, ...]:
    flat: list[Predicate] = []
    for kid in map(flatten, kids):
        flat.extend(kid.children if isinstance(kid, node) else (kid,))
    return tuple(flat)


def grouped(kids: tuple[Predicate, ...]) -> list[tuple[Predicate, ...]]:
    """Siblings that speak of the same term, with literals of the same kind, side by side; the others alone."""
    groups: dict[tuple[Term, str], list[Predicate]] = {}
    nulls: dict[Term, list[Predicate]] = {}
    alone: list[tuple[Predicate, ...]] = []
    for kid in kids:
        found = stepwise(kid)
        if found is None:
            alone.append((kid,))
        elif found.kind is None:
            nulls.setdefault(found.term, []).append(kid)
        else:
            groups.setdefault((found.term, found.kind), []).append(kid)
    for (term, _), group in groups.items():
        group.extend(nulls.pop(term, []))  # IS NULL joins any kind: the first that comes
    return [tuple(g) for g in (*groups.values(), *nulls.values())] + alone


def _merged(kids: tuple[Predicate, ...], f: Callable[[bool | None, bool | None], bool | None]) -> tuple[Predicate, ...]:
    merged: list[Predicate] = []
    for group in grouped(kids):
        found = joined(f, group)
        one = predicate_of(found) if found else None
        merged.extend(group if one is None else (one,))
    return tuple(merged)
