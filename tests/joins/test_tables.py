"""The verbs over several tables: what they write, say and refuse."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.core.predicates.nodes import Column
from hedgerow.core.workload.references import Joined, references
from hedgerow.spark.compute.joins import Joins
from hedgerow.spark.start.session import temporary_settings
from hedgerow.spark.storage.source import open_source
from tests.joins.star import KEYS, SCHEMAS, frame, rows_of, workload
from tests.support.answers import attached_to

QUERY = "SELECT sum(qty) FROM lines JOIN orders ON lines.okey = orders.okey WHERE orders.day < DATE '1993-02-01'"


@pytest.fixture(scope="module")
def sources(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder, r = tmp_path_factory.mktemp("star"), Random(3)
    for table in SCHEMAS:
        frame(spark, table, rows_of(table, r)).coalesce(1).write.parquet(str(folder / table))
    return {table: str(folder / table) for table in SCHEMAS}


@pytest.fixture(scope="module")
def learned(spark: SparkSession, sources: dict[str, str]) -> hr.LearnedTables:
    return hr.learn_tables(spark, sources, workload(Random(4), also=[QUERY] * 9), "mto", hr.LearnOptions(block_rows=50))


@pytest.fixture
def written(spark: SparkSession, sources: dict[str, str], learned: hr.LearnedTables, tmp_path: Path) -> dict[str, str]:
    """Tables that a test may change."""
    hr.apply_tables(spark, sources, learned, str(tmp_path / "out"))
    places = {table: str(tmp_path / "out" / table) for table in sources}
    register(spark, places)
    return places


@pytest.fixture(scope="module")
def written_once(
    spark: SparkSession, sources: dict[str, str], learned: hr.LearnedTables, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    out = tmp_path_factory.mktemp("written")
    hr.apply_tables(spark, sources, learned, str(out))
    return {table: str(out / table) for table in sources}


@pytest.fixture
def kept(spark: SparkSession, written_once: dict[str, str]) -> dict[str, str]:
    """The same tables, for tests that change nothing."""
    register(spark, written_once)
    return written_once


def register(spark: SparkSession, places: dict[str, str]) -> None:
    for table, place in places.items():
        spark.read.parquet(place).createOrReplaceTempView(table)


def opened(spark: SparkSession, sql: str = QUERY) -> dict[str, int]:
    with attached_to(spark):
        spark.sql(sql).collect()
        return {scan.table: scan.files_opened for scan in hr.last_query(spark)}


def opened_by_index(spark: SparkSession) -> dict[str, int]:
    """What the index of joins leaves open, without the keys that the other table's files hold when a query runs."""
    with temporary_settings(spark, {"hedgerow.partners": "false"}):
        return opened(spark)


@pytest.mark.long
def test_keys_are_found(learned: hr.LearnedTables) -> None:
    found = {str(key) for key in learned.references}
    assert found == {
        "lines.okey -> orders.okey",
        "lines.pkey, psup -> parts.pkey, psup",
        "orders.ckey -> customers.ckey",
        "customers.nkey -> nations.nkey",
        "parts.psup -> suppliers.psup",
    }
    assert learned.in_order().index("orders") < learned.in_order().index("lines")


def test_it_reads_less_than_tables_by_themselves(
    spark: SparkSession, sources: dict[str, str], learned: hr.LearnedTables, tmp_path: Path, kept: dict[str, str]
) -> None:
    alone = hr.learn_tables(spark, sources, workload(Random(4)), "qdtree", hr.LearnOptions(block_rows=50))
    assert not alone.references
    asked = workload(Random(99))
    by_itself = hr.apply(spark, sources["lines"], alone["lines"], str(tmp_path / "alone"))
    with_joins = hr.table(spark, kept["lines"]).score(asked).rows_read
    assert with_joins < by_itself.score(asked).rows_read
    estimated = hr.score_tables(spark, sources, asked, learned, exact=True)["lines"].rows_read
    assert estimated == pytest.approx(with_joins, abs=0.05)
    simple = hr.Workload.from_sql(["SELECT * FROM lines WHERE qty < 3"])  # the layout's own cuts are about other tables
    assert 0 < hr.score_tables(spark, sources, simple, learned)["lines"].rows_read <= 1
    with pytest.raises(hr.HedgerowError, match="layout of lines depends on customers, which is none of the given"):
        hr.score_tables(spark, {"lines": sources["lines"]}, simple, learned)
    with pytest.raises(hr.HedgerowError, match="has no folder or table for any of"):
        hr.apply_tables(spark, str(tmp_path), learned, str(tmp_path / "nowhere"))


