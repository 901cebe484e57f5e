"""What a query ends in, rows or an error, in a form that can be compared; and the files that it skipped.

Rows are compared as multisets with their types. Doubles may differ by a relative 1e-9: a sum of doubles depends on the
order in which tasks end, with or without us.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import hedgerow as hr
from tests.support.answers import scans

CLOSE = 1e-9
Rows = tuple[Any, ...]


@dataclass(frozen=True)
class Outcome:
    """The rows in one fixed order, or the class of an error.

    refused: Spark did not even plan the statement: it is wrong, or has to be, as many of Spark's own are.
    """

    columns: str = ""
    rows: Rows = ()
    error: str = ""
    refused: bool = False


def outcome(query: Callable[[], DataFrame], rows_of: Callable[[DataFrame], Sequence[Any]]) -> Outcome:
    try:
        frame = query()
    except Exception as error:
        return Outcome(error=error_class(error), refused=True)
    try:
        rows = sorted(rows_of(frame), key=_order)
    except Exception as error:
        return Outcome(error=error_class(error))
    return Outcome(frame._jdf.schema().catalogString(), tuple(rows))


def error_class(error: Exception) -> str:
    """Spark's name for the error, such as DIVIDE_BY_ZERO; else that of the exception."""
    if isinstance(error, PySparkException) and error.getCondition():
        return str(error.getCondition())
    java = getattr(error, "java_exception", None)
    while java is not None:
        condition = java.getCondition() if hasattr(java, "getCondition") and _is_spark_error(java) else None
        if condition:
            return str(condition)
        if java.getCause() is None:
            return str(java.getClass().getName())
        java = java.getCause()
    return type(error).__name__


def _is_spark_error(java: Any) -> bool:
    return any(i.getSimpleName() == "SparkThrowable" for i in _interfaces(java.getClass()))


def _interfaces(of: Any) -> Iterator[Any]:
    while of is not None:
        yield from of.getInterfaces()
        of = of.getSuperclass()


def same(a: Outcome, b: Outcome) -> bool:
    if (a.columns, a.error, a.refused, len(a.rows)) != (b.columns, b.error, b.refused, len(b.rows)):
        return False
    return all(map(_close, a.rows, b.rows))


def within(some: Outcome, whole: Outcome) -> bool:
    """Is each of these rows one of those, as often?"""
    missing = Counter(map(_rounded, some.rows)) - Counter(map(_rounded, whole.rows))
    return some.columns == whole.columns and not some.error and not missing


def _close(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return math.isclose(a, b, rel_tol=CLOSE, abs_tol=CLOSE) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_close, a, b))
    return bool(a == b)


def _order(row: Any) -> tuple[str, list[float]]:
    """By all but the doubles first, so that rows whose doubles are nearly equal stand side by side."""
    floats: list[float] = []
    return _masked(row, floats), floats


def _masked(value: Any, floats: list[float]) -> str:
    if isinstance(value, float):
        floats.append(math.inf if math.isnan(value) else value)
        return "~"
    if isinstance(value, list | tuple):
        return "(" + ", ".join(_masked(v, floats) for v in value) + ")"
    return repr(value)


def _rounded(row: Any) -> str:
    floats: list[float] = []
    return f"{_masked(row, floats)} {[f'{x:.7g}' for x in floats]}"


def difference(plain: Outcome, found: Outcome) -> str:
    if plain.error or found.error:
        return f"plain {plain.error or f'{len(plain.rows)} rows'}, with us {found.error or f'{len(found.rows)} rows'}"
    if plain.columns != found.columns:
        return f"plain columns {plain.columns}, with us {found.columns}"
    lost = [row for row in plain.rows if row not in found.rows]
    gained = [row for row in found.rows if row not in plain.rows]
    return f"plain {len(plain.rows)} rows, with us {len(found.rows)}; lost {lost[:3]}, gained {gained[:3]}"


def collected(frame: DataFrame) -> Sequence[Any]:
    return [tuple(row) for row in frame.collect()]


# --- files ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Skipped:
    """What the attached session decided for its last query."""

    scans: int = 0
    files: int = 0
    opened: int = 0

    def __bool__(self) -> bool:
        return self.opened < self.files


def skipped(spark: SparkSession, frame: DataFrame) -> Skipped:
    """The reports of the frame's query; they stay those of an older one where a query reads no file."""
    if "parquet" not in frame._jdf.queryExecution().optimizedPlan().toString():
        return Skipped()
    reports = hr.last_query(spark)
    return Skipped(len(reports), sum(r.files for r in reports), sum(r.files_opened for r in reports))


def opened(executed: DataFrame) -> int:
    """How many files a query that was run has read, by its final plan."""
    return sum(scan.files for scan in scans(executed))
