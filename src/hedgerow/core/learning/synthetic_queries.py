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
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from functools import reduce
from itertools import islice
from math import gcd, isfinite
from random import Random
from typing import Any, NamedTuple, TypeAlias
from typing import Literal as Choice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.core.errors import LayoutError
from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.nodes import (
    And,
    Compare,
    Const,
    In,
    Literal,
    Not,
    Opaque,
    Or,
    Predicate,
    Prefix,
    Term,
    atoms_of,
    children,
    conjunction,
    disjunction,
)
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import predicate_text, quote_string, term_text
from hedgerow.core.predicates.values import NAN
from hedgerow.core.pruning.block_stats import F_BIT, MAX_DISTINCT, N_BIT, T_BIT, Bits
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.core.workload.queries import shape

Recurrence: TypeAlias = float | Choice["auto"]
Weighted: TypeAlias = list[tuple[Predicate, float]]

TIMES = 10  # queries drawn for each one seen
OWN = 0.25  # what a query seen weighs where none ever recurs; those drawn from it share the rest
DOUBT = 2  # so many queries without a literal seen before are imagined, before the log is asked
_MOST_WORDS, _ROWS_FOR_WORDS = 1000, 5000
_WORD = r"[^\W_]+"  # an underscore would stand for any character
_LIKE_WORD = re.compile(rf"(?P<column>\S+) LIKE '%(?P<word>{_WORD})%'")
_WIDE = Context(prec=120)  # more than any decimal's digits
_AGAIN = 5  # draws in place of one that contradicts itself
_NUMBERS = (kinds.INT, kinds.DECIMAL, kinds.FLOAT, kinds.DATE, kinds.TIMESTAMP, kinds.TIMESTAMP_NTZ)
_TIMES = (kinds.DATE, kinds.TIMESTAMP, kinds.TIMESTAMP_NTZ)


class Redrawn(NamedTuple):
    """`sample` knows the drawn conditions; `seen` is the share of the weight that the queries seen have kept."""

    predicates: tuple[Predicate, ...]
    weights: tuple[float, ...]
    sample: Sample
    seen: float


def recurrence_of(asked: Sequence[tuple[Any, ...]]) -> float:
    """How likely the next query of a shape repeats literals seen, from those that did so far.

    >>> [round(recurrence_of(q), 2) for q in ([(1,), (2,), (3,)], [(1,)] * 9)]
    [0.0, 0.8]
    """
    return (len(asked) - len(set(asked))) / (len(asked) - 1 + DOUBT)


def searched(predicates: Sequence[Predicate]) -> list[Term]:
    """The columns in which words are looked for: a sample has to hold them, for other words to be drawn."""
    found = (a for p in predicates for a in atoms_of(p) if isinstance(a, Opaque) and _LIKE_WORD.fullmatch(a.sql))
    return list(dict.fromkeys(c for a in found for c in a.columns))


