"""No block with a matching row is ever skipped, whatever became of its statistics on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.index_file import index_bytes, index_of_bytes
from hedgerow.core.predicates.nodes import (
    And,
    Compare,
    CompareTerms,
    In,
    Not,
    Or,
    Predicate,
    Prefix,
    Term,
    atoms_of,
    col,
    lit,
    terms_of,
)
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.row_truth import OPS as TRUTH_OF
from hedgerow.core.predicates.row_truth import truth
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import NAN, canonical
from hedgerow.core.pruning.block_stats import (
    UNBOUNDED,
    UNKNOWN_NULLS,
    Bound,
    Stats,
    TermStats,
    collect,
    drop_unused_values,
)
from hedgerow.core.pruning.combine_stats import concat, regroup
from hedgerow.core.pruning.evaluator import may_match, must_match, possible_outcomes
from hedgerow.core.pruning.row_batch import Rows
from tests.support.random_cases import (
    BIT,
    OPS,
    Table,
    a_literal,
    a_predicate,
    a_table,
    an_atom,
    bits,
    related,
    seeds,
    seen,
    some_blocks,
)

F, T, N = 1, 2, 4
x, y = col("x"), col("y")
QUERIES = 4  # predicates asked of each table


@dataclass(frozen=True)
class Blocks:
    """Statistics, and the entry in which each row of the table really is."""

    stats: Stats
    entry: npt.NDArray[np.int64]


# --- what may happen to statistics: each keeps them true, if less sharp ----------------------------

Change = Callable[[Random, Table, Blocks], Blocks]


def forgetting(random: Random, _: Table, b: Blocks) -> Blocks:
    """Some terms and features are not known (any more)."""
    terms = {k: v for k, v in b.stats.terms.items() if random.random() < 0.6}
    features = {k: v for k, v in b.stats.conditions.items() if random.random() < 0.6}
    return Blocks(Stats(b.stats.rows, terms, features), b.entry)


def widened(random: Random, table: Table, b: Blocks) -> Blocks:
    """Bounds move outwards, into the gaps beside values, or become unknown; NULLs and sets may be unknown."""
    terms = {name: _widened(random, table, t) for name, t in b.stats.terms.items()}
    return Blocks(Stats(b.stats.rows, terms, b.stats.conditions), b.entry)


def _widened(random: Random, table: Table, t: TermStats) -> TermStats:
    kind = t.type.kind
    if kind not in table.near or (t.low % 2 == 0).any() or (t.high[t.has_value] % 2 == 0).any():
        return t  # bounds that are already wide have no exact value to start from

    def outward(code: int, side: int) -> Bound:
        value = t.values[code // 2]
        other = _beside(random, table, kind, value)
        further = other < value if side < 0 else other > value
        return random.choice(
            (UNBOUNDED, Bound(value), Bound(other, random.choice((0, -side))) if further else Bound(value))
        )

    bounds = [
        (outward(low, -1), outward(high, 1)) if low <= high else None
        for low, high in zip(t.low.tolist(), t.high.tolist(), strict=True)
    ]
    sets: list[list[Any] | None] = []
    for i in range(len(bounds)):
        codes = t.sets.of(i) if t.sets else None
        if codes is None or random.random() < 0.3:
            sets.append(None)
            continue
        present = [t.values[c // 2] for c in codes]
        sets.append([*{*present, *(_beside(random, table, kind, v) for v in present[:1])}])
    nulls = [random.choice((n, n, UNKNOWN_NULLS, abs(n) + 1)) for n in t.nulls.tolist()]
    nan = [n or random.random() < 0.2 for n in t.nan.tolist()]
    return TermStats.build(t.type, bounds, nulls, None if random.random() < 0.2 else nan, sets)


def _beside(random: Random, table: Table, kind: str, value: Any) -> Any:
    """Another value that statistics can have: no NaN, and what a file's 64 bits can hold."""
    other = a_literal(random, table, kind).value
    return value if other is NAN or (isinstance(other, int) and not -(2**63) <= other < 2**63) else other


