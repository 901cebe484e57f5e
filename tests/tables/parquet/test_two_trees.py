"""Two trees for two full copies: learned together, written by one `apply`, read as one table."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.pipeline.learned import Learned
from hedgerow.tables.formats import LacksCapability
from hedgerow.tables.managed import ManagedTable
from tests.support.answers import answer, answers, ask_all
from tests.support.things_table import write_things

INSIDE = "_hedgerow/replicas/tree-2"
OPTIONS = hr.LearnOptions(block_rows=100, recurrence=1)
CONDITIONS = [
    f"{column} >= {low} AND {column} < {low + width}"
    for column, most, width in (("id", 2000, 50), ("price", 100, 3))
    for low in range(0, most, most // 20)
]
OTHERS = ["id < 100 AND price > 50", "price = 7 OR id = 7", "kind = 'n'", "price IS NULL", "id <> 3"]


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_things(spark, str(tmp_path_factory.mktemp("plain") / "things.parquet"))


@pytest.fixture(scope="module")
def workload() -> hr.Workload:
    return hr.Workload.from_sql([f"SELECT id FROM things WHERE {c}" for c in CONDITIONS])


@pytest.fixture(scope="module")
def learned(spark: SparkSession, source: str, workload: hr.Workload) -> Learned:
    return hr.learn(spark, source, workload, options=OPTIONS, trees=2)


@pytest.fixture(scope="module")
def table(spark: SparkSession, source: str, learned: Learned, tmp_path_factory: pytest.TempPathFactory) -> ManagedTable:
    return hr.apply(spark, source, learned, str(tmp_path_factory.mktemp("made") / "things"))


def test_the_layouts_are_kept_in_one_file(learned: Learned) -> None:
    again = Learned.from_json(learned.to_json())
    assert [copy.layout for copy in again.copies] == [copy.layout for copy in learned.copies]
    assert len(again.copies) == 2 and "1 replica" in str(again)
    shares = learned.provenance["together"]
    assert shares["together"] < 0.7 * shares["alone"]


def test_queries_read_less_than_of_one_tree(
    spark: SparkSession, source: str, workload: hr.Workload, table: ManagedTable, learned: Learned, tmp_path: Path
) -> None:
    one = hr.apply(spark, source, hr.learn(spark, source, workload, options=OPTIONS), str(tmp_path / "one"))
    read, alone = table.score(workload).rows_read, one.score(workload).rows_read
    assert read < 0.7 * alone
    shares = learned.provenance["together"]  # the sample is the whole table
    assert (read, alone) == (pytest.approx(shares["together"], rel=0.05), pytest.approx(shares["alone"], rel=0.05))


def test_the_rows_are_those_of_plain_spark(spark: SparkSession, source: str, table: ManagedTable) -> None:
    asked = [*CONDITIONS, *OTHERS]
    expected = answers(spark.read.parquet(source), asked)
    assert ask_all([table.read(c) for c in asked])[0] == expected
    used = [any(INSIDE in name for name in table.files(c)) for c in CONDITIONS]
    assert any(used) and not all(used)
    assert table.verify()["replicas"] == {"tree-2": "as the table"}
    assert answer(spark.read.parquet(table.path)) == answer(spark.read.parquet(source))  # plain readers see one copy


def test_an_append_goes_to_both(spark: SparkSession, source: str, learned: Learned, tmp_path: Path) -> None:
    table = hr.apply(spark, source, learned, str(tmp_path / "things"))
    grown = table.append(spark.read.parquet(source).where("id < 300"))
    assert grown.verify()["replicas"] == {"tree-2": "as the table"}
    expected = answers(spark.read.parquet(table.path), CONDITIONS)
    assert ask_all([grown.read(c) for c in CONDITIONS])[0] == expected


def test_what_is_refused(spark: SparkSession, source: str, workload: hr.Workload, table: ManagedTable) -> None:
    with pytest.raises(hr.HedgerowError, match="exclude each other"):
        hr.learn(spark, source, workload, options=OPTIONS, trees=2, given=[table])
    with pytest.raises(hr.HedgerowError, match="storage has to be at least 1"):
        hr.learn(spark, source, workload, trees=0)
    with pytest.raises(hr.HedgerowError, match="one table at a time"):
        hr.learn_tables(spark, {"things": source}, workload, options=hr.LearnOptions(storage=2))


def test_a_delta_table_is_left_as_it_is(delta: SparkSession, source: str, learned: Learned, tmp_path: Path) -> None:
    place = str(tmp_path / "things")
    delta.read.parquet(source).write.format("delta").save(place)
    with pytest.raises(LacksCapability, match="a Delta table cannot have replicas"):
        hr.apply(delta, place, learned)
    assert not (tmp_path / "things" / "_hedgerow").exists()
    beside = hr.apply(delta, place, learned, str(tmp_path / "parquet"))
    assert list(beside.replicas) == ["tree-2"]
