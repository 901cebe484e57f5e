"""ORDER BY with LIMIT, read from SQL: the column, the direction and the number of rows; nothing where more is needed."""

from __future__ import annotations

import pytest

from hedgerow.core.predicates.nodes import Column, col
from hedgerow.core.workload.queries import Top
from hedgerow.sql.workload import Workload

SCHEMAS = {"t": {"id": "bigint", "ts": "timestamp", "at": "struct<x:int>"}, "u": {"id": "bigint"}}


@pytest.mark.parametrize(
    ("sql", "top"),
    [
        ("SELECT * FROM t ORDER BY TS DESC LIMIT 100", Top(col("ts"), True, 100)),
        ("SELECT id FROM t WHERE id > 3 ORDER BY t.ts, id LIMIT 5 OFFSET 10", Top(col("ts"), False, 15)),
        ("SELECT * FROM t ORDER BY at.x DESC NULLS LAST LIMIT 1", Top(Column(("at", "x")), True, 1)),
        ("SELECT * FROM (SELECT * FROM t ORDER BY ts LIMIT 7) AS first", Top(col("ts"), False, 7)),
        ("SELECT * FROM t ORDER BY ts", None),
        ("SELECT * FROM t LIMIT 5", None),
        ("SELECT id AS ts FROM t ORDER BY ts LIMIT 5", None),
        ("SELECT * FROM t ORDER BY hour(ts) LIMIT 5", None),
        ("SELECT ts, count(*) FROM t GROUP BY ts ORDER BY ts LIMIT 5", None),
        ("SELECT DISTINCT id FROM t ORDER BY id LIMIT 5", None),
        ("SELECT max(id) OVER (ORDER BY ts) FROM t ORDER BY ts LIMIT 5", None),
        ("SELECT t.* FROM t JOIN u ON t.id = u.id ORDER BY ts LIMIT 5", None),
        ("SELECT * FROM t TABLESAMPLE (5 PERCENT) ORDER BY ts LIMIT 5", None),
    ],
)
def test_the_first_rows_that_a_query_needs(sql: str, top: Top | None) -> None:
    workload = Workload.from_sql(sql, SCHEMAS)
    for again in (workload, Workload.from_jsonl(workload.to_jsonl()), workload.bind(SCHEMAS)):
        assert {scan.top for scan in again.queries[0].scans if scan.table == "t"} == {top}
