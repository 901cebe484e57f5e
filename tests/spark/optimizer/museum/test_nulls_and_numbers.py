"""Exhibits of the museum (`tests/support/museum`): NULL, NaN, numbers and casts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.museum import Shown

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.long

# --- NULLs ----------------------------------------------------------------------------------------


def test_null_count_is_unknown(museum: Shown, changed: Shown) -> None:
    """apache/hudi#19645: files whose NULL count was unknown (the column came later) were skipped under IS NULL."""
    museum.check(
        ["late IS NULL", "late <=> NULL", "late IS NULL AND number > 900"], ["late = 1500", "late IS NOT NULL"]
    )
    changed.check(["extra IS NULL", "extra <=> NULL", "extra IS NULL AND b > 390"], ["b = 150"])


def test_and_or_with_a_column_without_statistics(changed: Shown) -> None:
    """apache/hudi#10389 (HUDI-7246): no result when a condition named columns with and without statistics."""
    changed.check(
        ["extra = 410 OR b = 150", "extra = 410 AND b = 410", "b < 350 AND extra IS NULL"], ["b < 50 OR b = 51"]
    )


def test_null_under_unequal(museum: Shown) -> None:
    """deephaven/deephaven-core#8425: `X != 5` on [5, NULL] was answered from minimum and maximum alone: nothing."""
    museum.check(
        ["NOT (five <=> 5)", "five IS DISTINCT FROM 5", "five <> 5"], ["five <=> 700", "five <> 5 AND id < 250"]
    )


def test_partition_with_null_and_a_value(museum: Shown) -> None:
    """StarRocks/starrocks#78946: a partition of ('beijing', NULL) was dropped under IS NOT NULL, != and in joins."""
    museum.check(
        ["city IS NOT NULL AND id < 250", "city <> 'shanghai'", "city NOT IN ('shanghai')"],
        ["city = 'shanghai'", "city <> 'shanghai' AND id < 500"],
    )
    museum.same("SELECT t.id FROM $T t JOIN (VALUES ('beijing'), ('c7')) AS v(city) ON t.city = v.city")


def test_function_that_takes_null_away(museum: Shown) -> None:
    """ClickHouse/ClickHouse#121133: the NULL partition was skipped though `ifNull` and the like made it match."""
    museum.check(
        ["coalesce(five, 0) = 0", "coalesce(late, 1100) = 1100", "nvl(five, 3) < 4", "(late IS NULL) <=> true"],
        ["coalesce(five, 0) = 700"],
    )


def test_in_list_with_null(museum: Shown) -> None:
    """apache/parquet-java#3639: row groups with matching NULLs were dropped for `IN (..., null)`."""
    museum.check(
        ["late IN (1100, NULL)", "(late IN (1100, NULL)) IS NULL", "coalesce(late IN (1100, NULL), true)"],
        ["late IN (1100, NULL)", "late IN (1100, 1101)"],
    )
    museum.same("SELECT count(*) FROM $T WHERE late NOT IN (5, NULL)")
    museum.same("SELECT id FROM $T WHERE late NOT IN (SELECT CAST(v AS INT) FROM VALUES (1100), (7) AS s(v))")


def test_required_field_of_a_struct_that_may_be_null(museum: Shown) -> None:
    """apache/iceberg#18069: `stats.measurement IS NULL` lost rows whose whole struct is NULL."""
    museum.check(["parts.x IS NULL", "parts IS NULL", "NOT (parts.x <=> 57D)"], ["parts.x = 700", "parts IS NULL"])


def test_all_rows_match_but_for_nulls(museum: Shown) -> None:
    """apache/datafusion#21907: a row group counted as matching wholly, though rows with NULL do not match."""
    museum.check(["five > 0", "five <= 5", "NOT (five > 5)"], ["five < 5 OR five = 600"])
    museum.same("SELECT count(*), count(five) FROM $T WHERE five > 0")


def test_nulls_last(museum: Shown) -> None:
    """duckdb/duckdb#20823: ORDER BY ... NULLS LAST with an offset skipped row groups that are all NULL."""
    museum.same("SELECT id, late FROM $T ORDER BY late NULLS LAST, id LIMIT 5 OFFSET 1000")
    museum.same("SELECT id, late FROM $T WHERE id >= 750 ORDER BY late NULLS FIRST, id LIMIT 5 OFFSET 248")
    museum.check(["late IS NULL"], ["late > 1900"])


# --- numbers --------------------------------------------------------------------------------------


