"""Of a sample, as many blocks are expected to be opened as the whole table's index opens."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.score_layout import score_layout
from hedgerow.core.learning.virtual_blocks import distinct_in_table, virtual_index
from hedgerow.core.predicates.nodes import And, Compare, In, Predicate, col, lit
from hedgerow.core.workload.queries import Workload

ROWS, SAMPLED, BLOCKS = 200_000, 4_000, 16
place, key, day = col("place"), col("key"), col("day")
TREE = TreeLayout(
    tuple(Compare(place, "<", lit(ROWS // BLOCKS * i)) for i in range(1, BLOCKS)),
    tuple((i, ~i, i + 1 if i < BLOCKS - 2 else ~(BLOCKS - 1)) for i in range(BLOCKS - 1)),
)


def keys(kind: str, r: np.random.Generator) -> np.ndarray:
    match kind:
        case "few rows each":
            return r.integers(0, ROWS // 8, ROWS)
        case "skewed":
            return (r.random(ROWS) ** 3 * ROWS / 20).astype(int)
        case "rows of a key lie together":
            return np.arange(ROWS) // 50 * 7919 % 1_000_003
        case "one row each":
            return r.permutation(ROWS)
    raise AssertionError(kind)


KINDS = ["few rows each", "skewed", "rows of a key lie together", "one row each"]


def table(kind: str) -> pa.Table:
    r = np.random.default_rng(0)
    return pa.table({"place": np.arange(ROWS), "key": keys(kind, r), "day": r.integers(0, 4, ROWS)})


def opened(whole: Sample, asked: list[Predicate]) -> float:
    """The share of blocks that queries open by an index of all rows."""
    index = virtual_index(TREE, whole.noting(asked))
    return float(np.mean([index.to_open(p) for p in asked]))


def expected(sample: Sample, asked: list[Predicate]) -> float:
    return score_layout(TREE, sample.noting(asked), Workload.of("t", asked).queries, "t").blocks_read


@pytest.mark.parametrize("shape", ["equal", "in", "and"])
@pytest.mark.parametrize("kind", KINDS)
def test_expected_blocks(kind: str, shape: str) -> None:
    whole = Sample.of_table(table(kind))
    sample = Sample.of_table(table(kind)).part(SAMPLED, seed=1)
    r = np.random.default_rng(2)
    drawn = r.choice(table(kind)["key"].to_numpy(), (60, 3)).tolist()
    asked: list[Predicate] = []
    for a, b, c in drawn:
        equal = Compare(key, "=", lit(a))
        listed = In(key, (lit(a), lit(b), lit(c)))
        asked.append({"equal": equal, "in": listed, "and": And((Compare(day, "<", lit(4)), equal))}[shape])
    if kind == "rows of a key lie together":  # nothing tells that they do: too much is better than nothing
        assert opened(whole, asked) <= expected(sample, asked)
    else:
        assert expected(sample, asked) == pytest.approx(opened(whole, asked), rel=0.3)


def test_all_rows_hide_nothing() -> None:
    whole = Sample.of_table(table("few rows each"))
    asked: list[Predicate] = [Compare(key, "=", lit(4711)), Compare(key, "=", lit(-1))]
    assert 0 < opened(whole, asked) == expected(whole, asked)


def test_frequent_conditions_hide_nothing() -> None:
    whole = Sample.of_table(table("few rows each"))
    sample = whole.part(SAMPLED)
    asked: list[Predicate] = [Compare(place, "<", lit(ROWS // 5)), Compare(day, "=", lit(3))]
    assert expected(sample, asked) == pytest.approx(opened(whole, asked), abs=0.01)


@pytest.mark.parametrize("kind", KINDS)
def test_number_of_values(kind: str) -> None:
    real = len(np.unique(table(kind)["key"].to_numpy()))
    estimated = distinct_in_table(Sample.of_table(table(kind)).part(SAMPLED), key)
    assert real / 2.5 <= estimated <= 2.5 * real


def test_no_value_counts_as_one() -> None:
    column = pa.table({"key": pa.array([float("nan"), None, float("nan")])})
    assert distinct_in_table(Sample.of_table(column), key) == 1
