"""Rewrite predicates into a normal form, so that many predicates with the same meaning become the same tree.

Ordered passes rewrite a predicate step by step. None of them changes its outcome (TRUE, FALSE or NULL) on any row. No
pass is needed for BETWEEN, NOT IN and constants on the left: `nodes` has only one form for each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any

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
    Literal,
    Not,
    Or,
    Predicate,
    Term,
    conjunction,
    disjunction,
    map_children,
)
from hedgerow.core.predicates.sql_text import predicate_text, term_text
from hedgerow.core.predicates.step_functions import and3, combined_stepwise, not3, or3, predicate_from_steps, stepwise


def push_negation(p: Predicate) -> Predicate:
    """Move NOT inward, down to atoms that have no opposite: NOT (a < 5) becomes a >= 5."""
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
        case Not():
            return p
    return map_children(p, push_negation)


def order_terms(p: Predicate) -> Predicate:
    """Put the term with the smaller text on the left: b > a becomes a < b. a = a becomes a test for NULL."""
    match p:
        case CompareTerms(left, op, right) if left == right:
            return Not(In(left, ())) if op in ("=", "<=", ">=") else In(left, ())
        case CompareTerms(left, op, right) if term_text(left) > term_text(right):
            return CompareTerms(right, FLIPPED_OP[op], left)
    return map_children(p, order_terms)


def flatten(p: Predicate) -> Predicate:
    """Merge AND into AND and OR into OR, drop TRUE and FALSE where possible, and unwrap a single child."""
    match p:
        case And(kids):
            flat = _flat_children(And, kids)
            return FALSE if FALSE in flat else conjunction(*flat)
        case Or(kids):
            flat = _flat_children(Or, kids)
            return TRUE if TRUE in flat else disjunction(*flat)
    return map_children(p, flatten)


def merge_steps(p: Predicate) -> Predicate:
    """Merge the siblings about one term: redundant and contradictory bounds, duplicates, IN lists."""
    p = map_children(p, merge_steps)
    match p:
        case And(kids):
            return flatten(And(_merged(kids, and3)))
        case Or(kids):
            return flatten(Or(_merged(kids, or3)))
        case In(_, literals) if _is_sorted(literals):
            return p
    function = stepwise(p)
    return (function and predicate_from_steps(function)) or p


def _is_sorted(literals: tuple[Literal, ...]) -> bool:
    """True if there are at least two values, each greater than its predecessor."""
    if len(literals) < 2 or len({x.kind for x in literals}) > 1:
        return False
    values: list[Any] = [x.value for x in literals]
    return all(a < b for a, b in pairwise(values))


def sort_children(p: Predicate) -> Predicate:
    """Sort siblings and drop duplicates."""
    p = map_children(p, sort_children)
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
    return predicate_text(p).replace(">", "!")  # sorts lower bounds before upper ones


@lru_cache(maxsize=1 << 14)
def normalise(p: Predicate) -> Predicate:
    """Apply all passes in order, until none of them changes the predicate.

    >>> from hedgerow.core.predicates.nodes import col, lit
    >>> predicate_text(normalise(Not(Or((Compare(col("x"), "<", lit(3)), Compare(col("x"), "<", lit(5)))))))
    'x >= 5'
    """
    while True:  # merging siblings may create work for earlier passes
        before = p
        for rewrite in PASSES:
            p = rewrite(p)
        if p == before:
            return p


def negate(p: Predicate) -> Predicate:
    """Return the normal form of NOT p."""
    return normalise(Not(p))


def _flat_children(node: type[And] | type[Or], kids: tuple[Predicate, ...]) -> tuple[Predicate, ...]:
    flat: list[Predicate] = []
    for kid in map(flatten, kids):
        flat.extend(kid.children if isinstance(kid, node) else (kid,))
    return tuple(flat)


def grouped(kids: tuple[Predicate, ...]) -> list[tuple[Predicate, ...]]:
    """Group siblings about the same term with literals of the same kind; every other sibling is a group of its own."""
    groups: dict[tuple[Term, str], list[Predicate]] = {}
    nulls: dict[Term, list[Predicate]] = {}
    ungrouped: list[tuple[Predicate, ...]] = []
    for kid in kids:
        function = stepwise(kid)
        if function is None:
            ungrouped.append((kid,))
        elif function.kind is None:
            nulls.setdefault(function.term, []).append(kid)
        else:
            groups.setdefault((function.term, function.kind), []).append(kid)
    for (term, _), group in groups.items():
        group.extend(nulls.pop(term, []))  # IS NULL suits every kind: it joins the first
    return [tuple(g) for g in (*groups.values(), *nulls.values())] + ungrouped


def _merged(kids: tuple[Predicate, ...], f: Callable[[bool | None, bool | None], bool | None]) -> tuple[Predicate, ...]:
    merged: list[Predicate] = []
    for group in grouped(kids):
        function = combined_stepwise(f, group) if len(group) > 1 else None
        single = predicate_from_steps(function) if function else None
        merged.extend(group if single is None else (single,))
    return tuple(merged)
