"""Workloads know the columns of a table by which their queries join other rows, computed ones too."""

from __future__ import annotations

import pytest

import hedgerow as hr
from hedgerow.core.workload.queries import joined_columns


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM t JOIN u ON t.user = u.id AND t.day > u.day", ["user"]),
        ("SELECT * FROM t, u WHERE t.user = u.id AND t.shop = u.shop AND t.x > 3", ["shop", "user"]),
        ("SELECT * FROM t JOIN u USING (user)", ["user"]),
        ("SELECT * FROM t JOIN (SELECT max(id) AS last FROM u) m ON t.user = m.last", ["user"]),
        ("SELECT * FROM t JOIN (VALUES (1), (2)) AS v(id) ON t.user = v.id", ["user"]),
        ("SELECT * FROM t WHERE user IN (SELECT id + 1 FROM u)", ["user"]),
        ("SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.user)", ["user"]),
        ("SELECT * FROM u LEFT JOIN t ON u.id = t.user", ["user"]),
        ("SELECT * FROM t LEFT JOIN u ON t.user = u.id", []),
        ("SELECT * FROM t WHERE user NOT IN (SELECT id FROM u)", []),
        ("SELECT * FROM t JOIN u ON t.user + 1 = u.id OR t.day = u.day", []),
        ("SELECT user FROM t WHERE user = 5", []),
    ],
)
def test_keys_of_joins(sql: str, expected: list[str]) -> None:
    workload = hr.Workload.from_sql(sql, {"t": {"user": "INT", "shop": "INT", "day": "DATE", "x": "INT"}})
    assert not workload.skipped
    assert joined_columns(workload, "T") == expected
    assert joined_columns(hr.Workload.from_jsonl(workload.to_jsonl()), "t") == expected


def test_keys_in_the_letters_of_the_schema() -> None:
    workload = hr.Workload.from_sql("SELECT * FROM t JOIN u ON t.USER = u.id")
    assert joined_columns(workload.bind({"t": {"User": "INT"}}), "t") == ["User"]
