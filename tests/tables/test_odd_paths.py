"""Tables in folders, partitions and files whose names are URLs, patterns or quotes to some reader: exactly these are read.

Beside each table lies the folder of its decoded name, with the same names of files: `a b` beside `a%20b`. Who reads one
of these files fails, as none of them is Parquet.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import hedgerow as hr
from hedgerow.core.predicates.sql_text import in_backticks
from hedgerow.spark.storage.delta_rewrite import Rewrite
from hedgerow.spark.storage.paths import added_name, added_path, escape_glob, path_in_backticks
from hedgerow.tables.delta import rewrite as rewriting
from hedgerow.tables.managed import ManagedTable
from tests.support.answers import answer, attached_to
from tests.support.delta_tables import data_files
from tests.support.other_process import run

LONG = pytest.mark.long
LIKE_URLS = "a%20b"
OTHERS = "x%2Fy %zz 100%", "p+q#r?s&t=u", "t[1]{2,3}*", "`ün ï' ;,\\n", "c:d; isDirectory=true"
PLACES = [
    ("parquet", LIKE_URLS),
    pytest.param("delta", LIKE_URLS, marks=LONG),
    *(pytest.param(kind, name, marks=LONG) for kind in ("parquet", "delta") for name in OTHERS),
]
VALUES = ["a b", "a%20b", "x/y", "x%2Fy", "ü+#?", "k=v:[w]"]
WORKLOAD = hr.Workload.from_sql([f"SELECT * FROM t WHERE v = {v}" for v in range(6)])


def rows(spark: SparkSession, start: int = 0, count: int = 600) -> DataFrame:
    return spark.range(start, start + count).selectExpr("id", "id % 6 AS v", "CAST(id % 5 AS STRING) AS w")


def put_decoy(place: Path) -> None:
    """Copies the folder to its decoded name, where no file can be read any more."""
    for other in {unquote(place.name), re.sub(r"[\[\]{}*,]", "", place.name)} - {place.name}:
        decoy = place.parent / other
        shutil.copytree(place, decoy)
        for file in decoy.rglob("*"):
            if file.is_file():
                file.write_bytes(b"x" * file.stat().st_size)


def decoys(place: Path) -> dict[Path, bytes]:
    """The files around a table."""
    around = (file for file in place.parent.rglob("*") if place not in file.parents and file.is_file())
    return {file: file.read_bytes() for file in around}


def plain(spark: SparkSession, kind: str, path: str) -> DataFrame:
    return spark.read.format(kind).load(path if kind == "delta" else escape_glob(path))


def check(spark: SparkSession, table: ManagedTable, kind: str, path: str) -> None:
    """Asserts that a query answers as a plain one, and that all ways to ask open the same files."""
    plain(spark, kind, path).createOrReplaceTempView("asked")
    expected, sql = answer(plain(spark, kind, path).where("v = 3")), "SELECT * FROM asked WHERE v = 3"
    assert expected.rows
    assert answer(table.read("v = 3")) == answer(hr.route(spark, sql)) == expected
    with attached_to(spark):
        assert answer(spark.sql(sql)) == expected
        [scan] = hr.last_query(spark)
    found = hr.explain(spark, path, "v = 3")
    opened, there = table.files("v = 3"), table.files()
    assert set(opened) < set(there) and len(there) == scan.files
    assert len(opened) == scan.files_opened == found.opened and found.without_match == 0
    assert {name for group in found.groups if group.opened for name in group.files} == set(opened)


@pytest.mark.parametrize(("kind", "name"), PLACES)
def test_every_verb(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, kind: str, name: str) -> None:
    if kind == "delta":
        request.getfixturevalue("delta")
    place = tmp_path / "lake" / name
    path, source = str(place), str(place if kind == "delta" else tmp_path / "source" / name)
    rows(spark).repartition(3).write.format(kind).save(source)
    put_decoy(Path(source))
    before = decoys(Path(source))
    learned = hr.learn(spark, source, WORKLOAD, "range", hr.LearnOptions(block_rows=90), columns=["v"], table="t")
    assert hr.score(spark, source, WORKLOAD, learned).rows_read < 0.5
    table: Any = hr.apply(spark, source, learned, None if kind == "delta" else path)
    if kind == "parquet":
        put_decoy(place)
        before |= decoys(place)
    check(spark, table, kind, path)
    table.append(rows(spark, 600, 60))
    table = hr.table(spark, path)
    assert table.verify()["rows"] == 660
    with hr.log(spark, path):
        plain(spark, kind, path).where("v = 2").collect()
    logged = hr.logged(spark, path, "t")
    assert len(logged) == 1
    table.repair().relearn(logged)
    table = hr.table(spark, path)
    check(spark, table, kind, path)
    assert table.score(WORKLOAD).rows_read < 0.5 and table.describe()["unknown_files"] == []
    assert [done["operation"] for done in table.history()][-1] == "apply"
    assert "rows read" in hr.show(spark, path, WORKLOAD).html.lower()
    hr.advise(spark, path, WORKLOAD, ["range"], options=hr.LearnOptions(block_rows=90), table="t", budget=1)
    assert hr.autopilot(spark, path, mode="dry_run").reasons
    if kind == "delta":
        assert answer(hr.table(spark, f"delta.{in_backticks(path)}").read()) == answer(plain(spark, kind, path))
        hr.apply(spark, path, learned, where=table.files()[:2])
        hr.table(spark, path).rollback()
        other: Any = hr.apply(spark, path, learned, str(tmp_path / "other" / name))
    else:
        hr.apply(spark, path, learned, path, replica="second")
        other = hr.apply(spark, path, learned, str(tmp_path / "other" / name))
    assert hr.table(spark, path).verify()["rows"] == other.verify()["rows"] == 660
    assert before == {file: data for file, data in decoys(Path(source)).items() if file in before} | {
        file: file.read_bytes() for file in before
    }


@pytest.mark.long
@pytest.mark.parametrize("clone", [False, True])
def test_partitions_and_clones(delta: SparkSession, tmp_path: Path, clone: bool) -> None:
    """A clone names its files by absolute paths."""
    spark, path = delta, str(tmp_path / "a%20b")
    values = ", ".join(f"'{value}'" for value in VALUES)
    frame = rows(spark).selectExpr("id", "v", f"element_at(array({values}), CAST(id % 6 AS INT) + 1) AS col")
    frame.repartition(2).write.format("delta").partitionBy("col").save(path)
    if clone:
        source, path = path, str(tmp_path / "c%2Fd")
        spark.sql(f"CREATE TABLE delta.`{path}` SHALLOW CLONE delta.`{source}`")
    before = answer(plain(spark, "delta", path))
    learned = hr.learn(spark, path, WORKLOAD, "range", hr.LearnOptions(block_rows=90), columns=["v"], table="t")
    hr.apply(spark, path, learned, where=f"col IN ('{VALUES[0]}', '{VALUES[3]}')")
    table: Any = hr.apply(spark, path, learned)
    assert answer(table.read()) == before
    for value in VALUES:
        assert answer(table.read(f"col = '{value}'")).rows == 100
        assert 0 < len(table.files(f"col = '{value}'")) < len(table.files())
    assert table.verify()["rows"] == 600
    assert answer(table.rollback().read()) == before


@pytest.mark.long
def test_names_of_data_files(delta: SparkSession, tmp_path: Path) -> None:
    """Files that others named: Parquet as it is, and as Delta, whose log encodes their names."""
    spark, place = delta, tmp_path / "a%20b"
    names = [f"{name}.parquet" for name in ("a b", "a%20b", "x%2Fy", "p+q#r", "ü;ö", "same")]
    for name in names:
        (place / "w=1").mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"v": [names.index(name)] * 50}), place / "w=1" / name)
    (place / "w=2").mkdir()
    pq.write_table(pa.table({"v": [5] * 50}), place / "w=2" / "same.parquet")
    spark.sql(f"CONVERT TO DELTA parquet.`{place}` PARTITIONED BY (w INT)")
    path, before = str(place), answer(plain(spark, "delta", str(place)))
    learned = hr.learn(spark, path, WORKLOAD, "range", hr.LearnOptions(block_rows=40), columns=["v"], table="t")
    table: Any = hr.apply(spark, path, learned, where=["w=1/a%2520b.parquet"])
    assert answer(table.read()) == before
    assert len(table.files()) == 7 and set(table.files("v < 9")) == set(table.files())
    table = table.lay_out(table.describe()["unknown_files"])
    check(spark, table, "delta", path)
    assert answer(table.rollback().read()) == before


def test_paths_in_the_log() -> None:
    assert added_path("w=a%2520b/x%20y.parquet", "/lake/a%20b") == "/lake/a%20b/w=a%20b/x y.parquet"
    assert added_path("file:/lake/a%2520b/x.parquet", "/other") == "file:/lake/a%20b/x.parquet"
    assert added_path("/lake/x%2By.parquet", "/other") == "/lake/x+y.parquet"
    assert added_name("w=x%252Fy/a%2Fb") == "b"
    assert path_in_backticks("DELTA.`/a``b`", "delta") == "/a`b" and path_in_backticks("delta.`a`.`b`", "delta") is None


@pytest.mark.parametrize("path", ["c:d", "s3x://bucket/table", "a://b c/d"])
def test_what_is_no_path(spark: SparkSession, path: str) -> None:
    works: list[Callable[[], object]] = [
        lambda: hr.table(spark, path),
        lambda: hr.learn(spark, path, WORKLOAD, "range", hr.LearnOptions(block_rows=90)),
    ]
    for work in works:
        with pytest.raises(hr.HedgerowError, match=path) as refused:
            work()
        assert "\n" not in str(refused.value)


STORE = """
import json
import hedgerow as hr
from bench.data.object_store import ObjectStore, settings
from hedgerow.spark.storage.paths import escape_glob
from tests.support.answers import answer, attached_to
store, names, found = ObjectStore(), ["a%20b", "x%2Fy +#?[1]", "ün ï"], {}
own = {"spark.sql.shuffle.partitions": "2", "spark.log.level": "OFF"}
spark = hr.session("1g", "local[2]", **own, **settings(store.url))
workload = hr.Workload.from_sql([f"SELECT * FROM t WHERE v = {v}" for v in range(6)])
rows = lambda start, n: spark.range(start, start + n).selectExpr("id", "id % 6 AS v")
for kind in ("parquet", "delta"):
    for name in names:
        path = f"s3a://lake/{kind}/{name}"
        source = path if kind == "delta" else f"s3a://lake/source/{name}"
        rows(0, 300).repartition(2).write.format(kind).save(source)
        learned = hr.learn(spark, source, workload, "range", hr.LearnOptions(block_rows=45), columns=["v"], table="t")
        table = hr.apply(spark, source, learned, None if kind == "delta" else path).append(rows(300, 60))
        plain = spark.read.format(kind).load(path if kind == "delta" else escape_glob(path))
        expected = answer(plain.where("v = 3"))
        hr.attach(spark)
        attached = answer(plain.where("v = 3"))
        [scan] = hr.last_query(spark)
        hr.detach(spark)
        opened, there = table.files("v = 3"), table.files()
        found[f"{kind} {name}"] = [
            attached == answer(table.read("v = 3")) == expected and expected.rows == 60,
            [len(opened), len(there)] == [scan.files_opened, scan.files] and set(opened) < set(there),
            hr.explain(spark, path, "v = 3").opened == len(opened),
            table.verify()["rows"] == 360,
            kind == "parquet" or len(table.rollback().read().collect()) == 360,
        ]
