"""Queries whose answer depends on which rows are read together: rand(3) starts anew in each task, and counts its rows.

    files          1 | 2 | 3 | 4 | 5 | 6 | 7 | 8      a task for each
    all            .   .   .   .   a   b   .   .      a is the first row that the fifth task's rand(3) sees
    5 and 6 only   a | b                              now it is that of the first task

So all files are opened for them, and the reason is told. Other queries, even if Spark does not promise which of several
answers they have, skip files as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as f

import hedgerow as hr
from hedgerow.spark.start.session import configured
from tests.support.delta_tables import by_number, now, write
from tests.support.laid_tables import needs_delta
from tests.support.lay_out import by_ranges
from tests.support.things_table import FILES, ROWS, by_id, write_things

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

Query = str | Callable[["SparkSession"], "DataFrame"]
# `some` has the rows of two files, `things` all.
# Minima and maxima do not tell that, so neither Parquet nor Delta skips files by itself.
SOME = "number DIV 250 IN (4, 5)"


def some(spark: SparkSession) -> DataFrame:
    return spark.table("things").where(SOME)


def tasks(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """The number of the task, for each batch."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    for batch in batches:
        yield batch[:1].assign(id=context.partitionId())


def numbered(frame: DataFrame) -> DataFrame:
    """With a number for each row, where Spark has that."""
    return frame.zipWithIndex() if hasattr(frame, "zipWithIndex") else frame.sample(fraction=0.5, seed=3)


VALUES = [
    "rand(3)", "randn(3)", "monotonically_increasing_id()", "spark_partition_id()", "uniform(0, 1000, 3)", "randstr(4, 3)",
    "shuffle(array(id, number, 3L, 4L, 5L, 6L), 3)", "CAST(10 * rand(3) AS INT) + number", "IF(number % 2 = 0, 0, rand(3))",
]  # fmt: skip
BY_PLACE: dict[str, Query] = {
    **{value: f"SELECT id, {value} FROM things WHERE {SOME}" for value in VALUES},
    "filter": f"SELECT id FROM things WHERE {SOME} AND rand(3) < 0.5",
    "filter first": f"SELECT id FROM things WHERE rand(3) < 0.5 AND {SOME}",
    "filter above": f"SELECT id FROM (SELECT id, rand(3) AS r FROM things WHERE {SOME}) WHERE r < 0.5",
    "below an aggregate": f"SELECT CAST(10 * rand(3) AS INT) AS r, count(*) FROM things WHERE {SOME} GROUP BY r",
    "above an aggregate": f"SELECT *, rand(3) FROM (SELECT kind, count(*) FROM things WHERE {SOME} GROUP BY kind)",
    "above an aggregate's list": f"SELECT shuffle(array_sort(collect_list(id)), 3) FROM things WHERE {SOME} GROUP BY number",
    "order": f"SELECT id FROM things WHERE {SOME} ORDER BY rand(3) LIMIT 20",
    "window": f"SELECT id, row_number() OVER (PARTITION BY kind ORDER BY r) FROM (SELECT *, rand(3) AS r FROM things WHERE {SOME})",
    "IN": f"SELECT number FROM things WHERE {SOME} AND id IN (SELECT id FROM things WHERE {SOME} AND rand(3) < 0.5)",
    "scalar subquery": f"SELECT id FROM things WHERE {SOME} AND number > (SELECT avg(id) FROM things WHERE {SOME} AND rand(3) < 0.1)",
    "join": f"SELECT a.id, b.word FROM (SELECT * FROM things WHERE {SOME} AND rand(3) < 0.5) a JOIN things b ON a.id = b.id",
    "above a join": f"SELECT a.id, rand(3) FROM things a JOIN things b ON a.id = b.id WHERE a.{SOME}",
    "union": f"SELECT id FROM things WHERE {SOME} UNION ALL SELECT id FROM things WHERE {SOME} AND rand(3) < 0.5",
    "CTE, twice": f"WITH c AS (SELECT id, rand(3) AS r FROM things WHERE {SOME}) SELECT * FROM c UNION ALL SELECT id, -r FROM c",
    "TABLESAMPLE": f"SELECT id FROM (SELECT * FROM things WHERE {SOME}) TABLESAMPLE (40 PERCENT) REPEATABLE (3)",
    "TABLESAMPLE of all": f"SELECT id FROM things TABLESAMPLE (40 PERCENT) REPEATABLE (3) WHERE {SOME}",
    "TRANSFORM": f"SELECT TRANSFORM(id) USING 'tail -n 1' AS (id STRING) FROM things WHERE {SOME}",
    "sample": lambda spark: some(spark).select("id").sample(fraction=0.3, seed=3),
    "sampleBy": lambda spark: some(spark).select("id", "kind").sampleBy("kind", {"n": 0.5, "w": 0.2}, seed=3),
    "randomSplit": lambda spark: some(spark).select("id").randomSplit([1.0, 2.0], seed=3)[1],
    "a user's function": lambda spark: some(spark).select("id", f.udf(lambda i: i, "long").asNondeterministic()("id")),
    "mapInPandas": lambda spark: some(spark).select("id").mapInPandas(tasks, "id long"),
    "zipWithIndex": lambda spark: numbered(some(spark).select("id")),
    "cached": lambda spark: some(spark).selectExpr("id", "rand(3)").cache(),
    "read's condition": lambda spark: some(spark).where("rand(3) < 0.5").select("id"),
}  # fmt: skip
# These may have the same answer with fewer files, by chance or because nothing else comes in between.
STEADY = {
    "a user's function", "TABLESAMPLE of all", "filter first", "zipWithIndex", "TRANSFORM", "above an aggregate",
    "above an aggregate's list",
}  # fmt: skip

