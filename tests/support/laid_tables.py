"""A table that was laid out, what a query of it answers by each door, and that its files are skipped."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from pyspark.sql import DataFrame, SparkSession

import hedgerow as hr
from hedgerow.pipeline.learned import Learned
from hedgerow.spark.start.session import configured
from hedgerow.tables.managed import ManagedTable
from tests.support.answers import Answer, Scan, answer, ask, attached_to, without_skipping

ROWS, FILES = 2000, 8
STEP = ROWS // FILES  # rows of a file: each holds a range of `id`
COLUMNS = (
    "id",
    "CAST(id AS INT) AS number",
    "CAST(id AS STRING) AS digits",
    "lpad(CAST(id AS STRING), 4, '0') AS padded",
    f"CAST(id DIV {STEP} AS DOUBLE) AS ratio",
    f"id >= {ROWS // 2} AS late",
    # One value in each file: 1 January 2024 in the first, 2 January in the second...
    f"date_add(DATE '2024-01-01', CAST(id DIV {STEP} AS INT)) AS day",
    f"TIMESTAMP_LTZ '2024-01-01 00:00:00 UTC' + make_interval(0, 0, 0, CAST(id DIV {STEP} AS INT)) AS midnight",
    # An hour for each row.
    "TIMESTAMP_LTZ '1970-01-01 00:00:00 UTC' + make_interval(0, 0, 0, 0, id) AS hourly",
    "TIMESTAMP_LTZ '1939-06-01 00:00:00 UTC' + make_interval(0, 0, 0, 0, id) AS prewar",
    f"CAST(IF(id < {STEP}, -56, id DIV {STEP}) AS TINYINT) AS tiny",
    "concat(IF(id % 2 = 0, 'b', 'B'), CAST(id DIV 25 AS STRING)) AS word",
    f"IF(id < {ROWS // 2}, NULL, array(CAST(id AS INT), 1)) AS items",
    # In the first file only row 7 has a product that is not 0, and it is 0.00000001.
    f"CAST(CASE WHEN id = 7 THEN 0.0001 WHEN id < {STEP} THEN 0 ELSE id END AS DECIMAL(38, 10)) AS a",
    "CAST(IF(id = 7, 0.0001, 1) AS DECIMAL(38, 10)) AS b",
    "CAST(0 AS DECIMAL(38, 10)) AS zero",
    # The last row of the first file is 2^53, the first of the second 2^53 + 1: as doubles they are equal.
    f"9007199254740992 - {STEP - 1} + id AS big",
)
# What the index knows beside the plain columns.
LEARNED = (
    "number < 100", "digits LIKE '%1995%'", "padded < '3'", "ratio < 3", "late", "day < '2024-01-03'", "midnight < '2024-01-03'",
    "hourly < '1970-01-03'", "prewar < '1939-07-01'", "tiny < 3", "word < 'b2'", "big < 3", "size(items) = -1",
    "upper(word COLLATE UTF8_LCASE) = 'b1'", "a * b > a * zero", "CAST(day AS STRING) = '2024-01-02'",
)  # fmt: skip
# One file has such a row. No session can make this mean something else, and minima and maxima, which is what Delta
# and Parquet have themselves, do not answer it: where other files are skipped, it was the index.
HARMLESS = "digits LIKE '%1995%'"


@dataclass(frozen=True)
class Laid:
    """A table that was laid out, its name in SQL, and what was asked of it so far."""

    table: ManagedTable
    name: str
    plain: dict[tuple[str, ...], Answer] = field(default_factory=dict)
    skipping: set[tuple[str, ...]] = field(default_factory=set)

    @property
    def spark(self) -> SparkSession:
        return self.table.spark

    def agrees(self, door: str, where: str, rows: int, **settings: str) -> None:
        """The rows of a condition by this door are the plain ones, of which there are `rows`."""
        self.agrees_on(door, f"SELECT id FROM {self.name} WHERE {where}", rows, where, **settings)

    def agrees_on(self, door: str, sql: str, rows: int, where: str | None = None, **settings: str) -> None:
        """`where`: what the door "read" asks in place of the SQL text."""
        with configured(self.spark, **settings):
            self.skips(door, *settings.values())
            key = sql, *settings.values()
            if key not in self.plain:
                self.plain[key] = plainly(self.spark, sql)
            assert self.plain[key].rows == rows, "the question does not show the fault any more"
            found, _ = (
                ask(self.table.read(where=where, columns=["id"])) if door == "read" else by(self.spark, door, sql)
            )
            same(found, self.plain[key], sql)

    def skips(self, door: str, *settings: str) -> None:
        """By this door, and under the settings of now, the index of this table leaves files out."""
        if (door, *settings) in self.skipping:
            return
        sql = f"SELECT id FROM {self.name} WHERE {HARMLESS}"
        frame = self.table.read(where=HARMLESS, columns=["id"]) if door == "read" else None
        found, scans = by(self.spark, door, sql) if frame is None else ask(frame)
        assert found.rows == 1 and files(scans) == 1, "nothing is skipped: the test would be vacuous"
        self.skipping.add((door, *settings))


def plainly(spark: SparkSession, sql: str) -> Answer:
    """Without us."""
    with without_skipping(spark):
        return answer(spark.sql(sql))


def by(spark: SparkSession, door: str, sql: str) -> tuple[Answer, list[Scan]]:
    if door == "route":
        return ask(hr.route(spark, sql))
    with attached_to(spark):
        return ask(spark.sql(sql))


def same(found: Answer, expected: Answer, what: str) -> None:
    told = f"{found.rows} rows of {len(found.columns)} columns, plain {expected.rows} of {len(expected.columns)}"
    assert found == expected, f"{what}: {told}{', but other values' if found.rows == expected.rows else ''}"


def files(scans: list[Scan]) -> int:
    return sum(scan.files for scan in scans)


def learned(
    spark: SparkSession, source: str | DataFrame, conditions: tuple[str, ...] = LEARNED, block_rows: int = STEP
) -> Learned:
    """A file for each range of `id`."""
    workload = workload_of(conditions)
    return hr.learn(
        spark, source, workload, "range", hr.LearnOptions(block_rows=block_rows), table="things", columns=["id"]
    )


def workload_of(conditions: tuple[str, ...]) -> hr.Workload:
    return hr.Workload.from_sql([f"SELECT * FROM things WHERE {c}" for c in conditions])


def needs_delta(spark: SparkSession) -> None:
    from hedgerow.spark.start.delta_jars import NO_DELTA
    from hedgerow.spark.storage.delta_log import has_delta

    if not has_delta(spark):
        pytest.skip(NO_DELTA)
