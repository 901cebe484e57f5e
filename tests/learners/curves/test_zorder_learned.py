"""Z-order with learned bits: the paper's definitions bit by bit, its Fig. 1, and that learning never loses."""

from __future__ import annotations

import re
import sys
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.core import progress
from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.curve import Axis, CurveLayout, keys_of
from hedgerow.core.learning.curve_order import KEY_BITS, axis_of, curve_layout
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.score_layout import score_layout
from hedgerow.core.predicates.nodes import And, Compare, Predicate, col, lit
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.core.workload.queries import Workload
from hedgerow.learners.curves.hilbert import Hilbert
from hedgerow.learners.curves.range import Range
from hedgerow.learners.curves.scan_cost import Zones
from hedgerow.learners.curves.zorder import ZOrder
from hedgerow.learners.curves.zorder_learned import ZOrderLearned, interleaved, rounded, shortened

x, y, z = col("x"), col("y"), col("z")
GRID = pa.table({"x": [p[0] for p in product(range(8), repeat=2)], "y": [p[1] for p in product(range(8), repeat=2)]})
FIG_1 = And((Compare(x, ">=", lit(1)), Compare(x, "<=", lit(2)), Compare(y, ">=", lit(0)), Compare(y, "<=", lit(3))))
allocations = st.lists(st.integers(0, 20), min_size=1, max_size=5).filter(lambda a: 0 < sum(a) <= KEY_BITS)


def between(term: object, low: int, high: int) -> tuple[Predicate, ...]:
    return Compare(term, ">=", lit(low)), Compare(term, "<", lit(high))  # type: ignore[arg-type]


def slow_key(values: list[str], allocation: list[int]) -> str:
    """Definition 2 with texts of digits: in turn, floor(v / m) digits of each value, or all that are left."""
    m = min(v for v in allocation if v > 0)
    left = [digits[:v] for digits, v in zip(values, allocation, strict=True)]
    key = ""
    while any(left):
        for i, v in enumerate(allocation):
            key, left[i] = key + left[i][: v // m], left[i][v // m :]
    return key


@pytest.mark.parametrize("learner", [ZOrder(("x",), axes="values"), ZOrderLearned(("x",), "bayes", "values", 5)])
def test_bits_of_values(learner: ZOrder | ZOrderLearned) -> None:
    """The rank of a value is its first bits, however many rows have it."""
    values = [0] * 900 + [1023, 17, 512, 300, 511]
    problem = Problem.build(Sample.of_table(pa.table({"x": values})), between(x, 0, 600), 10)
    axis = learner.fit(problem).axes[0]
    assert isinstance(axis, Axis)
    width = 1024 >> axis.bits
    assert axis.edges == tuple(range(width, 1024, width))


@pytest.mark.parametrize(
    ("column", "edges"),
    [
        (pa.array([0.0, 8.0, 1.0, None]), (0.0, 8 / 3, 16 / 3)),  # NULL has rank 0, the least value 1
        (pa.array(["a", "b", "c", "d"]), ("b", "c", "d")),  # texts have ranks only
        (pa.array([float("inf"), 1.0, 2.0, 3.0]), (2.0, 3.0, float("inf"))),
        (pa.array([5, 5, 5]), ()),
    ],
)
def test_values_that_have_no_width(column: pa.Array, edges: tuple[Any, ...]) -> None:
    problem = Problem.build(Sample.of_table(pa.table({"x": column})), (), 1)
    found = axis_of(problem, x, 2, "values").edges
    assert found[: len(edges)] == edges


def test_other_axes_are_refused() -> None:
    problem = Problem.build(Sample.of_table(GRID), (FIG_1,), 4)
    for learner in (ZOrder(axes="bits"), ZOrderLearned(axes="bits")):  # type: ignore[arg-type]
        with pytest.raises(LayoutError, match="axes must be ranks or values"):
            learner.fit(problem)


@given(st.data(), allocations)
def test_keys_follow_the_definition(data: st.DataObject, allocation: list[int]) -> None:
    rows = data.draw(st.lists(st.tuples(*(st.integers(0, 2**20 - 1) for _ in allocation)), min_size=1, max_size=5))
    ranks = [np.array(column, np.uint64) for column in zip(*rows, strict=True)]
    found = keys_of(ranks, [20] * len(allocation), interleaved(allocation)).tolist()
    assert found == [int(slow_key([f"{v:020b}" for v in row], allocation), 2) for row in rows]


@pytest.mark.parametrize(("bits", "pattern", "opened"), [((2, 2), (0, 1, 0, 1), 4), ((3, 1), (0, 0, 0, 1), 2)])
def test_figure_1(bits: tuple[int, int], pattern: tuple[int, ...], opened: int) -> None:
    """An 8 x 8 grid in blocks of four records: four are scanned with equal bits, two with unequal ones."""
    sample = Sample.of_table(GRID)
    assert interleaved(bits) == pattern
    axes = [Axis(term, "int", tuple(range(1, 8))) for term in (x, y)]
    layout = curve_layout(Problem.build(sample, (FIG_1,), 4), axes, pattern)
    assert np.bincount(layout.assign(sample.rows)).tolist() == [4] * 16
    assert score_layout(layout, sample, Workload.of("t", [FIG_1]).queries, "t").blocks_read == opened / 16


@pytest.mark.parametrize("search", ["order", "bayes"])
def test_figure_1_is_learned(search: str) -> None:
    sample = Sample.of_table(GRID)
    layout = ZOrderLearned(search=search, iterations=30).fit(Problem.build(sample, (FIG_1,), 4))  # type: ignore[arg-type]
    assert score_layout(layout, sample, Workload.of("t", [FIG_1]).queries, "t").blocks_read == 2 / 16


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.integers(1, 64))
def test_rounding_keeps_the_sum(shares: list[float], total: int) -> None:
    bits = rounded(shares, total)
    assert sum(bits) == total
    whole = sum(shares)
    for own, share in zip(bits, shares, strict=True):
        assert own >= 0
        if whole > 1e-3:
            assert abs(own - total * share / whole) < 1