ORDINARY: dict[str, Query] = {
    "filter": f"SELECT * FROM things WHERE {SOME}",
    "LIMIT": f"SELECT id FROM things WHERE {SOME} LIMIT 5",
    "TABLESAMPLE of rows": f"SELECT id FROM (SELECT * FROM things WHERE {SOME}) TABLESAMPLE (5 ROWS)",
    "first": f"SELECT first(id), last(id), any_value(id), collect_list(id), collect_set(kind) FROM things WHERE {SOME}",
    "row_number": f"SELECT id, row_number() OVER (ORDER BY 1) FROM things WHERE {SOME}",
    "first of a window": f"SELECT first(id) OVER (PARTITION BY kind ORDER BY id) FROM things WHERE {SOME}",
    "time": f"SELECT id, now(), current_date() FROM things WHERE {SOME} AND day < current_date() + 9000",
    "join": f"SELECT a.id FROM things a JOIN things b ON a.id = b.id WHERE a.{SOME}",
    "unused": f"SELECT id FROM (SELECT id, rand(3) FROM things WHERE {SOME})",
    "file": f"SELECT id, upper(input_file_name()) FROM things WHERE {SOME}",
    "dropDuplicates": lambda spark: some(spark).dropDuplicates(["kind"]),
    "a user's function": lambda spark: some(spark).select(f.udf(lambda i: i, "long")("id")),
    "pandas by group": lambda spark: some(spark).select("id", "kind").groupBy("kind").applyInPandas(lambda g: g, "id long, kind string"),
    "metadata": f"SELECT id, _metadata.file_name FROM $T WHERE {SOME}",
}  # fmt: skip


@pytest.fixture(scope="module", params=["parquet", pytest.param("delta", marks=pytest.mark.long)])
def table(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Any]:
    """A table in eight files, also as the view `things`. Each file is read by a task of its own."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "parquet":
        source = write_things(spark, str(folder / "plain"))
        found: Any = by_id(spark, source, str(folder / "things"), [SOME])
        spark.read.parquet(found.path).createOrReplaceTempView("things")
    else:
        needs_delta(spark)
        found = by_number(spark, write(spark, str(folder / "things")), [SOME])
        now(spark, found.path).createOrReplaceTempView("things")
    with configured(spark, files__maxPartitionBytes="4m"):
        yield found
    spark.catalog.dropTempView("things")


def name_of(table: Any) -> str:
    return f"{'delta' if table.format.is_shared else 'parquet'}.`{table.path}`"


def rows(query: Query, spark: SparkSession) -> list[str]:
    frame = spark.sql(query) if isinstance(query, str) else query(spark)
    found = sorted(map(str, frame.collect()))
    frame.unpersist()
    return found


@pytest.fixture
def both(table: Any, spark: SparkSession) -> Iterator[Callable[[Query], tuple[list[str], list[Any]]]]:
    """Runs a query plainly, then attached: the answers have to be equal. Returns the rows, and the scans' reports."""

    def run(query: Query) -> tuple[list[str], list[Any]]:
        hr.detach(spark)
        plain = rows(query, spark)
        hr.attach(spark)
        assert rows(query, spark) == plain
        return plain, hr.last_query(spark)

    yield run
    hr.detach(spark)


