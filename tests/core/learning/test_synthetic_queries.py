"""Tomorrow's queries: what may change in a query and what has to stay."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from math import gcd, inf, isinf
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.core.errors import LayoutError
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.synthetic_queries import (
    LEAST_OBSERVED_SHARE,
    recurrence_of,
    redrawn,
    searched_columns,
)
from hedgerow.core.predicates.nodes import (
    TRUE,
    And,
    Compare,
    CompareTerms,
    Expr,
    In,
    IsNull,
    Like,
    Not,
    Opaque,
    Or,
    Predicate,
    Prefix,
    atoms_of,
    col,
    lit,
)
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.predicates.step_functions import stepwise
from hedgerow.core.pruning.block_stats import T_BIT
from hedgerow.core.workload.queries import shape

randoms = st.integers(0, 2**32).map(Random)
WORDS = ["almond", "azure", "beige", "blue", "coral", "cream", "green", "ivory", "khaki", "red"]
TIMES = 3


def a_table(rows: int = 200) -> pa.Table:
    random = Random(0)

    def some(values: Any) -> list[Any]:
        return [None if random.random() < 0.1 else next(values) for _ in range(rows)]

    day = date(1995, 1, 1)
    return pa.table(
        {
            "city": pa.array(some(iter(lambda: random.choice("ABCDEFGHIJKL") + "town", None))),
            "port": pa.array(some(iter(lambda: random.choice("ABCDEFGHIJKL") + "town", None))),
            "key": pa.array(some(iter(lambda: 3 * random.randint(0, 5000), None)), pa.int64()),
            "price": pa.array(
                some(iter(lambda: Decimal(random.randint(0, 9999)).scaleb(-2), None)), pa.decimal128(9, 2)
            ),
            "ratio": pa.array(some(iter(random.random, None)), pa.float64()),
            "sent": pa.array(some(iter(lambda: day + timedelta(random.randint(0, 700)), None))),
            "due": pa.array(some(iter(lambda: day + timedelta(random.randint(0, 700)), None))),
            "at": pa.array(some(iter(lambda: datetime(1995, 1, random.randint(1, 28)), None)), pa.timestamp("us")),
            "open": pa.array(some(iter(lambda: random.random() < 0.3, None)), pa.bool_()),
            "note": pa.array(some(iter(lambda: " ".join(random.sample(WORDS, 3)), None))),
        }
    )


TABLE = a_table()
SAMPLE = Sample.of_table(TABLE)
VALUES = {name: set(TABLE[name].to_pylist()) - {None} for name in TABLE.column_names}


def like(word: str, column: str = "note") -> Like:
    return Like(col(column), f"%{word}%")


def about(p: Predicate, name: str) -> list[Any]:
    """The atoms of one column, in reading order."""
    listed = (a for a in atoms_of(p) if not isinstance(a, CompareTerms))
    return [a for a in listed if a.term == col(name)]


def bound(p: Predicate, name: str, op: str) -> Any:
    (found,) = (a.literal.value for a in about(p, name) if isinstance(a, Compare) and a.op == op)
    return found


def draws(queries: Sequence[Predicate], **given: Any) -> list[list[Predicate]]:
    """By query of one shape, what was drawn from it."""
    given = {"times": TIMES, "recurrence": 0.0, **given}
    found, *_ = redrawn(queries, [1.0] * len(queries), given.pop("sample", SAMPLE), **given)
    new, n = found[len(queries) :], given["times"]
    return [list(new[i * n : (i + 1) * n]) for i in range(len(queries))]


# --- any shape ------------------------------------------------------------------------------------

MAKERS = {
    "city": lambda r: Compare(col("city"), "=", lit(r.choice(sorted(VALUES["city"])))),
    "port": lambda r: In(col("port"), tuple(lit(v) for v in r.sample(sorted(VALUES["port"]), 2))),
    "price": lambda r: Compare(col("price"), "<", lit(Decimal(r.randint(100, 900) * 10).scaleb(-2))),
    "ratio": lambda r: Compare(col("ratio"), ">=", lit(r.random())),
    "sent": lambda r: Compare(col("sent"), ">=", lit(9200 + 7 * r.randint(0, 50), "date")),
    "at": lambda r: Compare(col("at"), ">", lit(datetime(1995, 1, r.randint(1, 28)))),
    "open": lambda r: Compare(col("open"), "=", lit(r.random() < 0.5)),
    "note": lambda r: like(r.choice(WORDS)),
}


def one_shape(random: Random) -> tuple[Predicate, ...]:
    """Some queries that differ in their literals, and not in all of those; NOT and OR among them."""
    names = random.sample(sorted(MAKERS), random.randint(1, 5))
    fixed = {name: MAKERS[name](random) for name in names if random.random() < 0.3}
    either = random.random() < 0.3
    found = []
    for _ in range(random.randint(2, 6)):
        parts = [fixed.get(name) or MAKERS[name](random) for name in names]
        parts = [Not(p) if isinstance(p, Like) and either else p for p in parts]
        random.shuffle(parts)
        whole: Predicate = Or(tuple(parts)) if either else And(tuple(parts))
        found.append(And((whole, IsNull(col("due")), CompareTerms(col("key"), "<", col("size")))))
    return tuple(found)


@given(random=randoms)
def test_weights_keep_their_sum_and_queries_stay(random: Random) -> None:
    queries = (*one_shape(random), *one_shape(random), TRUE)
    weights = tuple(random.uniform(0.1, 5) for _ in queries)
    recurrence: Any = random.choice(("auto", 0.0, 0.4, 0.99))
    found, shared, *_ = redrawn(queries, weights, SAMPLE, recurrence, seed=3)
    assert sum(shared) == pytest.approx(sum(weights))
    assert min(shared) > 0
    assert {predicate_text(normalise(q)) for q in queries} <= {predicate_text(normalise(q)) for q in found}
    own = sum(w for q, w in zip(found, shared, strict=True) if normalise(q) in set(map(normalise, queries)))
    assert own >= LEAST_OBSERVED_SHARE * sum(weights) - 1e-9


@given(random=randoms)
def test_what_is_drawn_has_the_shape_and_constants_of_its_origin(random: Random) -> None:
    queries = one_shape(random)
    groups = draws(queries)
    for query, drawn in zip(queries, groups, strict=True):
        for p in drawn:
            assert shape(p) == shape(normalise(query))
            for name in VALUES:
                if len({tuple(map(predicate_text, about(q, name))) for q in queries}) == 1:
                    assert about(p, name) == about(normalise(query), name)


@given(random=randoms)
def test_drawn_values_are_values_of_the_column(random: Random) -> None:
    for p in (p for drawn in draws(one_shape(random)) for p in drawn):
        for atom in atoms_of(p):
            match atom:
                case Compare(term, "=", literal):
                    assert literal.value in VALUES[text_of(term)]
                case In(term, literals):
                    assert {x.value for x in literals} <= VALUES[text_of(term)]
                case Compare(term, "<", literal) if term == col("price"):
                    assert literal.value.as_tuple().exponent >= -2
                case Like(pattern=pattern):
                    assert pattern.strip("%") in WORDS


def text_of(term: Any) -> str:
    return ".".join(term.path)


@given(random=randoms)
def test_seed_decides(random: Random) -> None:
    queries = one_shape(random)
    weights = [1.0] * len(queries)
    first, again = (redrawn(queries, weights, SAMPLE, 0.0, seed=5) for _ in range(2))
    assert first[:2] == again[:2]
    assert list(first[2].rows.truths) == list(again[2].rows.truths)


def test_other_seeds_draw_others() -> None:
    queries = [Compare(col("city"), "=", lit(city)) for city in sorted(VALUES["city"])]
    assert draws(queries, seed=0) != draws(queries, seed=1)


@given(random=randoms)
def test_recurrence_1_changes_nothing(random: Random) -> None:
    queries = one_shape(random)
    found, weights, sample, _ = redrawn(queries, [2.0] * len(queries), SAMPLE, 1)
    assert found == queries
    assert weights == (2.0,) * len(queries)
    assert sample is SAMPLE


# --- how much the drawn ones weigh ----------------------------------------------------------------


def test_shapes_are_judged_one_by_one() -> None:
    dashboard = [Compare(col("city"), "=", lit(c)) for c in ("Atown", "Btown")] * 20
    analyst = [Compare(col("key"), "<", lit(k)) for k in range(40)]
    mixed = [q for pair in zip(dashboard, analyst, strict=True) for q in pair]
    found, weights, *_ = redrawn(mixed, [1.0] * 80, SAMPLE, times=1)
    # by shape: those seen, then those drawn
    assert found[:40] == tuple(dashboard)
    assert found[80:120] == tuple(analyst)
    assert sum(weights[:40]) > 0.9 * 40
    assert sum(weights[80:120]) == pytest.approx(LEAST_OBSERVED_SHARE * 40)


@given(asked=st.lists(st.integers(0, 5).map(lambda v: (v,)), min_size=1))
def test_recurrence_is_a_chance(asked: list[tuple[int]]) -> None:
    assert 0 <= recurrence_of(asked) < 1
    assert (recurrence_of(asked) == 0) is (len(set(asked)) == len(asked))
    assert recurrence_of([*asked, asked[0]]) >= recurrence_of(asked)


def test_a_single_query_of_its_shape_is_not_redrawn() -> None:
    queries = [Compare(col("city"), "=", lit("Atown")), Compare(col("key"), "<", lit(7)), like("red")]
    found, weights, sample, _ = redrawn(queries, [1.0, 2.0, 3.0], SAMPLE, 0.0)
    assert found == tuple(queries)
    assert weights == (1.0, 2.0, 3.0)
    assert sample is SAMPLE
    assert redrawn(queries[:1] * 5, [1.0] * 5, SAMPLE, 0.0)[0] == tuple(queries[:1] * 5)


# --- ranges ---------------------------------------------------------------------------------------


@given(days=st.lists(st.integers(9000, 9700), min_size=2, max_size=8, unique=True), seed=st.integers(0, 99))
def test_dates_of_a_query_move_together(days: list[int], seed: int) -> None:
    def ask(day: int) -> Predicate:
        sent = Compare(col("sent"), ">=", lit(day, "date")), Compare(col("sent"), "<", lit(day + 7, "date"))
        return And((*sent, Compare(col("due"), ">", lit(day + 30, "date"))))

    step = gcd(*(day - min(days) for day in days))
    beyond = (max(days) - min(days)) / len(days)
    newest = max((v - date(1970, 1, 1)).days for v in VALUES["sent"])
    for day, drawn in zip(days, draws([ask(day) for day in days], seed=seed), strict=True):
        for p in drawn:
            shift = bound(p, "sent", ">=") - day
            assert bound(p, "sent", "<") == day + 7 + shift
            assert bound(p, "due", ">") == day + 30 + shift
            assert min(days) - beyond <= day + shift <= max(max(days) + beyond, newest + step)
            assert (day + shift - min(days)) % step == 0


@given(length=st.integers(1, 40), is_open=st.booleans(), seed=st.integers(0, 99))
def test_spans_of_time_move_to_rows_that_are_newer(length: int, is_open: bool, seed: int) -> None:
    """In proportion to these rows, for later queries ask for them; a bound alone tells nothing about what comes later."""
    sample = Sample.of_table(pa.table({"sent": pa.array([date(2026, 1, 1) + timedelta(i // 10) for i in range(400)])}))
    first, op = (date(2026, 1, 1) - date(1970, 1, 1)).days, "<" if is_open else "<="
    ends = [first + i for i in (4, 7, 10)]

    def ask(end: int, with_begin: bool) -> Predicate:
        last = Compare(col("sent"), op, lit(end, "date"))
        return And((Compare(col("sent"), ">=", lit(end - length, "date")), last)) if with_begin else last

    spans = draws([ask(end, True) for end in ends], sample=sample, seed=seed, times=40)
    moved = []
    for end, drawn in zip(ends, spans, strict=True):
        for p in drawn:
            assert bound(p, "sent", op) - bound(p, "sent", ">=") == length
            assert (bound(p, "sent", op) - end) % 3 == 0 and bound(p, "sent", op) <= first + 43
            moved.append(bound(p, "sent", op) > ends[-1] + 3)
    assert 0.5 < np.mean(moved) < 0.9  # 72 or 73 % of the rows are newer, some by less than a step
    for drawn in draws([ask(end, False) for end in ends], sample=sample, seed=seed, times=40):
        assert all(bound(p, "sent", op) <= ends[-1] + 3 for p in drawn)


def test_spans_that_never_move_stay_apart_from_those_that_do() -> None:
    """Only the end of one varies, and nothing of the other: neither moves to newer rows, and no draw is lost."""
    sample = Sample.of_table(pa.table({"sent": pa.array([date(2026, 1, 1) + timedelta(i) for i in range(400)])}))
    first = (date(2026, 1, 1) - date(1970, 1, 1)).days
    for vary in (0, 1):
        queries = []
        for i in (0, 5, 9):
            begin, end = first + i * (1 - vary), first + 20 + i * vary
            queries.append(
                And((Compare(col("sent"), ">=", lit(begin, "date")), Compare(col("sent"), "<", lit(end, "date"))))
            )
        for drawn in draws(queries, sample=sample, times=20):
            assert all(bound(p, "sent", "<") <= first + 20 + 9 + 3 for p in drawn)


def test_days_become_those_of_newer_rows() -> None:
    for days in (1, 3):
        times = [date(2026, 2, 1) + timedelta(i) for i in range(days)]
        sample = Sample.of_table(pa.table({"sent": pa.array(times)}))
        queries = [Compare(col("sent"), "=", lit(date(2026, 1, day))) for day in (5, 5, 5, 6)]
        drawn = {bound(p, "sent", "=") for some in draws(queries, sample=sample, times=20) for p in some}
        assert drawn == {(time - date(1970, 1, 1)).days for time in times}


@given(lows=st.lists(st.integers(0, 500), min_size=2, max_size=8, unique=True))
def test_bounds_of_one_column_move_together_and_keep_their_scale(lows: list[int]) -> None:
    def ask(low: int) -> Predicate:
        price = Decimal(low).scaleb(-1)
        found = Compare(col("price"), ">=", lit(price)), Compare(col("price"), "<=", lit(price + Decimal("2.5")))
        return And(
            (*found, Compare(col("ratio"), "<", lit(low / 1000)), Compare(col("ratio"), ">", lit(low / 1000 - 1)))
        )

    for cached in (normalise, stepwise):  # equal predicates share what is cached, and another test may have asked of 5
        cached.cache_clear()
    for drawn in draws([ask(low) for low in lows]):
        for p in drawn:
            low = bound(p, "price", ">=")
            assert bound(p, "price", "<=") == low + Decimal("2.5")
            assert low.as_tuple().exponent == -1
            assert bound(p, "ratio", "<") - bound(p, "ratio", ">") == pytest.approx(1)


def test_columns_of_numbers_move_apart() -> None:
    queries = [
        And((Compare(col("key"), "<", lit(k)), Compare(col("ratio"), "<", lit(k / 1e4)))) for k in range(0, 9000, 90)
    ]
    moves = {
        (bound(p, "key", "<") - bound(q, "key", "<") > 0, bound(p, "ratio", "<") - bound(q, "ratio", "<") > 0)
        for q, drawn in zip(queries, draws(queries), strict=True)
        for p in drawn
    }
    assert len(moves) == 4


def test_infinite_bounds_stay_and_their_column_too() -> None:
    queries = [Compare(col("ratio"), "<", lit(v)) for v in (0.5, inf, -inf, 0.25)]
    for query, drawn in zip(queries, draws(queries), strict=True):
        assert all(p == query for p in drawn)
        assert isinf(bound(query, "ratio", "<")) is (query in queries[1:3])


# --- other values ---------------------------------------------------------------------------------


def test_equal_literals_of_a_query_stay_equal() -> None:
    """n1 = A AND n2 = B OR n1 = B AND n2 = A, the nations of TPC-H's query 7."""

    def ask(a: str, b: str) -> Predicate:
        def both(one: str, two: str) -> Predicate:
            return And((Compare(col("city"), "=", lit(one)), Compare(col("port"), "=", lit(two))))

        return Or((both(a, b), both(b, a)))

    towns = sorted(VALUES["city"])
    for drawn in draws([ask(*pair) for pair in pairwise(towns)]):
        for p in drawn:
            assert isinstance(p, Or)
            (a, b), (c, d) = ([kid.literal.value for kid in both.children] for both in p.children)
            assert (a, b) == (d, c)
            assert a != b


