"""Rows that lie in several blocks are read once, whoever asks; who knows nothing of copies never sees one."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.predicates.nodes import Compare, col, lit
from hedgerow.spark.write.copies import COPIES, COPY
from hedgerow.tables.cheapest_copy import Copies, Opening
from hedgerow.tables.managed import ManagedTable
from hedgerow.tables.parquet.folder import ParquetFolder
from tests.support.answers import answer, answers, ask_all, opened
from tests.support.crossing_arms import CONDITIONS as CROSS
from tests.support.crossing_arms import arms
from tests.support.lay_out import by_ranges
from tests.support.workload_conditions import about

N = 300
MIDDLE = "x >= 4 AND x < 6 AND y >= 4 AND y < 6"
# Others than those it was learned from, some of which need the middle from where it is not at home.
ASKED = [
    *CROSS, MIDDLE, "x = 5 AND y = 5", "x < 6", "y >= 4 AND x >= 4", "x > 5 OR y > 5", "x IS NULL", "z % 7 = 0",
    "true",
]  # fmt: skip


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Fig. 4, and the row in the middle three times over."""
    cross = arms(N, 1)
    rows = pa.concat_tables([cross, cross.slice(4 * N), cross.slice(4 * N)])
    place = tmp_path_factory.mktemp("plain") / "arms"
    place.mkdir()
    pq.write_table(rows.append_column("z", pa.array(range(len(rows)))), place / "part-0.parquet")
    return str(place)


@pytest.fixture(scope="module")
def made(spark: SparkSession, source: str, tmp_path_factory: pytest.TempPathFactory) -> ManagedTable:
    workload = hr.Workload.from_sql([f"SELECT * FROM arms WHERE {c}" for c in CROSS])
    learned = hr.learn(spark, source, workload, options=hr.LearnOptions(block_rows=N), overlap=True)
    assert isinstance(learned.layout, OverlapLayout)
    assert hr.score(spark, source, workload, learned, exact=True).rows_read == pytest.approx((N + 3) / (4 * N + 3))
    return hr.apply(spark, source, learned, str(tmp_path_factory.mktemp("ours") / "arms"))


@pytest.fixture
def cross(made: ManagedTable, tmp_path: Path) -> ManagedTable:
    """A copy that a test may spoil."""
    shutil.copytree(made.path, tmp_path / "arms")
    return ManagedTable.open(made.spark, str(tmp_path / "arms"))


def check(table: ManagedTable) -> bool:
    """Routed and plain rows are the same; whether copies were read."""
    plain = table.spark.read.parquet(table.path)
    assert ask_all([table.read(c) for c in ASKED])[0] == answers(plain, ASKED)
    return any("_hedgerow" in name for c in ASKED for name in table.files(c))


def opening(table: ManagedTable, condition: str) -> Opening:
    return Copies.of(table).cheapest(about(condition, table.schema), None)


def rows(table: ManagedTable, condition: str) -> int:
    """Read by Spark, not by the index, and before the condition is asked."""
    best = opening(table, condition)
    assert isinstance(table.format, ParquetFolder)
    frame = table.format.with_copies(best.files)
    if best.choice.copied_cells is not None:
        assert isinstance(table.layout, OverlapLayout)
        codes = [table.layout.code(block, cell) for block, cell in best.choice.copied_cells]
        frame = frame.where(frame[COPY].isNull() | frame[COPY].isin(codes))
    return frame.count()


@pytest.mark.long
def test_fig4(spark: SparkSession, source: str, made: ManagedTable) -> None:
    assert [rows(made, c) for c in CROSS] == [N + 3] * 4
    assert all(sum(o.known.rows[o.choice.opened]) == N + 3 for o in (opening(made, c) for c in CROSS))
    assert rows(made, MIDDLE) == 3
    told = made.describe()
    assert (told["rows"], told["copied_rows"], told["blocks"], told["layout"]) == (4 * N + 3, 9, 4, "overlap")
    workload = hr.Workload.from_sql([f"SELECT * FROM arms WHERE {c}" for c in CROSS])
    assert made.score(workload).rows_read == pytest.approx((N + 3) / (4 * N + 3))
    assert made.verify()["rows"] == 4 * N + 3


def test_who_knows_nothing_of_copies(spark: SparkSession, source: str, made: ManagedTable) -> None:
    assert answer(spark.read.parquet(made.path)) == answer(spark.read.parquet(source))
    assert pq.read_table(made.path).num_rows == 4 * N + 3
    assert made.files() == made.files("true") == [n for n in made.known.names if "/" not in n]
    assert answer(made.read()) == answer(spark.read.parquet(source))


