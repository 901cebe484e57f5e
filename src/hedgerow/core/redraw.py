"""Tomorrow's queries: those of today, asked of other values.

Queries of one shape differ in their literals only. One that stays the same in all of them is a constant; the others
are drawn again, as the people who ask would draw them:

    l_shipdate >= '1995-03-02' AND l_shipdate < '1995-03-09'    all dates shift together, within the range seen
    l_quantity < 24                                             so do the bounds of one column
    p_brand = 'Brand#12', c_nation IN ('PERU', 'CHINA')         other values of the column; equal ones stay equal
    p_name LIKE '%green%'                                       other words of the column

How much the drawn ones weigh depends on how often literals come back: a dashboard repeats its own, an analyst does not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import reduce
from math import gcd
from typing import Any, TypeAlias
from typing import Literal as Choice

import numpy as np

from hedgerow.core import types as kinds
from hedgerow.core.errors import LayoutError
from hedgerow.core.expr import (
    And,
    Compare,
    In,
    Literal,
    Not,
    Opaque,
    Or,
    Predicate,
    Prefix,
    Term,
    atoms,
    children,
    conjunction,
    disjunction,
    quote_string,
    term_text,
    text,
)
from hedgerow.core.rewrite import normalise
from hedgerow.core.rows import Rows
from hedgerow.core.sample import Sample
from hedgerow.core.stats import F_BIT, MAX_DISTINCT, N_BIT, T_BIT, Bits
from hedgerow.core.values import NAN
from hedgerow.core.workload import shape

Recurrence: TypeAlias = float | Choice["auto"]
Weighted: TypeAlias = list[tuple[Predicate, float]]

TIMES = 10  # queries drawn for each one seen
OWN = 0.25  # what a query seen weighs where none ever recurs; those drawn from it share the rest
DOUBT = 2  # so many queries without a literal seen before are imagined, before the log is asked
_MOST_WORDS, _ROWS_FOR_WORDS = 1000, 5000
_LIKE_WORD = re.compile(r"(?P<column>\S+) LIKE '%(?P<word>\w+)%'")
_NUMBERS = (kinds.INT, kinds.DECIMAL, kinds.FLOAT, kinds.DATE, kinds.TIMESTAMP, kinds.TIMESTAMP_NTZ)
_TIMES = (kinds.DATE, kinds.TIMESTAMP, kinds.TIMESTAMP_NTZ)


def recurrence_of(asked: Sequence[tuple[Any, ...]]) -> float:
    """How likely the next query of a shape repeats literals seen, from those that did so far.

    >>> [round(recurrence_of(q), 2) for q in ([(1,), (2,), (3,)], [(1,)] * 9)]
    [0.0, 0.8]
    """
    return (len(asked) - len(set(asked))) / (len(asked) - 1 + DOUBT)


def searched(predicates: Sequence[Predicate]) -> list[Term]:
    """The columns in which words are looked for: a sample has to hold them, for other words to be drawn."""
    found = (a for p in predicates for a in atoms(p) if isinstance(a, Opaque) and _LIKE_WORD.fullmatch(a.sql))
    return list(dict.fromkeys(c for a in found for c in a.columns))


def redrawn(
    predicates: Sequence[Predicate],
    weights: Sequence[float],
    sample: Sample,
    recurrence: Recurrence = "auto",
    seed: int = 0,
    times: int = TIMES,
) -> tuple[tuple[Predicate, ...], tuple[float, ...], Sample]:
    """The queries and those drawn from them, with weights of the same sum; the sample knows the drawn conditions."""
    if recurrence != "auto" and not 0 <= recurrence <= 1:
        raise LayoutError(f"recurrence is between 0 and 1, or auto, not {recurrence}")
    if recurrence == 1:
        return tuple(predicates), tuple(weights), sample
    r = np.random.default_rng(seed)
    domains = _Domains(sample)
    found: Weighted = []
    for group in _groups(predicates, weights):
        known = recurrence_of(group.values) if recurrence == "auto" else float(recurrence)
        drawn = [(draw, w / times) for i, w in enumerate(group.weights) for draw in group.draw(i, times, domains, r)]
        share = OWN + (1 - OWN) * known if drawn else 1.0
        found += [(p, share * w) for p, w in zip(group.predicates, group.weights, strict=True)]
        found += [(p, (1 - share) * w) for p, w in drawn]
    kept = [(p, w) for p, w in found if w > 0]
    truths = {**sample.rows.truths, **domains.truths}
    sample = replace(sample, rows=Rows(sample.rows.columns, truths)) if domains.truths else sample
    return tuple(p for p, _ in kept), tuple(w for _, w in kept), sample


def _groups(predicates: Sequence[Predicate], weights: Sequence[float]) -> list[_Group]:
    by_shape: dict[str, _Group] = {}
    for p, w in zip(map(_ordered, predicates), weights, strict=True):
        group = by_shape.setdefault(shape(p), _Group())
        group.predicates.append(p)
        group.weights.append(w)
        group.values.append(tuple(value for _, value in _slots(p)))
    return list(by_shape.values())


# --- where a predicate has its literals -----------------------------------------------------------

Values: TypeAlias = tuple[Any, ...]


def _ordered(p: Predicate) -> Predicate:
    """Children by their shape, so that predicates of one shape have their literals in the same places."""
    match p:
        case And(kids):
            return And(_sorted(kids))
        case Or(kids):
            return Or(_sorted(kids))
        case Not(kid):
            return Not(_ordered(kid))
    return p


def _sorted(kids: Sequence[Predicate]) -> tuple[Predicate, ...]:
    return tuple(sorted(map(_ordered, kids), key=lambda kid: (shape(kid), text(kid))))


def _slots(p: Predicate) -> list[tuple[Predicate, Values]]:
    """The atoms that have literals, with these."""
    match p:
        case And() | Or() | Not():
            return [slot for kid in children(p) for slot in _slots(kid)]
        case Compare(_, _, literal):
            return [(p, (literal.value,))]
        case In(_, literals):
            return [(p, tuple(x.value for x in literals))]
        case Prefix(_, prefix):
            return [(p, (prefix,))]
        case Opaque(sql):
            return [(p, tuple(m["word"] for m in _LIKE_WORD.finditer(sql)))]
    return []


def _with_atoms(p: Predicate, new: Callable[[], Predicate]) -> Predicate:
    """The predicate with each atom that has literals replaced, in the order of `_slots`."""
    match p:
        case And(kids):
            return And(tuple(_with_atoms(kid, new) for kid in kids))
        case Or(kids):
            return Or(tuple(_with_atoms(kid, new) for kid in kids))
        case Not(kid):
            return Not(_with_atoms(kid, new))
        case Compare() | In() | Prefix() | Opaque():
            return new()
    return p


def _family(atom: Predicate) -> str | None:
    """Bounds that move together: all dates and times of a kind, and all of one column."""
    match atom:
        case Compare(term, op, literal) if op in ("<", "<=", ">", ">=") and literal.kind in _NUMBERS:
            return literal.kind if literal.kind in _TIMES else term_text(term)
    return None


# --- drawing --------------------------------------------------------------------------------------


@dataclass
class _Group:
    """Queries of one shape, in the order in which they came."""

    predicates: list[Predicate] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    values: list[tuple[Values, ...]] = field(default_factory=list)

    def draw(self, i: int, times: int, domains: _Domains, r: np.random.Generator) -> list[Predicate]:
        """`times` relatives of query i; none where no literal ever changes."""
        by_slot = list(zip(*self.values, strict=True))
        varies = [len(set(seen)) > 1 for seen in by_slot]
        if not any(varies):
            return []
        atoms = [atom for atom, _ in _slots(self.predicates[i])]
        return [self._drawn(i, atoms, by_slot, varies, domains, r) for _ in range(times)]

    def _drawn(
        self,
        i: int,
        atoms: Sequence[Predicate],
        by_slot: Sequence[Sequence[Values]],
        varies: Sequence[bool],
        domains: _Domains,
        r: np.random.Generator,
    ) -> Predicate:
        shifts: dict[str, Any] = {}
        others: dict[Any, Any] = {}
        new = []
        for atom, seen, changes in zip(atoms, by_slot, varies, strict=True):
            family = _family(atom)
            if not changes:
                new.append(atom)
            elif family is not None:
                assert isinstance(atom, Compare)
                if family not in shifts:
                    shifts[family] = _shift(atom.literal.value, [v for (v,) in seen], r)
                new.append(replace(atom, literal=replace(atom.literal, value=atom.literal.value + shifts[family])))
            else:
                new.append(domains.other(atom, seen, others, r))
        parts = iter(new)
        return normalise(_with_atoms(self.predicates[i], lambda: next(parts)))


def _shift(value: Any, seen: Sequence[Any], r: np.random.Generator) -> Any:
    """From `value` to a place in the range seen (and a little beyond), in the steps seen."""
    if any(v is NAN or v in (float("inf"), float("-inf")) for v in seen):
        return type(value)(0)
    low, high = min(seen), max(seen)
    if isinstance(value, float):
        wide = (high - low) / len(seen)
        return float(r.uniform(low - wide, high + wide)) - value
    unit = min((Decimal(v).as_tuple().exponent for v in seen), key=int) if isinstance(value, Decimal) else 0
    scaled = [int(Decimal(v).scaleb(-int(unit))) for v in seen]
    first, last = min(scaled), max(scaled)
    step = reduce(gcd, (v - first for v in scaled))
    more = (last - first) // (len(seen) * step)
    to = first + step * int(r.integers(-more, (last - first) // step + more + 1))
    return (Decimal(to).scaleb(int(unit)) if isinstance(value, Decimal) else to) - value


class _Domains:
    """What the sample's columns hold, to draw from; and the truth of the conditions that only Spark would know."""

    def __init__(self, sample: Sample) -> None:
        self._rows = sample.rows
        self._by_text = {term_text(t): t for t in sample.rows.columns}
        self._words: dict[str, tuple[list[str], np.ndarray]] = {}
        self.truths: dict[Predicate, Bits] = {}

    def other(
        self, atom: Predicate, seen: Sequence[Values], known: dict[Any, Any], r: np.random.Generator
    ) -> Predicate:
        """The atom about other values; equal values of one query become equal ones."""
        match atom:
            case Compare(term, op, literal):
                (value,) = self._values(term, (literal.value,), seen, known, r)
                return self._asked(term, op, literal.kind, value)
            case In(term, literals) if literals:
                kind = literals[0].kind
                values = self._values(term, tuple(x.value for x in literals), seen, known, r)
                if len(values) <= 3:
                    return disjunction(*(self._asked(term, "=", kind, v) for v in values))
                return In(term, tuple(Literal(kind, v) for v in values))
            case Prefix(term, prefix):
                domain = self._domain(term)
                return Prefix(term, domain[r.integers(len(domain))][: len(prefix)]) if domain else atom
            case Opaque(sql, (column,)):
                return self._like(atom, column, sql, r)
        return atom

    def _domain(self, term: Term) -> list[Any]:
        found = self._by_text.get(term_text(term))
        return self._rows.ranked[found].values if found in self._rows.ranked else []

    def _values(
        self, term: Term, old: Values, seen: Sequence[Values], known: dict[Any, Any], r: np.random.Generator
    ) -> Values:
        """New values of the column, as many as the old ones. Where values came back, some of those seen."""
        domain = self._domain(term)
        if len(domain) < 2:
            return old
        all_seen = [v for values in seen for v in values]
        again = 1 - len(set(all_seen)) / len(all_seen)
        for value in old:
            taken = set(known.values())
            for _ in range(8):
                if value in known:
                    break
                pick = all_seen[r.integers(len(all_seen))] if r.random() < again else domain[r.integers(len(domain))]
                if pick not in taken:
                    known[value] = pick
            known.setdefault(value, value)
        return tuple(dict.fromkeys(known[value] for value in old))

    def _asked(self, term: Term, op: str, kind: str, value: Any) -> Predicate:
        """`term = value`; of a column with many values blocks know the bounds only, so there it is a narrow range."""
        exact = Compare(term, op, Literal(kind, value))
        domain = self._domain(term)
        if op != "=" or len(domain) <= MAX_DISTINCT:
            return exact
        from bisect import bisect_right

        at = bisect_right(domain, value)
        if kind in (kinds.INT, kinds.DATE) and at < len(domain) and domain[at] == value + 1:
            at += 1  # else the range would be read as the value again
        if at >= len(domain):
            return Compare(term, ">=", Literal(kind, value))
        return conjunction(Compare(term, ">=", Literal(kind, value)), Compare(term, "<", Literal(kind, domain[at])))

    def _like(self, atom: Opaque, column: Term, sql: str, r: np.random.Generator) -> Predicate:
        found = _LIKE_WORD.fullmatch(sql)
        domain = self._domain(column)
        if found is None or not domain or not isinstance(domain[0], str) or found["column"] != term_text(column):
            return atom
        words, chances = self._words_of(column, domain, r)
        if not words:
            return atom
        word = words[int(r.choice(len(words), p=chances))]
        new = Opaque(f"{term_text(column)} LIKE {quote_string(f'%{word}%')}", atom.columns)
        if new not in self.truths and new not in self._rows.truths:
            ranked = self._rows.ranks(column)
            holds = np.array([T_BIT if word in value else F_BIT for value in ranked.values] + [N_BIT], np.uint8)
            self.truths[new] = holds[ranked.places]  # NULL is place -1, the last
        return new

    def _words_of(self, column: Term, domain: list[str], r: np.random.Generator) -> tuple[list[str], np.ndarray]:
        key = term_text(column)
        if key not in self._words:
            places = self._rows.ranks(column).places
            some = r.choice(places, min(len(places), _ROWS_FOR_WORDS), replace=False)
            texts = [domain[place] for place in some.tolist() if place >= 0]
            counts = Counter(word for value in texts for word in re.findall(r"\w+", value))
            words = counts.most_common(_MOST_WORDS)
            total = sum(n for _, n in words)
            self._words[key] = [w for w, _ in words], np.array([n / max(1, total) for _, n in words])
        return self._words[key]