@pytest.mark.parametrize("name", BY_PLACE)
def test_all_files_are_opened(both: Any, name: str) -> None:
    found, scans = both(BY_PLACE[name])
    assert found and scans
    assert all(scan.files_opened == scan.files == FILES and "read together" in scan.reason for scan in scans), scans


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in BY_PLACE if name not in STEADY])
def test_fewer_files_would_answer_otherwise(table: Any, spark: SparkSession, name: str) -> None:
    """Or the above would prove nothing."""
    whole = rows(BY_PLACE[name], spark)
    seen = spark.table("things")
    kept = [p for p in seen.inputFiles() if p.rpartition("/")[2] in {n.rpartition("/")[2] for n in table.files(SOME)}]
    assert 0 < len(kept) < FILES
    spark.read.parquet(*kept).createOrReplaceTempView("things")
    try:
        assert rows(BY_PLACE[name], spark) != whole
    finally:
        seen.createOrReplaceTempView("things")


@pytest.mark.parametrize("name", ["filter", "join", "sample", "above a join"])
def test_without_adaptive_plans(both: Any, spark: SparkSession, name: str) -> None:
    with configured(spark, adaptive__enabled="false"):
        both(BY_PLACE[name])


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_queries_skip(table: Any, attached: SparkSession, name: str) -> None:
    query = ORDINARY[name]
    assert rows(query.replace("$T", name_of(table)) if isinstance(query, str) else query, attached)
    scans = hr.last_query(attached)
    assert min(scan.files_opened for scan in scans) == 2 and all(scan.reason is None for scan in scans), scans


def test_the_other_doors(table: Any, spark: SparkSession) -> None:
    where = f"{SOME} AND rand(3) < 0.5"
    sql = f"SELECT id FROM {name_of(table)} WHERE {where}"
    plain = sorted(row.id for row in spark.sql(sql).collect())
    assert sorted(row.id for row in hr.route(spark, sql).collect()) == plain
    assert sorted(row.id for row in table.read(where, ["id"]).collect()) == plain
    assert sorted(row.id for row in table.read(SOME).where("rand(3) < 0.5").collect()) == plain
    assert len(table.files(where)) == FILES > len(table.files(SOME))


def test_where_spark_splits_a_file(table: Any, attached: SparkSession) -> None:
    """How large parts are depends on the size of all files."""
    for value in ("input_file_block_start()", "input_file_block_length()", "_metadata.file_block_start", "_metadata"):
        attached.sql(f"SELECT id, {value} FROM {name_of(table)} WHERE {SOME}").collect()
        assert [scan.files_opened for scan in hr.last_query(attached)] == [FILES], value


def test_a_replica_is_left_alone(spark: SparkSession, tmp_path: Any) -> None:
    source = write_things(spark, str(tmp_path / "plain"))
    table = by_id(spark, source, str(tmp_path / "things"), [SOME])
    second = by_ranges(spark, source, "price", ROWS // FILES, ["price < 5"], "things")
    table = hr.apply(spark, source, second, table.path, replica="second")
    sql = f"SELECT id, price FROM parquet.`{table.path}` WHERE price < 5"
    plain = sorted(map(str, spark.sql(f"{sql} AND rand(3) < 0.5").collect()))
    assert "replicas/second" in hr.route(spark, sql).inputFiles()[0]
    assert sorted(map(str, hr.route(spark, f"{sql} AND rand(3) < 0.5").collect())) == plain