def test_nan_is_not_in_the_footer(museum: Shown) -> None:
    """delta-io/delta#7101: writers leave NaN out of the footer's maximum, and files with NaN were skipped."""
    museum.check(
        [
            "nan > 1000",
            "nan = double('NaN')",
            "isnan(nan)",
            "NOT (nan <= 1e308D)",
            "nan >= double('Infinity')",
            "nan <> 5",
        ],
        ["nan < 3", "nan BETWEEN 150 AND 160"],
    )


def test_one_nan_spoils_the_bounds(museum: Shown) -> None:
    """apache/hudi#18754, apache/iceberg#6517: a NaN left the bounds at 0.0, or undefined, and other rows were lost."""
    museum.check(["nan = 25.1D", "nan BETWEEN 26 AND 27", "nan < 26 AND id >= 250"], ["nan = 0.5D"])


def test_float_and_double(museum: Shown) -> None:
    """trinodb/trino#21754: by the statistics of float columns a row group with matching rows was skipped."""
    museum.check(
        ["real > 0.1D", "real <> 0.1D", "real = 0.1F", "real >= 0.1D AND real < 0.2D", "CAST(real AS DOUBLE) > 0.1D"],
        ["real > 1990.5D", "real = 0.1F"],
    )


def test_zeros(museum: Shown) -> None:
    """databendlabs/databend#20520, duckdb/duckdb#23829: `= 0.0` skipped what holds only -0.0, for it hashes otherwise."""
    museum.check(
        ["zero = 0.0D", "zero = -0.0D", "zero IN (0.0D, 7D)", "zero <=> -0.0D", "zero >= 0.0D", "NOT (zero <> 0D)"],
        ["zero = 0.0D", "zero < 1D"],
    )


def test_literal_that_does_not_fit(museum: Shown) -> None:
    """apache/spark#44006 (SPARK-46092), #8157 (SPARK-9927): the literal was cut to 32 bits; `a < 2**63-1` was empty."""
    museum.check(
        ["number < 9223372036854775807L", "number < 2147483648", "number > -2147483649", "tiny < 300", "tiny <> 259"],
        ["number < 9223372036854775807L AND tiny = 3L", "tiny = 7", "tiny = 259"],
    )


def test_decimals(museum: Shown) -> None:
    """apache/iceberg-go#1876, hyparam/hyparquet-writer#38: bounds of DECIMAL in INT32 or INT64 were read as others."""
    museum.check(
        [
            "price = -1250",
            "price < -1248.755",
            "price > 1247.499999",
            "price = 1.25D",
            "huge = 100000000000",
            "-price > 1249",
        ],
        ["price = -1250.00", "price BETWEEN 1.2 AND 1.3", "huge > 199800000000000.5", "price = 1.251"],
    )


def test_decimals_by_their_bytes(museum: Shown) -> None:
    """apache/datafusion#22994, #9914: bloom filters hashed another width than was stored, and `=` found nothing."""
    museum.check(["huge = 70000000000000", "tiny = 3", "tiny IN (3Y, 5Y)"], ["huge = 70000000000000", "tiny = 3"])


def test_modulo_is_not_monotone(museum: Shown) -> None:
    """duckdb/duckdb-iceberg#1052: `pk % 8 = 4` on [0, 49] was judged by [0 % 8, 49 % 8] = [0, 1]: no row."""
    museum.check(
        [
            "number % 8 = 4",
            "number % 8 = 2",
            "abs(number - 1125) < 2",
            "pmod(number, 250) = 128",
            "number * number = 15129",
        ],
        ["abs(number - 1125) < 2", "number % 8 = 4 AND number < 8"],
    )


def test_factor_below_zero(museum: Shown) -> None:
    """apache/hudi#19445: multiplying by a negative literal turns the order around, the bounds were not turned."""
    museum.check(
        ["number * -1 > -5", "-number > -5", "1000 - number > 990", "number / -2 > -2"], ["number < 5", "-number > -5"]
    )


def test_cast_that_wraps(museum: Shown) -> None:
    """apache/hudi#19445: without ANSI `CAST(bigint AS INT)` wraps, and [cast(min), cast(max)] bounds nothing."""
    museum.check(
        ["CAST(big AS INT) > 2147480000", "CAST(big AS INT) = 1", "CAST(big AS SMALLINT) = -1"], ["id < 5 AND big > 1"]
    )


def test_cast_of_texts(museum: Shown) -> None:
    """StarRocks/starrocks#78024: a range of texts was mapped onto their numbers, where '99845' < '998425506019'."""
    museum.check(
        [
            "digits > '995'",
            "digits < '2'",
            "CAST(digits AS INT) > 1990",
            "digits = 1999",
            "digits BETWEEN '10' AND '101'",
        ],
        ["CAST(digits AS INT) > 1990", "digits = '1234' AND id > 900"],
    )
