"""An append that is refused while it writes, has no rows or is killed leaves the table as it was, file by file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import hedgerow as hr
from hedgerow.tables.parquet.runs import new_run
from tests.support.answers import answer
from tests.support.delta_tables import by_number, more, now, write
from tests.support.folder_contents import contents
from tests.support.things_table import ROWS, by_id, write_things


def last_row_as(spark: SparkSession, column: str, value: str) -> DataFrame:
    """New rows in many tasks, of which only the last is odd: other tasks have written files by then."""
    rows = more(spark, 10_000, 4000)
    kind = rows.schema[column].dataType.simpleString()
    return rows.withColumn(column, rows[column]).selectExpr(
        f"* EXCEPT ({column})", f"CAST(IF(id = 13999, {value}, {column}) AS {kind}) AS {column}"
    )


@pytest.mark.parametrize("format_", [pytest.param("parquet", marks=pytest.mark.long), "delta"])
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


def test_killed_appends(spark: SparkSession, tmp_path: Path) -> None:
    """The next append deletes what they left, but not the files of runs that work."""
    table = by_id(spark, write_things(spark, str(tmp_path / "source")), str(tmp_path / "things"), ["number < 100"])
    side, works = Path(table.path, "_hedgerow"), new_run()
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    killed = works.replace(f"-{os.getpid()}-", f"-{int(ended.stdout)}-")
    for run in (works, killed):
        (side / f"append-{run}").mkdir()
        shutil.copy(Path(table.path, table.files()[0]), side / f"append-{run}" / "part-0-left.parquet")
    for name in ("auto.lock.12345678.partial", "auto.lock.23456789.partial"):
        (side / name).touch()
    os.utime(side / "auto.lock.12345678.partial", (0, 0))
    assert table.append(more(spark)).verify()["rows"] == ROWS + 100
    left = {path.name for path in side.iterdir() if path.name.startswith(("append-", "auto.lock"))}
    assert left == {f"append-{works}", "auto.lock.23456789.partial"}
