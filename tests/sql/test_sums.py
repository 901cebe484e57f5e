"""Workloads know which columns of a table their queries sum."""

from __future__ import annotations

import pytest

import hedgerow as hr
from hedgerow.core.workload.queries import summed_columns


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT sum(price), SUM(t.`day`) FROM t WHERE x > 3", ["day", "price"]),
        ("SELECT user, sum(price) FILTER (WHERE x > 3) + 1 AS s FROM t GROUP BY user HAVING sum(tax) > 3", ["price", "tax"]),
        ("WITH c AS (SELECT sum(price) AS s FROM t) SELECT max(s) FROM c", ["price"]),
        ("SELECT sum(a.price), sum(b.tax) FROM t a JOIN other b ON a.x = b.x", ["price"]),
        ("SELECT sum(DISTINCT price), sum(price + 1), stddev(tax), sum(t.address.field), count(*) FROM t", []),
        ("SELECT avg(tax), avg(DISTINCT price) FROM t", ["tax"]),
    ],
)  # fmt: skip
def test_sums_of_columns(sql: str, expected: list[str]) -> None:
    workload = hr.Workload.from_sql(sql)
    assert summed_columns(workload, "T") == expected
    assert summed_columns(hr.Workload.from_jsonl(workload.to_jsonl()), "t") == expected


def test_sums_in_the_letters_of_the_schema() -> None:
    schemas = {"t": {"Price": "DECIMAL(9, 2)", "two words": "INT"}}
    workload = hr.Workload.from_sql("SELECT sum(price), sum(`Two Words`) FROM t", schemas)
    assert summed_columns(workload, "t") == ["Price", "two words"]
