"""Small Delta tables of things, laid out by number, and the check that they answer as before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import hedgerow as hr
from hedgerow.tables.managed import ManagedTable
from tests.support.answers import answers, ask_all
from tests.support.lay_out import by_ranges
from tests.support.things_table import COLUMNS, ROWS

FILES = 8
ASKED = ["number < 100", "number BETWEEN 500 AND 600 AND kind = 'n'", "word LIKE '%9'", "price > 90 OR number = 7"]


def write(spark: SparkSession, path: str, rows: DataFrame | None = None, files: int = 3, **properties: str) -> str:
    """Rows in no good order."""
    frame = spark.range(ROWS).selectExpr(*COLUMNS) if rows is None else rows
    mixed = frame.repartition(files, "price") if "price" in frame.columns else frame.repartition(files)
    options = {f"delta.{key.replace('__', '.')}": value for key, value in properties.items()}
    mixed.write.format("delta").options(**options).save(path)
    return path


def by_number(spark: SparkSession, path: str, conditions: list[str] | None = None, **how: Any) -> ManagedTable:
    learned = by_ranges(spark, path, "number", ROWS // FILES, conditions or ASKED, "things")
    table = hr.apply(spark, path, learned, **how)
    assert isinstance(table, ManagedTable)
    return table


def data_files(path: str) -> list[str]:
    """The names of the table's data files, those that no version lists included."""
    found = (file.relative_to(path) for file in Path(path).rglob("*.parquet"))
    return sorted(str(name) for name in found if not name.parts[0].startswith("_"))


def now(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.format("delta").load(path)


def check(spark: SparkSession, table: ManagedTable, conditions: list[str] | None = None) -> int:
    """All rows, and those of each condition; how many files were skipped for the conditions together."""
    asked = conditions or ASKED
    found, opened = ask_all([table.read(where=c) for c in asked])
    for c, ours, plain in zip(asked, found, answers(now(spark, table.path), asked), strict=True):
        assert ours == plain, c
    kept = sum(len(table.files(where=c)) for c in asked)
    assert sum(scan.files for scan in opened) <= kept  # Spark may see that it needs no scan
    return len(asked) * len(table.files()) - kept


# --- what a rewrite does, and what it leaves as it was ---------------------------------------------


def more(spark: SparkSession, start: int = 10_000, n: int = 100) -> DataFrame:
    return spark.range(start, start + n).selectExpr(*COLUMNS)