def test_a_learned_schema_is_saved(learned: hr.LearnedTables, tmp_path: Path) -> None:
    learned.save(tmp_path / "layouts.json")
    again = hr.LearnedTables.load(tmp_path / "layouts.json")
    assert (again.references, list(again)) == (learned.references, list(learned))
    assert again["lines"].joined == learned["lines"].joined and again.to_json() == learned.to_json()
    with pytest.raises(hr.HedgerowError, match="no layouts that `learn_tables` made"):
        hr.LearnedTables.from_json(json.dumps({"hedgerow_tables": [1]}))


@pytest.mark.long
def test_a_change_switches_joins_off_until_repair(spark: SparkSession, written: dict[str, str]) -> None:
    table = hr.table(spark, written["lines"])
    before = opened(spark)
    assert before["lines"] < len(table.known) and before["orders"] < len(hr.table(spark, written["orders"]).known)
    rows = frame(spark, "orders", rows_of("orders", Random(5), 1000, 3))
    hr.table(spark, written["orders"]).append(rows)
    register(spark, written)
    stale = opened_by_index(spark)
    assert before["lines"] < 0.9 * len(table.known) <= stale["lines"]  # a file without any key is never needed
    assert hr.table(spark, written["lines"]).score(workload(Random(4))).rows_read > 0.5
    table.verify()
    repaired = table.repair()
    assert opened(spark)["lines"] == before["lines"]
    repaired.verify()


def test_repair_needs_the_settings_of_then(spark: SparkSession, kept: dict[str, str]) -> None:
    lines = hr.table(spark, kept["lines"])
    legacy = temporary_settings(spark, {"spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY"})
    with legacy, pytest.raises(hr.HedgerowError, match="datetimeRebaseModeInRead is not what it was"):
        lines.repair()


@pytest.mark.long
def test_rows_written_before_a_change_are_unknown(spark: SparkSession, written: dict[str, str]) -> None:
    hr.table(spark, written["orders"]).append(frame(spark, "orders", rows_of("orders", Random(5), 1000, 3)))
    lines = hr.table(spark, written["lines"])
    older = len(lines.known)
    lines.append(frame(spark, "lines", rows_of("lines", Random(6), 5000, 200)))
    register(spark, written)
    grown = hr.table(spark, written["lines"])
    grown.verify()
    plain = spark.sql(QUERY).collect()
    assert older <= opened_by_index(spark)["lines"] < len(grown.known)
    grown.repair()
    assert opened_by_index(spark)["lines"] < 0.9 * len(grown.known)
    hr.attach(spark)
    assert spark.sql(QUERY).collect() == plain
    hr.detach(spark)


def test_one_frame_twice(spark: SparkSession, kept: dict[str, str]) -> None:
    """The same relation in two places of a plan, under different filters."""
    from pyspark.sql import functions as f

    orders, lines = spark.read.parquet(kept["orders"]), spark.read.parquet(kept["lines"])
    early, late = orders.where("day < DATE '1993-02-01'"), orders.where("day > DATE '1998-02-01'")
    asked = lines.join(early, "okey").select("qty").unionAll(lines.join(late, "okey").select("qty"))
    twice = asked.agg(f.count("*"), f.sum("qty"))
    plain = twice.collect()
    with attached_to(spark):
        assert twice.select("*").collect() == plain


def test_settings_turn_joins_off(spark: SparkSession, kept: dict[str, str]) -> None:
    assert opened(spark)["lines"] < len(hr.table(spark, kept["lines"]).known)
    with temporary_settings(spark, {"hedgerow.joins": "false"}):
        assert opened(spark)["lines"] == len(hr.table(spark, kept["lines"]).known)


