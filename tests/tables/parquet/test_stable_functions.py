"""Functions of users that are declared stable: they divide rows and skip files, in the declared version only."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType

import hedgerow as hr
from hedgerow.core.errors import HedgerowError
from tests.support.answers import answer, answers, ask_all, opened_by_each
from tests.support.lay_out import asking
from tests.support.things_table import FILES, by_id, write_things

ALL = (FILES, FILES)
CONDITIONS = {  # with the files to open, of eight with 250 numbers each
    "tier(number) = 1": 2,
    "1 = TIER(Number)": 2,
    "tier(number) IN (0, 3)": 3,
    "tier(number) IS NULL": 1,
    "NOT tier(number) = 1": 5,
    "tier(number) > 2 AND price > 0": 1,
    "tier(number) = 1 OR number < 10": 3,
    "tier(number) = 1 AND number < 600": 1,
    "grown(number)": 4,
    "NOT grown(number)": 3,
    "grown(number) IS NULL": 8,  # of a condition it is not noted by itself
    "tier(number + 1) = 1": 8,
    "coalesce(tier(number), 7) = 7": 8,
}
ASKED = ["tier(number) = 1", "tier(number) > 2", "grown(number)", "number < 100", "price < 10"]


def tier(n: int) -> int | None:
    return None if n >= 1750 else n // 500


def grown(n: int) -> bool | None:
    return None if 500 <= n < 750 else n >= 1000


def in_python(spark: SparkSession, first: int = 0) -> None:
    spark.udf.register("tier", lambda n: tier(n + first), "int")
    spark.udf.register("grown", grown, "boolean")


def in_sql(spark: SparkSession, first: int = 0) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION tier(n INT) RETURNS INT RETURN (n + {first}) DIV 500")
    spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION grown(n INT) RETURNS BOOLEAN RETURN sqrt(n) >= 31.7")


Register = Callable[[SparkSession, int], None]


def session_with(
    spark: SparkSession, version: str | None, register: Register = in_python, first: int = 0
) -> SparkSession:
    """Return a session of its own with both functions, declared if there is a version."""
    own = spark.newSession()
    register(own, first)
    for name in ("tier", "grown") if version else ():
        hr.stable(name, version, own)
    return own


def things(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.parquet(path)


def opened(spark: SparkSession, path: str, conditions: list[str]) -> list[tuple[int, int]]:
    """The files that attached queries open; their rows are those of plain queries."""
    return list(opened_by_each(things(spark, path), conditions).values())


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_things(spark, str(tmp_path_factory.mktemp("plain") / "things.parquet"))


@pytest.fixture(scope="module")
def place(spark: SparkSession, source: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table whose index knows both functions of Python in version 1."""
    path = str(tmp_path_factory.mktemp("made") / "things")
    by_id(session_with(spark, "1"), source, path, ASKED)
    return path


def test_conditions_skip(spark: SparkSession, place: str) -> None:
    own = session_with(spark, "1")
    found = opened_by_each(things(own, place), list(CONDITIONS))
    assert {c: files for c, (files, _) in found.items()} == CONDITIONS
    table, asked = hr.table(own, place), list(CONDITIONS)[:4]
    assert [len(table.files(c)) for c in asked] == [CONDITIONS[c] for c in asked]
    assert ask_all([table.read(c) for c in asked])[0] == answers(things(own, place), asked)
    routed = hr.route(own, f"SELECT * FROM parquet.`{place}` WHERE tier(number) = 1 ORDER BY number LIMIT 5")
    assert [row.number for row in routed.collect()] == [500, 501, 502, 503, 504]
    assert "2 of 8 files" in str(hr.explain(own, place, "tier(number) = 1"))