def without_sets(_: Random, __: Table, b: Blocks) -> Blocks:
    terms = {name: replace(t, sets=None) for name, t in b.stats.terms.items()}
    return Blocks(replace(b.stats, terms=terms), b.entry)


def compacted(_: Random, __: Table, b: Blocks) -> Blocks:
    return Blocks(replace(b.stats, terms={k: drop_unused_values(t) for k, t in b.stats.terms.items()}), b.entry)


def regrouped(random: Random, _: Table, b: Blocks) -> Blocks:
    n = random.randint(1, 4)
    to = np.array([random.randrange(n) for _ in range(len(b.stats))], np.int64)
    return Blocks(regroup(b.stats, to, n, max_distinct=random.choice((0, 2, 64))), to[b.entry])


def stored(_: Random, __: Table, b: Blocks) -> Blocks:
    return Blocks(index_of_bytes(index_bytes(BlockIndex(b.stats))).blocks, b.entry)


def joined_with_others(random: Random, _: Table, b: Blocks) -> Blocks:
    """Other files' statistics, with other columns and values, stand before and after."""
    before, after = (collect_some(random, a_table(random)).stats for _ in range(2))
    return Blocks(concat([before, b.stats, after]), b.entry + len(before))


def split(random: Random, table: Table, b: Blocks) -> Blocks:
    """The rows were written in two runs, which may not know the same terms."""
    first = np.array([random.random() < 0.5 for _ in range(len(table))])
    parts = [forgetting(random, table, collect_some(random, table, rows)) for rows in (first, ~first)]
    entry = np.empty(len(table), np.int64)
    entry[first], entry[~first] = parts[0].entry, parts[1].entry + len(parts[0].stats)
    return Blocks(concat([p.stats for p in parts]), entry)


CHANGES: tuple[Change, ...] = (
    *(forgetting, widened, without_sets, compacted),
    *(regrouped, stored, joined_with_others, split),
)


def collect_some(
    random: Random, table: Table, rows: npt.NDArray[np.bool_] | None = None, features: tuple[Predicate, ...] = ()
) -> Blocks:
    kept = np.flatnonzero(np.ones(len(table), bool) if rows is None else rows)
    entry, n = some_blocks(random, len(kept))
    columns = {t: a.take(pa.array(kept)) for t, a in table.columns.items()}
    noted = {p: bits(p, table)[kept] for p in features}
    return Blocks(collect(columns, noted, entry, n, max_distinct=random.choice((0, 1, 2, 64))), entry)


# --- the property ---------------------------------------------------------------------------------


def check(p: Predicate, table: Table, b: Blocks, said: str) -> None:
    actual = seen(bits(p, table), b.entry, len(b.stats))
    claimed = possible_outcomes(p, b.stats)
    said = f"{said}: {predicate_text(p)} has {actual.tolist()} but {claimed.tolist()} was said"
    assert not (actual & ~claimed).any(), said
    opened = may_match(p, b.stats)
    assert opened[(actual & T) > 0].all(), said
    assert not (opened & (claimed & T == 0)).any(), f"{said}; to ask for TRUE alone excludes no less"
    assert not must_match(p, b.stats)[(actual & (F | N)) > 0].any(), said


def run(first_seed: int, tables: int) -> int:
    """The number of (predicate, rows, blocks) cases that held."""
    cases = 0
    for i, random in enumerate(seeds(first_seed, tables)):
        table = a_table(random)
        queries = [a_predicate(random, table) for _ in range(QUERIES)]
        features = tuple(related(random, table, random.choice(queries)) for _ in range(random.randint(0, 3)))
        b, did = collect_some(random, table, features=features), "seed " + str(first_seed + i)
        for change in random.choices(CHANGES, k=random.choice((0, 1, 1, 2, 3))):
            b, did = change(random, table, b), f"{did}, {change.__name__}"
        for p in queries:
            check(p, table, b, did)
            cases += 1
    return cases