@given(st.data())
def test_shortened_axes_give_the_same_keys(data: st.DataObject) -> None:
    edges = [sorted(data.draw(st.sets(st.integers(0, 99), min_size=1, max_size=40))) for _ in range(3)]
    axes = [Axis(term, "int", tuple(own)) for term, own in zip((x, y, z), edges, strict=True)]
    pattern = [i for i, axis in enumerate(axes) for _ in range(data.draw(st.integers(0, axis.bits)))]
    Random(data.draw(st.integers())).shuffle(pattern)
    rows = Rows({term: pa.array([None, *Random(i).choices(range(100), k=50)]) for i, term in enumerate((x, y, z))})
    fewer, again = shortened(axes, pattern)
    before = keys_of([a.ranks(rows) for a in axes], [a.bits for a in axes], pattern).tolist()
    after = CurveLayout(tuple(fewer), tuple(again), ()).keys(rows).tolist() if fewer else [0] * 51
    assert after == before
    assert all(axis.bits <= max(1, again.count(i)) for i, axis in enumerate(fewer))


def a_problem(seed: int, rows: int = 3000, block_rows: int = 30) -> Problem:
    """Ranges on two of three columns that depend on each other; one of them is asked for more narrowly."""
    r = np.random.default_rng(seed)
    a = r.integers(0, 5000, rows)
    b = (a // 4 + r.integers(0, 500, rows)).astype(np.int64)
    c = r.choice(40, rows) ** 2
    sample = Sample.of_table(pa.table({"x": a, "y": b, "z": c}))
    asked = []
    for _ in range(60):
        at = int(r.integers(rows))
        wide = (150 * r.uniform(0.5, 2), 400 * r.uniform(0.5, 2), 500 * r.uniform(0.5, 2))
        bounds = [
            between(t, int(v[at] - w), int(v[at] + w)) for t, v, w in zip((x, y, z), (a, b, c), wide, strict=True)
        ]
        asked.append(And(tuple(p for i in r.choice(3, 2, replace=False) for p in bounds[i])))
    return Problem.build(sample, tuple(asked), block_rows, seed=seed)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("iterations", [1, 10, 400])
def test_never_worse_than_the_plain_curves(seed: int, iterations: int) -> None:
    """However small the budget; and with a fair one clearly better."""
    problem = a_problem(seed)
    zones, rows = Zones.of(problem), problem.sample.rows
    cost = {
        name: zones.cost(layout.keys(rows))
        for name, layout in {
            "learned": ZOrderLearned(iterations=iterations).fit(problem),
            "range": Range().fit(problem),
            "zorder": ZOrder().fit(problem),
            "hilbert": Hilbert().fit(problem),
        }.items()
    }
    learned = cost.pop("learned")
    assert learned <= (0.95 if iterations == 400 else 1) * min(cost.values())


def test_a_column_that_does_not_pay_is_left_out() -> None:
    """Nearly all rows pass the conditions on z, so it is asked for in vain."""
    r = np.random.default_rng(5)
    sample = Sample.of_table(pa.table({"x": r.permutation(2000), "z": r.permutation(2000)}))
    asked = tuple(And((*between(x, v, v + 20), Compare(z, "<", lit(1990)))) for v in range(0, 1900, 40))
    layout = ZOrderLearned(iterations=200).fit(Problem.build(sample, asked, 20))
    assert layout.features == (x,)


def test_a_budget_of_seconds() -> None:
    problem = a_problem(4)
    found = ZOrderLearned(iterations=10**9, seconds=0.2).fit(problem)
    assert found.blocks > 50


def test_nothing_to_order_by() -> None:
    sample = Sample.of_table(GRID)
    for asked in ((), (Compare(col("other"), "=", lit(1)),)):
        assert ZOrderLearned().fit(Problem.build(sample, asked, 4)).blocks == 1
    named = ZOrderLearned(columns=("y",)).fit(Problem.build(sample, (FIG_1,), 4))
    assert named.features == (y,)


def test_without_the_extra_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bayes_opt", None)
    with pytest.raises(LayoutError, match=r"pip install 'hedgerow\[bo\]'"):
        ZOrderLearned(search="bayes").fit(Problem.build(Sample.of_table(GRID), (FIG_1,), 4))


@pytest.mark.parametrize("after", [0, 30])
def test_ctrl_c_ends_the_search_and_not_the_command(
    after: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And in a terminal a line tells how the search gets on."""
    calls = iter(range(after, -10_000, -1))
    cost = Zones.cost

    def interrupted(zones: Zones, keys: Any) -> float:
        if next(calls) == 0:
            raise KeyboardInterrupt
        return cost(zones, keys)

    monkeypatch.setattr(Zones, "cost", interrupted)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_REPORTS", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    problem = a_problem(5)
    found = ZOrderLearned().fit(problem)
    assert found.blocks > 50
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == "zorder_learned: interrupted: the result is the best order so far"
    assert len(said) == after + 1
    if after:
        assert re.fullmatch(r"zorder_learned: 30 orders, \d+ a second; the best reads \d+\.\d\d %", said[-2])