@pytest.mark.long
def test_appended(spark: SparkSession, source: str, cross: ManagedTable) -> None:
    assert check(cross)
    grown = cross.append(spark.read.parquet(source).where("z % 3 <> 1"))
    assert check(grown)
    assert check(cross), "whoever opened it before"
    assert grown.verify()["rows"] == 2 * (4 * N + 3) - (4 * N + 3) // 3
    copies = [n.startswith(COPIES) for n in grown.known.names]
    assert (grown.known.rows[copies] > 0).sum() == 6
    own = grown.append(spark.read.parquet(source).where("x < 2"))  # nothing to copy
    assert check(own)
    own.verify()


@pytest.mark.long
@pytest.mark.parametrize("what", ["added", "removed", "replaced", "a copy", "a strange copy"])
def test_files_changed_by_others(cross: ManagedTable, what: str) -> None:
    own = [Path(cross.path, n) for n in cross.known.names if not n.startswith("_")]
    copies = sorted(Path(cross.path, COPIES).glob("part-*"))
    match what:
        case "added":
            shutil.copy(own[0], Path(cross.path, "theirs.parquet"))
        case "removed":
            for file in own:
                if pq.read_table(file).num_rows > N:
                    file.unlink()  # where the middle is at home
        case "replaced":
            for file in own:
                if pq.read_table(file).num_rows > N:
                    pq.write_table(pq.read_table(file).slice(0, 5), file)
                    Path(file.parent, f".{file.name}.crc").unlink()
        case "a copy":
            copies[0].unlink()
        case "a strange copy":
            shutil.copy(copies[0], Path(cross.path, COPIES, "part-00000-strange.parquet"))
    used = check(cross)
    assert check(ManagedTable.open(cross.spark, cross.path)) == used == (what == "a strange copy")
    if what == "a strange copy":
        cross.verify()
    else:
        with pytest.raises(hr.HedgerowError, match="not as it was written"):
            cross.verify()


def test_verify_looks_at_copies(cross: ManagedTable) -> None:
    copy = max(Path(cross.path, COPIES).glob("part-*"), key=lambda file: pq.read_table(file).num_rows)
    found = pq.read_table(copy)
    other = found.set_column(found.column_names.index("z"), "z", pa.array([7] * len(found)))
    pq.write_table(other, copy)
    Path(copy.parent, f".{copy.name}.crc").unlink()
    assert isinstance(cross.format, ParquetFolder)
    (part,) = cross.parts
    sizes = part.known.sizes.copy()
    sizes[part.known.names.index(f"{COPIES}/{copy.name}")] = copy.stat().st_size
    part.__dict__["known"] = replace(part.known, sizes=sizes)
    with pytest.raises(hr.HedgerowError, match="copies"):
        cross.verify()


@pytest.mark.long
def test_routed(spark: SparkSession, source: str, made: ManagedTable) -> None:
    ours, plain = f"parquet.`{made.path}`", f"parquet.`{source}`"
    for sql in (
        f"SELECT * FROM $T WHERE {CROSS[0]}",
        f"SELECT count(*), sum(z) FROM $T WHERE {MIDDLE}",
        f"SELECT a.z, b.z FROM $T a JOIN $T b ON a.x = b.x WHERE a.y BETWEEN 4 AND 6 AND b.x >= 4 AND {MIDDLE.replace('x', 'b.x').replace('y', 'b.y')}",
        f"SELECT a.x, b.y FROM (SELECT * FROM $T WHERE {CROSS[1]}) a LEFT JOIN $T b ON a.x = b.x AND b.y < 5.5 AND b.x < 6",
        f"SELECT z FROM $T WHERE {CROSS[2]} UNION ALL SELECT z FROM $T WHERE {CROSS[3]}",
        f"SELECT x FROM $T WHERE {CROSS[1]} EXCEPT ALL SELECT x FROM $T WHERE {MIDDLE}",
        "SELECT count(*) FROM $T",
    ):
        routed = hr.route(spark, sql.replace("$T", ours))
        assert answer(routed) == answer(spark.sql(sql.replace("$T", plain))), sql
    for c in CROSS:
        asked = f"SELECT _metadata.file_path AS f FROM {ours} WHERE {c}"
        assert all(COPIES not in row.f for row in hr.route(spark, asked).collect())
        assert not any(COPIES in n for n in made.read(c, ["_metadata.file_path"]).inputFiles())


@pytest.mark.long
def test_a_view_of_some_files(spark: SparkSession, made: ManagedTable) -> None:
    """Copies of rows that are in files which the view does not have are none of its rows."""
    own = made.files()
    for i in range(len(own)):
        some = spark.read.parquet(*(f"{made.path}/{n}" for n in own[:i] + own[i + 1 :]))
        some.createOrReplaceTempView("some_arms")
        for c in (*CROSS, MIDDLE):
            assert answer(hr.route(spark, f"SELECT * FROM some_arms WHERE {c}")) == answer(some.where(c)), (i, c)
    made.read().createOrReplaceTempView("some_arms")
    assert any(COPIES in n for c in CROSS for n in hr.route(spark, f"SELECT * FROM some_arms WHERE {c}").inputFiles())
    spark.catalog.dropTempView("some_arms")


