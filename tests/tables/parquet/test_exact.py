"""Reads through Hedgerow give exactly the plain table's rows, and open just the files that the index says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from tests.support.checked_table import World, named
from tests.support.events_table import conditions, write_events


@pytest.fixture(scope="module")
def events(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    source = write_events(spark, str(tmp_path_factory.mktemp("plain") / "events.parquet"), rows=8_000)
    workload = hr.Workload.from_sql([f"SELECT id FROM events WHERE {c}" for c in conditions(1, 24)])
    learned = hr.learn(spark, source, workload, options=hr.LearnOptions(block_rows=400, sample_rows=5_000))
    table = hr.apply(spark, source, learned, str(tmp_path_factory.mktemp("ours") / "events"))
    with named(spark, table, source) as world:
        yield world


def test_reads(events: World) -> None:
    events.check_reads(conditions(3, 8))
    events.check_reads(conditions(4, 3), columns=["word", "id"])


# Names as people write them, and the condition for each scan.
NAMED = [
    ("SELECT id FROM ours_c WHERE ours_c.number < 50", ["number < 50"]),
    ("SELECT `ours_c`.`Number` FROM `OURS_C` WHERE `ours_C`.number < 50", ["number < 50"]),
    ("SELECT ours_c.parts.x FROM default.ours_c WHERE ours_c.parts.x < 50", ["parts.x < 50"]),
    ("SELECT id FROM spark_catalog.default.ours_c WHERE number < 50", ["number < 50"]),
    ("WITH ours_c AS (SELECT * FROM ours_c WHERE number < 50) SELECT id FROM ours_c WHERE number > 20", ["number > 20 AND number < 50"]),
    ("WITH ours_c AS (SELECT id AS number FROM range(2000)) SELECT * FROM ours_c WHERE number > 1500", []),
    ("WITH ours_c AS (SELECT 1 AS id) SELECT c.id, v.id FROM ours_c c, default.ours_c v WHERE v.number < 50", ["number < 50"]),
    ("SELECT * FROM (WITH ours_v AS (SELECT id AS number FROM range(9)) SELECT * FROM ours_v), ours_v v WHERE v.number < 9", ["number < 9"]),
    ("SELECT id FROM ours_v WHERE number < 50 OR id IN (SELECT id FROM ours_c WHERE number > 990)", None),
    ("SELECT c.id FROM ours_c c JOIN ours_v v ON c.id = v.id WHERE c.number < 50 AND v.number < 60", ["number < 50", "number < 60"]),
    ("(SELECT id FROM ours_c WHERE number < 50 ORDER BY id LIMIT 5) UNION ALL SELECT max(id) FROM ours_r WHERE number < 9", ["number < 50", "number < 9"]),
    ("SELECT id FROM ours_c WHERE word = 'it''s {0}' OR number < 5", None),
    ("FROM ours_c SELECT id WHERE number < 50", ["number < 50"]),
    ("SELECT count(*) FROM ours_c", ["true"]),
    # What is not understood is read whole, or at least not wrongly.
    ("SELECT default.ours_c.number FROM default.ours_c WHERE default.ours_c.number < 50", None),
    ("SELECT number FROM IDENTIFIER('ours_c') WHERE number < 50", ["true"]),
    ("SELECT e.id, x FROM ours_c e LATERAL VIEW OUTER explode(e.list) v AS x WHERE x < 50 AND e.number < 500", ["number < 500"]),
    ("SELECT * FROM (SELECT id, number FROM ours_c WHERE number < 50) UNPIVOT (v FOR k IN (id)) WHERE v < 9000", ["number < 50"]),
    ("SELECT id, word FROM ours_c TABLESAMPLE (100000 ROWS) WHERE number < 50", ["true"]),
    ("SELECT * FROM (SELECT * EXCEPT (tags) FROM ours_c) WHERE number < 50", None),
    ("SELECT id, _metadata.file_name IS NULL FROM ours_c WHERE number < 50", None),
    ("TABLE ours_c", ["true"]),
    ("SELECT id FROM ours_c WHERE number < (SELECT 50) AND rand() < 2 AND number < 60", ["number < 60"]),
    ("SELECT x.id FROM ours_c AS x(id, number, a, b, c, d, e, f, g, h, i, j, k, l, m) WHERE x.number < 50", ["true"]),
    ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i, id FROM n JOIN ours_c ON i = number WHERE number < 50", None),
    ("SELECT a.id FROM ours_c a NATURAL JOIN (SELECT id, number FROM ours_v WHERE number < 50) b", None),
    ("SELECT number, sum(n) FROM (SELECT number, count(*) AS n FROM ours_c GROUP BY number WITH CUBE) WHERE number < 50 GROUP BY number", None),
]  # fmt: skip


@pytest.mark.parametrize("sql, scans", NAMED, ids=[sql[:60] for sql, _ in NAMED])
def test_names(events: World, sql: str, scans: list[str] | None) -> None:
    events.check(sql, scans)
