"""Other sessions, failing functions, foreign files, killed runs: what is read is still exactly what is there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.core.index.index_file import index_bytes, index_of_bytes
from hedgerow.spark.start.session import configured
from hedgerow.tables.entry import Entry
from hedgerow.tables.managed import ManagedTable
from hedgerow.tables.parquet.runs import new_partial
from hedgerow.tables.sealed import digest
from tests.support.answers import answer, answers, ask, ask_all
from tests.support.things_table import FILES, ROWS, by_id, write_things


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_things(spark, str(tmp_path_factory.mktemp("plain") / "things.parquet"))


# --- other settings than those under which the table was written -----------------------------------

LEARNED = [
    "hour(ts) = 3", "date_format(ts, 'HH:mm') = '03:45'", "ts LIKE '%:45:00'", "CAST(ts AS DATE) = '2024-01-20'", "ts < '2024-02-01'",
    "wall < '2024-02-01'", "day < '2025-01-01'", "number > 5", "price * 2 > 100", "CAST(CAST(number AS STRING) AS INT) < 5",
    "text = 'a\\tb'", "text LIKE '%b'", "word = 'w5'", "kind = 'n' AND CAST(word AS INT) > 45", "size(items) < 1",
]  # fmt: skip
ZONED = [
    "hour(ts) = 3", "date_format(ts, 'HH:mm') = '03:45'", "CAST(ts AS DATE) = '2024-01-20'", "ts < '2024-01-05 03:00:00'",
    "ts BETWEEN TIMESTAMP '2024-03-10 01:30:00' AND TIMESTAMP '2024-03-10 03:30:00'", "wall >= TIMESTAMP '2024-03-10 12:00:00'",
    "ts >= DATE '2024-03-10'", "ts > TIMESTAMP '2024-03-09 12:00:00' + INTERVAL 1 DAY", "wall < '2024-01-05 03:00:00'",
]  # fmt: skip
DATED = "to_date('2024-01-05') > day"
# The setting, conditions that are read under it, and one of them that means something else under it.
SETTINGS: list[tuple[dict[str, str], list[str], str]] = [
    ({"session__timeZone": "America/New_York"}, ZONED, "hour(ts) = 3"),
    ({"session__timeZone": "Asia/Kathmandu"}, ZONED, "ts < '2024-01-05 03:00:00'"),
    ({"ansi__enabled": "false"}, ["CAST(word AS INT) > 45", "number + 2147483647 < 0", "late = 1", "number = '5x'", "word = 5", DATED], "CAST(word AS INT) > 45"),
    ({"ansi__enabled": "false", "session__timeZone": "America/New_York"}, [*ZONED, "size(items) < 1", "word > 45"], "hour(ts) = 3"),
    ({"parser__escapedStringLiterals": "true"}, [r"text = 'a\tb'", r"text LIKE 'a\\%'", "word = 'w5'"], r"text = 'a\tb'"),
    ({"ansi__doubleQuotedIdentifiers": "true"}, ['text = "kind"', "number < 9", "word = 'w5'"], 'text = "kind"'),
    ({"timestampType": "TIMESTAMP_NTZ", "session__timeZone": "America/New_York"}, ZONED, "ts < '2024-01-05 03:00:00'"),
    ({"legacy__timeParserPolicy": "LEGACY"}, [DATED, "date_format(ts, 'HH:mm') = '03:45'"], ""),
    ({"caseSensitive": "true"}, ["number < 9", "word = 'w5'", "hour(ts) = 3"], ""),
]  # fmt: skip


@pytest.fixture(scope="module")
def table(spark: SparkSession, source: str, tmp_path_factory: pytest.TempPathFactory) -> ManagedTable:
    with configured(spark, session__timeZone="UTC"):
        return by_id(spark, source, str(tmp_path_factory.mktemp("ours") / "things"), LEARNED)


@pytest.mark.long
@pytest.mark.parametrize("settings, conditions, other", SETTINGS, ids=[" ".join(s.values()) for s, _, _ in SETTINGS])
def test_reading_under_other_settings(
    spark: SparkSession, source: str, table: ManagedTable, settings: dict[str, str], conditions: list[str], other: str
) -> None:
    with configured(spark, session__timeZone="UTC"):
        before = _answer_or_none(spark, source, other) if other else None
    with configured(spark, **settings):
        assert not other or _answer_or_none(spark, source, other) != before, "the setting makes no difference"
        for c, expected in zip(conditions, answers(spark.read.parquet(source), conditions), strict=True):
            found, opened = ask(table.read(where=c))
            assert found == expected, c
            assert sum(scan.files for scan in opened) in (0, len(table.files(where=c))), c  # 0: Spark sees no need
            assert answer(hr.route(spark, f"SELECT * FROM parquet.`{table.path}` WHERE {c}")) == expected, c


def _answer_or_none(spark: SparkSession, source: str, condition: str) -> Any:
    from pyspark.errors import PySparkException

    try:
        return answer(spark.read.parquet(source).where(condition))
    except PySparkException:
        return None


def test_the_index_is_used_where_it_holds(spark: SparkSession, table: ManagedTable) -> None:
    """Or all of the above would prove nothing."""
    with configured(spark, session__timeZone="UTC"):
        for c in [*LEARNED[3:7], "number < 5", "text = 'a\tb' AND number < 500", LEARNED[9]]:
            assert len(table.files(where=c)) < FILES, c
    with configured(spark, session__timeZone="Asia/Kathmandu"):
        assert len(table.files(where="CAST(CAST(number AS STRING) AS INT) < 5")) == FILES
        assert len(table.files(where="number < 5")) == 1


# Conditions, the settings under which the table is written, and those under which it is read.
STALE: list[tuple[list[str], dict[str, str], dict[str, str]]] = [
    # LIKE turns a timestamp into a text
    (["ts LIKE '%:45:00'"], {"session__timeZone": "UTC"}, {"session__timeZone": "Asia/Kathmandu"}),
    # one of the many settings of Spark's past
    (["size(items) < 0"], {"ansi__enabled": "false", "legacy__sizeOfNull": "false"}, {"ansi__enabled": "false"}),
    # outside ANSI mode a cast wraps around, and try_cast does not
    (["number = CAST(300 AS TINYINT)", "try_cast(number AS TINYINT) IS NULL"], {"ansi__enabled": "false"}, {"ansi__enabled": "false"}),
]  # fmt: skip


@pytest.mark.parametrize("asked, then, now", STALE, ids=[asked[0] for asked, _, _ in STALE])
def test_stale(
    spark: SparkSession, source: str, tmp_path: Path, asked: list[str], then: dict[str, str], now: dict[str, str]
) -> None:
    with configured(spark, **then):
        learned = [*asked, "number = 5", "CAST(number AS TINYINT) = 5"]
        written = by_id(spark, source, str(tmp_path / "things"), learned)
    with configured(spark, **now):
        assert ask_all([written.read(where=c) for c in asked])[0] == answers(spark.read.parquet(source), asked)


# --- conditions that fail --------------------------------------------------------------------------


@pytest.mark.long
def test_a_guarded_cast(spark: SparkSession, source: str, tmp_path: Path) -> None:
    """`word` is a number only where `kind` is 'n'; elsewhere the cast would fail."""
    guarded = "kind = 'n' AND CAST(word AS INT) > 45"
    workload = hr.Workload.from_sql(
        [f"SELECT * FROM things WHERE {guarded}", "SELECT * FROM things WHERE number < 100"]
    )
    learned = hr.learn(spark, source, workload, options=hr.LearnOptions(block_rows=100))
    assert learned.blocks > 1
    written = hr.apply(spark, source, learned, str(tmp_path / "things"))
    assert written.verify()["rows"] == ROWS
    plain = spark.read.parquet(source)
    for c in (guarded, "kind = 'n' AND CAST(word AS INT) > 48", f"number < 100 AND {guarded}", f"NOT ({guarded})"):
        assert answer(written.read(where=c)) == answer(plain.where(c)), c
    assert len(written.files(where=f"number < 100 AND {guarded}")) < len(written.known)
    more = plain.where("id < 100").selectExpr("id + 5000 AS id", "* EXCEPT (id)")
    assert written.append(more).read(where=guarded).count() == plain.union(more).where(guarded).count()


@pytest.mark.long
def test_a_function_that_raises(spark: SparkSession, source: str, tmp_path: Path) -> None:
    def picky(number: int) -> int:
        if number == 1234:
            raise ValueError("not this one")
        return number % 7

    spark.udf.register("picky", picky, "int")
    asked = ["picky(number) = 3", "number < 100", "number BETWEEN 500 AND 600"]
    workload = hr.Workload.from_sql([f"SELECT * FROM things WHERE {c}" for c in asked])
    with pytest.warns(hr.HedgerowWarning, match="(?i)picky"):
        learned = hr.learn(spark, source, workload, options=hr.LearnOptions(block_rows=200))
    written = hr.apply(spark, source, learned, str(tmp_path / "things"))
    for c in (*asked[1:], "number < 100 AND picky(number) = 3", "picky(number) = 3 AND number > 1900"):
        assert answer(written.read(where=c)) == answer(spark.read.parquet(source).where(c)), c
    assert len(written.files(where="number < 100 AND picky(number) = 3")) < len(written.known)


@pytest.mark.long
def test_a_function_that_became_another(spark: SparkSession, source: str, tmp_path: Path) -> None:
    spark.udf.register("chosen", lambda n: n % 2, "int")
    written = by_id(spark, source, str(tmp_path / "things"), ["chosen(number) = 5", "number < 5"])
    spark.udf.register("chosen", lambda n: n % 7, "int")
    c = "chosen(number) = 5"
    assert answer(written.read(where=c)) == answer(spark.read.parquet(source).where(c))


# --- files of others -------------------------------------------------------------------------------


@pytest.fixture
def copy(table: ManagedTable, tmp_path: Path) -> ManagedTable:
    """The table again, to be spoiled."""
    shutil.copytree(table.path, tmp_path / "things")
    return hr.table(table.spark, str(tmp_path / "things"))


def rows_of(path: str | Path) -> pa.Table:
    """Spark's timestamps as they are: instants in microseconds."""
    rows = pq.read_table(path, coerce_int96_timestamp_unit="us")
    return rows.set_column(rows.schema.get_field_index("ts"), "ts", rows["ts"].cast(pa.timestamp("us", "UTC")))