def test_equality_on_a_column_of_many_values_becomes_a_narrow_range() -> None:
    keys = sorted(VALUES["key"])
    assert len(keys) > 64
    queries = [Compare(col("key"), "=", lit(k)) for k in keys[::9]]
    for p in (p for drawn in draws(queries) for p in drawn):
        low = bound(p, "key", ">=")
        assert low in VALUES["key"]
        if low != keys[-1]:
            high = bound(p, "key", "<")
            assert sum(low <= key < high for key in keys) == 1


def test_the_neighbour_is_not_the_value_again() -> None:
    """Where x >= 5 AND x < 6 would be read as x = 5, the range takes one value more."""
    sample = Sample.of_table(pa.table({"n": list(range(100))}))
    queries = [Compare(col("n"), "=", lit(k)) for k in range(0, 100, 7)]
    for p in (p for drawn in draws(queries, sample=sample) for p in drawn):
        assert all(a.op in ("<", ">=") for a in about(p, "n"))
        low = bound(p, "n", ">=")
        if low < 98:
            assert bound(p, "n", "<") == low + 2


def test_long_in_lists_on_many_values_stay_lists() -> None:
    random = Random(0)
    queries = [In(col("key"), tuple(map(lit, random.sample(sorted(VALUES["key"]), 5)))) for _ in range(5)]
    for p in (p for drawn in draws(queries) for p in drawn):
        assert isinstance(p, In)
        assert {x.value for x in p.literals} <= VALUES["key"]
    few = [In(col("key"), tuple(map(lit, random.sample(sorted(VALUES["key"]), 2)))) for _ in range(5)]
    assert all(isinstance(p, Or | Compare | And) for drawn in draws(few) for p in drawn)


