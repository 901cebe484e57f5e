"""Joins at run time: the keys that one side turns out to have choose the files of the other; the rows are the plain ones.

The table has 8 files, each with a range of every key.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import md5
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import hedgerow as hr
from hedgerow.spark.start.session import temporary_settings
from tests.support.answers import attached_to, scans, without_skipping
from tests.support.lay_out import by_ranges

ROWS, FILES = 4000, 8
STEP = ROWS // FILES
COLUMNS = (
    "id",
    "CAST(id AS INT) AS number",
    "CAST(id DIV 10 AS SMALLINT) AS small",
    "IF(id % 5 = 0, NULL, id) AS gappy",
    "IF(id < 0, id, NULL) AS nothing",
    "lpad(CAST(id AS STRING), 6, '0') AS word",
    "date_add(DATE '2000-01-01', CAST(id AS INT)) AS day",
    "TIMESTAMP_LTZ '2024-01-01 00:00:00 UTC' + make_interval(0, 0, 0, 0, id) AS at",
    "TIMESTAMP_NTZ '2024-01-01 00:00:00' + make_interval(0, 0, 0, 0, id) AS local",
    "CAST(id AS DECIMAL(12, 2)) / 4 AS price",
    "CAST(id AS DOUBLE) AS ratio",
    "hash(id) AS spread",
    "concat(md5(CAST(id AS STRING)), sha2(CAST(id AS STRING), 512), md5(CAST(-id AS STRING))) AS filler",
)
SOME = "SELECT * FROM side WHERE tag = 'some'"  # rows 700 and 705, in file 1, and 3001, in file 6
ALWAYS = {"hedgerow.runtimeBytes": "1", "hedgerow.runtimeSeconds": "600"}
NO_BROADCAST = {"spark.sql.autoBroadcastJoinThreshold": "-1"}

# A query, and how many files are read of its scans of `t`.
CHOSEN: dict[str, tuple[str, list[int] | None]] = {
    "a bigint": ("SELECT t.id, s.tag FROM t JOIN some s ON t.id = s.id", [2]),
    "the other way round": ("SELECT t.id FROM some s JOIN t ON s.id = t.id", [2]),
    "an int": ("SELECT t.id FROM t JOIN some s ON t.number = s.number", [2]),
    "a wider key": ("SELECT t.id FROM t JOIN some s ON t.number = s.id", [2]),
    "a cast of the other key": ("SELECT t.id FROM t JOIN some s ON t.id = s.number", [2]),
    "a smallint as an int": ("SELECT t.id FROM t JOIN some s ON t.small = s.number DIV 10", [2]),
    "with NULLs": ("SELECT t.id FROM t JOIN some s ON t.gappy = s.gappy", [1]),
    "only NULLs": ("SELECT t.id FROM t JOIN some s ON t.nothing = s.id", []),
    "a text": ("SELECT t.id FROM t JOIN some s ON t.word = s.word", [2]),
    "a date": ("SELECT t.id FROM t JOIN some s ON t.day = s.day", [2]),
    "a timestamp": ("SELECT t.id FROM t JOIN some s ON t.at = s.at", [2]),
    "a local time": ("SELECT t.id FROM t JOIN some s ON t.local = s.local", [2]),
    "a decimal": ("SELECT t.id FROM t JOIN some s ON t.price = s.price", [2]),
    "two keys": ("SELECT t.id FROM t JOIN some s ON t.id = s.id AND t.number = s.number", [2]),
    "an expression of the other side": ("SELECT t.id FROM t JOIN some s ON t.id = s.id + 1000", [1]),
    "a condition beside the key": ("SELECT t.id FROM t JOIN some s ON t.id = s.id AND t.spread > s.id", [2]),
    "a condition on the table": ("SELECT t.id FROM t JOIN some s ON t.id = s.id WHERE t.id < 1000", [1]),
    "all columns": ("SELECT * FROM t JOIN some s ON t.id = s.id", [2]),
    "no partner": ("SELECT t.id FROM t JOIN side s ON t.id = s.id + 9000000", []),
    "no row": ("SELECT t.id FROM t JOIN side s ON t.id = s.id WHERE s.tag = 'none'", []),
    "a semi-join": ("SELECT id FROM t LEFT SEMI JOIN some s ON t.id = s.id", [2]),
    "IN": ("SELECT id FROM t WHERE id IN (SELECT id FROM some)", [2]),
    "EXISTS": ("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM some s WHERE s.id = t.id AND s.number < t.id + 1)", [2]),
    "the dropping side": ("SELECT t.id, s.id FROM t RIGHT JOIN some s ON t.id = s.id", None),
    "an aggregate of the table": ("SELECT a.id, n FROM (SELECT id, count(*) n FROM t GROUP BY id) a JOIN some s ON a.id = s.id", [2]),
    "an aggregate as the side": ("SELECT t.id FROM t JOIN (SELECT max(id) AS m FROM some) s ON t.id = s.m", [1]),
    "a union": ("SELECT u.i FROM (SELECT id AS i FROM t UNION ALL SELECT number + 1L FROM t) u JOIN some s ON u.i = s.id", [8, 2]),
    "the table twice": ("SELECT a.id, b.id FROM t a JOIN some s ON a.id = s.id JOIN t b ON b.number = s.number", [8, 2]),
    "two sides": ("SELECT t.id FROM t JOIN some s ON t.id = s.id JOIN (SELECT * FROM side WHERE id < 1000) o ON t.number = o.number", [1]),
    "in a subquery": ("SELECT id FROM side WHERE id > (SELECT min(t.id) FROM t JOIN some s ON t.id = s.id)", [2]),
    "in a CTE that is used twice": ("WITH c AS (SELECT t.id FROM t JOIN some s ON t.id = s.id) SELECT a.id FROM c a, c b", None),
    "before a sort and a limit": ("SELECT t.id, t.word FROM t JOIN some s ON t.id = s.id ORDER BY t.id DESC LIMIT 2", [2]),
}  # fmt: skip
NOT_CHOSEN = {
    "the preserved side": "SELECT t.id, s.tag FROM t LEFT JOIN some s ON t.id = s.id",
    "a full join": "SELECT t.id, s.tag FROM t FULL JOIN some s ON t.id = s.id",
    "an anti join": "SELECT id FROM t LEFT ANTI JOIN some s ON t.id = s.id",
    "NOT IN": "SELECT id FROM t WHERE id NOT IN (SELECT id FROM some)",
    "equal with NULLs": "SELECT t.id FROM t JOIN some s ON t.gappy <=> s.gappy",
    "a float": "SELECT t.id FROM t JOIN some s ON t.ratio = s.ratio",
    "a narrower key": "SELECT t.id FROM t JOIN some s ON CAST(t.id AS INT) = s.number",
    "an expression of the table": "SELECT t.id FROM t JOIN some s ON t.id + 1 = s.id",
    "a text as a number": "SELECT t.id FROM t JOIN some s ON CAST(t.word AS BIGINT) = s.id",
    "another collation": "SELECT t.id FROM t JOIN some s ON t.word COLLATE UTF8_LCASE = s.word COLLATE UTF8_LCASE",
    "a range": "SELECT t.id FROM t JOIN some s ON t.id > s.id",
    "a key without order": "SELECT t.id FROM t JOIN some s ON t.spread = s.spread",
    "below a window": "SELECT * FROM (SELECT id, row_number() OVER (ORDER BY id) n FROM t) a JOIN some s ON a.id = s.id",
    "below a limit": "SELECT a.id FROM (SELECT id FROM t ORDER BY word LIMIT 1000) a JOIN some s ON a.id = s.id",
    "a side with a limit": "SELECT t.id FROM t JOIN (SELECT id FROM some LIMIT 3) s ON t.id = s.id",
    "a side with any value": "SELECT t.id FROM t JOIN (SELECT any_value(id) i FROM some GROUP BY tag) s ON t.id = s.i",
    "a side with a window": "SELECT t.id FROM t JOIN (SELECT id, row_number() OVER (ORDER BY tag) n FROM some) s ON t.id = s.n",
}  # fmt: skip


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run-time")
    rows(spark).coalesce(1).write.parquet(str(folder / "source"))
    source = str(folder / "source")
    hr.apply(spark, source, laid_out(spark, source), str(folder / "t"))
    tags = "CASE WHEN id IN (700, 705, 3001) THEN 'some' WHEN id % 2 = 0 THEN 'even' ELSE 'odd' END AS tag"
    side = rows(spark).drop("filler", "at", "local").where("id % 100 = 1 OR id IN (700, 705)").selectExpr("*", tags)
    times = side.selectExpr("*", *(c for c in COLUMNS if c.endswith((" at", " local"))))
    times.coalesce(1).write.parquet(str(folder / "side"))
    return folder


def rows(spark: SparkSession, first: int = 0, end: int = ROWS) -> DataFrame:
    return spark.range(first, end).selectExpr(*COLUMNS)


def laid_out(spark: SparkSession, source: Any) -> hr.Learned:
    described = ("number", "small", "gappy", "nothing", "word", "day", "at", "local", "price", "ratio", "spread")
    return by_ranges(spark, source, "id", STEP, [f"{name} IS NULL" for name in described])


@pytest.fixture
def over(spark: SparkSession, attached: SparkSession, place: Path) -> Iterator[SparkSession]:
    spark.read.parquet(str(place / "t")).createOrReplaceTempView("t")
    spark.read.parquet(str(place / "side")).createOrReplaceTempView("side")
    spark.sql(SOME).createOrReplaceTempView("some")
    with temporary_settings(spark, ALWAYS):
        yield attached


def both(spark: SparkSession, sql: str) -> list[int]:
    """Compare the rows with the plain ones; return how many files of the table were read by each scan that reads any."""
    with without_skipping(spark):
        plain = sorted(map(str, spark.sql(sql).collect()))
    frame = spark.sql(sql)
    names = frame.columns
    assert sorted(map(str, frame.collect())) == plain, sql
    assert frame.columns == names and not [name for name in names if "hedgerow" in name]
    files = [scan.files for scan in scans(frame) if scan.root.endswith("/t")]
    return sorted(filter(None, files), reverse=True)  # Spark may leave out a scan of nothing


def read(spark: SparkSession) -> list[int | None]:
    return [scan.files_read for scan in hr.last_query(spark) if scan.table == "t"]


@pytest.mark.parametrize("sql, files", CHOSEN.values(), ids=CHOSEN)
def test_keys_choose_files(over: SparkSession, sql: str, files: list[int] | None) -> None:
    opened = both(over, sql)
    assert files is None or opened == sorted(files, reverse=True)
    if files and max(files) < FILES:
        assert sorted(filter(None, read(over)), reverse=True) == sorted(files, reverse=True)


@pytest.mark.parametrize("sql", NOT_CHOSEN.values(), ids=NOT_CHOSEN)
def test_other_joins_open_all_files(over: SparkSession, sql: str) -> None:
    both(over, sql)
    assert set(read(over)) == {None}


WAYS = {
    "not adaptive": {"spark.sql.adaptive.enabled": "false"},
    "no broadcast": NO_BROADCAST,
    "neither": {"spark.sql.adaptive.enabled": "false", **NO_BROADCAST},
    "no reuse": {"spark.sql.exchange.reuse": "false", **NO_BROADCAST},
    "rows": {"spark.sql.parquet.enableVectorizedReader": "false"},
}


@pytest.mark.parametrize("settings", WAYS.values(), ids=WAYS)
def test_keys_choose_files_however_spark_joins(over: SparkSession, settings: dict[str, str]) -> None:
    asked = ["a bigint", "a wider key", "with NULLs", "only NULLs", "a text", "a date", "a timestamp", "a decimal"]
    asked += ["IN", "no row"]
    with temporary_settings(over, settings):
        for name in asked:
            sql, files = CHOSEN[name]
            assert both(over, sql) == files, name


def test_what_was_chosen_is_told(over: SparkSession) -> None:
    over.sql(CHOSEN["a bigint"][0]).collect()
    [scan] = [scan for scan in hr.last_query(over) if scan.table == "t"]
    assert (scan.files, scan.files_opened, scan.files_read, scan.keys) == (FILES, FILES, 2, 2)
    assert scan.bytes_read is not None and 0 < scan.bytes_read < scan.bytes_opened == scan.bytes
    assert scan.key_seconds is not None and 0 < scan.key_seconds < 60
    over.sql(CHOSEN["a bigint"][0])._jdf.queryExecution().optimizedPlan()
    assert read(over) == [None]  # not before it runs


LOOKED_UP = {
    "an int": "SELECT t.id FROM t JOIN some s ON t.spread = s.spread",
    "a text": "SELECT t.id FROM t JOIN some s ON t.mixed = md5(s.word)",
    "a wider key": "SELECT t.id FROM t JOIN some s ON t.spread = CAST(s.spread AS BIGINT)",
    "with a condition": "SELECT t.id FROM t JOIN some s ON t.spread = s.spread AND t.id >= s.number WHERE t.id > 5",
    "two keys": "SELECT t.id FROM t JOIN some s ON t.spread = s.spread AND t.mixed = md5(s.word)",
}


@pytest.mark.parametrize("format_", ["parquet", "delta"])
def test_filters_of_look_ups_choose_files(request: Any, over: SparkSession, tmp_path: Path, format_: str) -> None:
    """Keys without an order: every file has about the same bounds, and only the filters tell them apart."""
    spark = request.getfixturevalue("delta") if format_ == "delta" else over
    source, path = str(tmp_path / "source"), str(tmp_path / "t")
    rows(spark).selectExpr("*", "md5(word) AS mixed").coalesce(1).write.format(format_).save(source)
    looked_up = [f"spread = {spark.sql('SELECT hash(5L)').first()[0]}", f"mixed = '{md5(b'000005').hexdigest()}'"]
    learned = by_ranges(spark, source, "id", STEP, looked_up)
    hr.apply(spark, source, learned, None if format_ == "delta" else path, options=hr.WriteOptions(lookup_share=0.2))
    spark.read.format(format_).load(source if format_ == "delta" else path).createOrReplaceTempView("t")
    for settings in ({}, NO_BROADCAST, {"spark.sql.adaptive.enabled": "false"}):
        with temporary_settings(over, settings):
            for name, sql in LOOKED_UP.items():
                both(over, sql)
                [scan] = [scan for scan in hr.last_query(over) if scan.files == FILES]
                assert scan.files_read is not None and 2 <= scan.files_read <= 4, name
                assert scan.keys == 3 * (2 if name == "two keys" else 1), name
            both(over, "SELECT t.id FROM t JOIN side s ON t.spread = s.spread + 1 WHERE s.tag = 'some'")
            both(over, "SELECT t.id FROM t JOIN some s ON t.spread = IF(s.id > 0, NULL, s.spread)")
    many = "SELECT t.id FROM t JOIN (SELECT spread FROM t WHERE id < 300) s ON t.spread = s.spread"
    with temporary_settings(over, {"hedgerow.runtimeBytes": "0", **NO_BROADCAST}):
        both(over, many)  # more keys than may be looked up


def test_keys_that_come_too_late(over: SparkSession) -> None:
    """A query waits only so long for the second run of a side; a broadcast takes its time anyway."""
    sql = CHOSEN["a bigint"][0]
    with temporary_settings(over, {"hedgerow.runtimeSeconds": "1e-9"}):
        assert both(over, sql) == [2]
        for adaptive in ("true", "false"):
            with temporary_settings(over, {**NO_BROADCAST, "spark.sql.adaptive.enabled": adaptive}):
                assert both(over, sql) == [FILES]
                assert read(over) == [None]


TWO_SIDES = (
    "SELECT t.id FROM t JOIN some s ON t.id = s.id JOIN (SELECT * FROM side WHERE id < 1000) o ON t.number = o.number"
)


@contextmanager
def busy(spark: SparkSession) -> Iterator[None]:
    """Let tasks that sleep take all cores of the session."""
    context = spark.sparkContext
    cores = context.defaultParallelism
    nap = spark.range(0, cores, 1, cores).selectExpr("reflect('java.lang.Thread', 'sleep', 600000L)")

    def rest() -> None:
        context.setJobGroup("nap", "takes all cores", interruptOnCancel=True)
        with suppress(Exception):  # it is cancelled
            nap.write.format("noop").mode("append").save()

    resting = Thread(target=rest)
    resting.start()
    try:
        wait_for_jobs(spark, 1)
        yield
    finally:
        context.cancelJobGroup("nap")
        resting.join()


def wait_for_jobs(spark: SparkSession, jobs: int) -> None:
    end = monotonic() + 100
    while len(spark.sparkContext.statusTracker().getActiveJobsIds()) < jobs:
        assert monotonic() < end
        sleep(0.01)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_the_keys_of_two_sides_are_looked_for_at_once(over: SparkSession, adaptive: str) -> None:
    with temporary_settings(over, {**NO_BROADCAST, "spark.sql.adaptive.enabled": adaptive}):
        frame = over.sql(TWO_SIDES)
        asking = Thread(target=frame.collect)
        with busy(over):
            asking.start()
            wait_for_jobs(over, 3)
        asking.join()
    assert [scan.files for scan in scans(frame) if scan.root.endswith("/t")] == [1]


def test_two_sides_that_come_too_late_share_the_time(over: SparkSession) -> None:
    seconds = 4
    late = {**NO_BROADCAST, "spark.sql.adaptive.enabled": "false", "hedgerow.runtimeSeconds": str(seconds)}
    with temporary_settings(over, late):
        frame = over.sql(TWO_SIDES)
        frame._jdf.queryExecution().executedPlan()
        asking = Thread(target=frame.collect)
        with busy(over):
            begun = monotonic()
            asking.start()
            wait_for_jobs(over, 4)  # the query itself, too
            assert seconds < monotonic() - begun < 2 * seconds
        asking.join()
    assert [scan.files for scan in scans(frame) if scan.root.endswith("/t")] == [FILES]


def test_the_index_describes_the_keys_of_joins(
    spark: SparkSession, over: SparkSession, place: Path, tmp_path: Path
) -> None:
    asked = "SELECT t.id FROM t JOIN side s ON t.{0} = s.{0} WHERE t.id BETWEEN {1} AND {1} + 400"
    workload = hr.Workload.from_sql([asked.format("number", start) for start in range(0, ROWS, 400)])
    by_id = hr.LearnOptions(block_rows=STEP)
    learned = hr.learn(spark, str(place / "source"), workload, "range", by_id, columns=["id"], table="t")
    table = hr.apply(spark, str(place / "source"), learned, str(tmp_path / "t"))
    table.read().createOrReplaceTempView("t")
    assert both(over, CHOSEN["an int"][0]) == [2]
    assert both(over, CHOSEN["a date"][0]) == [FILES]
    by_number, by_day = (
        hr.explain(spark, table.path, asked.format(x, 0), count=False).hints for x in ("number", "day")
    )
    assert "joins by number may skip more" in by_number[0]
    assert "joins by `day` skip nothing" in by_day[0]
    table.relearn(hr.Workload.from_sql(asked.format("day", 0)))
    assert both(over, CHOSEN["a date"][0]) == both(over, CHOSEN["an int"][0]) == [2]


def test_a_chain_is_pruned_by_its_far_end(over: SparkSession, place: Path) -> None:
    """The near side has all keys; only the far side leaves few of them."""
    over.read.parquet(str(place / "side")).selectExpr("id AS near", "number + 1 AS link").createOrReplaceTempView(
        "near"
    )
    sql = "SELECT t.id FROM t JOIN near ON t.id = near JOIN some s ON link = s.number + 1"
    assert both(over, sql) == [2]
    assert both(over, sql.replace("t.id FROM", "t.id, link, tag FROM").replace(" JOIN some", " LEFT JOIN some")) == [8]


def test_the_right_side_of_a_left_join(over: SparkSession) -> None:
    assert both(over, "SELECT s.id, t.word FROM some s LEFT JOIN t ON s.id = t.id") == [2]
    assert both(over, "SELECT s.id FROM some s LEFT ANTI JOIN t ON s.id = t.id") == [2]


def test_a_switch_and_small_tables(over: SparkSession) -> None:
    sql = CHOSEN["a bigint"][0]
    with temporary_settings(over, {"hedgerow.runtime": "false"}):
        assert both(over, sql) == [FILES]
    with temporary_settings(over, {"hedgerow.runtimeBytes": str(1 << 30)}):
        assert both(over, sql) == [FILES]
    for is_adaptive in ("true", "false"):
        off = {
            "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
            "spark.sql.adaptive.enabled": is_adaptive,
        }
        with temporary_settings(over, off):
            assert both(over, sql) == [FILES]


def test_a_side_runs_again_only_if_that_is_cheap(over: SparkSession) -> None:
    with temporary_settings(over, NO_BROADCAST):
        assert both(over, "SELECT a.id FROM t a JOIN t b ON a.id = b.id WHERE b.spread % 1000 = 7") == [FILES, FILES]
        assert both(over, "SELECT t.id FROM t JOIN side s ON t.id = s.id") == [FILES]  # nothing selects some of it


@pytest.mark.parametrize("kind", ["csv", "json", "cached", "local", "rdd"])
def test_sides_of_any_kind(over: SparkSession, tmp_path: Path, kind: str) -> None:
    frame = over.sql("SELECT id, number, tag FROM some")
    match kind:
        case "csv" | "json":
            frame.write.format(kind).save(str(tmp_path / kind))
            frame = over.read.format(kind).schema(frame.schema).load(str(tmp_path / kind))
        case "cached":
            frame = frame.cache()
            frame.count()
        case "local":
            frame = over.sql("SELECT * FROM VALUES (700L, 'x'), (705L, 'y'), (3001L, 'z'), (NULL, 'n') AS v(id, tag)")
        case "rdd":
            frame = over.createDataFrame([(700, "x"), (705, "y"), (3001, "z")], "id BIGINT, tag STRING")
    frame.createOrReplaceTempView("other")
    hint = "/*+ BROADCAST(other) */" if kind == "rdd" else ""
    opened = both(over, f"SELECT {hint} t.id, other.tag FROM t JOIN other ON t.id = other.id")
    assert opened == [2] or kind == "cached"  # Spark does not reuse a broadcast of cached rows
    frame.unpersist()


def test_files_that_the_index_does_not_know_are_read(
    spark: SparkSession, over: SparkSession, place: Path, tmp_path: Path
) -> None:
    path, source = str(tmp_path / "t"), str(place / "source")
    hr.apply(spark, source, laid_out(spark, source), path)
    rows(spark, ROWS, ROWS + 5).coalesce(1).write.mode("append").parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("t")
    assert both(over, CHOSEN["a bigint"][0]) == [3]
    assert both(over, f"SELECT t.id FROM t JOIN side s ON t.id = s.id + {ROWS + 2 - 1} WHERE s.id < 100") == [1]


def test_the_number_of_a_file_is_not_seen(over: SparkSession, place: Path, tmp_path: Path) -> None:
    joined = over.sql("SELECT t.* FROM t JOIN some s ON t.id = s.id")
    assert joined.columns == over.table("t").columns
    joined.write.parquet(str(tmp_path / "written"))
    assert over.read.parquet(str(tmp_path / "written")).columns == joined.columns
    files = f"(SELECT *, _metadata.file_name AS f FROM parquet.`{place}/t`)"
    sql = f"SELECT t.* FROM {files} t JOIN some s ON t.id = s.id"
    assert both(over, sql) == [2]
    over.sql(sql).cache().createOrReplaceTempView("kept")
    assert over.table("kept").columns == [*joined.columns, "f"] and len(over.table("kept").collect()) == 3
    over.table("kept").unpersist()


def test_executors_get_no_class_of_ours(over: SparkSession) -> None:
    """A sort-merge join sends its whole plan to the executors."""
    jvm: Any = over._jvm
    for settings in ({}, NO_BROADCAST):
        with temporary_settings(over, settings):
            frame = over.sql(CHOSEN["a bigint"][0])
            frame.collect()
            plan = frame._jdf.queryExecution().executedPlan()
            assert "hedgerow_files" in plan.toString()
            environment = jvm.org.apache.spark.SparkEnv.get()
            sent = bytes(
                environment.closureSerializer()
                .newInstance()
                .serialize(plan, jvm.scala.reflect.ClassTag.apply(plan.getClass()))
                .array()
            )
            assert b"FileSourceScanExec" in sent and b"hedgerow/" not in sent and b"hedgerow." not in sent


def test_delta(delta: SparkSession, over: SparkSession, place: Path, tmp_path: Path) -> None:
    """Rows deleted by vectors, files of others, and an older version of the table."""
    path = str(tmp_path / "t")
    rows(delta).write.format("delta").option("delta.enableDeletionVectors", "true").save(path)
    hr.apply(delta, path, laid_out(delta, path))
    delta.sql(f"DELETE FROM delta.`{path}` WHERE id IN (705, 10)")

    def register(version: str = "") -> None:
        delta.sql(f"SELECT * FROM delta.`{path}` {version}").createOrReplaceTempView("t")

    register()
    for settings in ({}, NO_BROADCAST, {"spark.sql.adaptive.enabled": "false"}):
        with temporary_settings(over, settings):
            for name in ("a bigint", "a text", "two keys", "IN", "a condition on the table", "no row", "all columns"):
                sql, files = CHOSEN[name]
                assert both(over, sql) == files, name
    rows(delta, ROWS, ROWS + 5).coalesce(1).write.format("delta").mode("append").save(path)
    register()
    assert both(over, CHOSEN["a bigint"][0]) == [3]
    register("VERSION AS OF 1")
    assert both(over, CHOSEN["a bigint"][0]) == [2]


def test_a_side_that_delta_lists_twice_does_not_run_again(
    delta: SparkSession, over: SparkSession, tmp_path: Path
) -> None:
    """Without its skipping, Delta looks for the newest version in each run of a query's scan."""
    path = str(tmp_path / "side")
    over.table("side").write.format("delta").save(path)
    delta.sql(f"SELECT * FROM delta.`{path}` WHERE tag = 'some'").createOrReplaceTempView("other")
    sql = "SELECT t.id FROM t JOIN other s ON t.id = s.id"
    with temporary_settings(over, NO_BROADCAST):
        assert both(over, sql) == [2]
        with temporary_settings(over, {"spark.databricks.delta.stats.skipping": "false"}):
            assert both(over, sql) == [FILES]