def some_rows(source: str, ids: range) -> pa.Table:
    return rows_of(source).filter(pc.field("id").isin(list(ids)))


def put(rows: pa.Table, path: Path) -> None:
    pq.write_table(rows, path)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)  # Hadoop's checksum of the file that was there


FOREIGN = [
    "more.parquet", "part-00000-mine.parquet", "my file.parquet", "a%20b.parquet", "day=1.parquet", "{a}[1]*?.parquet",
    "sub/more.parquet",  # Spark does not look into folders of a table without partitions
]  # fmt: skip


def test_foreign_files_are_always_read(spark: SparkSession, source: str, copy: ManagedTable) -> None:
    for number, name in enumerate(FOREIGN):
        path = Path(copy.path) / name
        path.parent.mkdir(exist_ok=True)
        put(some_rows(source, range(number, 50)), path)
    asked = ["number < 20", "number > 1990"]
    for c, expected in zip(asked, answers(spark.read.parquet(copy.path), asked), strict=True):
        assert answer(hr.table(spark, copy.path).read(where=c)) == expected, c
        assert answer(hr.route(spark, f"SELECT * FROM parquet.`{copy.path}` WHERE {c}")) == expected, c


def test_foreign_files_and_the_skipped(spark: SparkSession, source: str, copy: ManagedTable) -> None:
    put(some_rows(source, range(50)), Path(copy.path) / "more.parquet")
    again = hr.table(spark, copy.path)
    assert len(again.files(where="number < 20")) == 2
    _, opened = ask(hr.route(spark, f"SELECT * FROM parquet.`{copy.path}` WHERE number < 20"))
    assert [scan.files for scan in opened] == [2]


