"""The crash-report logs are what the paper says of them, and the same everywhere; a tree reads little of them."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from bench.data import errorlog_data
from bench.data.errorlog_data import EXTERNAL, INTERNAL, QUERIED_COLUMNS, Shape, rows_of
from bench.data.errorlog_queries import conditions, queries
from bench.matching import matching
from bench.memory import measured
from bench.options import ALGORITHM_1, Options, learn_arguments
from bench.suites import errorlog
from tests.support.digest import digest

SHAPES = pytest.mark.parametrize("shape", [INTERNAL, EXTERNAL], ids=lambda shape: shape.name)


@pytest.mark.parametrize(
    ("shape", "rows", "asked"),
    [(INTERNAL, "a3dc6a4b29dabc7d", "425733c685e29d2c"), (EXTERNAL, "f01b74529808fdf0", "daf7fbf9407fa92d")],
    ids=lambda value: getattr(value, "name", None),
)
def test_rows_and_queries_are_the_same_everywhere(shape: Shape, rows: str, asked: str) -> None:
    table = rows_of(shape, 1000, 0, 1000)
    assert (table.num_columns, table.num_rows) == (shape.columns, 1000)
    assert digest(table.slice(0, 5).to_pylist()) == rows
    assert digest(queries(shape, 0, 20)) == asked
    assert queries(shape, 0, 5) == queries(shape, 0, 20)[:5]
    assert not set(queries(shape, 0, 50)) >= set(queries(shape, ~0, 50))


@SHAPES
def test_columns_depend_on_each_other(shape: Shape) -> None:
    table = rows_of(shape, 20_000, 0, 20_000)
    assert table["ingest_time"].to_pylist() == sorted(table["ingest_time"].to_pylist())
    # A version was built on one day, before a client could report from it, and the client before the report came.
    built = table.group_by("os_version").aggregate([("os_build_date", "count_distinct")])
    assert set(built["os_build_date_count_distinct"].to_pylist()) == {1}
    late = pc.less_equal(table["os_build_date"], table["client_ingest_date"])
    assert pc.all(pc.or_(late, pc.equal(table["os_build_date"], pc.min(table["os_build_date"])))).as_py()
    assert pc.all(pc.less_equal(table["client_ingest_date"], table["ingest_time"].cast("date32"))).as_py()
    events = sorted((v["counts"].as_py() for v in table["event_type"].value_counts()), reverse=True)
    assert len(events) <= shape.events
    assert sum(events[: max(1, len(events) // 8)]) > 0.25 * 20_000  # skewed


@pytest.mark.long
@SHAPES
def test_selectivity_is_the_papers(shape: Shape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGEROW_BENCH_CACHE", str(tmp_path))
    papers = {"errorlog-int": 0.000005, "errorlog-ext": 0.000697}[shape.name]
    rows = pq.read_table(errorlog_data.table(shape, 100_000), columns=list(QUERIED_COLUMNS))
    found = fmean(s for seed in (0, ~0) for s in matching(rows, conditions(shape, seed, 300)))
    assert papers / 2 < found < papers * 2


@pytest.mark.long
@SHAPES
def test_the_quick_form_holds(shape: Shape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGEROW_BENCH_CACHE", str(tmp_path))
    monkeypatch.setitem(errorlog.ROWS, "quick", 20_000)
    monkeypatch.setitem(errorlog.BLOCKS, "quick", 40)
    monkeypatch.setitem(errorlog.QUERIES, "quick", 60)
    lines = list(errorlog.run(shape, Options("quick")))  # what must hold is checked there
    assert [line["learner"] for line in lines] == ["random", "range", "range", "qdtree", "qdtree"]
    assert all(line["least_block"] >= 0.5 * 500 for line in lines)
    # Reports come late, so the bounds of the log as it came say little about the client's dates; our index says more.
    assert lines[1]["rows_read"] > lines[2]["rows_read"]


@pytest.mark.long
def test_in_memory_as_on_spark(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tree, and what the written table's index says it reads, to the last row; without filters for look-ups."""
    import hedgerow

    monkeypatch.setenv("HEDGEROW_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(errorlog.ROWS, "quick", 8_000)
    monkeypatch.setitem(errorlog.BLOCKS, "quick", 20)
    monkeypatch.setitem(errorlog.QUERIES, "quick", 40)
    data = errorlog.load(INTERNAL, Options("quick"))
    source = str(errorlog_data.table(INTERNAL, 8_000))
    params = ALGORITHM_1[1]
    found = measured(data, ("qdtree", params), "quick", 0)
    arguments = learn_arguments(("qdtree", params), block_rows=400, lookup_share=0.0)
    learned = hedgerow.learn(spark, source, data.learned, **arguments, table="errors")
    table = hedgerow.apply(spark, source, learned, str(tmp_path / "table"), hedgerow.WriteOptions(lookup_share=0.0))
    assert found["blocks"] == len(table.known)
    assert found["rows_read"] == pytest.approx(table.score(data.learned).rows_read, rel=1e-2)
    assert found["rows_read_unseen"] == pytest.approx(table.score(data.unseen).rows_read, rel=1e-2)
    assert pq.read_table(source).num_columns == 50
