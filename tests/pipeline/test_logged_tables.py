"""What the logs of several tables say of a query is what its text says: the scans, and the joins between them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.core.errors import WorkloadError
from hedgerow.core.predicates.nodes import IsNull, atoms_of, columns_of
from hedgerow.core.workload.queries import Query, Workload
from hedgerow.sql.workload import Workload as SqlWorkload
from hedgerow.tables.query_log import QueryLog
from tests.support.answers import attached_to

SALES = "lines l JOIN orders o ON l.okey = o.okey"
ASKED = [
    f"SELECT sum(l.price) FROM {SALES} WHERE o.day < 20",
    f"SELECT sum(l.price) FROM {SALES} JOIN users u ON o.ukey = u.ukey WHERE u.plan = 'p3' AND l.price > 10",
    "SELECT sum(price) FROM lines WHERE okey IN (SELECT okey FROM orders WHERE day BETWEEN 30 AND 33)",
    "SELECT sum(price) FROM lines WHERE EXISTS (SELECT 1 FROM orders WHERE orders.okey = lines.okey AND day > 90)",
    "SELECT count(o.day) FROM orders o LEFT JOIN lines l ON l.okey = o.okey AND l.price > 95 WHERE o.day = 7",
    "SELECT count(price) FROM lines WHERE price < 5",
    "SELECT count(*) FROM (SELECT okey, sum(price) AS s FROM lines GROUP BY okey) s JOIN orders o ON s.okey = o.okey "
    "WHERE o.day = 50 AND s > 10",
]
Edges = set[tuple[str, tuple[str, ...], str, tuple[str, ...]]]


@pytest.fixture(scope="module")
def places(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("logged-tables")
    rows = {
        "lines": ("id % 1000 AS okey", "id * 37 % 100 AS price", "id % 50 AS qty"),
        "orders": ("id AS okey", "id * 7 % 100 AS day", "id % 40 AS ukey"),
        "users": ("id AS ukey", "concat('p', id % 8) AS plan", "id * 3 AS age"),
    }
    made = {}
    for (name, columns), count in zip(rows.items(), (20_000, 1_000, 40), strict=True):
        made[name] = str(folder / name)
        spark.range(count).repartition(3).selectExpr(*columns).write.parquet(made[name])
        spark.read.parquet(made[name]).createOrReplaceTempView(name)
    yield made
    for name in made:
        spark.catalog.dropTempView(name)


def ask(spark: SparkSession, texts: list[str]) -> None:
    for text in texts:
        spark.sql(text).collect()


def edges(query: Query) -> Edges:
    return {
        (scan.table, join.columns, query.scans[join.other].table, join.other_columns)
        for scan in query.scans
        for join in scan.joins
    }


def test_a_table_without_a_log_between_others(spark: SparkSession, places: dict[str, str]) -> None:
    """The query is noted, with the join that both logs know."""
    some = {name: places[name] for name in ("lines", "orders")}
    for place in some.values():
        drop_log(spark, place)
    with hr.log(spark, some):
        ask(spark, ASKED[1:2])
    (query,) = hr.logged_tables(spark, some)
    assert {scan.table for scan in query.scans} == set(some)
    assert edges(query) == {("lines", ("okey",), "orders", ("okey",)), ("orders", ("okey",), "lines", ("okey",))}


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_joins_are_those_of_the_text(spark: SparkSession, places: dict[str, str], adaptive: str) -> None:
    for name in places:
        drop_log(spark, places[name])
    before = spark.conf.get("spark.sql.adaptive.enabled")
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        with hr.log(spark, places):
            ask(spark, ASKED * 2)
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", str(before))
    logged = hr.logged_tables(spark, places)
    assert not logged.skipped and sum(query.weight for query in logged) == 2 * len(ASKED)
    schemas = {name: dict(spark.table(name).dtypes) for name in places}
    texts = hr.Workload.from_sql(ASKED).bind(schemas)
    by_edges = {frozenset(edges(query)) for query in logged}
    assert by_edges == {frozenset(edges(query)) for query in texts}
    assert any(len(some) > 2 for some in by_edges) and frozenset() in by_edges
    learned = [layouts(spark, places, workload) for workload in (logged, texts)]
    read = [hr.score_tables(spark, places, texts, own, exact=True)["lines"].rows_read for own in learned]
    assert read[0] <= read[1] + 0.05 and read[1] < 0.8
    assert {str(key) for key in learned[0].references} == {str(key) for key in learned[1].references}
    alone = hr.learn(spark, places["lines"], hr.logged(spark, places["lines"]), options=OPTIONS)
    assert not alone.joined and learned[0]["lines"].joined


OPTIONS = hr.LearnOptions(block_rows=500, recurrence=1)


def layouts(spark: SparkSession, places: dict[str, str], workload: Workload) -> hr.LearnedTables:
    assert isinstance(workload, SqlWorkload)
    return hr.learn_tables(spark, places, workload, options=OPTIONS)


def drop_log(spark: SparkSession, place: str) -> None:
    import shutil

    shutil.rmtree(QueryLog.of(spark, place).folder.removeprefix("file:"), ignore_errors=True)


def test_tables_that_are_not_given(spark: SparkSession, places: dict[str, str]) -> None:
    """A join with a table that is not given, or was not logged, is left out; a table without a log is no error."""
    for name in places:
        drop_log(spark, places[name])
    with pytest.raises(WorkloadError, match="no queries of lines, orders, users were logged"):
        hr.logged_tables(spark, places)
    with hr.log(spark, {name: places[name] for name in ("lines", "orders")}):
        ask(spark, ASKED[:2])
    only = hr.logged_tables(spark, {"lines": places["lines"]})
    assert {query.tables() for query in only} == {("lines",)} and not any(edges(query) for query in only)
    assert any(query.keyed for query in only)  # the keys that the joins happened to have
    known = hr.logged_tables(spark, places)
    assert {frozenset(edges(query)) for query in known} == {
        frozenset({("lines", ("okey",), "orders", ("okey",)), ("orders", ("okey",), "lines", ("okey",))})
    }
    learned = layouts(spark, places, known)["lines"]  # by conditions on orders, not by the keys that they had
    atoms = [atom for p in learned.predicates for atom in atoms_of(p) if not isinstance(atom, IsNull)]
    assert "okey" not in {column.path[0] for atom in atoms for column in columns_of(atom)} and learned.joined
    with pytest.raises(WorkloadError, match="have no queries since 2100"):
        hr.logged_tables(spark, str(Path(places["lines"]).parent), since="2100-01-01")


def test_an_attached_session_has_the_same_joins(spark: SparkSession, places: dict[str, str], tmp_path: Path) -> None:
    texts = hr.Workload.from_sql(ASKED)
    written = hr.apply_tables(spark, places, layouts(spark, places, texts), str(tmp_path / "ours"))
    ours = {name: table.path for name, table in written.items()}
    for name, place in ours.items():
        spark.read.parquet(place).createOrReplaceTempView(name)
    try:
        with attached_to(spark), hr.log(spark, ours):
            ask(spark, ASKED)
    finally:
        for name, place in places.items():
            spark.read.parquet(place).createOrReplaceTempView(name)
    bound = texts.bind({name: dict(spark.table(name).dtypes) for name in places})
    assert {frozenset(edges(query)) for query in hr.logged_tables(spark, ours)} == {
        frozenset(edges(query)) for query in bound
    }
