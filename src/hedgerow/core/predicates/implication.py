"""Decide whether one predicate implies another: x < 5 implies x < 10.

`False` means "not proved". Every use stays correct then: a noted condition that might have helped is not used.
"""

from __future__ import annotations

from functools import lru_cache

from hedgerow.core.predicates.nodes import FALSE, FLIPPED_OP, TRUE, And, CompareTerms, IsNull, Not, Or, Predicate
from hedgerow.core.predicates.normal_form import grouped
from hedgerow.core.predicates.step_functions import Stepwise, and3, combined_stepwise, stepwise, true_within

# If `left op right` is TRUE, the comparisons with these operators are TRUE too.
_WEAKER = {
    "=": {"=", "<=", ">="},
    "<": {"<", "<=", "<>"},
    ">": {">", ">=", "<>"},
    "<=": {"<="},
    ">=": {">="},
    "<>": {"<>"},
}


@lru_cache(maxsize=1 << 16)
def implies(p: Predicate, q: Predicate) -> bool:
    """True if `q` is proved to be TRUE on every row on which `p` is TRUE; both must be in normal form.

    >>> from hedgerow.core.predicates.nodes import Compare, In, col, lit
    >>> x = col("x")
    >>> implies(In(x, (lit(2), lit(3))), Compare(x, "<", lit(5))), implies(Compare(x, "<", lit(5)), In(x, (lit(2),)))
    (True, False)
    """
    if p in (q, FALSE) or q == TRUE:
        return True
    match q:
        case And(kids):
            return all(implies(p, k) for k in kids)
    match p:
        case Or(kids):
            return all(implies(k, q) for k in kids)
        case And(kids):
            return any(_group_implies(group, steps, q) for group, steps in _groups(kids)) or _any_disjunct(p, q)
    return _one_term(p, q) or _two_terms(p, q) or _any_disjunct(p, q)


def _any_disjunct(p: Predicate, q: Predicate) -> bool:
    return isinstance(q, Or) and any(implies(p, k) for k in q.children)


@lru_cache(maxsize=1 << 12)
def _groups(kids: tuple[Predicate, ...]) -> list[tuple[tuple[Predicate, ...], Stepwise | None]]:
    """Return the children of an AND in groups about one term, each with its step function."""
    return [(group, combined_stepwise(and3, group)) for group in grouped(kids)]


def _group_implies(group: tuple[Predicate, ...], a: Stepwise | None, q: Predicate) -> bool:
    b = stepwise(q)
    if a and b and a.term != b.term:
        return False
    if a and b and (b.kind is None or a.kind == b.kind):
        return true_within(a.steps, b.steps)
    return any(implies(member, q) for member in group)


def _one_term(p: Predicate, q: Predicate) -> bool:
    a, b = stepwise(p), stepwise(q)
    if a is None or b is None or a.term != b.term:
        return False
    return (b.kind is None or a.kind is None or a.kind == b.kind) and true_within(a.steps, b.steps)


def _two_terms(p: Predicate, q: Predicate) -> bool:
    match p, q:
        case CompareTerms(left, _, right), Not(IsNull(term)):
            return term in (left, right)
        case CompareTerms(a, op, b), CompareTerms(c, weaker, d) if {a, b} == {c, d}:
            return (weaker if a == c else FLIPPED_OP[weaker]) in _WEAKER[op]
    return False
