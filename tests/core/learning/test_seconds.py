"""Seconds are estimated from what was measured, and a layout pays only if it saves a good part of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hedgerow.core.learning.seconds import Estimate, Speed, estimate
from hedgerow.core.workload.score import QueryScore, Score


def scored(*queries: tuple[float, float, float], blocks: int = 100) -> Score:
    scores = [QueryScore(str(i), rows, opened, size, None) for i, (rows, opened, size) in enumerate(queries)]
    return Score.mean(scores, [1.0] * len(scores), blocks)


def whole(files: int, queries: int = 1) -> Score:
    """A table of which the queries read everything."""
    return scored(*[(1.0, 1.0, 1.0)] * queries, blocks=files)


def test_by_hand() -> None:
    """A query of a tenth of the columns that opens 5 of 100 files, in a table of 10 files and 1000 bytes."""
    found = estimate(scored((0.04, 0.05, 0.004)), [1.0], Speed(2.0, 0.1, 0.01), whole(10), 1000.0)
    assert found.now == pytest.approx(2.0 + 10 * 0.1 + 0.01 * 100)
    assert found.then == pytest.approx(2.0 + 5 * 0.1 + 0.01 * 4)
    assert found.pays
    assert str(found) == "a query takes an estimated 4.00 s as the table is, and 2.54 s in this layout"


def test_weights() -> None:
    found = estimate(
        scored((1.0, 1.0, 1.0), (0.0, 0.0, 0.0), blocks=10), [3.0, 1.0], Speed(0.0, 1.0, 0.0), whole(20, 2), 1.0
    )
    assert (found.now, found.then) == (20.0, 7.5)


def test_many_files_of_a_small_table_do_not_pay() -> None:
    speed = Speed(0.1, 0.004, 5e-9)
    assert not estimate(scored((0.3, 0.3, 0.3), blocks=100), [1.0], speed, whole(4), 20e6).pays
    assert estimate(scored((0.3, 0.3, 0.3), blocks=100), [1.0], speed, whole(4), 2e9).pays


def test_what_spark_skips_by_itself_is_no_gain() -> None:
    sorted_already = Speed(0.1, 0.004, 5e-9, unskipped=0.1)
    assert not estimate(scored((0.1, 0.1, 0.1), blocks=100), [1.0], sorted_already, whole(30), 2e9).pays


def test_no_gain_is_no_loss() -> None:
    assert not Estimate(1.0, 0.9).pays and Estimate(1.0, 0.5).pays


def test_bytes_of_some_queries_take_longer() -> None:
    speed = Speed(1.0, 0.0, 0.01, of={"1": Speed(1.0, 0.0, 0.05)})
    found = estimate(scored((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)), [1.0, 1.0], speed, whole(10, 2), 100.0)
    assert found.now == pytest.approx((1.0 + 1.0 + 1.0 + 5.0) / 2) and found.then == pytest.approx((1.5 + 3.5) / 2)


def test_the_first_bytes_of_a_query_are_slow() -> None:
    speed = Speed(1.0, 0.0, 0.01, first=0.5, first_bytes=100.0)
    assert speed.seconds("1", 5, 50) == pytest.approx(1.0 + 0.5 + 0.25)
    assert speed.seconds("1", 5, 1000) == pytest.approx(1.0 + 10.0 + 0.5)
    assert [speed.read_in(speed.reading(size)) for size in (0, 50, 100, 700)] == pytest.approx([0, 50, 100, 700])
    assert speed.times(2).seconds("1", 5, 1000) == pytest.approx(2 * speed.seconds("1", 5, 1000))


def test_files_that_are_skipped_now_are_no_gain() -> None:
    now = scored((0.2, 0.3, 0.2), blocks=10)
    found = estimate(scored((0.2, 0.2, 0.2)), [1.0], Speed(1.0, 0.5, 0.01), now, 100.0)
    assert found.now == pytest.approx(1.0 + 3 * 0.5 + 0.01 * 20)


def test_a_limit_ends_the_reading() -> None:
    layout = scored((0.5, 0.5, 0.5), blocks=4)
    limited = replace(layout, queries=tuple(replace(q, until_limit=0.1) for q in layout.queries))
    found = estimate(limited, [1.0], Speed(1.0, 0.5, 0.01), whole(10), 1000.0)
    assert found.now == pytest.approx(1.0 + 10 * 0.5 + 0.1 * 0.01 * 1000)
    assert found.then == pytest.approx(1.0 + 2 * 0.5 + 0.1 * 0.01 * 500)


def test_what_spark_skips_counts_once() -> None:
    """Spark skips nine tenths of the bytes; eight of these are in files that it does not open."""
    now, speed = scored((0.2, 0.2, 0.2), blocks=10), Speed(0.0, 0.0, 0.01, unskipped=0.1)
    assert estimate(scored((1.0, 1.0, 1.0)), [1.0], speed, now, 100.0).now == pytest.approx(0.1)
