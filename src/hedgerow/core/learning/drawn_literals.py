"""Draws other literals for conditions: bounds shift together, values and words come from the columns of a sample."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Context, Decimal
from functools import reduce
from math import gcd, isfinite
from random import Random
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from hedgerow.core.arrays import Bits, Ints
from hedgerow.core.errors import LayoutError
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.word_search import WORD, SearchableTexts, search_for, searched_word
from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.binding import fits
from hedgerow.core.predicates.nodes import (
    Compare,
    In,
    Like,
    Literal,
    Predicate,
    Prefix,
    Term,
    conjunction,
    disjunction,
)
from hedgerow.core.predicates.sql_text import predicate_text, term_text
from hedgerow.core.predicates.values import NAN, has_literal, prefix_end
from hedgerow.core.pruning.block_stats import MAX_DISTINCT, T_BIT

Values: TypeAlias = tuple[Any, ...]

_MAX_WORDS, _MAX_ROWS_FOR_WORDS = 1000, 5000  # per column: frequent words to draw from; rows to count them in
_WIDE = Context(prec=120)  # more than any decimal's digits
_MAX_EQUALITIES = 3  # a drawn IN list of at most this many values becomes an OR of equalities
_LEAST_RUN, _DENSE = 3, 4  # so many values of a list, in at most so many places of the column each, are neighbours
_MAX_PICKS = 8  # attempts to draw a value that is not used yet
_ALIKE, _LEAST_ALIKE = 2.0, 8  # values are alike if one has up to so many times the other's rows; the least number
_TIMES = (kinds.DATE, kinds.TIMESTAMP, kinds.TIMESTAMP_NTZ)
_NUMBERS = (kinds.INT, kinds.DECIMAL, kinds.FLOAT, kinds.TIME, *_TIMES)


def family_of(atom: Predicate) -> str | None:
    """Return a name for the bounds that move together: all dates and times of one kind, or all bounds of one column."""
    match atom:
        case Compare(term, op, literal) if op in ("<", "<=", ">", ">=") and literal.kind in _NUMBERS:
            return literal.kind if literal.kind in _TIMES else term_text(term)
    return None


def _repeats(observed: Sequence[Any]) -> float:
    """Return the share of the observed literals that repeat an earlier one."""
    return 1 - len(set(observed)) / len(observed)


def _shift(value: Any, observed: Sequence[Any], r: Random) -> Any:
    """Return a random shift that moves `value` into the observed range or a little beyond, in the observed steps.

    Return None if there is no such shift.
    """
    if isinstance(value, Decimal):
        exponents = [v.as_tuple().exponent for v in observed]
        unit = min(e for e in exponents if isinstance(e, int))
        integers = [int(v.scaleb(-unit, _WIDE)) for v in (value, *observed)]
        return Decimal(_shift(integers[0], integers[1:], r)).scaleb(unit, _WIDE)
    if isinstance(value, int):
        low, high = min(observed), max(observed)
        step = reduce(gcd, (v - low for v in observed)) or 1
        steps = (high - low) // step
        beyond = steps // len(observed)
        return low + step * r.randint(-beyond, steps + beyond) - value
    if not all(isinstance(v, float) and isfinite(v) for v in (value, *observed)):
        return None
    low, high = min(observed), max(observed)
    shift = r.uniform(low, high) - value
    return shift if isfinite(shift) else None


def _small_shift(value: Any, observed: Sequence[Any], r: Random) -> Any:
    """Return a random shift, by at most the mean distance of the observed bounds, that stays among them in their steps.

    Return zero or None if there is no such shift."""
    low, high = min(observed), max(observed)
    if isinstance(value, int):
        step = reduce(gcd, (v - low for v in observed)) or 1
        most = max(1, (high - low) // step // len(observed))
        least, greatest = max(-most, (low - value) // step), min(most, (high - value) // step)
        others = greatest - least + (not least <= 0 <= greatest)  # the shifts but zero: of times there are billions
        if others < 1:
            return 0
        shift = least + r.randrange(others)
        return step * (shift + (least <= 0 <= shift))
    if isinstance(value, Decimal):
        unit = min(e for v in (value, *observed) if isinstance(e := v.as_tuple().exponent, int))
        integers = [int(v.scaleb(-unit, _WIDE)) for v in (value, *observed)]
        return Decimal(_small_shift(integers[0], integers[1:], r)).scaleb(unit, _WIDE)
    if not all(isinstance(v, float) and isfinite(v) for v in (value, *observed)):
        return None
    most = high / len(observed) - low / len(observed)
    shift = r.uniform(max(-most, low - value), min(most, high - value))
    return shift if isfinite(shift) else None


def moved_by(value: Any, shift: Any) -> Any:
    if shift is None or value is NAN:
        return value
    moved = _WIDE.add(value, shift) if isinstance(value, Decimal) else value + shift
    return moved if not isinstance(moved, float) or isfinite(moved) else value


def _alike(counts: Ints, count: int, r: Random) -> int:
    """Return the place of a random number among ascending ones that is about as large as `count`, or else near it."""
    first, end = np.searchsorted(counts, (count / _ALIKE, count * _ALIKE * (1 + 1e-9)))
    if end - first < _LEAST_ALIKE:
        first = max(0, min((first + end - _LEAST_ALIKE) // 2, len(counts) - _LEAST_ALIKE))
        end = min(len(counts), first + _LEAST_ALIKE)
    return r.randrange(int(first), int(end))


class NewerRows(NamedTuple):
    """Rows that are newer than queries ask for: their share, the place of their first time, and the queries' steps."""

    share: float
    first: int
    step: int


