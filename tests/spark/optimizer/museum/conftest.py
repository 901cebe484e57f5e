"""The tables of the museum (`tests/support/museum`), written once for all its rooms."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.spark.start.delta_jars import NO_DELTA
from tests.support.laid_tables import needs_delta
from tests.support.lay_out import by_ranges
from tests.support.museum import ASKED, COLUMNS, FILES, PAGES, ROWS, SETTINGS, Shown, having


@pytest.fixture(scope="package")
def sessions(spark: SparkSession) -> Iterator[tuple[SparkSession, SparkSession]]:
    """One that is not attached, and one that is."""
    attached = spark.newSession()
    with having((spark, attached), SETTINGS):
        hr.attach(attached)
        yield spark, attached
        hr.detach(attached)


@pytest.fixture(scope="package")
def laid(sessions: tuple[SparkSession, SparkSession], tmp_path_factory: pytest.TempPathFactory) -> list[Shown]:
    """The shared table as Parquet and, where there is Delta, as Delta."""
    from hedgerow.spark.storage.delta_log import has_delta

    spark, attached = sessions
    folder = tmp_path_factory.mktemp("museum")
    source = str(folder / "museum")
    spark.range(ROWS).selectExpr(*COLUMNS).coalesce(1).write.parquet(source)
    learned = by_ranges(spark, source, "id", ROWS // FILES, ASKED, "museum")
    truth = f"parquet.`{source}`"
    table = hr.apply(spark, source, learned, str(folder / "parquet"), hr.WriteOptions(parquet=PAGES))
    found = [Shown(spark, attached, f"parquet.`{folder}/parquet`", truth, table)]
    if has_delta(spark):
        path = str(folder / "delta")
        spark.read.parquet(source).write.format("delta").save(path)
        found.append(Shown(spark, attached, f"delta.`{path}`", truth, hr.apply(spark, path, learned)))
    assert all(len(spark.table(shown.name).inputFiles()) == FILES for shown in found)
    return found


@pytest.fixture(scope="package", params=["parquet", "delta"])
def museum(laid: list[Shown], request: pytest.FixtureRequest) -> Shown:
    if request.param == "delta" and len(laid) < 2:
        pytest.skip(NO_DELTA)
    return laid[1 if request.param == "delta" else 0]


@pytest.fixture(scope="package")
def changed(sessions: tuple[SparkSession, SparkSession]) -> Iterator[Shown]:
    """A Delta table laid out, then given a column, rows, crosswise other names of two columns, and deleted rows."""
    spark, attached = sessions
    needs_delta(spark)
    properties = "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true'"
    spark.sql(
        f"CREATE TABLE museum_changed USING delta TBLPROPERTIES ({properties}) AS "
        "SELECT id, CAST(id AS INT) AS a, CAST(id + 5000 AS INT) AS b FROM range(400)"
    )
    learned = by_ranges(
        spark, "museum_changed", "id", 100, ("a < 5", "b < 5005", "id < 5"), "museum_changed", sample_rows=400
    )
    hr.apply(spark, "museum_changed", learned)
    spark.sql("ALTER TABLE museum_changed ADD COLUMN extra INT")
    spark.sql("INSERT INTO museum_changed SELECT id, id, id + 5000, IF(id % 2 = 0, id, NULL) FROM range(400, 450)")
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        spark.sql(f"ALTER TABLE museum_changed RENAME COLUMN {old} TO {new}")
    spark.sql("DELETE FROM museum_changed WHERE id % 100 IN (0, 99)")
    table = hr.table(spark, "museum_changed")
    yield Shown(spark, attached, "museum_changed", "museum_changed", table)
    spark.sql("DROP TABLE museum_changed")