@pytest.mark.long
@pytest.mark.parametrize("first_seed", range(0, 1250, 250))
def test_no_matching_row_is_skipped(first_seed: int) -> None:
    assert run(first_seed, 250) == 1000


@pytest.mark.long
def test_no_matching_row_is_skipped_in_a_hundred_thousand_cases() -> None:
    assert run(10_000, 25_500) >= 100_000


# --- and yet most is skipped: the property above must not hold by answering "anything" -------------


def test_one_row_is_known_exactly() -> None:
    """An entry of one row has just the outcome of that row, so that rows can be evaluated as entries."""
    for random in seeds(50_000, 500):
        table = a_table(random)
        rows = Rows(table.columns, {p: bits(p, table) for p in table.opaque})
        for _ in range(3):
            p = a_predicate(random, table)
            assert rows.evaluate(p).tolist() == bits(p, table).tolist(), predicate_text(p)


def test_pairs_of_floats_are_known_exactly() -> None:
    """NaN is above all and equal to itself, on either side."""
    values = [None, float("-inf"), -0.0, 0.0, 1.5, float("inf"), float("nan")]
    pairs = [(a, b) for a in values for b in values]
    rows = Rows({x: pa.array([a for a, _ in pairs]), y: pa.array([b for _, b in pairs])})
    for op in OPS:
        p = CompareTerms(x, op, y)
        by_hand = [{"x": a and canonical("float", a), "y": b and canonical("float", b)} for a, b in pairs]
        assert rows.evaluate(p).tolist() == [BIT[truth(p, row)] for row in by_hand], op


BOUNDS = [UNBOUNDED, *(Bound(v, gap) for v in (0.0, 1.0) for gap in (-1, 0, 1))]
LINE = [v / 4 for v in range(-4, 9)]  # with three points in every gap between -1, 0, 1 and 2


def inside(low: Bound, high: Bound) -> list[float]:
    return [
        v
        for v in LINE
        if (not low.is_known or (v >= low.value and (low.gap < 1 or v > low.value)))
        and (not high.is_known or (v <= high.value and (high.gap > -1 or v < high.value)))
    ]


def test_pairs_of_bounds_say_just_what_may_happen() -> None:
    """Two values in one gap may be in any order; all else is decided by comparing ends."""
    spans = [(low, high) for low in BOUNDS for high in BOUNDS if low.gap >= 0 and high.gap <= 0 and inside(low, high)]
    both = [(a, b) for a in spans for b in spans]
    n = len(both)
    terms = {
        name: TermStats.build(Type("double"), [pair[side] for pair in both], [0] * n, [False] * n)
        for side, name in enumerate("xy")
    }
    stats = Stats(np.ones(n, np.int64), terms, {})
    for op in OPS:
        claimed = possible_outcomes(CompareTerms(x, op, y), stats)
        for (a, b), said in zip(both, claimed.tolist(), strict=True):
            happens = {BIT[TRUTH_OF[op](v, w)] for v in inside(*a) for w in inside(*b)}
            assert said == sum(happens), f"x in {a}, y in {b}: x {op} y"


def test_forgetting_values_changes_no_answer() -> None:
    """`compact` keeps what bounds in gaps need, so all answers stay as sharp."""
    for random in seeds(80_000, 300):
        table = a_table(random)
        b = widened(random, table, collect_some(random, table))
        p = an_atom(random, table)
        assert (
            possible_outcomes(p, compacted(random, table, b).stats).tolist() == possible_outcomes(p, b.stats).tolist()
        ), predicate_text(p)