class Domains:
    """The sample's values to draw from. `truths` collects the outcomes of the searches that are drawn.

    `alike`: literals are like the observed ones, but none of them. Equalities and prefixes stay what they are also on a
    column of many values."""

    def __init__(self, sample: Sample, alike: bool = False) -> None:
        self.alike = alike
        self._rows, self._schema = sample.rows, sample.schema
        self._by_text = {term_text(t): t for t in sample.rows.columns}
        self._words: dict[str, tuple[list[str], list[int]]] = {}
        # For each column the rows of its values, these in ascending order, and the places of the values in that order.
        self._by_frequency: dict[str, tuple[Ints, Ints, Ints]] = {}
        self._texts = SearchableTexts(sample.rows)
        self.truths: dict[Predicate, Bits] = {}
        self._matches: dict[str, int] = {}

    def redraw(self, atom: Predicate, observed: Sequence[Values], replacements: dict[Any, Any], r: Random) -> Predicate:
        """Return the atom with other values; `replacements` keeps equal values within one query equal."""
        match atom:
            case Compare(term, op, literal):
                (value,) = self._values(term, literal.kind, (literal.value,), observed, replacements, r)
                return self._comparison(term, op, literal.kind, value)
            case In(term, literals) if literals:
                kind = literals[0].kind
                values = self._values(term, kind, tuple(x.value for x in literals), observed, replacements, r)
                if len(values) <= _MAX_EQUALITIES:
                    return disjunction(*(self._comparison(term, "=", kind, v) for v in values))
                return In(term, tuple(Literal(kind, v) for v in values))
            case Prefix(term, prefix):
                domain = [v for v in self._domain(term) if v]
                return self._starting(term, r.choice(domain)[: len(prefix)]) if domain and prefix else atom
            case Like():
                return self._like(atom, [v[0] for v in observed if v], r)
        return atom

    def matches(self, p: Predicate) -> int:
        """Return how many rows of the sample match; all of them if that is not known."""
        text = predicate_text(p)
        if text not in self._matches:
            rows = self._matching(p)
            self._matches[text] = len(self._rows) if rows is None else len(rows)
        return self._matches[text]

    def of_one_row(self, kept: Predicate, atoms: Sequence[Predicate], r: Random) -> list[Predicate]:
        """Return the atoms with values of one row of the sample that matches `kept`; as they are if there is none."""
        rows = self._matching(kept)
        if rows is None or not len(rows):
            return list(atoms)
        row = int(rows[r.randrange(len(rows))])
        return [self._of_row(atom, row, r) for atom in atoms]

    def _matching(self, p: Predicate) -> Ints | None:
        try:
            return np.flatnonzero(self._rows.evaluate(p) == T_BIT)
        except LayoutError:  # only Spark can evaluate it
            return None

    def _of_row(self, atom: Predicate, row: int, r: Random) -> Predicate:
        """Return an atom that holds on a row; its list, if it is one, moves as a whole."""
        term = getattr(atom, "term", None)
        domain = [] if term is None else self._domain(term)
        place = int(self._rows.ranks(term).places[row]) if term is not None and domain else -1
        if place < 0:
            return atom
        match atom:
            case Compare(_, "=", Literal(kind, _)):
                return replace(atom, literal=Literal(kind, domain[place]))
            case In(_, literals) if literals:
                places = [bisect_left(domain, literal.value) for literal in literals]
                shift = place - r.choice(places)
                moved = {(at + shift) % len(domain) for at in places}
                return In(atom.term, tuple(Literal(literals[0].kind, domain[at]) for at in sorted(moved)))
            case Prefix(_, prefix):
                return Prefix(atom.term, domain[place][: len(prefix)])
        return atom

    def newer_rows(self, atom: Compare, observed: Sequence[Any]) -> NewerRows | None:
        """Return the rows whose time is beyond every observed upper bound; None if there are none."""
        domain = self._domain(atom.term)
        if self.alike or atom.op not in ("<", "<=") or atom.literal.kind not in _TIMES or not domain:
            return None
        first = bisect_right(domain, max(observed) - (atom.op == "<"))
        share = float(np.mean(self._rows.ranks(atom.term).places >= first))
        step = reduce(gcd, (v - observed[0] for v in observed)) or 1
        return NewerRows(share, first, step) if share else None

    def shift_to(self, newer: NewerRows, atom: Compare, r: Random) -> int:
        """Return a shift, in the observed steps, that moves an upper bound to one of these rows."""
        domain = self._domain(atom.term)
        ahead: int = domain[r.randrange(newer.first, len(domain))] + (atom.op == "<") - atom.literal.value
        return newer.step * -(-ahead // newer.step)

    def shift(self, bound: Any, observed: Sequence[Any], r: Random) -> Any:
        """Return a random shift of a bound and the bounds that move with it; None if there is none."""
        if self.alike:
            return _small_shift(bound, observed, r)
        again = r.random() < _repeats(observed)
        return _shift(bound, [r.choice(observed)] if again else observed, r)

    def has_likely_others(self, atom: Predicate) -> bool:
        """True if an unseen query of the atom's shape likely has other values: it looks a column of many values up."""
        term = getattr(atom, "term", None)
        return self.alike and family_of(atom) is None and term is not None and len(self._domain(term)) > MAX_DISTINCT

    def must_differ(self, atom: Predicate) -> bool:
        """True if the next query likely has values that no observed one has; an index knows a few values as a whole."""
        term = getattr(atom, "term", None)
        return term is None or not 0 < len(self._domain(term)) <= MAX_DISTINCT

    def can_hold(self, atom: Compare) -> bool:
        """True if Spark can write the atom's value as a literal, and compares the term with it without rounding."""
        kind, value = atom.literal.kind, atom.literal.value
        type_ = self._schema.get(term_text(atom.term))
        return has_literal(kind, value) and (type_ is None or kind != kinds.DECIMAL or fits(type_, value))

    def _domain(self, term: Term) -> Sequence[Any]:
        sampled = self._by_text.get(term_text(term))
        return self._rows.ranked[sampled].values if sampled in self._rows.ranked else []

    def _values(
        self, term: Term, kind: str, old: Values, observed: Sequence[Values], replacements: dict[Any, Any], r: Random
    ) -> Values:
        """Draw a value of the column for each old one; observed values recur at the observed rate."""
        domain = self._domain(term)
        all_observed = [v for values in observed for v in values]
        is_past = kind in _TIMES and not self.alike and bool(domain) and max(all_observed) < domain[0]
        if len(domain) < 2:
            return tuple(domain) if is_past else old
        repeats = 0.0 if is_past or (self.alike and len(domain) > MAX_DISTINCT) else _repeats(all_observed)
        replacements |= {(kind, v): new for v, new in self._neighbours(term, domain, old, r).items()}
        for value in (v for v in old if (kind, v) not in replacements):
            used = {v for (k, _), v in replacements.items() if k == kind}
            for _ in range(_MAX_PICKS):
                again = r.random() < repeats
                pick = r.choice(all_observed) if again else self._drawn(term, domain, value, r)
                if pick not in used:
                    break
            else:
                pick = next((v for v in domain if v not in used), value)
            replacements[kind, value] = pick
        return tuple(dict.fromkeys(replacements[kind, value] for value in old))

    def _neighbours(self, term: Term, domain: Sequence[Any], old: Values, r: Random) -> dict[Any, Any]:
        """Return other values for those of a list that lie side by side in the column, as in `IN ('app7.a', 'app7.b')`:
        the new ones do too. Return none for other lists."""
        places = {value: bisect_left(domain, value) for value in old}
        first, last = min(places.values()), max(places.values())
        if not self.alike or len(places) < _LEAST_RUN or last - first >= _DENSE * len(places) or last >= len(domain):
            return {}
        start = min(bisect_left(domain, self._drawn(term, domain, old[0], r)), len(domain) - 1 - (last - first))
        return {value: domain[start + place - first] for value, place in places.items()}

    def _drawn(self, term: Term, domain: Sequence[Any], value: Any, r: Random) -> Any:
        """Return a value of the column: about as frequent as `value`, if literals should be alike."""
        if not self.alike:
            return r.choice(domain)
        key = term_text(term)
        if key not in self._by_frequency:
            places = self._rows.ranks(term).places
            counts = np.bincount(places[places >= 0], minlength=len(domain))
            # Values that are equally frequent come in random order: a few of them must not be the smallest.
            order = np.random.default_rng(r.getrandbits(32)).permutation(len(domain))
            order = order[np.argsort(counts[order], kind="stable")]
            self._by_frequency[key] = counts, counts[order], order
        counts, ascending, order = self._by_frequency[key]
        at = bisect_left(domain, value)
        own = int(counts[at]) if at < len(domain) and domain[at] == value else 0
        own = max(1, own)  # a value that is not in the sample is as rare as can be
        return domain[int(order[_alike(ascending, own, r)])]

    def _comparison(self, term: Term, op: str, kind: str, value: Any) -> Predicate:
        """Return `term op value`; on a column of many values an equality becomes a narrow range.

        An index can decide a range by its bounds.
        """
        exact = Compare(term, op, Literal(kind, value))
        domain = self._domain(term)
        if op != "=" or len(domain) <= MAX_DISTINCT or self.alike:
            return exact
        following = value + 1 if kind in (kinds.INT, kinds.DATE) else None
        return self._range(term, kind, value, bisect_right(domain, value), following)

    def _starting(self, term: Term, prefix: str) -> Predicate:
        """Return the condition that a value starts with the prefix; on a column of many values as a narrow range."""
        domain, end = self._domain(term), prefix_end(prefix)
        if len(domain) <= MAX_DISTINCT or end is None or self.alike:
            return Prefix(term, prefix)
        return self._range(term, kinds.STRING, prefix, bisect_left(domain, end), end)

    def _range(self, term: Term, kind: str, least: Any, at: int, exact: Any) -> Predicate:
        """Return the range from `least` to just below `domain[at]`.

        If that value is `exact`, the range ends below the next one; else it would be normalised to an equality or a
        prefix.
        """
        domain, lower = self._domain(term), Compare(term, ">=", Literal(kind, least))
        at += at < len(domain) and domain[at] == exact
        return lower if at >= len(domain) else conjunction(lower, Compare(term, "<", Literal(kind, domain[at])))

    def _like(self, atom: Like, observed: Sequence[str], r: Random) -> Predicate:
        domain = [] if searched_word(atom) is None else self._domain(atom.term)
        if not domain or not isinstance(domain[0], str):
            return atom
        words, chances = self._words_of(atom.term, domain, r)
        if not words:
            return atom
        if self.alike:
            times = dict(zip(words, chances, strict=True)).get(searched_word(atom) or "", 0)
            word = words[-1 - _alike(np.array(chances[::-1]), times, r)]
        else:
            word = r.choice(observed) if r.random() < _repeats(observed) else r.choices(words, chances)[0]
        new = search_for(atom.term, word)
        if new not in self.truths and new not in self._rows.truths:
            bits = self._texts.outcomes(new)
            if bits is not None:
                self.truths[new] = bits
        return new

    def _words_of(self, column: Term, domain: Sequence[Any], r: Random) -> tuple[list[str], list[int]]:
        key = term_text(column)
        if key not in self._words:
            places = self._rows.ranks(column).places.tolist()
            texts = [domain[place] for place in r.sample(places, min(len(places), _MAX_ROWS_FOR_WORDS)) if place >= 0]
            counts = Counter(word for value in texts for word in re.findall(WORD, value)).most_common(_MAX_WORDS)
            self._words[key] = [word for word, _ in counts], [n for _, n in counts]
        return self._words[key]
