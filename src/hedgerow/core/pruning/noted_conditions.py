"""Narrow a predicate's outcomes by the noted outcomes of equal or related conditions.

x < 10 is never TRUE in the block     so x < 5, which implies it, is never TRUE there either
x < 10 is always TRUE in the block    so x >= 10, which implies its opposite, is never TRUE there
"""

from __future__ import annotations

from collections.abc import Iterable

from hedgerow.core.predicates.implication import implies
from hedgerow.core.predicates.nodes import Const, Predicate, Term, terms_of
from hedgerow.core.predicates.normal_form import negate
from hedgerow.core.predicates.sql_text import predicate_text, term_text
from hedgerow.core.pruning.block_stats import ANY, F_BIT, HAS_SEVERAL, NOT_BITS, T_BIT, Bits, NotedCondition, Stats


def narrow_by_noted_conditions(p: Predicate, bits: Bits, stats: Stats) -> None:
    """Remove from `bits`, in place, the outcomes of `p` that noted conditions exclude."""
    if not stats.conditions or isinstance(p, Const) or not HAS_SEVERAL[bits].any():
        return
    same = stats.conditions.get(predicate_text(p))
    if same is not None:
        bits &= same.bits
        return
    opposite = negate(p)
    reverse = stats.conditions.get(predicate_text(opposite))
    if reverse is not None:
        bits &= NOT_BITS[reverse.bits]
        return
    for condition in _related(p, stats):
        for bit in T_BIT, F_BIT:
            never = condition.bits & bit == 0
            if never.any():
                never_true = condition.predicate if bit == T_BIT else negate(condition.predicate)
                for own, excluded in ((p, T_BIT), (opposite, F_BIT)):
                    if implies(own, never_true):
                        bits[never] &= ANY - excluded


def has_noted_conditions(p: Predicate, stats: Stats) -> bool:
    """Whether the statistics have a condition that may narrow the outcomes of `p`."""
    names = (predicate_text(p), predicate_text(negate(p))) if stats.conditions else ()
    return any(name in stats.conditions for name in names) or next(iter(_related(p, stats)), None) is not None


def _related(p: Predicate, stats: Stats) -> Iterable[NotedCondition]:
    """Conditions whose terms are all terms of `p`; `p` cannot imply any other."""
    if "by_term" not in stats.memo:
        by_term: dict[Term, list[NotedCondition]] = {}
        for condition in stats.conditions.values():
            for term in sorted(terms_of(condition.predicate), key=term_text)[:1]:
                by_term.setdefault(term, []).append(condition)
        stats.memo["by_term"] = by_term
    mine = terms_of(p)
    for term in mine:
        for condition in stats.memo["by_term"].get(term, ()):
            if terms_of(condition.predicate) <= mine:
                yield condition
