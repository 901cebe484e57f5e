"""Exhibits of the museum (`tests/support/museum`): texts, bytes and times."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from tests.support.lay_out import by_ranges
from tests.support.museum import Shown, having

pytestmark = pytest.mark.long

# --- texts and bytes ------------------------------------------------------------------------------


def test_prefix_is_not_between_the_bounds(museum: Shown) -> None:
    """apache/hudi#18791: `LIKE 'a%'` asked whether 'a' itself lies in ['a_00', 'a_09']: the file was skipped."""
    museum.check(
        ["word LIKE 'a%'", "word LIKE 'c_05%'", "startswith(word, 'h_1')"], ["word LIKE 'a%'", "word LIKE 'c\\\\_05%'"]
    )


def test_escapes_in_patterns(museum: Shown) -> None:
    """ClickHouse/ClickHouse#107077 (seen in review): an escape was read otherwise than by LIKE itself."""
    museum.check(
        [
            "text LIKE 'a\\\\_b'",
            "text LIKE 'a_b'",
            "text LIKE 'a\\\\%%'",
            "text LIKE 'a!%b' ESCAPE '!'",
            "text LIKE 'a\\\\\\\\b'",
        ],
        ["text LIKE 'a%'", "text LIKE 'a\\\\_b'", "text = 'a%b'"],
    )


def test_not_like(museum: Shown) -> None:
    """apache/datafusion#14567 (seen in review): between bounds that match 'foo%bar' lie texts that do not."""
    museum.check(
        ["word NOT LIKE 'a%9'", "word NOT LIKE 'a%'", "NOT startswith(word, 'a_00')"],
        ["word NOT LIKE 'a%' AND id < 500"],
    )


def test_bytes_are_unsigned(museum: Shown) -> None:
    """apache/datafusion#24525, apache/parquet-format#314 (PARQUET-686): in signed order 'aé' < 'az', and 'az' was lost."""
    museum.check(
        ["accent = 'az0001'", "accent > 'az'", "accent < 'aé'", "accent LIKE 'hé%'", "accent = 'aé0003'"],
        ["accent = 'az0001'", "accent > 'hé1990'"],
    )


def test_order_of_uuids(museum: Shown) -> None:
    """ClickHouse/ClickHouse#118371, #118380: bounds of UUIDs by their bytes were used in an order by the second half."""
    one = "substr(md5('1500'), 1, 12)"
    museum.check(
        [f"uuid = concat('000005DC-0000-4000-8000-', {one})", "uuid > '000007C'", "uid > X'80'"],
        ["uuid < '0000000A'", "uid < X'05'"],
    )


def test_blobs(museum: Shown) -> None:
    """duckdb/duckdb#23829: a BLOB was looked up by its printed form, and `hex(b) = ...` by the raw column's filter."""
    value = "unhex(concat('C7', md5('1999')))"
    museum.check(
        [
            f"uid = {value}",
            "hex(uid) LIKE 'C7%'",
            "uid >= X'C7' AND uid < X'C8'",
            f"lower(hex(uid)) = lower(hex({value}))",
        ],
        [f"uid = {value}", "uid >= X'C7'"],
    )


def test_statistics_are_left_out_for_long_values(museum: Shown) -> None:
    """apache/hudi#18755, trinodb/trino#19052: long texts have no bounds; the file counted as all NULL, or by the rest."""
    museum.check(
        ["long = 'b0300'", "long = repeat('b', 5000)", "long > 'hhh'", "length(long) = 5000", "long > 'a' AND id = 9"],
        ["long = 'b0300'", "long < 'a0100'"],
    )


def test_upper_bound_is_cut_inside_a_character(museum: Shown) -> None:
    """apache/iceberg#11161, apache/iceberg-python#3880: the cut bound ended in half a character, or in none that is."""
    p = "p" * 31
    museum.check(
        [
            f"astral = '{p}\ud7ff0007'",
            f"astral > '{p}\U0010ffff'",
            f"astral LIKE '{p}\U0001f600%'",
            f"astral >= '{p}\U0010ffff0499'",
        ],
        [f"astral < '{p}e'", f"astral = '{p}\U0001f6000600'"],
    )


def test_collation(museum: Shown) -> None:
    """pingcap/tiflash#5429, and apache/hudi#19445 on casts: texts under a collation were compared in another order."""
    museum.check(
        [
            "word COLLATE UTF8_LCASE = 'A_0003'",
            "upper(word COLLATE UTF8_LCASE) = 'b_0300'",
            "word COLLATE UTF8_LCASE < 'B'",
        ],
        ["word = 'b_0300'", "upper(word) = 'A_0003'"],
    )


def test_char_is_padded(museum: Shown, sessions: tuple[SparkSession, SparkSession]) -> None:
    """trinodb/trino#30187: CHAR compares padded with spaces, its bounds did not: 'z' and a tab was lost."""
    kind, path = museum.name.split(".", 1)
    if kind == "delta":
        pytest.skip("a column of a Delta table does not turn into CHAR")
    spark, _ = sessions
    spark.sql(f"CREATE TABLE museum_char (id BIGINT, code CHAR(4)) USING parquet LOCATION '{path.strip('`')}'")
    try:
        for condition in (
            "code = 'z'",
            "code = 'z\\t'",
            "code < 'z'",
            "code IN ('z', 'k3')",
            "code = 'z   '",
            "code > 'z'",
        ):
            museum.same(f"SELECT id FROM $T WHERE {condition}".replace("$T", "museum_char"))
    finally:
        spark.sql("DROP TABLE museum_char")
    museum.check(["code = 'z\\t  '", "code < 'z   '", "rtrim(code) = 'z'"], ["code = 'k3  '"])