spark.stop()
print(json.dumps(found))
"""


@pytest.mark.long
def test_in_an_object_store() -> None:
    pytest.importorskip("moto", reason="the extra `dev` has an S3 server")
    found = run(STORE)
    assert len(found) == 6 and all(all(held) for held in found.values()), found


# --- a rewrite that fails leaves no file -----------------------------------------------------------


@pytest.fixture(scope="module")
def by_w(delta: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, hr.Learned]:
    path = str(tmp_path_factory.mktemp("by_w") / LIKE_URLS)
    rows(delta).repartition(4).write.format("delta").partitionBy("w").save(path)
    return path, hr.learn(delta, path, WORKLOAD, "range", hr.LearnOptions(block_rows=20), columns=["v"], table="t")


@pytest.mark.parametrize(
    "where",
    [
        *("reading", "writing", "part", "conflict"),
        *(pytest.param(where, marks=LONG) for where in ("statistics", "comparing", "list")),
    ],
)
def test_a_failed_rewrite_leaves_no_file(
    delta: SparkSession, by_w: tuple[str, hr.Learned], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    spark, learned, path = delta, by_w[1], str(shutil.copytree(by_w[0], tmp_path / LIKE_URLS))
    side, written = Path(path, "_hedgerow"), list[str]()
    give_up, commit, moved = Rewrite.give_up, Rewrite.commit, rewriting._in_files

    def noted(self: Rewrite) -> None:
        written.extend(str(file) for file in Path(path, self.folder).rglob("*.parquet"))
        give_up(self)

    def late(self: Rewrite, *args: Any) -> int:
        spark.sql(f"DELETE FROM delta.`{path}` WHERE w = '1'").collect()  # whole partitions, so no new file
        return commit(self, *args)

    def broken(*args: Any) -> DataFrame:
        return moved(*args).withColumn("v", f.expr("IF(id = 599, CAST(raise_error('dark') AS BIGINT), v)"))

    def fail(*_: object) -> None:
        raise RuntimeError("the lights went out")

    monkeypatch.setattr(Rewrite, "give_up", noted)
    match where:
        case "reading":
            file = next(Path(path).rglob("*.parquet"))
            file.write_bytes(b"x" * file.stat().st_size)
        case "writing":  # other tasks have written their files
            monkeypatch.setattr(rewriting, "_in_files", broken)
        case "list":
            side.write_text("not a folder")
        case "conflict":
            monkeypatch.setattr(Rewrite, "commit", late)
        case _:
            names = {"statistics": "footers_and_terms", "comparing": "same_rows", "part": "write_part"}
            monkeypatch.setattr(rewriting, names[where], fail)
    before = data_files(path)
    with pytest.raises((RuntimeError, hr.HedgerowError)) as failed:
        hr.apply(spark, path, learned)
    assert "\n" not in str(failed.value)
    assert data_files(path) == before and not list(Path(path).glob("hedgerow-*"))
    assert bool(written) == (where != "reading")
    assert spark.sql(f"DESCRIBE HISTORY delta.`{path}`").count() == 1 + (where == "conflict")
    assert not list(side.glob("*.arrow")) or where == "conflict"
