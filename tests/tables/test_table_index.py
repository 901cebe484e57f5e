"""Files of several parts answer queries together: each file once, and only if the scan reads what was counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hedgerow.core.index.aggregates import Count, Extreme
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.top_k import Order
from hedgerow.core.index.whole_matches import UNKNOWN_ROWS, TypedTerm
from hedgerow.core.predicates.nodes import TRUE, Compare, col, lit
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import collect
from hedgerow.core.workload.wanted_files import files_for
from hedgerow.core.workload.wanted_rows import Aggregates, Function
from hedgerow.tables.known_files import KnownFiles
from hedgerow.tables.part import JoinedParts
from hedgerow.tables.table_index import TableIndex

X = TypedTerm(col("x"), Type("bigint"))
ALL = np.ones(5, bool)


def part(files: Mapping[str, Sequence[Any]], reads_alike: bool = True, arrow: pa.DataType | None = None) -> JoinedParts:
    entry = [number for number, values in enumerate(files.values()) for _ in values]
    values = pa.array([v for of_file in files.values() for v in of_file], arrow or pa.int64())
    stats = collect({col("x"): values}, None, entry, len(files))
    zeros = np.zeros(len(files), np.int64)
    known = KnownFiles(tuple(files), zeros, stats.rows, zeros, {})
    return JoinedParts(known, BlockIndex(stats), (), np.full(len(files), reads_alike))


def table(reads_alike: bool = True) -> TableIndex:
    """The values of the two parts interleave: file a, d, b, e, c in their order."""
    older = {"a": [1, 2, 3], "b": [10, 11, 12], "c": [30, 31, 32]}
    return TableIndex([part(older), part({"d": [5, 6, 7], "e": [20, 21]}, reads_alike)])


def first(index: TableIndex, left: np.ndarray[Any, Any], k: int, descending: bool = False) -> str:
    opened = index.joined.first_rows(index.joined.matched(TRUE, left), Order(X, descending), k)
    assert opened is not None
    return "".join(name for name, is_open in zip("abcde", opened, strict=True) if is_open)


def test_the_bounds_of_all_parts_are_compared() -> None:
    index = table()
    left = index.rows_left(ALL, {})
    assert left.tolist() == [3, 3, 3, 3, 2]
    assert [first(index, left, k) for k in (3, 4, 7, 10)] == ["a", "ad", "abd", "abde"]
    assert [first(index, left, k, descending=True) for k in (3, 4, 6)] == ["c", "ce", "bce"]


def test_a_file_that_is_not_read_once_guarantees_nothing() -> None:
    index = table()
    left = index.rows_left(np.array([False, True, True, True, True]), {})
    assert left.tolist() == [UNKNOWN_ROWS, 3, 3, 3, 2]
    assert first(index, left, 3) == "ad"
    partials = index.joined.aggregates(TRUE, left, (), (Count(), Extreme(X, greatest=False)))
    assert (partials.opened.tolist(), partials.rows) == ([True, False, False, False, False], {(): (11, 5)})


def test_deleted_rows_are_not_counted() -> None:
    index = table()
    left = index.rows_left(ALL, {0: 2, 3: -1, 4: 3})
    assert left.tolist() == [1, 3, 3, UNKNOWN_ROWS, UNKNOWN_ROWS]
    assert first(index, left, 1) == "a"
    assert first(index, left, 2) == "abd"
    partials = index.joined.aggregates(TRUE, left, (), (Count(), Extreme(X, greatest=True)))
    assert (partials.opened.tolist(), partials.rows) == ([True, False, False, True, True], {(): (6, 32)})
    assert index.rows_left(ALL, {0: 3})[0] == 0


def test_a_session_that_reads_otherwise_opens_the_file() -> None:
    index = table(reads_alike=False)
    left = index.rows_left(ALL, {})
    assert left.tolist() == [3, 3, 3, UNKNOWN_ROWS, UNKNOWN_ROWS]
    assert index.joined.aggregates(TRUE, left, (), (Count(),)).rows == {(): (9,)}


def test_a_file_that_two_parts_describe_counts_once() -> None:
    index = TableIndex([part({"a": [1, 2], "b": [3]}), part({"a": [1, 2, 4]})])
    left = index.rows_left(np.ones(3, bool), {})
    assert left.tolist() == [UNKNOWN_ROWS, 1, 3]
    assert index.joined.aggregates(TRUE, left, (), (Count(),)).rows == {(): (4,)}


def test_a_limit_takes_the_fewest_files() -> None:
    index = table()
    left, p = index.rows_left(ALL, {0: 1}), Compare(col("x"), "<", lit(21))
    chosen = index.joined.any_rows(p, left, 6)
    assert chosen is not None and chosen.tolist() == [False, True, False, True, False]
    assert index.joined.any_rows(p, left, 9) is None


def test_groups_of_both_parts_are_added_up() -> None:
    index = TableIndex([part({"a": [1, 1], "b": [2]}), part({"c": [2, 2], "d": [None], "e": [1, 2]})])
    partials = index.joined.aggregates(TRUE, index.rows_left(ALL, {}), (X,), (Count(), Count(X)))
    assert partials.opened.tolist() == [False, False, False, False, True]
    assert partials.rows == {(1,): (2, 2), (2,): (3, 3), (None,): (1, 0)}


@pytest.mark.parametrize(
    ("name", "arrow", "values"),
    [
        ("string", pa.string(), ["x", "y"]),
        ("double", pa.float64(), [float("inf"), float("nan")]),
        ("date", pa.date32(), [date(2024, 1, 1), date(2024, 1, 2)]),
        ("boolean", pa.bool_(), [True, False]),
        ("decimal(30,2)", pa.decimal128(30, 2), [Decimal("1.25"), Decimal("2.50")]),
    ],
)
def test_averages_and_sums_of_other_types_need_all_files(name: str, arrow: pa.DataType, values: Sequence[Any]) -> None:
    index, schema = TableIndex([part({"a": values, "b": values}, arrow=arrow)]), {"x": Type.parse(name)}
    left = index.rows_left(np.ones(2, bool), {})
    functions: tuple[Function, ...] = ("avg", "sum")
    for function in functions:
        assert files_for(index.joined, Aggregates(((function, col("x")),)), TRUE, left, schema) is None


def test_a_table_without_indexed_files() -> None:
    index = TableIndex([])
    left = index.rows_left(np.zeros(0, bool), {})
    assert index.joined.first_rows(index.joined.matched(TRUE, left), Order(X), 3) is None
    assert index.joined.aggregates(TRUE, left, (), (Count(),)).rows == {}
    assert index.joined.any_rows(TRUE, left, 3) is None
