"""Narrow a predicate's outcomes by the noted outcomes of equal or related conditions.

x < 10 is never TRUE in the block     so x < 5, which implies it, is never TRUE there either
x < 10 is always TRUE in the block    so x >= 10, which implies its opposite, is never TRUE there
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hedgerow.core.arrays import Bits, Bools
from hedgerow.core.predicates.implication import implies
from hedgerow.core.predicates.nodes import Const, Predicate, Term, terms_of
from hedgerow.core.predicates.normal_form import negate
from hedgerow.core.predicates.sql_text import predicate_text, term_text
from hedgerow.core.predicates.step_functions import Break, stepwise
from hedgerow.core.pruning.block_stats import (
    ANY,
    F_BIT,
    NOT_BITS,
    T_BIT,
    NotedCondition,
    Part,
    Selection,
    Stats,
    has_several,
)


def narrow_by_noted_conditions(p: Predicate, bits: Bits, stats: Stats, wanted: int, part: Part) -> None:
    """Remove from `bits` of these entries, in place, the `wanted` outcomes of `p` that noted conditions exclude."""
    if not stats.conditions or isinstance(p, Const) or not (has_several(bits) & (bits & wanted > 0)).any():
        return
    same = stats.conditions.get(predicate_text(p))
    if same is not None:
        bits &= same.bits[part.at]
        return
    reverse = _prepared(stats).opposites.get(predicate_text(p))
    if reverse is not None:
        bits &= NOT_BITS[reverse.bits[part.at]]
        return
    to_exclude = [(p, T_BIT)] if wanted == T_BIT else [(p, T_BIT), (negate(p), F_BIT)]
    for statement, excluded in to_exclude:
        reach, may_be = _reach(statement), bits & excluded > 0
        for fact in _related(p, stats):
            within = reach is None or fact.reach is None or reach.may_be_within(fact.reach)
            if not within:
                continue
            never = fact.never(part.at)
            if (never & may_be).any() and implies(statement, fact.predicate):
                bits[never] &= ANY - excluded
                may_be &= ~never


def has_noted_conditions(p: Predicate, stats: Stats) -> bool:
    """True if the statistics have a condition that may narrow the outcomes of `p`."""
    return next(iter(_related(p, stats)), None) is not None


class _Reach(NamedTuple):
    """The range outside of which a predicate about one term is not TRUE; None: no bound on that side."""

    kind: str | None
    start: Break | None
    end: Break | None

    def may_be_within(self, other: _Reach) -> bool:
        """True unless some value is within this reach and not within the other."""
        if self.kind != other.kind:
            return True
        starts_before = other.start is not None and (self.start is None or self.start < other.start)
        ends_after = other.end is not None and (self.end is None or self.end > other.end)
        return not (starts_before or ends_after)


class _Fact(NamedTuple):
    """A noted condition, or its opposite, and the outcome that it has where `predicate` is TRUE."""

    predicate: Predicate
    noted: NotedCondition
    outcome: int
    terms: frozenset[Term]
    reach: _Reach | None

    def never(self, at: Selection) -> Bools:
        """Return for each of these entries whether the predicate is TRUE on none of its rows."""
        never: Bools = self.noted.bits[at] & self.outcome == 0
        return never


def _reach(p: Predicate) -> _Reach | None:
    """Return a predicate's reach; None if it is about several terms, or TRUE on no value."""
    function = stepwise(p)
    if function is None or True not in function.steps.outcomes:
        return None
    outcomes, breaks = function.steps.outcomes, function.steps.breaks
    first, after = outcomes.index(True), len(outcomes) - outcomes[::-1].index(True)
    start, end = breaks[first - 1] if first else None, breaks[after - 1] if after < len(outcomes) else None
    return _Reach(function.kind, start, end)


def _related(p: Predicate, stats: Stats) -> Iterable[_Fact]:
    """Yield the facts about predicates whose terms are all terms of `p`; `p` cannot imply any other predicate."""
    mine, by_term = terms_of(p), _prepared(stats).by_term
    for term in mine:
        for fact in by_term.get(term, ()):
            if fact.terms <= mine:
                yield fact


class _Prepared(NamedTuple):
    """The facts from noted conditions, by one of their terms, and the conditions by the texts of their opposites."""

    by_term: dict[Term, list[_Fact]]
    opposites: dict[str, NotedCondition]


def _prepared(stats: Stats) -> _Prepared:
    prepared: _Prepared | None = stats.memo.get("conditions")
    if prepared is None:
        prepared = stats.memo["conditions"] = _Prepared({}, {})
        for condition in stats.conditions.values():
            opposite, terms = negate(condition.predicate), terms_of(condition.predicate)
            prepared.opposites[predicate_text(opposite)] = condition
            facts = [
                _Fact(p, condition, bit, terms, _reach(p))
                for p, bit in ((condition.predicate, T_BIT), (opposite, F_BIT))
            ]
            for term in sorted(terms, key=term_text)[:1]:
                prepared.by_term.setdefault(term, []).extend(fact for fact in facts if fact.never(slice(None)).any())
    return prepared