def test_as_many_foreign_files_as_skipped(spark: SparkSession, source: str, copy: ManagedTable) -> None:
    put(some_rows(source, range(50)), Path(copy.path) / "more.parquet")
    _, opened = ask(hr.route(spark, f"SELECT * FROM parquet.`{copy.path}` WHERE number >= {ROWS // FILES}"))
    assert [scan.files for scan in opened] == [
        len(hr.table(spark, copy.path).files(where=f"number >= {ROWS // FILES}"))
    ]


def test_a_replaced_file_is_read(spark: SparkSession, source: str, copy: ManagedTable) -> None:
    put(some_rows(source, range(1900, 1950)), Path(copy.path) / copy.known.names[0])
    again = hr.table(spark, copy.path)
    assert again.read(where="number >= 1900").count() == 150
    assert answer(hr.route(spark, f"SELECT * FROM parquet.`{copy.path}` WHERE number >= 1900")).rows == 150


# --- runs that did not come to an end --------------------------------------------------------------


def one_sentence(call: Callable[[], object], words: str) -> None:
    with pytest.raises(hr.HedgerowError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value) and "Traceback" not in str(caught.value)


def test_a_killed_run(spark: SparkSession, source: str, table: ManagedTable, tmp_path: Path) -> None:
    process = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    name = new_partial(str(tmp_path / "things"))[1]
    left = tmp_path / name.replace(f"-{os.getpid()}-", f"-{int(process.stdout)}-")
    works = tmp_path / name
    works.mkdir()
    shutil.copytree(table.path, left)
    next((left / "_hedgerow").glob("state-*.json")).unlink()
    (left / "_temporary").mkdir()
    one_sentence(lambda: hr.table(spark, str(tmp_path / "things")), "killed or failed")
    assert by_id(spark, source, str(tmp_path / "things"), ["number < 5"]).verify()["rows"] == ROWS
    assert {p.name for p in tmp_path.iterdir()} == {"things", name}, "the folder of a run that works is deleted"


