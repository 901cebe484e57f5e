"""The numbers of the thesis' chapter 2, on a workload small enough to count by hand."""

from __future__ import annotations

import pytest

from hedgerow.core.workload.statistics import statistics
from hedgerow.sql.workload import Workload


def test_counted_by_hand() -> None:
    workload = Workload.from_sql(
        [
            "SELECT a FROM t WHERE day = '2024-01-01' AND a < 5",
            "SELECT a FROM t WHERE day = '2024-01-02' AND a < 5",
            "SELECT a FROM t WHERE a IN (5, 6) AND note LIKE '%x%'",
            "SELECT a FROM t WHERE upper(note) = 'X'",
            "SELECT a FROM t",
        ]
    )
    found = statistics(workload, "t", ["Day"])
    assert (found.queries, found.filtered, found.simple, found.complex) == (5, 0.8, 0.4, 0.4)
    assert found.on_partitions == pytest.approx(0.4)
    assert found.conditions == 6
    assert found.frequent == {"a": 0.6, "`day`": 0.4, "UPPER(note)": 0.2, "note": 0.2}
    assert found.points == {"a": 2, "`day`": 2, "UPPER(note)": 1}


def test_no_queries() -> None:
    found = statistics([], "t")
    assert (found.queries, found.filtered, found.frequent) == (0, 0, {})