def test_delta_with_partitions_and_renamed_columns(delta: SparkSession, over: SparkSession, tmp_path: Path) -> None:
    for name, options in (("parts", {}), ("named", {"delta.columnMapping.mode": "name"})):
        path = str(tmp_path / name)
        writer = rows(delta).selectExpr("*", "id % 2 AS half").write.format("delta").options(**options)
        (writer.partitionBy("half") if name == "parts" else writer).save(path)
        hr.apply(delta, path, laid_out(delta, path))
        delta.read.format("delta").load(path).createOrReplaceTempView("t")
        both(over, "SELECT t.id, t.half, t.word FROM t JOIN some s ON t.id = s.id")
        both(over, "SELECT t.id, t.half FROM t JOIN some s ON t.id = s.id WHERE t.half = 1")


def test_a_merge_reads_its_source_so(delta: SparkSession, over: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "target")
    delta.range(100).selectExpr("id", "'old' AS word").write.format("delta").save(path)
    source = "SELECT t.id, t.word FROM t JOIN some s ON t.id = s.id"
    over.sql(
        f"MERGE INTO delta.`{path}` x USING ({source}) y ON x.id = y.id WHEN NOT MATCHED THEN INSERT (id, word) VALUES (y.id, y.word)"
    )
    assert over.read.format("delta").load(path).count() == 103


def test_routed_queries(spark: SparkSession, over: SparkSession) -> None:
    hr.detach(spark)
    frame = hr.route(spark, CHOSEN["a bigint"][0])
    assert frame.count() == 3
    with attached_to(spark):
        assert both(spark, CHOSEN["a bigint"][0]) == [2]
    hr.attach(spark)