def test_prefixes_are_those_of_the_column() -> None:
    queries = [Prefix(col("city"), town[:1]) for town in sorted(VALUES["city"])]
    starts = {town[:1] for town in VALUES["city"]}
    found = [p for drawn in draws(queries) for p in drawn]
    assert all(isinstance(p, Prefix) and p.prefix in starts for p in found)
    assert len(set(found)) > 2


def test_prefixes_of_many_values_are_ranges() -> None:
    """As an equality there: an index has their bounds."""
    queries = [Prefix(col("note"), word[:2]) for word in WORDS]
    starts = {note[:2] for note in VALUES["note"]}
    found = [p for drawn in draws(queries) for p in drawn]
    assert len(set(found)) > 2
    for p in found:
        low = bound(p, "note", ">=")
        assert low in starts and not any(isinstance(a, Prefix) for a in atoms_of(p))
        holds = SAMPLE.rows.evaluate(p) == T_BIT
        assert holds.tolist() == (SAMPLE.rows.evaluate(Prefix(col("note"), str(low))) == T_BIT).tolist()


# --- LIKE -----------------------------------------------------------------------------------------


def test_like_is_true_where_the_word_is() -> None:
    queries = [like("green"), like("red"), like("nowhere")]
    truths = {q: np.ones(len(SAMPLE), np.uint8) for q in queries[:1]}
    given = Sample.of_table(TABLE, truths=truths)
    found, _, sample, _ = redrawn(queries, [1.0] * 3, given, 0.0, times=20)
    drawn = {p for p in found if p not in queries}
    assert len(drawn) >= 5
    assert searched_columns(found) == [col("note")]
    for p in drawn:
        word = p.pattern.strip("%")
        notes = TABLE["note"].to_pylist()
        assert sample.rows.evaluate(p).tolist() == [4 if v is None else 2 if word in v else 1 for v in notes]
        assert sample.selectivity(p) is not None
    assert sample.rows.evaluate(like("green")).tolist() == [1] * len(SAMPLE)  # what Spark said stays
    assert not any(p in given.rows.truths for p in drawn)


