"""A museum of pruning bugs: wrong answers that other engines shipped by skipping files, row groups or partitions.

Each exhibit names the project and the issue (`trinodb/trino#21754`), says in one sentence which answer was wrong, and
asks what would lose rows here by the same mistake. The truth comes from a query without a WHERE, so nothing can be
skipped for it: `SELECT id, (condition) FROM source`. Every door has to find the same rows, on Parquet and on Delta, and
some scan of an exhibit has to skip files, so that it does not pass because nothing is ever skipped.

    rows 0 to 1999 in files of 250 by id         | 0 .. 249 | 250 .. 499 | ... | 1750 .. 1999 |
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import hedgerow as hr
from hedgerow.spark.start.session import temporary_settings

ROWS, FILES = 2000, 8
ZONE = "America/New_York"
SETTINGS = {"spark.sql.session.timeZone": ZONE, "spark.sql.ansi.enabled": "false"}
COLUMNS = (
    "id",
    "CAST(id AS INT) AS number",
    "CAST(id DIV 250 AS TINYINT) AS tiny",
    "IF(id < 1000, NULL, CAST(id AS INT)) AS late",
    "CASE WHEN id < 250 THEN 5 WHEN id < 500 THEN IF(id % 2 = 0, 5, NULL) ELSE CAST(id AS INT) END AS five",
    "CASE WHEN id < 250 THEN id / 10D WHEN id < 500 THEN IF(id % 50 = 7, double('NaN'), id / 10D) WHEN id < 750 THEN "
    "double('NaN') WHEN id < 1000 THEN IF(id % 2 = 0, double('NaN'), NULL) ELSE id / 10D END AS nan",
    "CASE WHEN id < 250 THEN -0.0D WHEN id < 500 THEN 0.0D ELSE CAST(id AS DOUBLE) END AS zero",
    "CAST(IF(id < 250, 0.1, id) AS FLOAT) AS real",
    # ordered by unsigned bytes: from 250 on, the first byte is above 0x7F in every other file
    "unhex(concat(lpad(hex(id DIV 10), 2, '0'), md5(CAST(id AS STRING)))) AS uid",
    "concat(lpad(hex(id), 8, '0'), '-0000-4000-8000-', substr(md5(CAST(id AS STRING)), 1, 12)) AS uuid",
    "concat(char(97 + CAST(id DIV 250 AS INT)), elt(CAST(id % 3 AS INT) + 1, 'é', 'z', 'b'), lpad(id, 4, '0')) AS accent",
    "concat(char(97 + CAST(id DIV 250 AS INT)), '_', lpad(id, 4, '0')) AS word",
    "CASE id WHEN 3 THEN 'a_b' WHEN 300 THEN 'axb' WHEN 600 THEN 'a%b' WHEN 800 THEN 'a\\\\b' "
    "ELSE concat('n', lpad(id, 4, '0')) END AS text",
    "IF(id % 250 = 9, repeat(char(97 + CAST(id DIV 250 AS INT)), 5000), "
    "concat(char(97 + CAST(id DIV 250 AS INT)), lpad(id, 4, '0'))) AS long",
    "concat(repeat('p', 31), CASE id DIV 250 WHEN 0 THEN '\ud7ff' WHEN 1 THEN '\U0010ffff' WHEN 2 THEN '\U0001f600' "
    "ELSE char(97 + CAST(id DIV 250 AS INT)) END, lpad(id, 4, '0')) AS astral",
    "CAST((id - 1000) * 1.25 AS DECIMAL(9, 2)) AS price",
    "CAST(CAST(id AS DECIMAL(20, 0)) * 100000000000 AS DECIMAL(38, 10)) AS huge",
    "CASE id % 250 WHEN 0 THEN 1L WHEN 1 THEN 2147483647L ELSE id + 4294967297L END AS big",
    "CAST(id AS STRING) AS digits",
    "CASE WHEN id < 250 THEN IF(id % 2 = 0, 'beijing', NULL) WHEN id < 500 THEN 'shanghai' "
    "ELSE concat('c', id DIV 250) END AS city",
    # file 3 begins at 1:50 in summer time and ends at 1:06 in winter time
    "TIMESTAMP_LTZ '2024-11-03 05:00:00 UTC' + make_dt_interval(0, 0, 0, id * 4) AS ts",
    "TIMESTAMP_LTZ '2024-01-01 00:00:00 UTC' + make_dt_interval(0, 0, 0, id + 0.080758) AS fine",
    "TIMESTAMP_NTZ '2024-01-01 00:00:00' + make_dt_interval(0, 0, 0, id + 0.080758) AS wall",
    "TIMESTAMP_LTZ '1850-06-01 00:00:00 UTC' + make_dt_interval(0, 0, 0, id) AS old",
    "date_add(DATE '2024-01-01', CAST(id AS INT)) AS day",
    "IF(id < 500 AND id % 50 = 7, NULL, named_struct('x', CAST(id AS DOUBLE))) AS parts",
    "rpad(IF(id < 250, elt(CAST(id % 3 AS INT) + 1, 'z', 'z\\t', 'za'), concat('k', id DIV 250)), 4, ' ') AS code",
)
# The index holds what these say of each file, beside the bounds of columns: a temptation to reason from it.
ASKED = (
    "id < 5",
    "number % 8 = 4",
    "abs(number - 1125) < 2",
    "number * -1 > -5",
    "CAST(big AS INT) > 2147480000",
    "CAST(digits AS INT) > 1990",
    "hour(ts) = 1",
    "CAST(ts AS DATE) = DATE '2024-11-03'",
    "CAST(ts AS TIMESTAMP_NTZ) >= TIMESTAMP_NTZ '2024-11-03 01:55:00'",
    "month(day) = 2",
    "coalesce(five, 0) = 0",
    "upper(word) = 'A_0003'",
    "length(text) = 3",
    "text LIKE 'a%'",
    "late IS NULL",
    "five <=> 5",
    "nan > 100",
    "parts.x = 3",
    *(f"{c} IS NULL" for c in ("zero", "real", "uid", "uuid", "accent", "long", "astral", "price", "huge", "city")),
    *(f"{c} IS NULL" for c in ("fine", "wall", "old", "code", "tiny")),
)
PAGES = {
    **{"parquet.page.row.count.limit": "50", "parquet.block.size": "20000", "parquet.bloom.filter.enabled": "true"},
    "parquet.bloom.filter.enabled#zero": "false",  # with one, Spark 4.2 itself finds no -0.0 where 0.0 is asked for
}


@dataclass(frozen=True)
class Shown:
    """A table under the name that SQL has for it; `truth` has its rows, in a form in which nothing is skipped."""

    plain: SparkSession
    attached: SparkSession
    name: str
    truth: str
    table: Any

    def check(self, lost: Sequence[str], near: Sequence[str]) -> None:
        """The first are what the bug would answer wrongly, so each has a row to lose; the others are neighbours, so
        that something is skipped. All go as one query, a branch of a UNION ALL for each condition: a scan of its own.
        """
        conditions = list(dict.fromkeys([*lost, *near]))
        whole = self.plain.sql(f"SELECT id, {', '.join(f'({c})' for c in conditions)} FROM {self.truth}").collect()
        expected = {c: sorted(row[0] for row in whole if row[i]) for i, c in enumerate(conditions, 1)}
        assert all(expected[c] for c in lost), [f"nothing to lose: {c}" for c in lost if not expected[c]]
        branches = [f"SELECT {i} AS c, id FROM {self.name} WHERE {c}" for i, c in enumerate(conditions)]
        sql = " UNION ALL ".join(branches)
        assert by_condition(self.attached.sql(sql), conditions) == expected, f"attached, {self.name}"
        reports = hr.last_query(self.attached)
        assert any(r.files_opened < r.files for r in reports), f"nothing was skipped: {conditions}"
        assert by_condition(hr.route(self.plain, sql), conditions) == expected, f"routed, {self.name}"
        if not self.name.startswith("delta"):  # it is the same code for both
            parts = [
                self.table.read(where=c, columns=["id"]).selectExpr(f"{i} AS c", "id") for i, c in enumerate(conditions)
            ]
            assert by_condition(reduce(DataFrame.unionAll, parts), conditions) == expected, f"read, {self.name}"

    def same(self, sql: str) -> None:
        """A whole query; $T stands for the table. Rows come in one order, or are put into one."""
        text = sql.replace("$T", self.name)
        expected = rows(self.plain.sql(sql.replace("$T", self.truth)), sql)
        assert rows(self.attached.sql(text), sql) == expected, f"attached: {text}"
        assert rows(hr.route(self.plain, text), sql) == expected, f"routed: {text}"


def by_condition(frame: DataFrame, conditions: Sequence[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {c: [] for c in conditions}
    for number, one in sorted(map(tuple, frame.collect())):
        found[conditions[number]].append(one)
    return found


def rows(frame: DataFrame, sql: str) -> list[str]:
    found = [repr(tuple(row)) for row in frame.collect()]  # as texts, for NaN is not NaN
    return found if "ORDER BY" in sql else sorted(found)


def having(sessions: Sequence[SparkSession], settings: dict[str, str]) -> AbstractContextManager[object]:
    """Set both sessions for a while."""
    stack = ExitStack()
    for session in sessions:
        stack.enter_context(temporary_settings(session, settings))
    return stack
