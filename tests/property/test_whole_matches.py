"""Statistics never change an answer: first rows, any rows, and aggregates equal those of all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from hedgerow.core.index.aggregates import Aggregate, Count, Extreme, Group, Sum, add_up, aggregate, may_overflow
from hedgerow.core.index.any_rows import any_rows
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.sums import sum_of, sum_stats
from hedgerow.core.index.top_k import Order, files_to_probe, first_rows
from hedgerow.core.index.whole_matches import UNKNOWN_ROWS, MatchedFiles, TypedTerm, match_files
from hedgerow.core.predicates.nodes import TRUE, Column, Predicate, Term
from hedgerow.core.predicates.row_truth import truth
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import NAN
from hedgerow.core.pruning.block_stats import UNBOUNDED, UNKNOWN_NULLS, Bound, Stats, TermStats, collect
from tests.support.random_cases import Table, a_literal, a_predicate, a_table, a_value, seeds, some_rows
from tests.support.small_tables import as_if_large

Row = dict[str, Any]
SUMMED = ("int", "decimal")
NO_FILE = -1  # of rows in files that the index does not know


@dataclass(frozen=True)
class Case:
    """Rows that are not deleted, the file and the part of each, and what is known of the files of each part."""

    rows: list[tuple[Row, int, int]]
    parts: list[tuple[Stats, npt.NDArray[np.int64]]]
    table: Table
    sorted_by: Term

    def a_term(self, random: Random) -> TypedTerm:
        terms = list(self.table.kinds)
        return self.typed(random.choice([self.sorted_by, *terms]))

    def typed(self, term: Term) -> TypedTerm:
        known = [stats.terms[term_text(term)].type for stats, _ in self.parts if term_text(term) in stats.terms]
        return TypedTerm(term, known[0] if known else Type("int"))

    def matched(self, p: Predicate) -> list[MatchedFiles]:
        return [match_files(BlockIndex(stats), p, left) for stats, left in self.parts]

    def matching(self, p: Predicate, opened: Sequence[npt.NDArray[np.bool_]] | None = None) -> list[Row]:
        """The matching rows, of opened files only."""
        return [
            row
            for row, part, file in self.rows
            if truth(p, row) is True and (opened is None or part == NO_FILE or opened[part][file])
        ]

    @property
    def of_known_files(self) -> Case:
        return replace(self, rows=[of for of in self.rows if of[1] != NO_FILE])


def a_case(random: Random) -> Case:
    table = a_table(random)
    near = {
        k: [*values, *(a_value(random, k) for _ in range(random.choice((0, 8))))] for k, values in table.near.items()
    }
    table = some_rows(random, replace(table, near=near), most_rows=24)
    term = random.choice(list(table.kinds))
    order = sorted(range(len(table)), key=lambda i: in_order(Order(TypedTerm(term, Type("int"))), table.rows[i]))
    for _ in range(random.choice((0, 1, 3, 50))):
        i, j = (random.randrange(len(order)) for _ in range(2))
        order[i], order[j] = order[j], order[i]
    ends = sorted(random.randint(0, len(order)) for _ in range(random.choice((1, 3, 6, 9))))
    pieces = [order[a:b] for a, b in zip([0, *ends], [*ends, len(order)], strict=True)]
    unknown = [i for piece in pieces if random.random() < 0.1 for i in piece]
    known = [piece for piece in pieces if not set(piece) & set(unknown)]
    cut = random.choice((len(known), len(known), random.randint(0, len(known))))
    rows = [(table.rows[i], NO_FILE, 0) for i in unknown]
    parts = []
    for number, files in enumerate((known[:cut], known[cut:])):
        stats, left, kept = a_part(random, table, files)
        parts.append((stats, left))
        rows += [(table.rows[i], number, file) for i, file in kept]
    return Case(rows, parts, table, term)


def a_part(
    random: Random, table: Table, files: Sequence[Sequence[int]]
) -> tuple[Stats, npt.NDArray[np.int64], list[tuple[int, int]]]:
    """Statistics of files with these rows, the rows of each that are left, and which ones these are."""
    at = [i for file in files for i in file]
    entry = np.array([number for number, file in enumerate(files) for _ in file], np.int64)
    columns = {t: a.take(pa.array(at, pa.int64())) for t, a in table.columns.items()}
    stats = collect(columns, None, entry, len(files), max_distinct=random.choice((0, 2, 64)))
    vague = random.random() < 0.5
    terms = {n: blurred(random, table, t) if vague else t for n, t in stats.terms.items() if random.random() < 0.9}
    terms |= some_sums(random, table, terms, files)
    share = random.choice((0, 0, 0.1, 0.5))
    touched = [random.random() < 0.5 for _ in files]
    kept = [(i, f) for i, f in zip(at, entry.tolist(), strict=True) if not touched[f] or random.random() >= share]
    left = np.bincount([f for _, f in kept], minlength=len(files)).astype(np.int64)
    left[[random.random() < 0.05 for _ in files]] = UNKNOWN_ROWS
    return Stats(stats.rows, terms, {}), left, kept


def some_sums(
    random: Random, table: Table, terms: dict[str, TermStats], files: Sequence[Sequence[int]]
) -> dict[str, TermStats]:
    """The sums of numbers in each file; some are unknown."""
    found = {}
    for term in table.kinds:
        name = term_text(term)
        if isinstance(term, Column) and name in terms and terms[name].type.kind in SUMMED and random.random() < 0.9:
            sums = [total([table.rows[i][name] for i in file]) if random.random() < 0.9 else None for file in files]
            found[sum_of(term).sql] = sum_stats(terms[name].type, sums)
    return found


def total(values: Sequence[Any]) -> Any:
    """The exact sum; None if no value is known."""
    known = [v for v in values if v is not None]
    with localcontext(prec=200):
        return sum(known[1:], known[0]) if known else None


def blurred(random: Random, table: Table, t: TermStats) -> TermStats:
    """Less sharp statistics: bounds move outwards, are cut, or unknown; so may be NULLs, NaN and sets."""

    def end(code: int, side: int) -> Bound:
        value, near = t.values[code // 2], a_literal(random, table, t.type.kind).value
        is_outside = near is not NAN and (near < value if side < 0 else near > value)
        # A bound that no row has may look like one that some row has only among texts, which writers cut.
        gap = random.choice((0, -side)) if t.type.kind in ("string", "binary") else -side
        moved = Bound(near, gap) if is_outside else Bound(value, random.choice((0, side)))
        return random.choice((UNBOUNDED, moved, moved, Bound(value), Bound(value), Bound(value)))

    bounds, nan = [], []
    sets: list[list[Any] | None] = []
    for i, (low, high) in enumerate(zip(t.low.tolist(), t.high.tolist(), strict=True)):
        ends = (end(low, -1), end(high, 1)) if low <= high else None
        exact = (Bound(t.values[low // 2]), Bound(t.values[high // 2])) if low <= high else None
        codes = t.sets.of(i) if t.sets and ends == exact else None
        bounds.append(ends)
        sets.append(None if codes is None else [t.values[c // 2] for c in codes])
        nan.append(bool(t.nan[i]) or (t.type.kind == "float" and ends is not None and random.random() < 0.1))
    unsure = random.choice((0, 0.2, 0.8))
    nulls = [UNKNOWN_NULLS if random.random() < unsure else n for n in t.nulls.tolist()]
    return TermStats.build(t.type, bounds, nulls, nan, sets)


def in_order(order: Order, row: Row) -> tuple[int, Any]:
    """A key that sorts rows as ORDER BY does."""
    value = row[term_text(order.by.term)]
    if value is None:
        return (0 if order.nulls_first else 2, 0)
    return 1, _Reversed(value) if order.descending else value


@dataclass(frozen=True)
class _Reversed:
    value: Any

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.value < self.value)


def a_condition(random: Random, table: Table) -> Predicate:
    return TRUE if random.random() < 0.4 else a_predicate(random, table, depth=random.choice((0, 1, 2)))


# --- first rows -----------------------------------------------------------------------------------


def check_first_rows(random: Random, case: Case) -> int:
    """The number of files that the order skips, over all k."""
    p = a_condition(random, case.table)
    order = Order(case.a_term(random), random.random() < 0.5, random.random() < 0.5)
    each = case.matched(p)
    matched, skipped = MatchedFiles.concat(each), 0
    stats = order.by.across([stats for stats, _ in case.parts])
    everything = sorted((in_order(order, row) for row in case.matching(p)), key=lambda k: k)
    for k in range(len(everything) + 3):
        chosen = first_rows(matched, stats, order, k)
        opened = matched.opened if chosen is None else chosen
        ends = np.cumsum([len(m.opened) for m in each])[:-1]
        rest = sorted(in_order(order, row) for row in case.matching(p, np.split(opened, ends)))
        assert rest[:k] == everything[:k], (k, order, stats)
        assert not (opened & ~matched.opened).any()
        skipped += int((matched.opened & ~opened).sum())
    return skipped


# --- a threshold that the query finds -------------------------------------------------------------


@as_if_large()
def check_probes(random: Random, case: Case) -> int:
    """The number of rows that a threshold leaves out, over all k."""
    p, case, left_out = a_condition(random, case.table), case.of_known_files, 0
    order = Order(case.a_term(random), random.random() < 0.5, random.random() < 0.5)
    each, name = case.matched(p), term_text(order.by.term)
    matched, stats = MatchedFiles.concat(each), order.by.across([stats for stats, _ in case.parts])
    ends = np.cumsum([len(m.opened) for m in each])[:-1]
    everything = sorted(in_order(order, row) for row in case.matching(p))
    for k in range(1, len(everything) + 2):
        chosen = first_rows(matched, stats, order, k)
        opened = matched.opened if chosen is None else chosen
        probe = files_to_probe(matched, opened, stats, order, k)
        if probe is None:
            continue
        assert not (probe.files & ~opened).any()
        few = case.matching(p, np.split(probe.files, ends))
        best = sorted(in_order(order, row) for row in few if row[name] is not None)[:k]
        threshold = best[-1] if len(best) == k else in_order(order, {name: probe.last_value})
        rows = case.matching(p, np.split(opened, ends))
        kept = [in_order(order, row) for row in rows if row[name] is None or not threshold < in_order(order, row)]
        assert sorted(kept)[:k] == everything[:k], (k, order, probe)
        left_out += len(everything) - len(kept)
    return left_out


# --- any rows -------------------------------------------------------------------------------------


def check_any_rows(random: Random, case: Case) -> int:
    """The number of files that a limit skips, over all k."""
    p, skipped = a_condition(random, case.table), 0
    each = case.matched(p)
    matched = MatchedFiles.concat(each)
    sizes = sorted(matched.guaranteed.tolist(), reverse=True)
    for k in range(1, sum(sizes) + 3):
        chosen = any_rows(matched, k)
        if chosen is None:
            assert sum(sizes) < k
            continue
        known = replace(case, rows=[r for r in case.rows if r[1] != NO_FILE])
        assert len(known.matching(p, np.split(chosen, np.cumsum([len(m.opened) for m in each])[:-1]))) >= k
        assert sum(sizes[: int(chosen.sum()) - 1]) < k, "fewer files would do"
        skipped += int((matched.opened & ~chosen).sum())
    return skipped


# --- aggregates -----------------------------------------------------------------------------------


def an_aggregate(random: Random, case: Case) -> Aggregate:
    of = case.a_term(random)
    where = a_condition(random, case.table) if random.random() < 0.4 else TRUE
    is_summed = case.table.kinds[of.term] in SUMMED  # the type is a guess where no file has statistics
    match random.randrange(6 if is_summed else 4):
        case 0:
            return Count(None, where)
        case 1:
            return Count(of, where)
        case 4 | 5:
            return Sum(of, where, as_double=random.random() < 0.5)
    return Extreme(of, random.random() < 0.5, where)


def by_hand(rows: list[Row], groups: Sequence[TypedTerm], aggregates: Sequence[Aggregate]) -> dict[Group, Group]:
    members: dict[Group, list[Row]] = {} if groups else {(): []}
    for row in rows:
        members.setdefault(tuple(row[term_text(g.term)] for g in groups), []).append(row)
    return {group: tuple(value_by_hand(a, own) for a in aggregates) for group, own in members.items()}


def value_by_hand(a: Aggregate, rows: list[Row]) -> Any:
    rows = [row for row in rows if truth(a.where, row) is True]
    if a.of is None:
        return len(rows)
    values = [v for row in rows if (v := row[term_text(a.of.term)]) is not None]
    if isinstance(a, Count):
        return len(values)
    if isinstance(a, Sum):
        return total(values)
    return (max if a.greatest else min)(values, default=None)


def check_aggregates(random: Random, case: Case) -> int:
    """The number of files that need no scan."""
    p = a_condition(random, case.table)
    groups = [
        case.typed(t)
        for t in random.sample(list(case.table.kinds), random.choice((0, 0, 1, 1, 2)) % (len(case.table.kinds) + 1))
    ]
    aggregates = [an_aggregate(random, case) for _ in range(random.randint(0 if groups else 1, 3))]
    if random.random() < 0.2:  # only these may be beaten
        aggregates = [Extreme(case.a_term(random), random.random() < 0.5) for _ in range(random.choice((1, 1, 2)))]
    each = case.matched(p)
    found = [aggregate(stats, m, groups, aggregates) for (stats, _), m in zip(case.parts, each, strict=True)]
    scanned = by_hand(case.matching(p, [f.opened for f in found]), groups, aggregates)
    together = add_up(aggregates, [scanned, *(f.rows for f in found)])
    assert together == by_hand(case.matching(p), groups, aggregates), (groups, aggregates, case.parts)
    check_overflow(case, p, each, aggregates)
    for part in found:
        for group, values in part.rows.items():
            exact = [v for v, a in zip(values, aggregates, strict=True) if isinstance(a, Extreme)]
            assert not any(isinstance(v, float) and v == 0 for v in (*group, *exact)), "-0.0 or 0.0?"
    return sum(int((m.opened & ~f.opened).sum()) for m, f in zip(each, found, strict=True))


def check_overflow(case: Case, p: Predicate, each: Sequence[MatchedFiles], aggregates: Sequence[Aggregate]) -> None:
    """No order of the rows of known files makes a sum overflow that cannot overflow."""
    files = [(stats, matched) for (stats, _), matched in zip(case.parts, each, strict=True)]
    known = replace(case, rows=[r for r in case.rows if r[1] != NO_FILE]).matching(p)
    for a in aggregates:
        if isinstance(a, Sum) and (a.as_double or a.of.type.kind == "int") and not may_overflow(files, a):
            values = [int((row[term_text(a.of.term)] or 0) * 10**a.of.type.scale) for row in known]
            limit = 2**53 if a.as_double else 2**63 - 1
            assert sum(map(abs, values)) <= limit, "a sum that may overflow"
            if a.as_double:
                assert sum(map(float, values), 0.0) == sum(values) == sum(map(float, sorted(values)), 0.0)


CHECKS = {
    "first rows": check_first_rows,
    "probes": check_probes,
    "any rows": check_any_rows,
    "aggregates": check_aggregates,
}


def run(first_seed: int, cases: int, check: str) -> int:
    """The number of files that were skipped."""
    skipped = 0
    for i, random in enumerate(seeds(first_seed, cases)):
        try:
            skipped += CHECKS[check](random, a_case(random))
        except AssertionError as error:
            raise AssertionError(f"seed {first_seed + i}") from error
    return skipped


@pytest.mark.parametrize(
    ("check", "least"), [("first rows", 800), ("probes", 20), ("any rows", 3_000), ("aggregates", 500)]
)
def test_answers_are_those_of_all_rows(check: str, least: int) -> None:
    assert run(0, 1_000, check) >= least, "the answers must not hold because no file is skipped"


def test_sums_keep_all_digits() -> None:
    """Python rounds sums of decimals to 28 digits unless it is told otherwise."""
    of = Sum(TypedTerm(Column(("x",)), Type("decimal", 28, 2)))
    parts = [{(): (Decimal(10**30),)}, {(): (Decimal("0.01"),)}, {(): (None,)}]
    assert add_up([of], parts) == {(): (Decimal(f"1{'0' * 30}.01"),)}


@pytest.mark.parametrize(("digits", "may"), [("9007199254.74", False), ("9007199254.75", True)])
def test_decimals_are_added_up_as_doubles_without_their_point(digits: str, may: bool) -> None:
    of, rows = TypedTerm(Column(("x",)), Type("decimal", 12, 2)), np.array([10_000])
    term = TermStats.build(of.type, [(Bound(Decimal(digits)), Bound(Decimal(digits)))], [0])
    stats = Stats(rows, {"x": term}, {})
    files = [(stats, match_files(BlockIndex(stats), TRUE, rows))]
    assert may_overflow(files, Sum(of, as_double=True)) == may and not may_overflow(files, Sum(of))


@pytest.mark.long
@pytest.mark.parametrize("check", CHECKS)
def test_answers_are_those_of_all_rows_in_thirty_thousand_cases(check: str) -> None:
    run(100_000, 30_000, check)