def test_atoms_about_one_term_are_exact_on_distinct_sets() -> None:
    """With all values of a block known, nothing is said that does not occur."""
    for random in seeds(60_000, 500):
        table = a_table(random)
        entry, n = some_blocks(random, len(table))
        stats = collect(table.columns, None, entry, n)
        p = an_atom(random, table)
        if isinstance(p, CompareTerms) or not terms_of(p):
            continue
        term = next(iter(terms_of(p)))
        other = Compare(term, "<", a_literal(random, table, table.kinds[term]))
        for q in (p, Not(p), And((p, other)), Or((p, Not(other)))):
            assert possible_outcomes(q, stats).tolist() == seen(bits(q, table), entry, n).tolist(), predicate_text(q)


def test_a_noted_feature_is_repeated_exactly() -> None:
    """Whatever the query, a feature with the same meaning in other words answers it."""
    for random in seeds(70_000, 500):
        table = a_table(random)
        entry, n = some_blocks(random, len(table))
        p = a_predicate(random, table)
        stats = collect({}, {normalise(p): bits(p, table)}, entry, n)
        if not any(terms_of(a) for a in atoms_of(p)) and not any(a in table.opaque for a in atoms_of(p)):
            continue
        actual = seen(bits(p, table), entry, n)
        assert not (possible_outcomes(p, stats) & ~actual).any(), predicate_text(p)
        swapped = seen(bits(Not(p), table), entry, n)
        assert not (possible_outcomes(Not(p), stats) & ~swapped).any(), predicate_text(p)


def thousand_sorted(blocks: int = 10) -> Stats:
    numbers = np.arange(1000)
    columns: dict[Term, Any] = {
        col("n"): pa.array(numbers),
        col("s"): pa.array([f"{i:03d}" for i in numbers]),
        col("x"): pa.array(numbers / 10),
        col("later"): pa.array(numbers + 200),
        col("mod"): pa.array(numbers // 100 * 10 + numbers % 2 * 5),
    }
    return collect(columns, None, numbers * blocks // 1000, blocks)


@pytest.mark.parametrize(
    ("p", "opened"),
    [
        (Compare(col("n"), "<", lit(100)), 1),
        (Compare(col("n"), "<=", lit(100)), 2),
        (Compare(col("n"), "=", lit(555)), 1),
        (Not(Compare(col("n"), "<", lit(900))), 1),
        (And((Compare(col("n"), ">", lit(150)), Compare(col("n"), "<", lit(350)))), 3),
        (In(col("n"), (lit(5), lit(995), lit(5000))), 2),
        (Prefix(col("s"), "37"), 1),
        (And((Compare(col("x"), ">=", lit(20.0)), Compare(col("s"), "<", lit("25")))), 1),
        (Or((Compare(col("x"), "<", lit(5.0)), Prefix(col("s"), "9"))), 2),
        (CompareTerms(col("n"), ">", col("later")), 0),
        (CompareTerms(col("later"), "<=", col("n")), 0),
        (Compare(col("mod"), "=", lit(15)), 1),
        (Compare(col("mod"), "=", lit(12)), 0),
        (And((Compare(col("n"), "<", lit(100)), Compare(col("n"), ">", lit(200)))), 0),
    ],
    ids=lambda v: str(v) if isinstance(v, int) else predicate_text(v),
)
def test_sorted_blocks_open_no_more_than_they_must(p: Predicate, opened: int) -> None:
    stats = thousand_sorted()
    assert may_match(p, stats).sum() == opened


def test_random_ranges_open_only_the_blocks_they_touch() -> None:
    stats = thousand_sorted(blocks=100)
    for random in seeds(0, 200):
        low, width = random.randrange(1000), random.randrange(1, 300)
        p = And((Compare(col("n"), ">=", lit(low)), Compare(col("n"), "<", lit(low + width))))
        assert may_match(p, stats).sum() <= width // 10 + 2
        inside = must_match(p, stats).sum()
        assert inside >= min(width, 1000 - low) // 10 - 1
