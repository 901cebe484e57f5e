"""Queries with literals that no observed one has: like these, and from the whole column."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from hedgerow.core.learning.drawn_literals import _small_shift
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.synthetic_queries import redrawn, with_unseen_literals
from hedgerow.core.predicates.nodes import And, Compare, In, Like, atoms_of, col, lit
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.pruning.block_stats import T_BIT
from hedgerow.core.workload.queries import shape
from tests.core.learning.test_synthetic_queries import WORDS


def test_unseen_literals_are_of_the_column_and_of_no_observed_query() -> None:
    texts = [f"{n:04d} {WORDS[n % 10]} w{n}" for n in range(600)]
    table = pa.table({"key": list(range(0, 1200, 2)), "status": [n % 3 for n in range(600)], "note": texts})
    sample = Sample.of_table(table)
    keys = [Compare(col("key"), "=", lit(2 * n)) for n in range(10)]
    both = [And((Compare(col("key"), "=", lit(n)), Compare(col("status"), "=", lit(1)))) for n in (40, 60, 80)]
    ranges = [And((Compare(col("key"), ">=", lit(n)), Compare(col("key"), "<", lit(n + 10)))) for n in (100, 170, 400)]
    words = [Like(col("note"), f"%w{n}%") for n in (5, 7, 11)]
    alone = [Compare(col("status"), "=", lit(2))]
    observed = list(map(normalise, [*keys, *both, *ranges, *words, *alone]))
    unseen, drawn = with_unseen_literals(observed, sample)
    assert [shape(p) for p in unseen] == [shape(p) for p in observed]
    assert not set(map(predicate_text, observed[:-1])) & set(map(predicate_text, unseen))
    assert unseen[-1] == observed[-1]
    assert all(drawn.rows.evaluate(p).size == 600 for p in unseen)
    assert all((drawn.rows.evaluate(p) == T_BIT).any() for p in unseen[:10])
    assert with_unseen_literals(observed, sample)[0] == unseen


def test_unseen_literals_are_like_the_observed_ones() -> None:
    often = [n % 40 for n in range(4000)]  # each a hundred times; the other values once
    table = pa.table({"user": [*often, *range(1000, 2000)], "at": [float(n) for n in range(5000)]})
    popular = [Compare(col("user"), "=", lit(n)) for n in range(0, 20, 2)]
    recent = [Compare(col("at"), ">=", lit(4000.0 + 100 * n)) for n in range(10)]
    unseen, _ = with_unseen_literals([*popular, *recent], Sample.of_table(table))
    values = [p.literal.value for p in unseen if isinstance(p, Compare)]
    assert len(values) == 20 and sum(v < 40 for v in values[:10]) >= 6
    assert all(abs(v - p.literal.value) < 100 for v, p in zip(values[10:], recent, strict=True))
    assert min(values[10:]) >= 4000 and max(values[10:]) <= 4900


def test_unseen_bounds_stay_among_the_observed_ones() -> None:
    table = pa.table({"status": [200, 404, 500, 503] * 100, "day": list(range(400))})
    errors = [Compare(col("status"), ">=", lit(n)) for n in (500, 503, 500, 503)]
    days = [Compare(col("day"), "<", lit(n)) for n in (390, 394, 399)]
    unseen, _ = with_unseen_literals([*errors, *days], Sample.of_table(table))
    assert set(unseen[:4]) <= set(errors)  # there is no other bound
    assert not set(unseen[4:]) & set(days)
    assert all(isinstance(p, Compare) and 390 <= p.literal.value <= 399 for p in unseen[4:])


def test_the_next_values_of_a_column_of_few_may_be_observed_ones() -> None:
    sample = Sample.of_table(pa.table({"status": [1, 2, 3] * 100, "day": list(range(300))}))
    single = [Compare(col("status"), "=", lit(n)) for n in (1, 1, 1, 2)]
    both = [
        And((Compare(col("status"), "=", lit(n)), Compare(col("day"), "<", lit(day))))
        for n, day in enumerate((50, 100, 190))
    ]
    unseen, _ = with_unseen_literals([*single, *map(normalise, both)], sample, rounds=20)
    statuses = [p.literal.value for p in unseen if isinstance(p, Compare)]
    assert 30 < statuses.count(1) < 70 and set(statuses) == {1, 2, 3}  # 1 is three of four observed ones
    days = {q.literal.value for p in unseen if isinstance(p, And) for q in p.children if isinstance(q, Compare)}
    assert days - {0, 1, 2} and not days & {50, 100, 190}  # the days are still unseen


def test_each_round_has_other_literals_in_the_same_order() -> None:
    sample = Sample.of_table(pa.table({"id": list(range(5000)), "kind": [n % 7 for n in range(5000)]}))
    observed = [Compare(col("id"), "=", lit(n)) for n in (10, 900, 4000)]
    kinds = [Compare(col("kind"), "=", lit(3))]
    unseen, _ = with_unseen_literals([*observed, *kinds], sample, rounds=5)
    assert len(unseen) == 20 and unseen[3::4] == kinds * 5
    ids = [p for i, p in enumerate(unseen) if i % 4 < 3]
    assert len(set(ids)) > 12 and not set(ids) & set(observed)


def test_unseen_ids_come_from_everywhere() -> None:
    """Ids are rarely in the sample. The others are no smaller than those: bounds of files would skip most of these."""
    ids = [f"{i:05}" for i in range(0, 100_000, 50)]
    sample = Sample.of_table(pa.table({"id": ids}))
    observed = [Compare(col("id"), "=", lit(f"{i:05}")) for i in range(1, 100_000, 5_000)]
    unseen, _ = with_unseen_literals(observed, sample)
    drawn = sorted(p.literal.value for p in unseen if isinstance(p, Compare))
    assert len(set(drawn)) > 15 and set(drawn) <= set(ids)
    assert drawn[0] < "25000" and drawn[-1] > "75000"


def test_a_single_look_up_has_other_values_next_time() -> None:
    sample = Sample.of_table(pa.table({"id": [f"{i:05}" for i in range(2000)], "kind": ["a", "b"] * 1000}))
    literals = tuple(lit(f"{i:05}") for i in (7, 700, 1700))
    observed = normalise(And((In(col("id"), literals), Compare(col("kind"), "=", lit("a")))))
    ((unseen,), _) = with_unseen_literals([observed], sample)
    assert isinstance(unseen, And) and Compare(col("kind"), "=", lit("a")) in unseen.children
    (values,) = (p.literals for p in unseen.children if isinstance(p, In))
    assert len(values) == 3 and not set(values) & set(literals)
    assert redrawn([observed], [1.0], sample).predicates == (observed,)  # learning has nothing to tell them by


def test_literals_that_nearly_always_recur_do_so_together() -> None:
    """Years, each from its first day to its last, and a number that is always new."""
    sample = Sample.of_table(pa.table({"day": list(range(3650)), "id": list(range(3650))}))

    def year(n: int, key: int) -> And:
        bounds = Compare(col("day"), ">=", lit(365 * n)), Compare(col("day"), "<", lit(365 * n + 365))
        return And((*bounds, Compare(col("id"), "<", lit(key))))

    observed = [normalise(year(n % 5, 1000 + n * n)) for n in range(20)]
    unseen, _ = with_unseen_literals(observed, sample, rounds=10)
    asked = [{a.op + a.term.path[0]: a.literal.value for a in atoms_of(p) if isinstance(a, Compare)} for p in unseen]
    assert {q[">=day"] for q in asked} == {365 * n for n in range(5)}
    assert all(q["<day"] == q[">=day"] + 365 for q in asked)
    assert not {q["<id"] for q in asked} & {1000 + n * n for n in range(20)}
    few = [normalise(year(n % 5, 5)) for n in range(6)]
    assert not {predicate_text(p) for p in with_unseen_literals(few, sample)[0]} & set(map(predicate_text, few))


def test_neighbours_in_a_list_stay_neighbours() -> None:
    sample = Sample.of_table(pa.table({"app": [f"app{n // 5:03d}.{n % 5}" for n in range(1000)]}))
    near = [In(col("app"), tuple(lit(f"app{n:03d}.{k}") for k in range(5))) for n in (7, 30, 90, 120)]
    far = [In(col("app"), tuple(lit(f"app{n + 40 * k:03d}.1") for k in range(5))) for n in (1, 5, 9)]
    unseen, _ = with_unseen_literals([*near, *far], sample, rounds=10)
    spans = []
    for p in unseen:
        places = [sample.rows.ranked[col("app")].values.index(a.value) for a in p.literals]  # type: ignore[union-attr]
        assert len(places) == 5
        spans.append(max(places) - min(places))
    assert all(span == 4 for i, span in enumerate(spans) if i % 7 < 4)
    assert min(span for i, span in enumerate(spans) if i % 7 >= 4) > 100


@pytest.mark.parametrize("unit", [1, 1_000_000])
def test_shifts_are_small_but_never_none(unit: int) -> None:
    """Times are numbers of microseconds: there are too many shifts for a list."""
    observed = [n * n * 86_400 * unit + n for n in range(1, 40)]
    shifts = [_small_shift(value, observed, Random(i)) for i, value in enumerate(observed)]
    most = (max(observed) - min(observed)) // len(observed)
    assert all(0 < abs(shift) <= most for shift in shifts)
    assert all(min(observed) <= v + s <= max(observed) for v, s in zip(observed, shifts, strict=True))
    assert {_small_shift(2, [1, 2, 3], Random(seed)) for seed in range(20)} == {-1, 1}
    assert {_small_shift(1, [1, 2, 3], Random(seed)) for seed in range(20)} == {1}
    assert _small_shift(7, [7], Random(0)) == 0


def test_both_bounds_of_a_range_recur_or_none() -> None:
    """Each lower bound comes with two upper ones."""
    sample = Sample.of_table(pa.table({"at": list(range(10_000))}))
    widths = {500, 6000}
    observed = [
        And((Compare(col("at"), ">=", lit(97 * n)), Compare(col("at"), "<", lit(97 * n + width))))
        for n in range(20)
        for width in widths
    ]
    unseen, _ = with_unseen_literals(list(map(normalise, observed)), sample, rounds=3)
    bounds = [sorted(a.literal.value for a in atoms_of(p) if isinstance(a, Compare)) for p in unseen]
    assert {high - low for low, high in bounds} == widths


def test_values_of_several_columns_meet_in_a_row() -> None:
    """Each build is of one branch and of one day: drawn by themselves, they would meet in one row of a thousand."""
    build = [i // 20 for i in range(20_000)]
    columns = {"build": build, "branch": [f"b{b % 97:02d}" for b in build], "at": [b // 5 for b in build]}
    sample = Sample.of_table(pa.table(columns))

    def asked(b: int) -> And:
        bounds = Compare(col("at"), ">=", lit(b // 5 - 1)), Compare(col("at"), "<", lit(b // 5 + 2))
        builds = In(col("build"), (lit(b), lit(b + 1), lit(b + 2)))
        return And((*bounds, builds, Compare(col("branch"), "=", lit(f"b{b % 97:02d}"))))

    observed = [normalise(asked(b)) for b in range(7, 900, 31)]
    unseen, drawn = with_unseen_literals(observed, sample, rounds=10)
    has_match = [bool((drawn.rows.evaluate(p) == T_BIT).any()) for p in unseen]
    assert sum(has_match) > 0.95 * len(has_match)
    assert len({predicate_text(p) for p in unseen}) > 0.6 * len(unseen)
    assert not set(map(predicate_text, unseen)) & set(map(predicate_text, observed))


def test_values_meet_in_a_row_also_where_no_row_of_the_sample_matches() -> None:
    """A condition that holds on no row of the sample does not make the build and its branch independent."""
    build = [i // 20 for i in range(20_000)]
    columns = {"build": build, "branch": [f"b{b % 97:02d}" for b in build], "rare": [0] * 20_000, "any": build[::-1]}
    sample = Sample.of_table(pa.table(columns))

    def of_build(b: int) -> And:
        return And((Compare(col("build"), "=", lit(b)), Compare(col("branch"), "=", lit(f"b{b % 97:02d}"))))

    def asked(b: int) -> And:
        others = Compare(col("rare"), "=", lit(1)), Compare(col("any"), "=", lit(b * 7 % 1000))
        return And((*of_build(b).children, *others))

    unseen, drawn = with_unseen_literals([normalise(asked(b)) for b in range(7, 900, 31)], sample, rounds=3)
    values = [{a.term: a.literal.value for a in atoms_of(p) if isinstance(a, Compare)} for p in unseen]
    assert {v[col("rare")] for v in values} == {1}
    assert all(v[col("branch")] == f"b{v[col('build')] % 97:02d}" for v in values)
    assert sum(v[col("any")] == v[col("build")] * 7 % 1000 for v in values) < 0.1 * len(values)
    assert not any((drawn.rows.evaluate(p) == T_BIT).any() for p in unseen)
