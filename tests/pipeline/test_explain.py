"""What `explain` says of each file is so: its reasons are compared with the rows in the files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.tables.explained import UNKNOWN
from hedgerow.tables.managed import ManagedTable
from tests.support.events_table import ATOMS, conditions, write_events

FEW, MANY = 6, 60  # conditions for each of the tables
NEVER = re.compile(r"no row satisfies (.*?)(?:; there, (.*) is (.*) to (.*)|; there, (.*) has no value)?")


@pytest.fixture(
    scope="module",
    params=["parquet", *(pytest.param(p, marks=pytest.mark.long) for p in ("delta", "overlap", "replica"))],
)
def table(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> ManagedTable:
    """A table, and files that its index does not know."""
    folder = tmp_path_factory.mktemp(request.param)
    source, to = write_events(spark, str(folder / "source")), str(folder / "events")
    workload = hr.Workload.from_sql([f"SELECT id FROM events WHERE {c}" for c in conditions(1, 30)])
    params = {"overlap": True} if request.param == "overlap" else {}
    if request.param == "delta":
        request.getfixturevalue("delta")
        spark.read.parquet(source).drop("tags", "a b").write.format("delta").save(to)
        source = to
    learned = hr.learn(
        spark, source, workload, options=hr.LearnOptions(block_rows=1000, sample_rows=5_000), table="events", **params
    )
    if request.param == "delta":
        hr.apply(spark, to, learned)
        spark.read.format("delta").load(to).limit(50).write.format("delta").mode("append").save(to)
        return hr.table(spark, to)
    hr.apply(spark, source, learned, to)
    if request.param == "replica":
        copy = hr.learn(
            spark,
            source,
            workload,
            "range",
            hr.LearnOptions(block_rows=1000, sample_rows=5_000),
            columns=["Number"],
            table="events",
        )
        hr.apply(spark, source, copy, to, replica="by_number")
    else:
        spark.read.parquet(source).limit(50).write.mode("append").parquet(to)
    return hr.table(spark, to)


def in_copies(files: set[str]) -> bool:
    """Whether rows are read from copies, so that their home need not be opened."""
    return any(name.startswith("_hedgerow/") for name in files)


def asked(seed: int, count: int) -> Iterator[str]:
    r = Random(seed)
    for _ in range(count):
        yield " AND ".join(r.choice(ATOMS)(r, "") for _ in range(r.choice([1, 2, 2, 3])))


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
def test_the_reasons_are_true(spark: SparkSession, table: ManagedTable, count: int) -> None:
    names, columns, without_reason = set(table.files()), table.read().columns, 0
    for condition in asked(count, count):
        if any(name in condition and name not in columns for name in ("tags", "a b")):
            continue
        found = hr.explain(spark, table.path, condition)
        place = table.path if found.replica is None else f"{table.path}/_hedgerow/replicas/{found.replica}"
        opened = {f for g in found.groups if g.opened for f in g.files}
        shown = {f for g in found.groups for f in g.files}
        assert found.replica or names <= shown, condition
        rows = spark.read.parquet(*(f"{place}/{name}" for name in shown))
        matching = {row.f for row in rows.where(condition).selectExpr("_metadata.file_name AS f").distinct().collect()}
        in_opened = {f for f in opened if f.rpartition("/")[2] in matching}
        assert found.without_match == len(opened) - len(in_opened), condition
        assert in_copies(shown) or len(in_opened) == len(matching), condition
        for group in found.groups:
            if group.opened:
                continue
            reason = NEVER.fullmatch(group.because)
            if reason is None:
                without_reason += 1
                continue
            never, column, low, high, empty = reason.groups()
            rows = spark.read.parquet(*(f"{place}/{name}" for name in group.files))
            assert rows.where(never).isEmpty(), (condition, group)
            if column is not None:
                outside = f"NOT ({column} BETWEEN {low} AND {high}) AND NOT isnan(CAST({column} AS DOUBLE))"
                kind = dict(rows.dtypes).get(column, "")
                plain = f"NOT ({column} BETWEEN {low} AND {high})"
                assert rows.where(outside if kind == "double" else plain).isEmpty(), (condition, group)
            if empty is not None:
                assert rows.where(f"{empty} IS NOT NULL AND {empty} <> double('NaN')").isEmpty(), (condition, group)
    assert without_reason <= count


def test_files_that_the_index_does_not_know_are_opened(spark: SparkSession, table: ManagedTable) -> None:
    found = hr.explain(spark, table.path, "Number < 0")
    if found.replica is None and table.describe()["unknown_files"]:
        assert [g.because for g in found.groups if g.opened] == [UNKNOWN]
        assert found.without_match == found.opened


@pytest.mark.parametrize("part", ["rand(3) < 0.5", "monotonically_increasing_id() < 100"])
def test_a_value_by_place_opens_all(spark: SparkSession, table: ManagedTable, part: str) -> None:
    found = hr.explain(spark, table.path, f"id < 20 AND {part}")
    skipped = {name for group in found.groups if not group.opened for name in group.files}
    assert all(name.startswith("_hedgerow/") for name in skipped)  # copies of rows, which their own files have too
    assert all("read together" in group.because for group in found.groups if group.opened)


def test_a_part_that_is_not_understood_is_told(spark: SparkSession, table: ManagedTable) -> None:
    found = hr.explain(spark, table.path, "Number < 500 AND list[0] < 100")
    assert any(hint.endswith("skips nothing: it is not understood") for hint in found.hints)
    assert found.without_match is not None
    whole = hr.explain(spark, table.path, f"SELECT id FROM {table.name} WHERE Number < 500 AND list[0] < 100")
    assert whole.without_match is None
    assert whole.hints == found.hints


def test_a_query_and_a_condition_are_told_alike(spark: SparkSession, table: ManagedTable) -> None:
    condition = "Number BETWEEN 10 AND 20"
    assert hr.explain(spark, table.path, condition) == hr.explain(
        spark, table.path, f"SELECT id FROM {table.name} WHERE {condition}"
    )
    assert hr.explain(spark, table.path, condition, count=False).without_match is None


@pytest.mark.parametrize("query", ["SELECT 1", "colour = 3", "Number <", ""])
def test_what_cannot_be_explained(spark: SparkSession, table: ManagedTable, query: str) -> None:
    with pytest.raises(hr.HedgerowError) as caught:
        hr.explain(spark, table.path, query)
    assert "\n" not in str(caught.value)


def test_a_query_on_another_table_is_refused(spark: SparkSession, table: ManagedTable) -> None:
    """The name may be qualified, the path's last part, a place or a view; another name does not mean this table."""
    format_ = "delta" if table.format.is_shared else "parquet"
    frame = spark.read.format(format_).load(table.path)
    frame.createOrReplaceTempView("of_this_table")
    spark.range(9).selectExpr("id AS Number").createOrReplaceTempView("of_others")
    last = table.path.rpartition("/")[2]
    expected = hr.explain(spark, table.path, "Number < 20", count=False)
    for name in (table.name, f"web.{table.name}", last, f"{format_}.`{table.path}`", "of_this_table"):
        assert hr.explain(spark, table.path, f"SELECT id FROM {name} WHERE Number < 20", count=False) == expected, name
    for name in ("orders", "of_others", "parquet.`/nowhere/orders`"):
        with pytest.raises(hr.HedgerowError, match=rf"it reads .*{name[-7:-1]}.*, not {table.name}"):
            hr.explain(spark, table.path, f"SELECT * FROM {name} WHERE Number < 20")
    joined = f"SELECT * FROM {table.name} JOIN of_others USING (Number) WHERE Number < 20"
    assert hr.explain(spark, table.path, joined, count=False).opened == expected.opened


def test_counting_shows_its_progress(
    table: ManagedTable, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    hr.explain(table.spark, table.path, "Number < 10", count=False)
    assert "counting" not in capsys.readouterr().err
    hr.explain(table.spark, table.path, "Number < 10")
    assert "counting matching rows" in capsys.readouterr().err
