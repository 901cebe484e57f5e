"""The rows that queries need of the matching ones, read from SQL; None where they may need all."""

from __future__ import annotations

import pytest

from hedgerow.core.predicates.nodes import Column, Expr, col
from hedgerow.core.workload.wanted_rows import Aggregates, AnyRows, Top, WantedRows
from hedgerow.sql.workload import Workload

SCHEMAS = {"t": {"id": "bigint", "ts": "timestamp", "at": "struct<x:int>", "word": "string"}, "u": {"id": "bigint"}}
ROWS = ("count", None)


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("SELECT * FROM t ORDER BY TS DESC LIMIT 100", Top(col("ts"), True, 100)),
        ("SELECT id FROM t WHERE id > 3 ORDER BY t.ts, id LIMIT 5 OFFSET 10", Top(col("ts"), False, 15, True)),
        ("SELECT * FROM t ORDER BY at.x DESC NULLS FIRST LIMIT 1", Top(Column(("at", "x")), True, 1, True)),
        ("SELECT * FROM (SELECT * FROM t ORDER BY ts LIMIT 7) AS first", Top(col("ts"), False, 7, True)),
        ("SELECT upper(word) FROM t WHERE month(ts) = 3 ORDER BY ts DESC LIMIT 7", Top(col("ts"), True, 7)),
        ("SELECT * FROM t LIMIT 5", AnyRows(5)),
        ("SELECT id AS n FROM t WHERE word LIKE '%x%' LIMIT 5 OFFSET 2", AnyRows(7)),
        ("SELECT count(*), Max(ID), min(t.ts) FROM t", Aggregates((ROWS, ("max", col("id")), ("min", col("ts"))))),
        ("SELECT sum(id) / count(1) AS mean FROM t HAVING count(id) > 1",
         Aggregates((("sum", col("id")), ROWS, ("count", col("id"))))),
        ("SELECT word, count(*) FROM t GROUP BY word ORDER BY 2 DESC LIMIT 5", Aggregates((ROWS,), (col("word"),))),
        ("SELECT word AS w, count(*) FROM t GROUP BY w", Aggregates((ROWS,), (col("word"),))),
        ("SELECT word, count(*) FROM t GROUP BY 1", Aggregates((ROWS,), (col("word"),))),
        ("SELECT DISTINCT id FROM t ORDER BY id", Aggregates((), (col("id"),))),
        ("SELECT n FROM (SELECT count(*) AS n FROM t) AS counted", Aggregates((ROWS,))),
        ("SELECT * FROM t ORDER BY ts", None),
        ("SELECT id AS ts FROM t ORDER BY ts LIMIT 5", None),
        ("SELECT * FROM t ORDER BY hour(ts) LIMIT 5", None),
        ("SELECT int(word) FROM t ORDER BY ts LIMIT 5", None),
        ("SELECT * FROM t WHERE 10 / id > 2 LIMIT 5", None),
        ("SELECT * FROM t WHERE id IN (SELECT id FROM u) LIMIT 5", None),
        ("SELECT * FROM t WHERE f(id) LIMIT 5", None),
        ("SELECT count(*) FROM t WHERE rand() < 0.5", None),
        ("SELECT avg(id), stddev(id) FROM t", None),
        ("SELECT AVG(id) FROM t", Aggregates((("avg", col("id")),))),
        ("SELECT count(DISTINCT id) FROM t", None),
        ("SELECT sum(id + 1) FROM t", None),
        ("SELECT count(*) FILTER (WHERE id > 3) FROM t", None),
        ("SELECT f(id), count(*) FROM t", None),
        ("SELECT word, count(*) FROM t GROUP BY ROLLUP (word)", None),
        ("SELECT int(word), count(*) FROM t GROUP BY int(word)", None),
        ("SELECT max(id) OVER (ORDER BY ts) FROM t ORDER BY ts LIMIT 5", None),
        ("SELECT t.* FROM t JOIN u ON t.id = u.id ORDER BY ts LIMIT 5", None),
        ("SELECT count(*) FROM t JOIN u ON t.id = u.id", None),
        ("SELECT * FROM t TABLESAMPLE (5 PERCENT) ORDER BY ts LIMIT 5", None),
    ],
)  # fmt: skip
def test_the_rows_that_a_query_needs(sql: str, wanted: WantedRows | None) -> None:
    workload = Workload.from_sql(sql, SCHEMAS)
    for again in (workload, Workload.from_jsonl(workload.to_jsonl()), workload.bind(SCHEMAS)):
        assert {scan.wanted for scan in again.queries[0].scans if scan.table == "t"} == {wanted}


def test_a_group_may_be_an_expression() -> None:
    (query,) = Workload.from_sql("SELECT month(ts) AS m, count(*) FROM t GROUP BY month(ts)", SCHEMAS)
    wanted = query.wanted("t")
    assert isinstance(wanted, Aggregates)
    (group,) = wanted.groups
    assert isinstance(group, Expr)
    assert (group.sql.lower(), group.columns) == ("month(ts)", (col("ts"),))


def test_two_scans_of_a_table_may_need_all_rows() -> None:
    (query,) = Workload.from_sql("SELECT count(*) FROM t UNION ALL SELECT count(*) FROM t WHERE id > 3", SCHEMAS)
    assert query.wanted("t") is None
