"""Narrow a predicate's outcomes by the noted outcomes of equal or related conditions.

x < 10 is never TRUE in the block     so x < 5, which implies it, is never TRUE there either
x < 10 is always TRUE in the block    so x >= 10, which implies its opposite, is never TRUE there
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hedgerow.core.predicates.implication import implies
from hedgerow.core.predicates.nodes import Const, Predicate, Term, terms_of
from hedgerow.core.predicates.normal_form import negate
from hedgerow.core.predicates.sql_text import predicate_text, term_text
from hedgerow.core.pruning.block_stats import ANY, F_BIT, HAS_SEVERAL, NOT_BITS, T_BIT, Bits, NotedCondition, Stats


def narrow_by_noted_conditions(p: Predicate, bits: Bits, stats: Stats, wanted: int = ANY) -> None:
    """Remove from `bits`, in place, the `wanted` outcomes of `p` that noted conditions exclude."""
    if not stats.conditions or isinstance(p, Const) or not (HAS_SEVERAL[bits] & (bits & wanted > 0)).any():
        return
    same = stats.conditions.get(predicate_text(p))
    if same is not None:
        bits &= same.bits
        return
    reverse = _prepared(stats).opposites.get(predicate_text(p))
    if reverse is not None:
        bits &= NOT_BITS[reverse.bits]
        return
    to_exclude: list[tuple[Predicate, int]] = [(p, T_BIT)]
    if wanted != T_BIT:
        to_exclude.append((negate(p), F_BIT))
    for condition, opposite_condition in _related(p, stats):
        for never_true, bit in ((condition.predicate, T_BIT), (opposite_condition, F_BIT)):
            never = condition.bits & bit == 0
            for own, excluded in to_exclude:
                if (bits[never] & excluded).any() and implies(own, never_true):
                    bits[never] &= ANY - excluded


def has_noted_conditions(p: Predicate, stats: Stats) -> bool:
    """Whether the statistics have a condition that may narrow the outcomes of `p`."""
    return next(iter(_related(p, stats)), None) is not None


def _related(p: Predicate, stats: Stats) -> Iterable[tuple[NotedCondition, Predicate]]:
    """Conditions whose terms are all terms of `p`, with their opposites; `p` cannot imply any other."""
    mine, by_term = terms_of(p), _prepared(stats).by_term
    for term in mine:
        for condition, opposite, terms in by_term.get(term, ()):
            if terms <= mine:
                yield condition, opposite


class _Prepared(NamedTuple):
    """The noted conditions: by one of their terms, each with its opposite and all its terms; by the opposite's text."""

    by_term: dict[Term, list[tuple[NotedCondition, Predicate, frozenset[Term]]]]
    opposites: dict[str, NotedCondition]


def _prepared(stats: Stats) -> _Prepared:
    found: _Prepared | None = stats.memo.get("conditions")
    if found is None:
        found = stats.memo["conditions"] = _Prepared({}, {})
        for condition in stats.conditions.values():
            opposite, terms = negate(condition.predicate), terms_of(condition.predicate)
            found.opposites[predicate_text(opposite)] = condition
            for term in sorted(terms, key=term_text)[:1]:
                found.by_term.setdefault(term, []).append((condition, opposite, terms))
    return found
