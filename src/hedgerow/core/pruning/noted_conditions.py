"""What the noted outcomes of features say about a predicate that equals them, or is related to them.

feature x < 10: never TRUE in the block     so x < 5, which implies it, is never TRUE there either
feature x < 10: always TRUE in the block    so x >= 10, which implies its opposite, is never TRUE
"""

from __future__ import annotations

from collections.abc import Iterable

from hedgerow.core.predicates.implication import implies
from hedgerow.core.predicates.nodes import Const, Predicate, Term, terms
from hedgerow.core.predicates.normal_form import negate
from hedgerow.core.predicates.sql_text import term_text, text
from hedgerow.core.pruning.block_stats import ANY, F_BIT, NOT_BITS, T_BIT, Bits, Feature, Stats


def narrow_by_features(p: Predicate, found: Bits, stats: Stats) -> None:
    """Take away what the noted outcomes of equal or related features exclude."""
    if not stats.features or isinstance(p, Const):
        return
    same = stats.features.get(text(p))
    if same is not None:
        found &= same.bits
        return
    opposite = negate(p)
    reverse = stats.features.get(text(opposite))
    if reverse is not None:
        found &= NOT_BITS[reverse.bits]
        return
    for feature in _related(p, stats):
        for bit in T_BIT, F_BIT:
            never = feature.bits & bit == 0
            if never.any():
                needed = feature.predicate if bit == T_BIT else negate(feature.predicate)  # TRUE on no row there
                for own, excluded in ((p, T_BIT), (opposite, F_BIT)):
                    if implies(own, needed):
                        found[never] &= ANY - excluded


def has_features(p: Predicate, stats: Stats) -> bool:
    names = (text(p), text(negate(p))) if stats.features else ()
    return any(name in stats.features for name in names) or next(iter(_related(p, stats)), None) is not None


def _related(p: Predicate, stats: Stats) -> Iterable[Feature]:
    """Features that speak only of terms that `p` speaks of; others cannot follow from it."""
    if "by_term" not in stats.memo:
        by_term: dict[Term, list[Feature]] = {}
        for feature in stats.features.values():
            for term in sorted(terms(feature.predicate), key=term_text)[:1]:
                by_term.setdefault(term, []).append(feature)
        stats.memo["by_term"] = by_term
    mine = terms(p)
    for term in mine:
        for feature in stats.memo["by_term"].get(term, ()):
            if terms(feature.predicate) <= mine:
                yield feature