@pytest.mark.long
def test_a_folder_without_its_state(spark: SparkSession, source: str, table: ManagedTable, tmp_path: Path) -> None:
    """On a disk no killed run leaves one, because each writes beside the table; so only `overwrite` replaces it."""
    things = str(tmp_path / "things")
    shutil.copytree(table.path, things)
    next((tmp_path / "things" / "_hedgerow").glob("state-*.json")).unlink()
    one_sentence(lambda: hr.table(spark, things), "killed or failed")
    one_sentence(lambda: hr.apply(spark, source, table.layout, things), "is not empty")
    assert hr.apply(spark, source, table.layout, things, overwrite=True).verify()["rows"] == ROWS  # type: ignore[union-attr]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_failing_apply_leaves_nothing(
    spark: SparkSession,
    source: str,
    table: ManagedTable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    overwrite: bool,
) -> None:
    if overwrite:
        shutil.copytree(table.path, tmp_path / "things")

    def broken(*_: object, **named: object) -> bool:
        raise RuntimeError("the lights went out")

    monkeypatch.setattr("hedgerow.tables.parquet.write.write_first_state", broken)
    with pytest.raises(RuntimeError, match="the lights"):
        hr.apply(spark, source, table.layout, str(tmp_path / "things"), overwrite=overwrite)
    assert [p.name for p in tmp_path.iterdir()] == (["things"] if overwrite else [])
    if overwrite:
        assert hr.table(spark, str(tmp_path / "things")).verify()["rows"] == ROWS


def test_an_apply_that_spark_fails_leaves_nothing(spark: SparkSession, table: ManagedTable, tmp_path: Path) -> None:
    rows = spark.range(ROWS).selectExpr("id", "IF(id = 77, raise_error('no'), CAST(id AS INT)) AS number")
    one_sentence(lambda: hr.apply(spark, rows, table.layout, str(tmp_path / "things")), "could not be written")
    assert list(tmp_path.iterdir()) == []