@pytest.mark.parametrize(
    "queries",
    [
        [Like(Expr("lower(note)", (col("note"),)), f"%{word}%") for word in "ab"],
        [like(words) for words in ("a b", "c d")],
        [Like(col("note"), f"{word}%") for word in "ab"],
        [like(word, "key") for word in "12"],  # no strings
        [like(word, "gone") for word in "ab"],  # not in the sample
        [Opaque(f"note RLIKE '{word}'", (col("note"),)) for word in "ab"],
    ],
)
def test_other_conditions_on_texts_stay(queries: list[Predicate]) -> None:
    found, _, sample, _ = redrawn(queries, [1.0, 1.0], SAMPLE, 0.0)
    assert set(found) == set(queries)
    assert sample is SAMPLE


# --- odd corners ----------------------------------------------------------------------------------


def test_nothing_asked() -> None:
    assert redrawn((), (), SAMPLE) == ((), (), SAMPLE, 1.0)


GONE = col("gone")


@pytest.mark.parametrize(
    "queries",
    [
        [Compare(GONE, "=", lit("a")), Compare(GONE, "=", lit("z"))],
        [In(GONE, (lit("a"), lit("b"))), In(GONE, (lit("y"), lit("z")))],
        [Prefix(GONE, "a"), Prefix(GONE, "z")],
    ],
)
def test_columns_that_the_sample_lacks_stay(queries: list[Predicate]) -> None:
    assert [set(drawn) for drawn in draws(queries)] == [{q} for q in queries]


def test_bounds_need_no_column() -> None:
    queries = [Compare(GONE, "<", lit(v)) for v in (1, 2, 50)]
    assert {p for drawn in draws(queries) for p in drawn} - set(queries)


def test_columns_of_one_value_or_none() -> None:
    sample = Sample.of_table(pa.table({"s": ["a"] * 3, "n": pa.array([None] * 3, pa.string())}))
    for name in "sn":
        queries = [Compare(col(name), "=", lit(v)) for v in "ab"]
        assert [set(drawn) for drawn in draws(queries, sample=sample)] == [{queries[0]}, {queries[1]}]
    words = [like("a", "n"), like("b", "n")]
    assert set(redrawn(words, [1.0, 1.0], sample, 0.0)[0]) == set(words)


@pytest.mark.parametrize("recurrence", [-0.1, 1.5, float("nan")])
def test_a_chance_is_between_0_and_1(recurrence: float) -> None:
    with pytest.raises(LayoutError, match="recurrence must be a number between 0 and 1"):
        redrawn((), (), SAMPLE, recurrence)
