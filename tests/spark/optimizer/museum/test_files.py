"""Exhibits of the museum (`tests/support/museum`): conditions, columns and files."""

from __future__ import annotations

import pytest

from tests.support.museum import ZONE, Shown, having

pytestmark = pytest.mark.long


def test_or_with_a_side_that_is_not_understood(museum: Shown) -> None:
    """apache/auron#2369: `id = 5 OR <cannot be pushed>` became `id = 5`, and NOT (a AND <cannot>) became NOT a."""
    museum.check(
        [
            "number = 5 OR digits = 1700",
            "number = 5 OR rand() >= 0",
            "number = 5 OR sha1(digits) = sha1('1700')",
            "NOT (number = 5 AND sha1(digits) = 'x')",
            "NOT (number <> 5 AND sha1(digits) <> sha1('1700'))",
        ],
        ["number = 5 OR digits = 1700 AND number > 1600", "number = 5 AND rand() >= 0"],
    )


def test_pages_of_several_columns(museum: Shown) -> None:
    """apache/datafusion#24355, trinodb/trino#20267: row groups were dropped, but not what was selected of their rows."""
    museum.same(
        "SELECT id, number FROM $T WHERE number % 250 BETWEEN 100 AND 149 AND nan < 1e9D ORDER BY word DESC LIMIT 7"
    )
    museum.same("SELECT id, long FROM $T WHERE pmod(number, 250) >= 200 AND tiny > 4 ORDER BY number DESC LIMIT 60")
    museum.check(
        ["number < 60 AND price < -1200 OR number > 1940 AND tiny = 7"],
        ["number BETWEEN 120 AND 130 AND word > 'a_0125'"],
    )


def test_bounds_of_one_column_in_several_parts(museum: Shown) -> None:
    """apache/datafusion#25226: bounds of the row groups that have some were taken for those of the whole file."""
    museum.same("SELECT min(long), max(long), min(nan), max(nan), min(late), max(uid), count(late) FROM $T")
    museum.same(
        "SELECT min(long), max(astral), max(fine), max(wall), min(zero) FROM $T WHERE number >= 500 AND number < 1000"
    )
    museum.check(["long >= 'hhhh'"], ["long >= 'hhhh'"])


def test_answer_of_an_earlier_query(museum: Shown) -> None:
    """apache/doris#65489: what was known of the first row group was used again for the others and their literals."""
    museum.check(
        [f"number = {n} AND word LIKE '%{n}'" for n in (5, 1700, 5, 700, 1999)], ["number = 5", "number = 1700"]
    )


def test_statistics_of_renamed_columns(changed: Shown) -> None:
    """ClickHouse/ClickHouse#117323: after two columns changed names, bounds were looked up under the other's name."""
    changed.check(["b = 150", "a = 5150", "a < 5010", "b > 440"], ["b = 150", "a < 5010", "a = 150"])


def test_deleted_rows_and_tight_bounds(changed: Shown) -> None:
    """delta-io/delta-kernel-rs#2664, #3060: bounds still counted as tight after rows were deleted: wrong MIN and MAX."""
    changed.same("SELECT min(id), max(id), min(a), max(b), count(*), count(extra) FROM $T")
    changed.same("SELECT min(id), max(id), count(*) FROM $T WHERE b >= 100 AND b < 200")
    changed.check(["b >= 1 AND b < 100", "b <= 399 AND b > 297", "b <> 100"], ["b = 100", "b = 101"])


def test_columns_named_in_another_case(museum: Shown) -> None:
    """apache/spark#37419 (SPARK-39833): a filter on `col` met a file with `COL`, and whole files came out empty."""
    museum.check(["NUMBER = 5", "Parts.X = 700", "`WORD` LIKE 'a%'"], ["NUMBER = 5"])
    museum.same("SELECT count(*) FROM $T WHERE NUMBER >= 1990")


def test_literals_in_the_zone_of_the_session(museum: Shown) -> None:
    """Basekick-Labs/arc#682: times without a zone were read as UTC, while the engine compared them in its own zone."""
    for zone in (ZONE, "Asia/Tokyo"):
        with having((museum.plain, museum.attached), {"spark.sql.session.timeZone": zone}):
            museum.check(
                ["ts >= '2024-11-03 00:20:00'", "day >= '2024-06-01'"], ["ts >= '2030-01-01 00:00:00'", "number < 5"]
            )
