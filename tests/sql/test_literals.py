"""Constant expressions, folded as Spark folds them."""

from __future__ import annotations

import pytest

from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.sql.workload import Workload
from tests.support.workload_conditions import where


@pytest.mark.parametrize(
    ("sql", "folded"),
    [
        ("add_months(DATE '2016-08-31', 1)", "DATE '2016-09-30'"),
        ("add_months('2024-02-29', -12)", "DATE '2023-02-28'"),
        ("add_months(DATE '2016-02-29', 12) + INTERVAL 1 DAY", "DATE '2017-03-01'"),
        ("DATE '2024-03-31' - INTERVAL 1 MONTH", "DATE '2024-02-29'"),
        ("date_add(DATE '2024-12-31', 1)", "DATE '2025-01-01'"),
    ],
)
def test_dates(sql: str, folded: str) -> None:
    assert predicate_text(where(f"d < {sql}")) == f"d < {folded}"


@pytest.mark.parametrize("sql", ["add_months(e, 1)", "add_months(DATE '2024-01-01', 1.5)", "add_months('soon', 1)"])
def test_what_spark_might_see_otherwise_stays(sql: str) -> None:
    assert "ADD_MONTHS" in predicate_text(where(f"d < {sql}"))


NINES = "9" * 38


@pytest.mark.parametrize(
    ("sql", "folded"),
    [
        (f"-{NINES}", f"-{NINES}"),
        (f"-{NINES[:30]}.12345678", f"-{NINES[:30]}.12345678"),
        (f"CAST('-{NINES}' AS DECIMAL(38, 0))", f"-{NINES}BD"),
        ("5BD", "5BD"),
        ("TIME'05:00:00'", "TIME '05:00:00'"),
    ],
)
def test_ends_of_types(sql: str, folded: str) -> None:
    assert predicate_text(where(f"d < {sql}")) == f"d < {folded}"


@pytest.mark.parametrize("number", ["1" + NINES, f"0.0{NINES}", "1e400"])
def test_numbers_that_spark_refuses(number: str) -> None:
    assert predicate_text(where(f"d < {number}")) == f"d < {number}"


@pytest.mark.parametrize(
    ("condition", "type_", "bound"),
    [
        ("x >= '9' AND x < '10'", "int", "x >= 9 AND x < 10"),  # as texts, '10' is below '9'
        ("x >= '9' AND x < '10'", "string", "x <> x"),
        ("x >= '2026-06-01' AND x < '2026-06-02'", "date", "x >= DATE '2026-06-01' AND x < DATE '2026-06-02'"),
        ("x >= '2026-06-01' AND x < '2026-06-02'", "string", "startswith(x, '2026-06-01')"),
        ("x >= '0.1' AND x < '0.2'", "double", "x >= 0.1D AND x < 0.2D"),
        ("x = '5' OR x = '7'", "int", "x IN (5, 7)"),
    ],
)
def test_texts_are_compared_as_the_columns_type_says(condition: str, type_: str, bound: str) -> None:
    read = Workload.from_sql([f"SELECT * FROM t WHERE {condition}"]).bind({"t": {"x": type_}})
    assert predicate_text(read.queries[0].predicate("t")) == bound
