"""SOP + Z-order on what no minimum of a column answers (thesis, 1.2.6), and on literals that never come again (Table 4.1)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.core.layouts.curve import Axis, BlockAxis, CurveLayout
from hedgerow.core.predicates.sql_text import predicate_text, term_text
from hedgerow.pipeline.learned import Learned
from tests.support.answers import answer, answers, ask, attached_to

ROWS, BLOCK_ROWS = 4000, 250
COLUMNS = (
    "id",
    "id * 2654435761 % 1000003 AS ip",
    "map('courier', element_at(array('DHL', 'UPS', 'GLS', 'DPD', 'TNT'), 1 + CAST(hash(id, 1) & 1023 AS INT) % 5)) AS info",
    "repeat('a-', 1 + CAST(hash(id, 2) & 1023 AS INT) % 12) AS message",
    "date_add(DATE '2024-01-01', CAST(id % 90 AS INT)) AS shipped",
    "date_add(DATE '2024-01-01', CAST(id % 90 + (hash(id, 3) & 1023) % 8 AS INT)) AS received",
    "IF(hash(id, 4) % 7 = 0, 'lost a cluster here', 'nothing to say') AS comment",
    "CAST(hash(id, 5) & 3 AS INT) AS type",
)
FIXED = (
    "info['courier'] = 'TNT'",
    "length(replace(message, '-', '')) < 3",
    "datediff(received, shipped) = 4",
    "comment LIKE '% cluster %'",
)
OTHERS = (
    "info['courier'] > 'GLS'", "INFO['courier'] IN ('UPS', 'x')", "info['COURIER'] = 'TNT'", "info['courier'] IS NULL",
)  # fmt: skip
YOURS = "loud(type) = 1"


def addresses(seed: int, n: int) -> list[str]:
    random = Random(seed)
    return [f"ip = {random.randrange(ROWS) * 2654435761 % 1000003}" for _ in range(n)]


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    spark.udf.register("loud", lambda kind: kind % 2, "int")
    path = str(tmp_path_factory.mktemp("source") / "notes")
    spark.range(ROWS).selectExpr(*COLUMNS).coalesce(1).write.parquet(path)
    yield path
    spark.sql("DROP TEMPORARY FUNCTION loud")


@pytest.fixture(scope="module")
def learned(spark: SparkSession, source: str) -> Learned:
    asked = [*FIXED * 6, *[YOURS] * 6, *addresses(1, 12)]
    workload = hr.Workload.from_sql([f"SELECT * FROM notes WHERE {c}" for c in asked])
    with pytest.warns(hr.HedgerowWarning, match=r"(?i)functions of your own.*loud\(type\)"):
        return hr.learn(spark, source, workload, "sop_zorder", hr.LearnOptions(block_rows=BLOCK_ROWS), table="notes")


@pytest.mark.long
def test_what_is_learned(learned: Learned) -> None:
    """Conditions that come again are groups, the column with new literals is an axis; nothing goes by a function of
    the user's."""
    layout = learned.layout
    assert isinstance(layout, CurveLayout)
    groups, ip = layout.axes
    assert isinstance(groups, BlockAxis) and isinstance(ip, Axis)
    assert term_text(ip.term) == "ip"
    assert len(groups.features) == 4
    assert not any("loud" in predicate_text(p).lower() for p in groups.features)  # type: ignore[arg-type]


def check(spark: SparkSession, table: Any, plain: Any) -> None:
    """By `read` and in an attached session: the same rows, from fewer files."""
    name = f"{table.state.kind}.`{table.path}`"
    every = len(table.files())
    unseen = addresses(2, 6)
    with attached_to(spark):
        asked = [*FIXED, *unseen, f"{YOURS} AND {FIXED[0]}", YOURS]
        for c, expected in zip(asked, answers(plain, asked, ["id", "ip"]), strict=True):
            found, scans = ask(table.read(where=c, columns=["id", "ip"]))
            assert found == expected, c
            assert sum(scan.files for scan in scans) in (0, len(table.files(where=c)))
            found, scans = ask(spark.sql(f"SELECT id, ip FROM {name} WHERE {c}"))
            assert found == expected, c
            opened = sum(scan.files for scan in scans)
            # A function may be another one tomorrow, so nothing is noted of it; the rest of its query prunes.
            assert opened == every if c == YOURS else opened < every, c
            assert opened <= len(table.files(where=c)), c
        for c, expected in zip(OTHERS, answers(plain, OTHERS, ["id", "ip"]), strict=True):
            assert answer(spark.sql(f"SELECT id, ip FROM {name} WHERE {c}")) == expected, c
        assert len(table.files(where="info['courier'] = 'nobody'")) == 0  # of the value there are bounds too
        assert sum(len(table.files(where=c)) for c in unseen) < 0.5 * every * len(unseen)
        assert not any(report.reason for report in hr.last_query(spark))


def test_parquet(spark: SparkSession, source: str, learned: Learned, tmp_path: Path) -> None:
    table = hr.apply(spark, source, learned, str(tmp_path / "notes"))
    assert table.describe()["rows_per_block"]["least"] >= BLOCK_ROWS / 2
    check(spark, table, spark.read.parquet(source))


@pytest.mark.long
def test_delta(delta: SparkSession, source: str, learned: Learned, tmp_path: Path) -> None:
    path = str(tmp_path / "notes")
    delta.read.parquet(source).repartition(3).write.format("delta").save(path)
    check(delta, hr.apply(delta, path, learned), delta.read.parquet(source))


@pytest.mark.long
def test_how_much_the_index_holds(spark: SparkSession, source: str, learned: Learned, tmp_path: Path) -> None:
    """Without more statistics columns alone prune; with one, the condition that comes first."""
    plain = hr.apply(spark, source, learned, str(tmp_path / "none"), hr.WriteOptions(statistics=0))
    every = len(plain.files())
    assert [len(plain.files(where=c)) for c in FIXED] == [every] * 4
    assert len(plain.files(where=addresses(2, 1)[0])) < every
    assert plain.read(where=FIXED[0]).count() == spark.read.parquet(source).where(FIXED[0]).count()
    one = hr.apply(spark, source, learned, str(tmp_path / "one"), hr.WriteOptions(statistics=1))
    assert sum(len(one.files(where=c)) < every for c in FIXED) == 1
    with pytest.raises(hr.HedgerowError, match="at least 0"):
        hr.apply(spark, source, learned, str(tmp_path / "less"), hr.WriteOptions(statistics=-1))


@pytest.mark.long
def test_conditions_that_were_not_for_grouping(spark: SparkSession, source: str, tmp_path: Path) -> None:
    """Sorted by `ip`, the index still holds what queries ask for again and again, as a whole too."""
    both = "ip < 20000 AND type = 3"
    asked = [f"SELECT * FROM notes WHERE {c}" for c in (*FIXED, both, both, "ip > 900000")]
    learned = hr.learn(
        spark,
        source,
        hr.Workload.from_sql(asked),
        "range",
        hr.LearnOptions(block_rows=40, recurrence=1),
        table="notes",
        columns=["ip"],
    )
    table = hr.apply(spark, source, learned, str(tmp_path / "notes"))
    held = set(table.newest.stored_index.blocks.conditions)
    known = held | set(table.newest.stored_index.blocks.terms)
    assert both in held and "(comment LIKE '% cluster %')" in held
    assert {"ip", "type"} <= known and any("info['courier']" in name for name in known)
    plain = spark.read.parquet(source)
    for c in (both, *FIXED):
        assert table.read(where=c).count() == plain.where(c).count(), c
