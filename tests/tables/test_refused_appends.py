"""An append that is refused while it writes, or has no rows, leaves the table as it was, file by file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hedgerow as hr
from tests.support.answers import answer
from tests.support.delta_tables import by_number, more, now, write
from tests.support.folder_contents import contents
from tests.support.things_table import ROWS, by_id, write_things

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def last_row_as(spark: SparkSession, column: str, value: str) -> DataFrame:
    """New rows in many tasks, of which only the last is odd: other tasks have written files by then."""
    rows = more(spark, 10_000, 4000)
    kind = rows.schema[column].dataType.simpleString()
    return rows.withColumn(column, rows[column]).selectExpr(
        f"* EXCEPT ({column})", f"CAST(IF(id = 13999, {value}, {column}) AS {kind}) AS {column}"
    )


@pytest.mark.parametrize("format_", ["parquet", "delta"])
def test_a_row_that_fails(delta: SparkSession, tmp_path: Path, format_: str) -> None:
    path = str(tmp_path / "things")
    if format_ == "delta":
        table = by_number(delta, write(delta, path))
    else:
        table = by_id(delta, write_things(delta, str(tmp_path / "source")), path, ["number < 100"])
    before = contents(Path(path))
    with pytest.raises(hr.HedgerowError, match="nothing could be appended"):
        table.append(last_row_as(delta, "word", "raise_error('boo')"))
    assert contents(Path(path)) == before
    table.append(more(delta).where("id < 0"))
    assert contents(Path(path)) == before, "no rows, no files"
    assert table.append(more(delta)).verify()["rows"] == ROWS + 100


@pytest.mark.parametrize("odd", [("number", "2000000"), pytest.param(("id", "NULL"), marks=pytest.mark.long)])
def test_a_row_that_delta_refuses(delta: SparkSession, tmp_path: Path, odd: tuple[str, str]) -> None:
    path = write(delta, str(tmp_path / "things"))
    delta.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT small CHECK (number < 1000000)")
    delta.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT known CHECK (id IS NOT NULL)")
    table = by_number(delta, path)
    before, files = answer(now(delta, path)), contents(Path(path))
    with pytest.raises(hr.HedgerowError, match="nothing could be appended"):
        table.append(last_row_as(delta, *odd))
    assert answer(now(delta, path)) == before and contents(Path(path)) == files