@pytest.mark.long
def test_what_is_refused(
    spark: SparkSession, sources: dict[str, str], learned: hr.LearnedTables, tmp_path: Path
) -> None:
    asked = workload(Random(4))

    def refused(message: str, **how: object) -> None:
        with pytest.raises(hr.HedgerowError, match=message):
            hr.learn_tables(spark, sources, asked, "mto", hr.LearnOptions(block_rows=50), **how)

    refused("ckey is not unique in orders", keys=[("lines.qty", "orders.ckey")])
    refused("joins bigint to int", keys=[("lines.okey", "customers.ckey")])
    refused("has no column nothing", keys=[("lines.okey", "orders.nothing")])
    refused("none of the tables", keys=[("lines.okey", "elsewhere.okey")])
    refused("a key is written like", keys=["lines.okey"])
    refused("a key is written like", keys=[("okey", "orders.okey")])
    refused("2 columns on one side, 1 on the other", keys=[(("lines.pkey", "lines.psup"), "parts.pkey")])
    refused("cannot be chosen by joined tables", overlap=True)
    with pytest.raises(hr.HedgerowError, match="mto learns from several tables: call learn_tables"):
        hr.learn(spark, [sources["lines"]], asked, "mto")
    with pytest.raises(hr.HedgerowError, match="there is no table"):
        hr.learn_tables(spark, str(tmp_path), asked, "mto")
    with pytest.raises(hr.HedgerowError, match=r"depends on .*: write both with apply_tables"):
        hr.apply(spark, sources["lines"], learned["lines"], str(tmp_path / "lines"))
    with pytest.raises(hr.HedgerowError, match="depends on other tables: score them with score_tables"):
        hr.score(spark, sources["lines"], asked, learned["lines"])
    one, to = sources["lines"], str(tmp_path / "lines")
    with pytest.raises(hr.HedgerowError, match="layout of one table: write it with apply"):
        hr.apply_tables(spark, sources, learned["lines"], to)  # type: ignore[arg-type]
    with pytest.raises(hr.HedgerowError, match="layout of one table: score it with score"):
        hr.score_tables(spark, sources, asked, learned["lines"])  # type: ignore[arg-type]
    with pytest.raises(hr.HedgerowError, match="layouts of several tables: write them with apply_tables"):
        hr.apply(spark, one, learned, to)  # type: ignore[arg-type]
    with pytest.raises(hr.HedgerowError, match="layouts of several tables: score them with score_tables"):
        hr.score(spark, one, asked, learned)  # type: ignore[arg-type]
    with pytest.raises(hr.HedgerowError, match="sort_by is about one table"):
        hr.apply_tables(spark, sources, learned, to, hr.WriteOptions(sort_by=["okey"]))


def test_a_table_that_was_not_given_is_named(
    spark: SparkSession, sources: dict[str, str], written_once: dict[str, str], tmp_path: Path
) -> None:
    lines = {"lines": sources["lines"], "parts": sources["parts"]}
    with pytest.warns(hr.HedgerowWarning, match=r"some tables are not among those given.*queries read orders, too"):
        hr.learn_tables(spark, lines, hr.Workload.from_sql([QUERY]), "mto", hr.LearnOptions(block_rows=500))
    place = Path(written_once["lines"]).parent
    with pytest.raises(hr.HedgerowError, match="name one of the tables in it, customers, lines, nations, orders"):
        hr.table(spark, str(place))
    (tmp_path / "plain").symlink_to(Path(sources["lines"]).parent)
    with pytest.raises(hr.HedgerowError, match=r"no Parquet files in it; if these are tables, name one.*: customers"):
        hr.learn(spark, str(tmp_path / "plain"), hr.Workload.from_sql([QUERY]))


@pytest.mark.long
def test_advice_on_each_table_of_queries_that_join(spark: SparkSession, sources: dict[str, str]) -> None:
    """Columns are found without the name of their table, and joins are told."""
    asked = [f"SELECT * FROM lines l JOIN orders o ON l.okey = o.okey WHERE status = 'F' AND qty < {n}" for n in (3, 9)]
    chosen = {name: sources[name] for name in ("lines", "orders")}
    found = hr.advise_each(
        spark, chosen, hr.Workload.from_sql(asked), options=hr.LearnOptions(block_rows=100), learners=["range"]
    )
    for advice in found.values():
        assert isinstance(advice, hr.Advice)
        assert advice.proposals[0].learned is not None
        assert (
            advice.rests_on[-1]
            == "joins: 2 queries join tables that the session does not know, so nothing is known of their keys"
        )


