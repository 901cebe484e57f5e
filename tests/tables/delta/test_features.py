"""What Delta tables may have beside rows: a rewrite leaves it as it was, and it still does its work after."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import hedgerow as hr
from tests.support.answers import answer
from tests.support.delta_tables import FILES, by_number, check, now, write
from tests.support.things_table import COLUMNS, ROWS

pytestmark = pytest.mark.long


def test_a_shallow_clone(delta: SparkSession, tmp_path: Path) -> None:
    path, clone = write(delta, str(tmp_path / "things")), str(tmp_path / "clone")
    source = by_number(delta, path)
    delta.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{path}`")
    before, files = answer(now(delta, clone)), source.files()
    delta.sql(f"DELETE FROM delta.`{clone}` WHERE number = 7")
    table = by_number(delta, clone)
    assert check(delta, table) > FILES
    assert answer(now(delta, clone)).rows == before.rows - 1
    assert source.files() == files and answer(now(delta, path)) == before, "the clone's rows are its own now"
    by_number(delta, path, where=files[:2])
    assert answer(now(delta, path)) == before
    table.rollback()
    assert answer(now(delta, clone)).rows == before.rows - 1, "files in the other table's place are back"


def test_identity_and_generated_columns(delta: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "made")
    delta.sql(
        f"CREATE TABLE delta.`{path}` (number INT, own BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 100 INCREMENT BY 3),"
        " tens INT GENERATED ALWAYS AS (CAST(number / 10 AS INT)), mark STRING DEFAULT 'new') USING delta"
        " TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    numbers = f"SELECT CAST(id * 7919 % {ROWS} AS INT) AS number FROM range({ROWS})"
    delta.sql(f"INSERT INTO delta.`{path}` (number) {numbers}")
    before = answer(now(delta, path))
    table = by_number(delta, path, ["number < 100", "tens = 5", "own > 5000"])
    assert answer(now(delta, path)) == before
    check(delta, table, ["number < 100", "tens = 5", "own > 5000", "mark = 'new'"])
    delta.sql(f"INSERT INTO delta.`{path}` (number) VALUES (777777)")
    [row] = now(delta, path).where("number = 777777").collect()
    most = now(delta, path).where("number < 777777").selectExpr("max(own) AS m").collect()[0]["m"]
    assert (row["tens"], row["mark"]) == (77777, "new") and row["own"] > most and row["own"] % 3 == 1
    check(delta, table, ["tens = 77777", "tens = 5"])


@pytest.mark.parametrize("learner", ["range", "qdtree", "zorder"])
@pytest.mark.parametrize("partitioned", ["", "PARTITIONED BY (tens)"])
def test_appended_rows_lack_columns(delta: SparkSession, tmp_path: Path, learner: str, partitioned: str) -> None:
    """Those that Delta makes as it writes; the layout and the partitions are made of them."""
    path = str(tmp_path / "made")
    delta.sql(
        f"CREATE TABLE delta.`{path}` (number INT, own BIGINT GENERATED ALWAYS AS IDENTITY,"
        " tens INT GENERATED ALWAYS AS (CAST(number / 50 AS INT)), `a mark` STRING DEFAULT 'new', note STRING)"
        f" USING delta {partitioned} TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported',"
        " 'delta.columnMapping.mode' = 'name')"
    )
    numbers = "SELECT CAST(id * 7919 % 400 AS INT) AS number FROM range({}, {})"
    delta.sql(f"INSERT INTO delta.`{path}` (number) {numbers.format(0, 400)}")
    asked = ["tens = 5", "tens < 3 AND own > 50", "own BETWEEN 30 AND 60", "`a mark` = 'new'", "note IS NULL"]
    workload = hr.Workload.from_sql([f"SELECT * FROM made WHERE {c}" for c in asked])
    learned = hr.learn(delta, path, workload, learner, hr.LearnOptions(block_rows=50))
    table = hr.apply(delta, path, learned, options=hr.WriteOptions(sort_by=["own", "tens"]))
    table.append(delta.sql(numbers.format(400, 440)))
    table.append(delta.sql(numbers.format(440, 480)).withColumn("TENS", f.expr("CAST(number / 50 AS INT)")))
    found = now(delta, path)
    assert found.where("tens <=> CAST(number / 50 AS INT)").count() == 480
    assert found.select("own").distinct().count() == 480 and found.where("own IS NULL").isEmpty()
    opened = hr.table(delta, path)
    opened.verify()
    check(delta, opened, asked)  # type: ignore[arg-type]
    with pytest.raises(hr.HedgerowError, match="nothing could be appended"):
        table.append(delta.sql(numbers.format(480, 490)).withColumn("tens", f.lit(1)))


def test_constraints(delta: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "things")
    columns = "id BIGINT NOT NULL, number INT, price DECIMAL(6, 2), kind STRING, word STRING"
    delta.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta")
    delta.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT small CHECK (number < 1000000)")
    rows = delta.range(ROWS).selectExpr(*COLUMNS).select("id", "number", "price", "kind", "word")
    rows.repartition(3, "price").write.format("delta").mode("append").save(path)
    table = by_number(delta, path)
    assert check(delta, table) > FILES
    for odd in ("CAST(2000000 AS INT) AS number", "CAST(NULL AS BIGINT) AS id"):
        name = odd.rsplit(" ", 1)[-1]
        with pytest.raises(hr.HedgerowError, match="nothing could be appended"):
            table.append(now(delta, path).limit(1).selectExpr(f"* EXCEPT ({name})", odd))
    assert answer(now(delta, path)).rows == ROWS
    assert table.snapshot().properties["delta.constraints.small"] == "number < 1000000"


def test_append_only(delta: SparkSession, tmp_path: Path) -> None:
    path = write(delta, str(tmp_path / "things"), appendOnly="true")
    before = answer(now(delta, path))
    table = by_number(delta, path)
    assert answer(now(delta, path)) == before and check(delta, table) > FILES
