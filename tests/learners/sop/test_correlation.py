"""Features that say the same: the thesis' examples, and its definitions as slow references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.core.arrays import Ints
from hedgerow.core.errors import LayoutError
from hedgerow.learners.sop.correlation import Graph, ascending_pairs, conditions_alike, primary, sorts, terms_alike

VALUES = st.lists(st.integers(-9, 9), max_size=60)
FIG_4_4: Graph = [{1, 2}, {0, 2, 3}, {0, 1}, {1, 4, 5}, {3}, {3}]


def sort_index(values: Ints) -> float:
    """The thesis': 1 if all values ascend, 0 if none does."""
    pairs = len(values) * (len(values) - 1) // 2
    return ascending_pairs(values) / pairs if pairs else 0.0


def contingency(first: Iterable[Any], second: Iterable[Any]) -> float:
    """The mean-square contingency of two columns of categories, by its definition."""
    rows = list(zip(first, second, strict=True))
    both, left, right = Counter(rows), Counter(a for a, _ in rows), Counter(b for _, b in rows)
    expected = {(a, b): left[a] * right[b] / len(rows) ** 2 for a in left for b in right}
    return sum((both[pair] / len(rows) - share) ** 2 / share for pair, share in expected.items())


@given(VALUES)
def test_the_sort_index_is_the_share_of_ascending_pairs(values: list[int]) -> None:
    n = len(values)
    ascending = sum(values[j] > values[i] for i in range(n) for j in range(i + 1, n))
    assert sort_index(np.array(values, np.int64)) == (2 * ascending / (n * (n - 1)) if n > 1 else 0)


def test_the_sort_index_of_the_thesis() -> None:
    assert sort_index(np.array([1, 3, 5, 2, 4])) == 0.7
    assert sort_index(np.arange(50)) == 1 and sort_index(-np.arange(50)) == 0


def test_years_and_items_sold_sort_each_other() -> None:
    year, sold = np.array([2017, 2018, 2015, 2014]), np.array([1024, 770, 3400, 3800])  # Table 4.2
    assert terms_alike([year, sold], 0.1) == [{1}, {0}]


def test_numbers_and_their_parity_do_not() -> None:
    numbers = np.arange(1, 201)  # Table 4.3
    assert contingency(numbers, numbers % 2) == pytest.approx(1)
    assert terms_alike([numbers, numbers % 2], 0.1) == [set(), set()]


def test_a_column_of_one_value_sorts_nothing() -> None:
    numbers, same = np.arange(100), np.zeros(100, np.int64)
    assert not sorts(numbers, same, 0.1) and not sorts(same, numbers, 0.1)


def test_ties_are_neither_order() -> None:
    day = np.random.default_rng(3).integers(0, 3650, 2000)
    assert terms_alike([day, -(day // 30)], 0.01) == [{1}, {0}]
    assert terms_alike([day, day // 365], 0.01) == [set(), set()]  # in a year, days are in no order
    assert terms_alike([day, day // 365], 0.1) == [{1}, {0}]


def test_noise_is_tolerated_to_a_degree() -> None:
    r = np.random.default_rng(5)
    shipped = r.integers(0, 2500, 4000)
    received, price = shipped + r.integers(1, 30, 4000), r.integers(0, 2500, 4000)
    assert terms_alike([shipped, received, price], 0.05) == [{1}, {0}, set()]


@given(st.lists(st.tuples(*[st.booleans()] * 4), min_size=1, max_size=30))
def test_conditions_are_alike_by_their_contingency(rows: list[tuple[bool, ...]]) -> None:
    truth = np.array(rows).T
    graph = conditions_alike(truth, 0.2)
    for i in range(4):
        for j in range(4):
            if i != j and not np.isclose(contingency(truth[i], truth[j]), 0.8):
                assert (j in graph[i]) == (contingency(truth[i], truth[j]) > 0.8)


@pytest.mark.parametrize(
    ("policy", "frequency", "expected"),
    [
        ("frequency", [9, 3, 2, 5, 1, 1], [0, 3]),  # Fig. 4.5: vertices 1 and 4
        ("degree", [9, 3, 2, 5, 1, 1], [3, 0]),
        ("both", [9, 3, 2, 5, 1, 1], [0, 3]),
        ("frequency", [1, 9, 1, 1, 1, 1], [1, 3]),  # 4 still has 5 and 6
    ],
)
def test_the_graph_of_the_thesis(policy: str, frequency: list[float], expected: list[int]) -> None:
    assert primary(FIG_4_4, frequency, 6, policy) == expected  # type: ignore[arg-type]


@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20),
    st.lists(st.floats(0.1, 9), min_size=8, max_size=8),
    st.sampled_from(["frequency", "degree", "both"]),
)
def test_every_feature_is_chosen_or_has_a_chosen_neighbour(
    edges: list[tuple[int, int]], frequency: list[float], policy: str
) -> None:
    graph: Graph = [set() for _ in range(8)]
    for i, j in edges:
        if i != j:
            graph[i].add(j)
            graph[j].add(i)
    chosen = set(primary(graph, frequency, 8, policy))  # type: ignore[arg-type]
    assert all(i in chosen or near & chosen for i, near in enumerate(graph))


def test_alone_all_are_chosen_up_to_the_limit() -> None:
    assert primary([set(), set(), set()], [1, 3, 2], 2) == [1, 2]
    with pytest.raises(LayoutError, match="policy must be one of frequency, degree, both, not 'fame'"):
        primary([set()], [1], 1, "fame")  # type: ignore[arg-type]