@pytest.mark.long
def test_keys_in_a_circle(spark: SparkSession, sources: dict[str, str]) -> None:
    circle = [*KEYS[:1], ("orders.total", "lines.id")]
    with pytest.warns(hr.HedgerowWarning, match="the key orders.total -> lines.id is not followed"):
        learned = hr.learn_tables(
            spark, sources, workload(Random(4)), "mto", hr.LearnOptions(block_rows=50), keys=circle
        )
    assert [str(key) for key in learned.references] == ["lines.okey -> orders.okey"]


@pytest.mark.long
def test_a_missing_table(spark: SparkSession, written: dict[str, str], sources: dict[str, str]) -> None:
    """Queries of the other tables go on; what needs the missing one says so."""
    import shutil

    shutil.rmtree(written["orders"])
    spark.read.parquet(sources["orders"]).createOrReplaceTempView("orders")
    plain = spark.sql(QUERY).collect()
    with attached_to(spark):
        assert spark.sql(QUERY).collect() == plain
    lines = hr.table(spark, written["lines"])
    assert lines.verify()["rows"] == lines.describe()["rows"] and 0 < lines.score(workload(Random(4))).rows_read <= 1
    with pytest.raises(hr.HedgerowError, match="orders cannot be read"):
        lines.repair()
    with pytest.raises(hr.HedgerowError, match="orders cannot be read"):
        lines.append(frame(spark, "lines", rows_of("lines", Random(6), 5000, 20)))


@pytest.mark.long
def test_a_directory_of_tables(spark: SparkSession, sources: dict[str, str], tmp_path: Path) -> None:
    place = str(Path(sources["lines"]).parent)
    learned = hr.learn_tables(spark, place, workload(Random(4)), "mto", hr.LearnOptions(block_rows=200))
    assert set(learned) == set(sources)
    assert set(hr.apply_tables(spark, place, learned, str(tmp_path / "out"))) == set(sources)


def test_a_bloom_filter_does_not_hide_the_join(
    spark: SparkSession, kept: dict[str, str], learned: hr.LearnedTables
) -> None:
    """Spark may filter lines by the orders that match, in a subquery: then orders appears twice in the plan."""
    runtime = "spark.sql.optimizer.runtime.bloomFilter"
    changed = {
        f"{runtime}.enabled": "true",
        f"{runtime}.applicationSideScanSizeThreshold": "0",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    }
    plainly = opened(spark)
    with temporary_settings(spark, changed):
        expected = spark.sql(QUERY).collect()
        assert "might_contain" in spark.sql(QUERY)._jdf.queryExecution().optimizedPlan().toString()
        found = opened(spark)
        with attached_to(spark):
            assert spark.sql(QUERY).collect() == expected
    assert found["lines"] == plainly["lines"] < len(hr.table(spark, kept["lines"]).files())


def test_no_join_with_a_table_that_is_only_passed_through(spark: SparkSession, sources: dict[str, str]) -> None:
    to_parts, to_suppliers = references([KEYS[1], KEYS[4]])
    joined = Joined((to_parts, to_suppliers))
    joins = Joins((joined,), {name: open_source(spark, place, name) for name, place in sources.items()})
    wide = joins.widened(spark.read.parquet(sources["lines"]), [Column((joined.name, "city"))])
    assert {Path(file).parent.name for file in wide.inputFiles()} == {"lines", "suppliers"}
    register(spark, sources)
    expected = spark.sql(
        "SELECT id, city FROM lines JOIN parts ON lines.pkey = parts.pkey AND lines.psup = parts.psup "
        "JOIN suppliers ON suppliers.psup = parts.psup"
    ).collect()
    found = {row[0]: row[1] for row in wide.selectExpr("id", f"`{joined.name}`.city").collect()}
    assert expected and all(found[row["id"]] == row["city"] for row in expected)