def test_functions_in_sql(spark: SparkSession, source: str, tmp_path: Path) -> None:
    path, own = str(tmp_path / "things"), session_with(spark, "1", in_sql)
    by_id(own, source, path, ASKED)
    asked = ["tier(number) = 1", "tier(number) > 2", "grown(number)", "tier(number) = 1 AND number < 600"]
    assert [files for files, _ in opened(own, path, asked)] == [2, 2, 4, 1]
    for another in (session_with(spark, None, in_sql), session_with(spark, "2", in_sql)):
        assert opened(another, path, ASKED[:1]) == [ALL]
    own.sql("CREATE OR REPLACE TEMPORARY FUNCTION tier(n INT) RETURNS INT RETURN (n + 500) DIV 500")
    assert opened(own, path, ASKED[:1]) == [ALL]


@pytest.mark.skipif(not shutil.which("javac"), reason="needs a compiler for Java")
def test_functions_in_java(spark: SparkSession, source: str, tmp_path: Path) -> None:
    (tmp_path / "Tier.java").write_text(
        "public class Tier implements org.apache.spark.sql.api.java.UDF1<Integer, Integer> {\n"
        "  public Integer call(Integer n) { return n >= 1750 ? null : n / 500; }\n}\n"
    )
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    subprocess.run(["javac", "--release", "17", "-cp", str(jars), "Tier.java"], cwd=tmp_path, check=True)
    with zipfile.ZipFile(tmp_path / "tier.jar", "w") as jar:
        jar.write(tmp_path / "Tier.class", "Tier.class")
    spark.sql(f"ADD JAR '{tmp_path}/tier.jar'")

    def in_java(own: SparkSession, first: int) -> None:
        in_python(own)
        own.udf.registerJavaFunction("tier", "Tier", IntegerType())

    path, own = str(tmp_path / "things"), session_with(spark, "1", in_java)
    by_id(own, source, path, ASKED)
    asked = list(CONDITIONS)[:8]
    assert [files for files, _ in opened(own, path, asked)] == [CONDITIONS[c] for c in asked]
    own.udf.registerJavaFunction("tier", "Tier", IntegerType())
    assert opened(own, path, asked[:1]) == [ALL]
    assert opened(session_with(spark, "2", in_java), path, asked[:1]) == [ALL]


@pytest.mark.parametrize("version", [None, "2", "1 "])
def test_another_version_opens_all(spark: SparkSession, place: str, version: str | None) -> None:
    own = session_with(spark, version, first=500)
    assert opened(own, place, list(CONDITIONS)[:5]) == [ALL] * 5
    assert opened(own, place, ["number < 100"]) == [(1, FILES)]
    assert len(hr.table(own, place).files("tier(number) = 1")) == FILES


def test_a_function_that_became_another(spark: SparkSession, place: str) -> None:
    own, asked = session_with(spark, "1"), ["tier(number) = 1", "grown(number)"]
    assert opened(own, place, asked) == [(2, FILES), (4, FILES)]
    another = own.udf.register("tier", lambda n: n % 3, "int")
    assert opened(own, place, asked) == [ALL, (4, FILES)]
    in_python(own)
    assert opened(own, place, asked) == [ALL, ALL]
    hr.stable("tier", "1", own)
    hr.stable("GROWN", "1", own)
    assert opened(own, place, asked) == [(2, FILES), (4, FILES)]
    frame = things(own, place)
    expected = answer(frame.where("number % 3 = 1"))
    hr.attach(own)
    assert answer(frame.where(another("number") == 1)) == expected  # the other function, which has its name
    assert [scan.files_opened for scan in hr.last_query(own)] == [FILES]
    hr.stable("tier", "2", own)
    assert opened(own, place, asked) == [ALL, (4, FILES)]