@pytest.mark.long
def test_copies_that_lie_in_two_places(spark: SparkSession, source: str, tmp_path: Path) -> None:
    """z from 900 on is at home in block 0; to avoid that, both copies have to be opened, and 1000 to 1099 is in both.

    z < 300   block 0        z <  900   block 2                    z < 1100  copied to 1 and 2
    z < 600   block 1        z < 1000   copied to 1                others    copied to 2
    """
    cuts = tuple(Compare(col("z"), "<", lit(v)) for v in (300, 600, 900, 1000, 1100))
    chain = tuple((i, ~i, i + 1 if i < 4 else ~5) for i in range(5))
    layout = OverlapLayout(TreeLayout(cuts, chain), (0, 1, 2, 0, 0, 0), ((), (), (), (1,), (1, 2), (2,)))
    table = hr.apply(spark, source, layout, str(tmp_path / "arms"))
    assert table.describe()["copied_rows"] == 100 + 200 + 103
    assert opening(table, "z >= 900").choice.copied_cells == ((1, 3), (1, 4), (2, 5))
    assert rows(table, "z >= 900") == 303
    assert rows(table, "z >= 500") == 300 + 300 + 303
    for grown in (table, table.append(spark.read.parquet(source).where("z % 2 = 0"))):
        plain = spark.read.parquet(table.path)
        plain.createOrReplaceTempView("plain_arms")
        asked = [
            "z >= 900", "z BETWEEN 950 AND 1150", "z >= 1000 AND x < 6", "z < 300 OR z >= 950", "z >= 500",
            "z >= 1100",
        ]  # fmt: skip
        assert ask_all([grown.read(c) for c in asked])[0] == answers(plain, asked)
        assert answer(grown.read("z >= 900", ["x"])) == answer(plain.where("z >= 900").select("x"))
        sql = "SELECT a.z, b.y FROM $T a JOIN $T b ON a.x = b.x WHERE a.z >= 900 AND b.z > 990"
        routed = hr.route(spark, sql.replace("$T", f"parquet.`{table.path}`"))
        assert answer(routed) == answer(spark.sql(sql.replace("$T", "plain_arms")))
        opened(plain, "z >= 900")
        named = f"{', '.join(f'{f.name} {f.dataType.simpleString()}' for f in plain.schema)}, {COPY.upper()} BIGINT"
        opened(spark.read.schema(named).parquet(table.path), "z >= 900")  # a column that only copies have
    assert grown.verify()["rows"] == plain.count()
    spark.catalog.dropTempView("plain_arms")


@pytest.mark.long
def test_a_replica_with_overlap(spark: SparkSession, source: str, made: ManagedTable, tmp_path: Path) -> None:
    """The table is sorted, its replica overlaps; an append goes to both."""
    sorted_ = by_ranges(spark, source, "z", 200, CROSS, "arms")
    hr.apply(spark, source, sorted_, str(tmp_path / "arms"))
    table = hr.apply(spark, source, made.layout, str(tmp_path / "arms"), replica="second")
    table = table.append(spark.read.parquet(source).where("z > 1000"))
    plain = spark.read.parquet(table.path)
    assert ask_all([table.read(c) for c in CROSS])[0] == answers(plain, CROSS)
    assert any(f"second/{COPIES}" in n for c in CROSS for n in table.files(c))
    assert table.verify()["replicas"] == {"second": "as the table"}


def test_what_is_refused(spark: SparkSession, source: str, tmp_path: Path) -> None:
    """A function of the user's may change its mind, and a row its cell."""
    spark.udf.register("near_five", lambda v: abs(v - 5) < 0.1, "boolean")
    asked = [f"{a} AND near_five({b})" for a, b in (("x < 6", "y"), ("x >= 4", "y"), ("y < 6", "x"), ("y >= 4", "x"))]
    workload = hr.Workload.from_sql([f"SELECT * FROM arms WHERE {c}" for c in asked])
    learned = hr.learn(spark, source, workload, options=hr.LearnOptions(block_rows=200), overlap=True)
    layout = OverlapLayout(TreeLayout(learned.predicates[:1], ((0, ~0, ~1),)), (0, 1), ((1,), ()))
    with pytest.raises(hr.HedgerowError, match="functions of your own"):
        hr.apply(spark, source, replace(learned, layout=layout), str(tmp_path / "arms"))