def redrawn(
    predicates: Sequence[Predicate],
    weights: Sequence[float],
    sample: Sample,
    recurrence: Recurrence = "auto",
    seed: int = 0,
    times: int = TIMES,
) -> Redrawn:
    """The queries and those drawn from them, with weights of the same sum."""
    if recurrence != "auto" and not 0 <= recurrence <= 1:
        raise LayoutError(f"recurrence is between 0 and 1, or auto, not {recurrence}")
    if recurrence == 1:
        return Redrawn(tuple(predicates), tuple(weights), sample, 1.0)
    r = Random(seed)
    domains = _Domains(sample)
    found: Weighted = []
    seen = 0.0
    for group in _groups(predicates, weights):
        known = recurrence_of(group.values) if recurrence == "auto" else float(recurrence)
        lots = [group.draw(i, times, domains, r) for i in range(len(group.predicates))]
        drawn = [(p, w / len(lot)) for w, lot in zip(group.weights, lots, strict=True) for p in lot]
        share = OWN + (1 - OWN) * known if drawn else 1.0
        found += [(p, share * w) for p, w in zip(group.predicates, group.weights, strict=True)]
        found += [(p, (1 - share) * w) for p, w in drawn]
        seen += share * sum(group.weights)
    kept = [(p, w) for p, w in found if w > 0]
    truths = {**sample.rows.truths, **domains.truths}
    sample = replace(sample, rows=Rows(sample.rows.columns, truths)) if domains.truths else sample
    total = sum(w for _, w in kept)
    return Redrawn(tuple(p for p, _ in kept), tuple(w for _, w in kept), sample, seen / total if total else 1.0)


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
    return tuple(sorted(map(_ordered, kids), key=lambda kid: (shape(kid), predicate_text(kid))))


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

    def draw(self, i: int, times: int, domains: _Domains, r: Random) -> list[Predicate]:
        """`times` relatives of query i; none where no literal ever changes, or all that is drawn contradicts itself."""
        by_slot = list(zip(*self.values, strict=True))
        varies = [len(set(seen)) > 1 for seen in by_slot]
        if not any(varies):
            return []
        atoms = [atom for atom, _ in _slots(self.predicates[i])]
        found = (self._drawn(i, atoms, by_slot, varies, domains, r) for _ in range(_AGAIN * times))
        return list(islice((p for p in found if not _is_empty(p)), times)) or [self.predicates[i]]

    def _drawn(
        self,
        i: int,
        atoms: Sequence[Predicate],
        by_slot: Sequence[Sequence[Values]],
        varies: Sequence[bool],
        domains: _Domains,
        r: Random,
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
                new.append(
                    replace(atom, literal=replace(atom.literal, value=_moved(atom.literal.value, shifts[family])))
                )
            else:
                new.append(domains.other(atom, seen, others, r))
        parts = iter(new)
        return normalise(_with_atoms(self.predicates[i], lambda: next(parts)))


def _is_empty(p: Predicate) -> bool:
    """Whether it holds on no row: bounds that have passed each other."""
    return any(isinstance(a, Const) or (isinstance(a, In) and not a.literals) for a in atoms_of(p))


def _shift(value: Any, seen: Sequence[Any], r: Random) -> Any:
    """From `value` to a place in the range seen (and a little beyond), in the steps seen; None: it cannot be said."""
    if isinstance(value, Decimal):
        exponents = [v.as_tuple().exponent for v in seen]
        unit = min(e for e in exponents if isinstance(e, int))
        whole = [int(v.scaleb(-unit, _WIDE)) for v in (value, *seen)]
        return Decimal(_shift(whole[0], whole[1:], r)).scaleb(unit, _WIDE)
    if isinstance(value, int):
        low, high = min(seen), max(seen)
        step = reduce(gcd, (v - low for v in seen))
        steps = (high - low) // step
        return low + step * r.randint(-(steps // len(seen)), steps + steps // len(seen)) - value
    if not all(isinstance(v, float) and isfinite(v) for v in (value, *seen)):
        return None
    low, high = min(seen), max(seen)
    found = r.uniform(low, high) - value
    return found if isfinite(found) else None


def _moved(value: Any, shift: Any) -> Any:
    if shift is None or value is NAN:
        return value
    found = _WIDE.add(value, shift) if isinstance(value, Decimal) else value + shift
    return found if not isinstance(found, float) or isfinite(found) else value


class _Domains:
    """What the sample's columns hold, to draw from; and the truth of the conditions that only Spark would know."""

    def __init__(self, sample: Sample) -> None:
        self._rows = sample.rows
        self._by_text = {term_text(t): t for t in sample.rows.columns}
        self._words: dict[str, tuple[list[str], list[int]]] = {}
        self._texts: dict[str, pa.Array] = {}
        self.truths: dict[Predicate, Bits] = {}

    def other(self, atom: Predicate, seen: Sequence[Values], known: dict[Any, Any], r: Random) -> Predicate:
        """The atom about other values; equal values of one query become equal ones."""
        match atom:
            case Compare(term, op, literal):
                (value,) = self._values(term, literal.kind, (literal.value,), seen, known, r)
                return self._asked(term, op, literal.kind, value)
            case In(term, literals) if literals:
                kind = literals[0].kind
                values = self._values(term, kind, tuple(x.value for x in literals), seen, known, r)
                if len(values) <= 3:
                    return disjunction(*(self._asked(term, "=", kind, v) for v in values))
                return In(term, tuple(Literal(kind, v) for v in values))
            case Prefix(term, prefix):
                domain = [v for v in self._domain(term) if v]
                return Prefix(term, r.choice(domain)[: len(prefix)]) if domain and prefix else atom
            case Opaque(sql, (column,)):
                return self._like(atom, column, sql, r)
        return atom

    def _domain(self, term: Term) -> list[Any]:
        found = self._by_text.get(term_text(term))
        return self._rows.ranked[found].values if found in self._rows.ranked else []

    def _values(
        self, term: Term, kind: str, old: Values, seen: Sequence[Values], known: dict[Any, Any], r: Random
    ) -> Values:
        """New values of the column, as many as the old ones. Where values came back, some of those seen."""
        domain = self._domain(term)
        if len(domain) < 2:
            return old
        all_seen = [v for values in seen for v in values]
        again = 1 - len(set(all_seen)) / len(all_seen)
        for value in (v for v in old if (kind, v) not in known):
            taken = {v for (k, _), v in known.items() if k == kind}
            for _ in range(8):
                pick = r.choice(all_seen if r.random() < again else domain)
                if pick not in taken:
                    break
            else:
                pick = next((v for v in domain if v not in taken), value)
            known[kind, value] = pick
        return tuple(dict.fromkeys(known[kind, value] for value in old))

    def _asked(self, term: Term, op: str, kind: str, value: Any) -> Predicate:
        """`term = value`; of a column with many values blocks know the bounds only, so there it is a narrow range."""
        exact = Compare(term, op, Literal(kind, value))
        domain = self._domain(term)
        if op != "=" or len(domain) <= MAX_DISTINCT:
            return exact
        at = bisect_right(domain, value)
        if kind in (kinds.INT, kinds.DATE) and at < len(domain) and domain[at] == value + 1:
            at += 1  # else the range would be read as the value again
        if at >= len(domain):
            return Compare(term, ">=", Literal(kind, value))
        return conjunction(Compare(term, ">=", Literal(kind, value)), Compare(term, "<", Literal(kind, domain[at])))

    def _like(self, atom: Opaque, column: Term, sql: str, r: Random) -> Predicate:
        found = _LIKE_WORD.fullmatch(sql)
        domain = self._domain(column)
        if found is None or not domain or not isinstance(domain[0], str) or found["column"] != term_text(column):
            return atom
        words, chances = self._words_of(column, domain, r)
        if not words:
            return atom
        word = r.choices(words, chances)[0]
        new = Opaque(f"{term_text(column)} LIKE {quote_string(f'%{word}%')}", atom.columns)
        if new not in self.truths and new not in self._rows.truths:
            ranked = self._rows.ranks(column)
            key = term_text(column)
            if key not in self._texts:
                self._texts[key] = pa.array(ranked.values, pa.string())
            holds = pc.match_substring(self._texts[key], word).to_numpy(zero_copy_only=False)
            bits = np.append(np.where(holds, T_BIT, F_BIT), N_BIT).astype(np.uint8)
            self.truths[new] = bits[ranked.places]  # NULL is place -1, the last
        return new

    def _words_of(self, column: Term, domain: list[str], r: Random) -> tuple[list[str], list[int]]:
        key = term_text(column)
        if key not in self._words:
            places = self._rows.ranks(column).places.tolist()
            texts = [domain[place] for place in r.sample(places, min(len(places), _ROWS_FOR_WORDS)) if place >= 0]
            counts = Counter(word for value in texts for word in re.findall(_WORD, value)).most_common(_MOST_WORDS)
            self._words[key] = [word for word, _ in counts], [n for _, n in counts]
        return self._words[key]