def test_rows_appended_in_another_version(spark: SparkSession, source: str, tmp_path: Path) -> None:
    one, two, path = session_with(spark, "1"), session_with(spark, "2", first=500), str(tmp_path / "things")
    by_id(one, source, path, ASKED)
    hr.table(two, path).append(things(two, source).where("number < 500"))
    files = FILES + len(hr.table(two, path).parts[1].known)
    assert opened(one, path, ["tier(number) = 1"]) == [(2 + files - FILES, files)]
    assert opened(two, path, ["tier(number) = 2"]) == [(FILES, files)]  # none of the new rows
    none = session_with(spark, None)
    assert opened(none, path, ["tier(number) = 1"]) == [(files, files)]
    for own in (one, two, none):
        assert hr.table(own, path).verify()["rows"] == 2500


def test_what_is_learned(spark: SparkSession, source: str, tmp_path: Path) -> None:
    """Rows are divided by the function; in a session that lacks it, the layout cannot be used."""
    own = session_with(spark, "1")
    own.udf.register("tail", lambda n: n % 10, "int")
    hr.stable("tail", "7.1", own)
    asked = [f"tail(number) = {i}" for i in range(10)]
    learned = hr.learn(own, source, asking(asked, "things"), options=hr.LearnOptions(block_rows=200), table="things")
    assert "tail(" in str(learned.layout.features).lower()
    table = hr.apply(own, source, learned, str(tmp_path / "things"))
    assert all(files <= 2 < every for files, every in opened(own, table.path, asked))
    assert table.newest.entry.settings["hedgerow.stable.tail"] == "7.1"
    grown_table = table.append(things(own, source).where("number < 300"))
    assert grown_table.verify()["rows"] == 2300
    with pytest.raises(HedgerowError, match=r"(?i)tail") as error:
        hr.apply(spark.newSession(), source, learned, str(tmp_path / "other"))
    assert "\n" not in str(error.value)
    with pytest.raises(HedgerowError, match=r"hedgerow\.stable"):
        undeclared = session_with(spark, None)
        hr.learn(undeclared, source, asking(["tier(number) = 1"], "things"), table="things")


def test_relearn(spark: SparkSession, source: str, tmp_path: Path) -> None:
    path, workload = str(tmp_path / "things"), asking(ASKED[:3], "things")
    by_id(spark, source, path, ["number < 100"])
    one, two = session_with(spark, "1"), session_with(spark, "2", first=500)
    hr.table(one, path).relearn(workload)
    assert opened(one, path, ASKED[:1]) == [(2, FILES)] and opened(two, path, ASKED[:1]) == [ALL]
    hr.table(two, path).relearn(workload)
    assert opened(one, path, ASKED[:1]) == [ALL] and opened(two, path, ASKED[:1]) == [(2, FILES)]
    hr.table(session_with(spark, None), path).relearn(workload)  # it cannot collect them again
    assert opened(two, path, [*ASKED[:1], "number < 100"]) == [ALL, (1, FILES)]


def test_functions_whose_value_may_change_all_the_same(spark: SparkSession, source: str, tmp_path: Path) -> None:
    own = session_with(spark, "1")
    own.sql("CREATE TEMPORARY FUNCTION past(d DATE) RETURNS BOOLEAN RETURN unix_date(d) < unix_date(current_date())")
    own.sql("CREATE TEMPORARY FUNCTION outer_tier(n INT) RETURNS INT RETURN tier(n)")
    for name in ("past", "outer_tier"):
        hr.stable(name, "1", own)
    asked = ["past(day)", "outer_tier(number) = 1", "tier(CAST(unix_date(current_date()) AS INT) + number) = 3"]
    path = str(tmp_path / "things")
    with pytest.warns(hr.HedgerowWarning, match="may change"):
        by_id(own, source, path, [*asked, "number < 100"])
    assert opened(own, path, [*asked, "number < 100"]) == [ALL] * 3 + [(1, FILES)]


def test_what_is_refused(spark: SparkSession) -> None:
    own = session_with(spark, None)
    for name in ("nothing", "length", "sum"):
        with pytest.raises(HedgerowError, match=f"no function {name}"):
            hr.stable(name, "1", own)
    with pytest.raises(HedgerowError, match="not 2"):
        hr.stable("tier", 2, own)  # type: ignore[arg-type]