# --- times ----------------------------------------------------------------------------------------


def test_maximum_is_cut_to_milliseconds(museum: Shown) -> None:
    """delta-io/delta#7444, trinodb/trino#31231: the maximum lost its microseconds, and so did the last row."""
    last = "2024-01-01 00:04:09.080758"
    museum.check(
        [
            f"fine = TIMESTAMP '{last} UTC'",
            f"wall = TIMESTAMP_NTZ '{last}'",
            f"wall > TIMESTAMP_NTZ '{last[:-3]}' AND id < 250",
            f"wall >= TIMESTAMP_NTZ '{last}' AND wall < TIMESTAMP_NTZ '2024-01-01 00:04:09.081'",
        ],
        [f"fine < TIMESTAMP '{last} UTC'", f"wall = TIMESTAMP_NTZ '{last}'"],
    )


def test_offsets_with_seconds(museum: Shown) -> None:
    """delta-io/delta#5568: offsets of old times have seconds, which the statistics cut off: rows at the edge were lost."""
    museum.check(
        [f"old = TIMESTAMP '1850-06-01 00:0{m} UTC'" for m in ("4:09", "4:10", "0:00")]
        + ["old BETWEEN TIMESTAMP '1850-06-01 00:04:08 UTC' AND TIMESTAMP '1850-06-01 00:04:11 UTC'"],
        ["old < TIMESTAMP '1850-06-01 00:00:05 UTC'"],
    )


def test_clocks_are_put_back(museum: Shown) -> None:
    """apache/doris#65903, #63853: the hour that comes twice makes a cast to local time go back: rows were lost."""
    local = "CAST(ts AS TIMESTAMP_NTZ)"
    museum.check(
        [f"{local} = TIMESTAMP_NTZ '2024-11-03 01:{m}:00'" for m in ("55", "03", "59")]
        + [
            "hour(ts) = 1 AND minute(ts) = 3",
            f"{local} >= TIMESTAMP_NTZ '2024-11-03 01:55:00'",
            "date_format(ts, 'mm') = '55'",
        ],
        ["ts < TIMESTAMP '2024-11-03 05:00:20 UTC'", "hour(ts) = 2"],
    )


def test_another_time_zone(museum: Shown) -> None:
    """ClickHouse/ClickHouse#86654: what was indexed in one time zone was asked in another, and found nothing."""
    for zone in ("Europe/Bucharest", "Pacific/Kiritimati", "UTC"):
        with having((museum.plain, museum.attached), {"spark.sql.session.timeZone": zone}):
            museum.check(["hour(ts) <> 1", "minute(ts) = 3", "CAST(ts AS DATE) >= '2024-11-03'"], ["number < 5"])


def test_month(museum: Shown) -> None:
    """duckdb/duckdb-iceberg#555: `ts < '2025-02-01'` on partitions by month found nothing."""
    museum.check(
        [
            "month(day) = 2",
            "day < DATE '2024-02-01'",
            "day = DATE '2025-02-01'",
            "trunc(day, 'MM') = DATE '2025-02-01'",
            "day < '2024-02-01'",
            "CAST(day AS TIMESTAMP) < TIMESTAMP '2024-01-03 00:00:00'",
        ],
        ["day < DATE '2024-02-01'", "day = '2025-02-01'"],
    )


def test_function_without_a_value(museum: Shown) -> None:
    """StarRocks/starrocks#77596: rows where the function is NULL lie in the NULL partition, yet the range holds."""
    museum.check(
        [
            "try_divide(100, number - 5) IS NULL",
            "NOT (coalesce(try_divide(100, number - 5) > 1, false))",
            "CAST(word AS INT) IS NULL",
        ],
        ["number = 5"],
    )


@pytest.mark.parametrize("kind", ["LEGACY", "CORRECTED"])
def test_old_calendar(
    sessions: tuple[SparkSession, SparkSession], tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    """apache/spark#33347 (SPARK-36034): dates before 1582 in the old calendar were compared with the new one's."""
    spark, attached = sessions
    folder = tmp_path_factory.mktemp("calendar")
    modes = {f"spark.sql.parquet.{x}RebaseModeInWrite": kind for x in ("datetime", "int96")}
    columns = (
        "id",
        "date_add(DATE '1001-01-01', CAST(id AS INT)) AS day",
        "TIMESTAMP '1001-01-01 01:02:03' + make_dt_interval(id) AS ts",
    )
    with having(
        sessions,
        {**modes, "spark.sql.parquet.outputTimestampType": "INT96" if kind == "LEGACY" else "TIMESTAMP_MICROS"},
    ):
        spark.range(400).selectExpr(*columns).coalesce(1).write.parquet(f"{folder}/ages")
        learned = by_ranges(
            spark, f"{folder}/ages", "id", 100, ["day < '1001-02-01' AND ts IS NULL"], "ages", sample_rows=400
        )
        table = hr.apply(spark, f"{folder}/ages", learned, f"{folder}/laid")
    Shown(spark, attached, f"parquet.`{folder}/laid`", f"parquet.`{folder}/ages`", table).check(
        [
            "day = DATE '1001-04-10'",
            "day = DATE '1001-04-11'",
            "day < DATE '1001-01-05'",
            "ts = TIMESTAMP '1001-01-01 01:02:03'",
            "ts >= TIMESTAMP '1002-02-03 00:00:00'",
            "day BETWEEN DATE '1001-04-09' AND DATE '1001-04-12'",
        ],
        ["id < 5"],
    )