def test_the_last_copy_is_never_thrown_away(
    spark: SparkSession, copy: ManagedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stuck(*_: object) -> None:
        raise hr.HedgerowError("cannot be moved")

    monkeypatch.setattr("hedgerow.spark.storage.folder.Folder.move", stuck)
    with pytest.raises(hr.HedgerowError):
        hr.apply(spark, copy.path, copy.layout, copy.path, overwrite=True)
    left = [p for p in Path(copy.path).parent.rglob("*.parquet")]
    assert sum(pq.read_metadata(p).num_rows for p in left) >= ROWS


# --- appending -------------------------------------------------------------------------------------


def added(spark: SparkSession, source: str, start: int) -> Any:
    """A hundred rows for every block, each with another number."""
    rows = spark.read.parquet(source).where("id % 20 = 3")
    return rows.select("id", (rows["number"] + start).alias("number"), *rows.columns[2:])


@pytest.mark.long
def test_appends_by_two_who_opened_before(spark: SparkSession, source: str, copy: ManagedTable) -> None:
    first, second = hr.table(spark, copy.path), hr.table(spark, copy.path)
    first.append(added(spark, source, 10_000))
    grown = second.append(added(spark, source, 20_000))
    assert grown.describe()["unknown_files"] == []
    assert grown.verify()["rows"] == ROWS + 200
    assert [grown.read(where=f"number >= {n} AND number < {n + 9000}").count() for n in (10_000, 20_000)] == [100] * 2
    assert len(grown.files(where="number >= 20000")) == FILES


def test_appends_at_the_same_time(spark: SparkSession, source: str, copy: ManagedTable) -> None:
    """Whoever fails says so, and its rows are not there; the rows of the others are, and indexed."""
    failed: list[int] = []

    def append(start: int) -> None:
        try:
            hr.table(spark, copy.path).append(added(spark, source, start))
        except hr.HedgerowError:
            failed.append(start)

    threads = [Thread(target=append, args=(n,)) for n in (10_000, 20_000, 30_000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    grown = hr.table(spark, copy.path)
    assert grown.describe()["unknown_files"] == []
    assert grown.verify()["rows"] == ROWS + 100 * (3 - len(failed))
    assert failed == []


def test_an_append_that_fails(
    spark: SparkSession, source: str, copy: ManagedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = added(spark, source, 10_000).selectExpr(
        "id", "IF(id = 23, raise_error('no'), number) AS number", "* EXCEPT (id, number)"
    )
    one_sentence(lambda: copy.append(broken), "nothing could be appended")

    def out(*_: object) -> bool:
        raise RuntimeError("the lights went out")

    monkeypatch.setattr("hedgerow.spark.storage.footers.Footers.known_terms", out)
    with pytest.raises(RuntimeError, match="the lights"):
        copy.append(added(spark, source, 10_000))
    monkeypatch.undo()
    assert hr.table(spark, copy.path).verify()["rows"] == ROWS
    assert spark.read.parquet(copy.path).count() == ROWS
    assert list(Path(copy.path, "_hedgerow").glob("append-*")) == []


def test_an_append_whose_commit_fails(
    spark: SparkSession, source: str, copy: ManagedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **named: object) -> bool:
        raise RuntimeError("the lights went out")

    monkeypatch.setattr("hedgerow.tables.parquet.append.update_state", broken)
    with pytest.raises(RuntimeError, match="the lights"):
        copy.append(added(spark, source, 10_000))
    assert hr.table(spark, copy.path).read().count() == ROWS


@pytest.mark.long
def test_appending_to_the_last_block_only(spark: SparkSession, source: str, copy: ManagedTable) -> None:
    rows = added(spark, source, 10_000)
    for start in (10_000, 20_000, 30_000):
        copy = copy.append(rows.select((rows["id"] + start).alias("id"), *rows.columns[1:]))
    assert all(copy.verify(seed)["rows"] == ROWS + 300 for seed in range(3))


# --- verify ----------------------------------------------------------------------------------------


def lose_a_file(table: ManagedTable) -> None:
    (Path(table.path) / table.known.names[3]).unlink()


def add_a_file(table: ManagedTable) -> None:
    shutil.copy(Path(table.path) / table.known.names[3], Path(table.path) / "more.parquet")


def change_a_value(table: ManagedTable) -> None:
    """The file keeps its name, and in the list of files its size: as if the change had not moved a byte."""
    path = Path(table.path) / table.known.names[3]
    rows = rows_of(path)
    numbers = pa.array([*rows["number"].to_pylist()[:-1], 751], pa.int32())
    put(rows.set_column(rows.schema.get_field_index("number"), "number", numbers), path)
    known = table.newest.known
    sizes = known.sizes.copy()
    sizes[known.names.index(path.name)] = path.stat().st_size
    rewrite(table, "files", replace(known, sizes=sizes).to_bytes())
    seal_again(table)


def swap_two_rows_of_the_index(table: ManagedTable) -> None:
    """The index says of the first file what holds for the second, and the other way round."""
    index = index_of_bytes(path_of(table, "index").read_bytes())
    for term in index.blocks.terms.values():
        for values in (term.low, term.high):
            values.setflags(write=True)
            values[[0, 1]] = values[[1, 0]]
    rewrite(table, "index", index_bytes(index))
    seal_again(table)


def change_the_checksum(table: ManagedTable) -> None:
    entry = table.newest.entry
    assert entry.checksum is not None
    store(table, replace(entry, checksum=replace(entry.checksum, low=5)))


def seal_again(table: ManagedTable) -> None:
    """As if what is there now had been written by Hedgerow."""
    side, entry = Path(table.path) / "_hedgerow", table.newest.entry
    store(table, replace(entry, seals={n: digest((side / n).read_bytes()) for n in entry.seals}))


def store(table: ManagedTable, entry: Entry) -> None:
    put_bytes(newest(table), replace(table.state, parts=(entry,)).to_bytes())


def rewrite(table: ManagedTable, what: str, data: bytes) -> None:
    put_bytes(path_of(table, what), data)


def put_bytes(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def path_of(table: ManagedTable, what: str) -> Path:
    """The file of the table's only part whose name begins so."""
    (name,) = (name for name in table.newest.entry.names if name.startswith(what))
    return Path(table.path) / "_hedgerow" / name


def newest(table: ManagedTable) -> Path:
    return Path(table.path) / "_hedgerow" / "state-1.json"


def test_verify_of_a_copy(copy: ManagedTable) -> None:
    """Or the refusals of `verify` below would prove nothing."""
    assert copy.verify()["rows"] == ROWS


@pytest.mark.parametrize(
    "spoil, words",
    [
        (lose_a_file, "missing"),
        (add_a_file, "more.parquet is not Hedgerow's"),
        (change_a_value, "rows are not those that were written"),
        (swap_two_rows_of_the_index, "statistics of .* are wrong"),
        (change_the_checksum, "rows are not those that were written"),
    ],
)
def test_verify_catches(
    spark: SparkSession, copy: ManagedTable, spoil: Callable[[ManagedTable], None], words: str
) -> None:
    spoil(copy)
    one_sentence(lambda: hr.table(spark, copy.path).verify(), words)


@pytest.mark.parametrize("what", ["index", "files", "state"])
@pytest.mark.parametrize("data", [b"", b"{}", b"no longer what it was"])
def test_damaged(spark: SparkSession, copy: ManagedTable, what: str, data: bytes) -> None:
    if what == "state":
        put_bytes(newest(copy), data)
    else:
        rewrite(copy, what, data)
        assert len(hr.table(spark, copy.path).files(where="number < 5")) == FILES, "all are opened"
    one_sentence(lambda: hr.table(spark, copy.path).verify(), "damaged")
