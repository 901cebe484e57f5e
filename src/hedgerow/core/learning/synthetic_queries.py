"""Synthetic queries: the observed queries with other literals, which later queries may have.

Queries of one shape differ only in their literals. A literal that is equal in all of them stays unchanged; the others
are drawn again:

    l_shipdate >= '1995-03-02' AND l_shipdate < '1995-03-09'    all dates shift together, in the observed range; and to
                                                                rows that are newer than all of these queries
    l_quantity < 24                                             the bounds of a column shift together too
    p_brand = 'Brand#12', c_nation IN ('PERU', 'CHINA')         other values of the column; equal ones stay equal
    p_name LIKE '%green%'                                       other words of the column

Synthetic queries have less weight if literals recur: a dashboard repeats its queries, an analyst does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress, islice
from random import Random
from typing import Any, NamedTuple, TypeAlias
from typing import Literal as Choice

from hedgerow.core.effort import NORMAL
from hedgerow.core.errors import LayoutError
from hedgerow.core.learning.drawn_literals import Domains, NewerRows, Values, family_of, moved_by
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.word_search import searched_word
from hedgerow.core.predicates.nodes import (
    And,
    Compare,
    Const,
    In,
    Like,
    Not,
    Or,
    Predicate,
    Prefix,
    Term,
    atoms_of,
    children,
    conjunction,
    map_children,
)
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.workload.queries import shape

Recurrence: TypeAlias = float | Choice["auto"]
Weighted: TypeAlias = list[tuple[Predicate, float]]

LEAST_OBSERVED_SHARE = 0.25  # the share of its weight that an observed query keeps if literals never recur
IMAGINED_NEW_QUERIES = 2  # added to the log before its recurrence is estimated, so that a short log proves little
_LEAST_KNOWN = 10  # queries that say whether a literal recurs
_MAX_KNOWN = 30  # queries that say which literals meet in a row
_RECURRING = 0.8  # of the literals of a place came more than once: so will the next one
_MAX_DRAWS = 5  # draws for each synthetic query: a contradiction is replaced by another draw


class Redrawn(NamedTuple):
    """Observed and synthetic queries; `observed_share` is the observed queries' share of the total weight.

    `sample` also has the outcomes of the drawn searches, which the evaluator alone could not evaluate.
    """

    predicates: tuple[Predicate, ...]
    weights: tuple[float, ...]
    sample: Sample
    observed_share: float


def recurrence_of(literals: Sequence[tuple[Any, ...]], weights: Sequence[float] | None = None) -> float:
    """Estimate the probability that the next query of a shape repeats the literals of an earlier one.

    It is the share of the queries, by weight, whose literals came more than once (the estimate of Good and Turing).

    >>> [round(recurrence_of(q), 2) for q in ([(1,), (2,), (3,)], [(1,)] * 9)]
    [0.0, 0.82]
    """
    weights = [1.0] * len(literals) if weights is None else list(weights)
    times = Counter(literals)
    repeated = sum(w for query, w in zip(literals, weights, strict=True) if times[query] > 1)
    total = sum(weights)
    return repeated / (total * (1 + IMAGINED_NEW_QUERIES / len(weights))) if total else 0.0


def searched_columns(predicates: Sequence[Predicate]) -> list[Term]:
    """Return the columns that are searched for words; the sample must contain them, to draw other words."""
    searches = (atom for p in predicates for atom in atoms_of(p) if searched_word(atom) is not None)
    return list(dict.fromkeys(atom.term for atom in searches if isinstance(atom, Like)))


def redrawn(
    predicates: Sequence[Predicate],
    weights: Sequence[float],
    sample: Sample,
    recurrence: Recurrence = "auto",
    seed: int = 0,
    times: int = NORMAL.draws,
) -> Redrawn:
    """Add synthetic queries to the observed ones; the sum of the weights stays the same."""
    if recurrence != "auto" and not 0 <= recurrence <= 1:
        raise LayoutError(f"recurrence must be a number between 0 and 1, or auto, not {recurrence}")
    if recurrence == 1:
        return Redrawn(tuple(predicates), tuple(weights), sample, 1.0)
    r = Random(seed)
    domains = Domains(sample)
    weighted: Weighted = []
    observed = 0.0
    for group in _groups(predicates, weights):
        repeats = recurrence_of(group.values, group.weights) if recurrence == "auto" else float(recurrence)
        draws = [group.draw(i, times, domains, r) for i in range(len(group.predicates))]
        drawn = [(p, w / len(variants)) for w, variants in zip(group.weights, draws, strict=True) for p in variants]
        share = LEAST_OBSERVED_SHARE + (1 - LEAST_OBSERVED_SHARE) * repeats if drawn else 1.0
        weighted += [(p, share * w) for p, w in zip(group.predicates, group.weights, strict=True)]
        weighted += [(p, (1 - share) * w) for p, w in drawn]
        observed += share * sum(group.weights)
    weighted = [(p, w) for p, w in weighted if w > 0]
    truths = {**sample.rows.truths, **domains.truths}
    sample = replace(sample, rows=sample.rows.with_truths(truths)) if domains.truths else sample
    total = sum(w for _, w in weighted)
    observed_share = observed / total if total else 1.0
    return Redrawn(tuple(p for p, _ in weighted), tuple(w for _, w in weighted), sample, observed_share)


def with_unseen_literals(
    predicates: Sequence[Predicate], sample: Sample, seed: int = 0, rounds: int = 1
) -> tuple[list[Predicate], Sample]:
    """Return each predicate with literals that no observed one has, and the sample with the outcomes of new searches.

    All predicates come once in each round, with other literals.

    An index notes the observed conditions, so a query with the same literals may open one file where the next one opens
    nearly all. The literals are like the observed ones: bounds are near theirs, and values are about as frequent. Those
    of a column of few values may be observed ones, and so may those of a place where nearly all came before: reports
    ask for one year after the other. A predicate stays as it is if its literals do not vary, or if the sample has no
    other values for it. Where only one query has its shape, those vary that a column of many values is looked up by.
    """
    r, domains = Random(seed), Domains(sample, alike=True)
    by_text: dict[str, list[Predicate]] = {}
    for group in _groups(predicates, [1.0] * len(predicates)):
        slots = list(zip(zip(*group.values, strict=True), group.must_differ(domains), strict=True))
        varying = {v for slot, differs in slots if differs for values in slot for v in values}
        fixed = {v for slot, differs in slots if not differs for values in slot for v in values}
        group.known = varying - fixed
        for i, p in enumerate(group.predicates):
            drawn = (draw for _ in range(_MAX_DRAWS**2) for draw in group.draw(i, rounds, domains, r))
            unseen = (d for d in drawn if not group.has_known(d))
            by_text[predicate_text(p)] = list(islice(unseen, rounds)) or [p]
    truths = {**sample.rows.truths, **domains.truths}
    sample = replace(sample, rows=sample.rows.with_truths(truths)) if domains.truths else sample
    draws = [by_text[predicate_text(_ordered(p))] for p in predicates]
    return [draw[i % len(draw)] for i in range(rounds) for draw in draws], sample


def _groups(predicates: Sequence[Predicate], weights: Sequence[float]) -> list[_Group]:
    by_shape: dict[str, _Group] = {}
    for p, w in zip(map(_ordered, predicates), weights, strict=True):
        group = by_shape.setdefault(shape(p), _Group())
        group.predicates.append(p)
        group.weights.append(w)
        group.values.append(tuple(value for _, value in _slots(p)))
    return list(by_shape.values())


# --- the literals of a predicate ------------------------------------------------------------------


def _ordered(p: Predicate) -> Predicate:
    """Sort children by shape, so that predicates of one shape have their literals in the same places."""
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
    """Return the atoms that have literals, each with its literals."""
    match p:
        case And() | Or() | Not():
            return [slot for kid in children(p) for slot in _slots(kid)]
        case Compare(_, _, literal):
            return [(p, (literal.value,))]
        case In(_, literals):
            return [(p, tuple(x.value for x in literals))]
        case Prefix(_, prefix):
            return [(p, (prefix,))]
        case Like():
            word = searched_word(p)
            return [(p, () if word is None else (word,))]
    return []


def _with_atoms(p: Predicate, new: Callable[[], Predicate]) -> Predicate:
    """Return the predicate with each atom that has literals replaced, in the order of `_slots`."""
    if isinstance(p, Compare | In | Prefix | Like):
        return new()
    return map_children(p, lambda kid: _with_atoms(kid, new))


# --- drawing --------------------------------------------------------------------------------------


@dataclass
class _Group:
    """Queries of one shape, in the order in which they came."""

    predicates: list[Predicate] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    values: list[tuple[Values, ...]] = field(default_factory=list)
    known: set[Any] = field(default_factory=set)  # values that no drawn query should have
    _met: list[int] | None = None
    _newer_rows: dict[str, tuple[int, NewerRows]] | None = None

    def draw(self, i: int, times: int, domains: Domains, r: Random) -> list[Predicate]:
        """Draw up to `times` variants of query i, with other literals.

        Return no variant if all queries of the group have the same literals. If every draw is a contradiction, return
        query i itself.
        """
        by_slot = list(zip(*self.values, strict=True))
        varies, recurs = self.varies(domains), self._recur(domains)
        if not any(varies):
            return []
        atoms = [atom for atom, _ in _slots(self.predicates[i])]
        newer = self._newer(by_slot, varies, domains)
        draws = (self._drawn(i, atoms, by_slot, varies, recurs, newer, domains, r) for _ in range(_MAX_DRAWS * times))
        return list(islice((p for p in draws if not _is_empty(p)), times)) or [self.predicates[i]]

    def varies(self, domains: Domains) -> list[bool]:
        """Return for each place of literals whether they vary from query to query."""
        atoms = [atom for atom, _ in _slots(self.predicates[0])]
        is_single = len(self.predicates) == 1
        return [
            len(set(values)) > 1 or (is_single and domains.has_likely_others(atom))
            for values, atom in zip(zip(*self.values, strict=True), atoms, strict=True)
        ]

    def must_differ(self, domains: Domains) -> list[bool]:
        """Return for each place of literals whether unseen queries have others there."""
        atoms = (atom for atom, _ in _slots(self.predicates[0]))
        places = zip(atoms, self.varies(domains), self._recur(domains), strict=True)
        return [varies and not recurs and domains.must_differ(atom) for atom, varies, recurs in places]

    def _newer(
        self, by_slot: Sequence[Sequence[Values]], varies: Sequence[bool], domains: Domains
    ) -> Mapping[str, tuple[int, NewerRows]]:
        """Return the rows that are newer than all spans of time of the queries, with the place of the upper bound.

        They come by the family of that bound. Later queries will ask for these rows in the same way. One bound alone is
        no span, nor is one that never moves."""
        if self._newer_rows is None:
            moving = [
                (place, atom)
                for place, (atom, _) in enumerate(_slots(self.predicates[0]))
                if varies[place] and isinstance(atom, Compare)
            ]
            begins = {atom.term for _, atom in moving if atom.op in (">", ">=")}
            self._newer_rows = {}
            for place, atom in moving:
                rows = domains.newer_rows(atom, [v for (v,) in by_slot[place]]) if atom.term in begins else None
                family = family_of(atom)
                if rows is not None and family is not None:
                    _, most = self._newer_rows.get(family, (place, rows))
                    if rows.share >= most.share:
                        self._newer_rows[family] = place, rows
        return self._newer_rows

    def _recur(self, domains: Domains) -> list[bool]:
        """Return for each place whether unseen queries have observed literals there, because nearly all came before."""
        return self._recurring if domains.alike else [False] * len(self._recurring)

    @cached_property
    def _recurring(self) -> list[bool]:
        """For each place whether its literals nearly always recur, once all queries are there.

        All places of a column do or none: a range has both its bounds from one query."""
        columns = [str(getattr(atom, "term", None)) for atom, _ in _slots(self.predicates[0])]
        if len(self.values) < _LEAST_KNOWN:
            return [False] * len(columns)
        recurs = {}
        for column in set(columns):
            is_of_column = [column == other for other in columns]
            literals = [tuple(compress(values, is_of_column)) for values in self.values]
            recurs[column] = recurrence_of(literals) >= _RECURRING
        return [recurs[column] for column in columns]

    def _drawn(
        self,
        i: int,
        atoms: Sequence[Predicate],
        by_slot: Sequence[Sequence[Values]],
        varies: Sequence[bool],
        recurs: Sequence[bool],
        newer: Mapping[str, tuple[int, NewerRows]],
        domains: Domains,
        r: Random,
    ) -> Predicate:
        shifts: dict[str, Any] = {}
        for moving, (place, rows) in newer.items():
            if r.random() < rows.share:
                upper = atoms[place]
                assert isinstance(upper, Compare)
                shifts[moving] = domains.shift_to(rows, upper, r)
        replacements: dict[Any, Any] = {}
        new: list[Predicate] = []
        another = _slots(r.choice(self.predicates)) if domains.alike else _slots(self.predicates[i])
        slots = zip(atoms, by_slot, varies, recurs, another, strict=True)
        for atom, observed, changes, is_another, (other_atom, _) in slots:
            family = family_of(atom)
            if not changes:
                new.append(atom)
            elif is_another:
                new.append(other_atom)
            elif family is not None:
                assert isinstance(atom, Compare)
                if family not in shifts:
                    bounds = [v for (v,) in observed]
                    shifts[family] = domains.shift(atom.literal.value, bounds, r)
                value = moved_by(atom.literal.value, shifts[family])
                moved = replace(atom, literal=replace(atom.literal, value=value))
                new.append(moved if domains.can_hold(moved) else atom)
            else:
                new.append(domains.redraw(atom, observed, replacements, r))
        drawn = _with_new_atoms(self.predicates[i], new)
        if not domains.alike or self.has_known(drawn) or domains.matches(drawn):
            return drawn
        # Columns depend on each other: drawn by themselves, their values often meet in no row.
        places = [at for at, atom in enumerate(atoms) if varies[at] and not recurs[at] and family_of(atom) is None]
        if domains.matches(self.predicates[i]):
            kept = conjunction(*(atom for at, atom in enumerate(new) if at not in places))
        else:  # a rare query: the sample may lack its rows
            first, *places = self._meeting(places, domains) or [0]
            kept = new[first]
        for at, atom in zip(places, domains.of_one_row(kept, [atoms[at] for at in places], r), strict=True):
            new[at] = atom
        return _with_new_atoms(self.predicates[i], new)

    def has_known(self, p: Predicate) -> bool:
        return not self.known.isdisjoint(value for _, values in _slots(p) for value in values)

    def _meeting(self, places: Sequence[int], domains: Domains) -> list[int]:
        """Return the places whose literals meet in a row of the sample in most queries; the rarest literals first."""
        if self._met is None:
            queries = [[atom for atom, _ in _slots(p)] for p in self.predicates[:_MAX_KNOWN]]

            def meet(some: Sequence[int]) -> bool:
                known = [atoms for atoms in queries if all(domains.matches(atoms[at]) for at in some)]
                met = sum(domains.matches(conjunction(*(atoms[at] for at in some))) > 0 for atoms in known)
                return 2 * met > len(known)

            def grown(first: int) -> list[int]:
                met = [first]
                for place in rarest:
                    if place != first and meet([*met, place]):
                        met.append(place)
                return met

            rarest = sorted(places, key=lambda at: sum(domains.matches(atoms[at]) for atoms in queries))
            self._met = max(map(grown, rarest), key=len, default=[])
        return self._met


def _with_new_atoms(p: Predicate, atoms: Sequence[Predicate]) -> Predicate:
    new = iter(atoms)
    return normalise(_with_atoms(p, lambda: next(new)))


def _is_empty(p: Predicate) -> bool:
    """True if the predicate holds on no row, because its lower bound is above its upper bound."""
    return any(isinstance(a, Const) or (isinstance(a, In) and not a.literals) for a in atoms_of(p))
