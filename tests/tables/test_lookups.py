"""Look-ups of values in columns of many values: the rows of plain Spark, from the files that may hold the value."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.spark.start.session import temporary_settings
from hedgerow.tables.managed import ManagedTable
from tests.support.answers import Answer, answers, ask_all, without_skipping

ROWS, FILES = 4000, 20
_MIXED = "pmod(xxhash64(id), 1000003)"
COLUMNS = (
    "id",
    "md5(CAST(id AS STRING)) AS event",
    f"{_MIXED} AS num",
    f"CAST({_MIXED} AS INT) AS small",
    f"CAST({_MIXED} / 1000 AS DECIMAL(12, 3)) AS price",
    f"CAST({_MIXED} AS DECIMAL(30, 5)) * 1000003 AS wide",
    f"date_add(DATE '1600-01-01', CAST({_MIXED} % 300000 AS INT)) AS day",
    f"TIMESTAMP_LTZ '2000-01-01 00:00:00 UTC' + make_interval(0, 0, 0, 0, 0, 0, {_MIXED}) AS ts",
    f"unhex(md5(CAST({_MIXED} AS STRING))) AS raw",
    f"IF(id % 3 = 0, NULL, concat('user ', {_MIXED} % 3000)) AS user",
    f"CAST({_MIXED} / 7 - 50000 AS DOUBLE) AS odd",
    f"CAST(concat('c', {_MIXED} % 5000) AS VARCHAR(20)) AS short",
)  # fmt: skip
LOOKED_UP = ("event", "num", "price", "wide", "day", "user")


def value(column: str, seed: int = 1) -> str:
    """The literal of a value of the column that `seed` chooses; `LITERALS` has them."""
    return LITERALS[column][seed % len(LITERALS[column])]


LITERALS: dict[str, list[str]] = {}


@pytest.fixture(scope="module", params=["parquet", pytest.param("delta", marks=pytest.mark.long)])
def kind(request: pytest.FixtureRequest, spark: SparkSession) -> str:
    if request.param == "delta":
        request.getfixturevalue("delta")
    return str(request.param)


def _written(
    spark: SparkSession, kind: str, place: Path, share: float = 1.0, columns: Sequence[str] = LOOKED_UP
) -> ManagedTable:
    source = str(place / "source")
    spark.range(ROWS).selectExpr(*COLUMNS).repartition(3).write.format(kind).save(source)
    rows = spark.range(0, ROWS, 97).selectExpr(*COLUMNS).selectExpr(
        "event", "num", "small", "price", "wide", "day", "ts", "hex(raw) AS raw", "user", "short"
    )  # fmt: skip
    form = {
        "event": "'{}'", "num": "{}", "small": "{}", "price": "{}", "wide": "{}BD", "day": "DATE'{}'", "raw": "X'{}'",
        "ts": "TIMESTAMP_LTZ'{} UTC'", "user": "'{}'", "short": "'{}'",
    }  # fmt: skip
    with temporary_settings(spark, {"spark.sql.session.timeZone": "UTC"}):
        texts = rows.selectExpr(*(f"CAST({name} AS STRING) AS {name}" for name in form)).collect()
    LITERALS.update({name: [form[name].format(row[name]) for row in texts if row[name] is not None] for name in form})
    asked = ["id BETWEEN 100 AND 200", *(f"{name} = {value(name)}" for name in columns), "odd = 5"]
    workload = hr.Workload.from_sql([f"SELECT * FROM t WHERE {c}" for c in asked])
    options = hr.LearnOptions(block_rows=ROWS // FILES)
    learned = hr.learn(spark, source, workload, "range", options, columns=["id"], table="t")
    to: dict[str, Any] = {} if kind == "delta" else {"to": str(place / "t")}
    return hr.apply(spark, source, learned, options=hr.WriteOptions(lookup_share=share), **to)


@pytest.fixture(scope="module")
def table(spark: SparkSession, kind: str, tmp_path_factory: pytest.TempPathFactory) -> ManagedTable:
    return _written(spark, kind, tmp_path_factory.mktemp(kind))


@pytest.fixture
def asking(attached: SparkSession, kind: str, table: ManagedTable) -> Iterator[SparkSession]:
    attached.sql(f"CREATE OR REPLACE TEMP VIEW t AS SELECT * FROM {kind}.`{table.path}`")
    yield attached


def _ids(spark: SparkSession, condition: str) -> list[int]:
    return sorted(row[0] for row in spark.sql(f"SELECT id FROM t WHERE {condition}").collect())


def _right(spark: SparkSession, conditions: list[str]) -> list[Answer]:
    """The answers of plain Spark, in one pass."""
    with without_skipping(spark):
        return answers(spark.table("t"), conditions, ["id"])


def _same(spark: SparkSession, conditions: list[str], right: list[Answer]) -> list[int]:
    """The files that the conditions open, in no order; their answers are the right ones. One query asks them all."""
    found, _ = ask_all([spark.sql(f"SELECT id FROM t WHERE {c}") for c in conditions])
    for condition, ours, plain in zip(conditions, found, right, strict=True):
        assert ours == plain, condition
    return [scan.files_opened for scan in hr.last_query(spark)]


def _check(spark: SparkSession, conditions: list[str]) -> list[int]:
    return _same(spark, conditions, _right(spark, conditions))


def test_every_column_of_many_values_has_a_filter(table: ManagedTable) -> None:
    lookups = table.describe()["lookups"]
    assert sorted(facts["column"].strip("`") for facts in lookups) == sorted(LOOKED_UP)
    assert all(facts["files"] == FILES and not facts["damaged"] and facts["bytes"] > 0 for facts in lookups)


@pytest.mark.parametrize(("names", "most"), [(("user", "day"), 5), (("event", "num", "price", "wide"), 3)])
def test_a_look_up_opens_few_files(asking: SparkSession, names: tuple[str, ...], most: int) -> None:
    looked_up = [f"{name} = {value(name, seed)}" for name in names for seed in (3, 7)]
    assert max(_check(asking, looked_up)) <= most
    assert all(scan.means == "look-up" for scan in hr.last_query(asking))
    with temporary_settings(asking, {"hedgerow.lookups": "false"}):
        assert min(_check(asking, looked_up[::2])) > 10
        assert {scan.means for scan in hr.last_query(asking)} == {"where"}


def test_values_that_do_not_exist(asking: SparkSession) -> None:
    absent = ["event = '7f'", "event = 'ffffffffffffffffffffffffffffffff'", "num = 17", "price = 17.005"]
    assert sum(_check(asking, [*absent, *(f"event = md5('none {i}')" for i in range(10))])) < 20


def test_every_way_to_write_a_condition(asking: SparkSession) -> None:
    e, n, p, d, t, u = (value(name, 2) for name in ("event", "num", "price", "day", "ts", "user"))
    conditions = [
        f"event = {e} AND num > 5", f"event = {e} OR event = {value('event', 9)}", f"event = {e} OR num < 1000",
        f"NOT event = {e}", f"event <> {e} AND id < 50", f"NOT (event = {e} OR num = {n})", f"event <=> {e}",
        f"event IN ({e}, {value('event', 5)}, 'x', NULL)", f"event NOT IN ({e}) AND id < 30", "event = NULL", "user IS NULL AND id < 9",
        f"event IN ({', '.join(repr(str(i)) for i in range(300))}, {e})", f"num IN ({n}, {n} + 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)",
        f"num = {n}.0", f"num = {n}D", f"num = '{n}'", f"num = {n}.5", f"CAST(num AS STRING) = '{n}'", f"num + 0 = {n}", f"{n} = num",
        f"small = {n}L", f"small = CAST({n} AS DECIMAL(20, 2))", "small = 9999999999", f"CAST(small AS BIGINT) = {n}", f"CAST(small AS DOUBLE) = {n}",
        f"price = {p}0", f"price = {p}000BD", f"price = {p}D", f"price = '{p}'", f"price = CAST({p} AS DECIMAL(38, 10))", "price = 5", "wide = 0",
        f"CAST(price AS DECIMAL(20, 6)) = {p}", f"day = {d}", f"day = {d[4:]}", f"day = CAST({d} AS TIMESTAMP)", f"CAST(ts AS DATE) = CAST({t} AS DATE)",
        f"ts = {t}", f"ts = {t} + INTERVAL 1 MICROSECOND", f"user = {u} AND user IS NOT NULL", f"user = {u} OR user IS NULL AND id < 9", f"user || '' = {u}",
        f"upper(event) = upper({e})", f"event = upper({e})", f"event COLLATE UTF8_LCASE = upper({e})", f"event = CONCAT({e}, ' ')",
        f"CAST(event AS CHAR(40)) = {e}", f"short = {value('short', 4)}", f"short = CONCAT({value('short', 4)}, ' ')", "odd = 0.0", "odd = -0.0",
        f"if(event = {e}, num > 0, false)", f"event LIKE {e}", f"coalesce(event, 'x') = {e}", f"event = {e} AND event = {value('event', 5)}",
        f"(event = {e}) = (num = {n})", f"event > {e} AND event <= {e}", f"event BETWEEN {e} AND {e}", f"struct(event) = struct({e})",
    ]  # fmt: skip
    _check(asking, conditions)


def test_any_session(asking: SparkSession) -> None:
    conditions = [f"{name} = {value(name, 6)}" for name in LOOKED_UP]
    for key, setting in (
        ("spark.sql.session.timeZone", "Asia/Kathmandu"),
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.caseSensitive", "true"),
        ("spark.sql.optimizer.inSetConversionThreshold", "0"),
    ):
        with temporary_settings(asking, {key: setting}):
            assert max(_check(asking, conditions)) <= 8


def test_more_than_where(asking: SparkSession, table: ManagedTable) -> None:
    e = value("event", 8)
    for sql in (
        f"SELECT count(*), min(id), max(num) FROM t WHERE event = {e}",
        f"SELECT id FROM t WHERE event = {e} ORDER BY ts DESC LIMIT 3",
        f"SELECT count(*) FROM t WHERE event <> {e}",
        f"SELECT a.id, b.num FROM t a JOIN t b ON a.event = b.event WHERE a.event = {e}",
    ):
        with without_skipping(asking):
            right = asking.sql(sql).collect()
        assert asking.sql(sql).collect() == right, sql
    where = f"event = {e}"
    assert [row["id"] for row in table.read(where).collect()] == _ids(asking, where)
    assert len(table.files(where)) <= 2
    explained = str(hr.explain(asking, table.path, where))
    assert "the filters of event exclude it" in explained


def test_verified(table: ManagedTable) -> None:
    assert table.verify()["rows_compared"] == ROWS


# --- changes of the table ---


@pytest.fixture
def own(spark: SparkSession, kind: str, table: ManagedTable, tmp_path: Path) -> ManagedTable:
    """A copy of the table for one test."""
    place = shutil.copytree(table.path.removeprefix("file:"), tmp_path / "t")
    return hr.table(spark, str(place))


def _asked(spark: SparkSession, kind: str, table: ManagedTable) -> None:
    spark.sql(f"CREATE OR REPLACE TEMP VIEW t AS SELECT * FROM {kind}.`{table.path}`")


def test_appends(attached: SparkSession, kind: str, own: ManagedTable) -> None:
    for first in (ROWS, ROWS + 500, ROWS + 1000):
        own = own.append(attached.range(first, first + 500).selectExpr(*COLUMNS))
    _asked(attached, kind, own)
    old = [f"{name} = {value(name, seed)}" for name in LOOKED_UP for seed in (1, 5)]
    new = [f"event = md5('{i}')" for i in (ROWS, ROWS + 499, ROWS + 700, ROWS + 1499, ROWS + 1500)]
    opened = _check(attached, [*old, *new])
    assert max(opened) <= 8 and max(opened[len(old) :]) <= 3
    lookups = own.describe()["lookups"]  # of the table; of two appends together; of the last one
    assert all(sum(facts["column"].strip("`") == name for facts in lookups) == 3 for name in LOOKED_UP)
    own.verify()
    # Rows that others append are in files without a filter.
    frame = attached.range(9000, 9100).selectExpr(*COLUMNS)
    frame.write.format(kind).mode("append").save(own.path)
    _asked(attached, kind, own)
    assert min(_check(attached, [*new, "event = md5('9050')"])) >= 1


def test_deletes_and_rollback(attached: SparkSession, kind: str, own: ManagedTable) -> None:
    if kind != "delta":
        pytest.skip("Parquet tables are not changed")
    path = f"delta.`{own.path}`"
    attached.sql(f"ALTER TABLE {path} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    attached.sql(f"DELETE FROM {path} WHERE id % 10 = 3")
    attached.sql(f"UPDATE {path} SET event = 'changed' WHERE id = 1000")
    _asked(attached, kind, own)
    conditions = [f"event = {value('event', seed)}" for seed in range(6)] + ["event = 'changed'", "event = md5('1000')"]
    assert max(_check(attached, conditions)) <= 4
    own = hr.table(attached, own.path)
    own = own.lay_out([name for name in own.files() if name not in own.known.names])
    _asked(attached, kind, own)
    assert max(_check(attached, conditions)) <= 3


def test_other_layouts_and_relearning(attached: SparkSession, kind: str, own: ManagedTable) -> None:
    workload = hr.Workload.from_sql(["SELECT * FROM t WHERE num = 500003", "SELECT * FROM t WHERE user = 'user 7'"])
    options = hr.LearnOptions(block_rows=ROWS // FILES)
    learned = hr.learn(attached, own.path, workload, "range", options, columns=["id"], table="t")
    to: dict[str, Any] = {} if kind == "delta" else {"to": f"{own.path}-2"}
    own = hr.apply(attached, own.path, learned, options=hr.WriteOptions(lookup_share=1.0), **to)
    assert {facts["column"] for facts in own.describe()["lookups"]} >= {"num", "`user`"}
    _asked(attached, kind, own)
    assert _check(attached, [f"event = {value('event', 3)}"])[0] == FILES
    own = own.relearn(hr.Workload.from_sql([f"SELECT * FROM t WHERE event = {value('event', 4)}"]))
    _asked(attached, kind, own)
    assert _check(attached, [f"event = {value('event', 3)}"])[0] <= 2
    if kind == "delta":
        own = own.rollback()
        _asked(attached, kind, own)
        assert max(_check(attached, [f"event = {value('event', 3)}", f"num = {value('num', 3)}"])) <= 3


@pytest.mark.long
def test_columns_that_are_renamed_replaced_and_widened(
    attached: SparkSession, delta: SparkSession, tmp_path: Path
) -> None:
    place, sql_name = f"{tmp_path}/t", f"delta.`{tmp_path}/t`"
    delta.sql(
        f"CREATE TABLE {sql_name} (id BIGINT, event STRING, small INT, price DECIMAL(12, 3)) USING delta TBLPROPERTIES ("
        "'delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true', 'delta.enableDeletionVectors' = 'true')"
    )
    columns = ("id", f"concat('e', {_MIXED}) AS event", *COLUMNS[3:5])
    delta.range(ROWS).selectExpr(*columns).write.format("delta").mode("append").save(place)
    e, n, p = delta.range(77, 78).selectExpr(*columns).select("event", "small", "price").head()  # type: ignore[misc]
    conditions = [f"event = '{e}'", f"small = {n}", f"price = {p}"]
    workload = hr.Workload.from_sql([f"SELECT * FROM t WHERE {c}" for c in ("id < 100", *conditions)])
    options = hr.LearnOptions(block_rows=ROWS // FILES)
    learned = hr.learn(delta, place, workload, "range", options, columns=["id"], table="t")
    table = hr.apply(delta, place, learned, options=hr.WriteOptions(lookup_share=1.0))
    assert len(table.describe()["lookups"]) == 3

    def check(*asked: str) -> list[int]:
        _asked(attached, "delta", table)
        return _check(attached, list(asked))

    assert max(check(*conditions)) <= 2
    for change in (
        "ALTER TABLE {} RENAME COLUMN event TO other",
        "ALTER TABLE {} ADD COLUMN event STRING",
        "ALTER TABLE {} ALTER COLUMN small TYPE BIGINT",
        "ALTER TABLE {} ALTER COLUMN price TYPE DECIMAL(20, 5)",
        f"INSERT INTO {{}} SELECT id + {ROWS}, other, 5000000000 + id, price + 0.00001, '{e}' FROM {{}} WHERE id < 5",
        f"INSERT INTO {{}} SELECT id + {ROWS}, other, small, price, '{e}' FROM {{}} WHERE small = {n}",
        "DELETE FROM {} WHERE id % 7 = 3",
    ):
        delta.sql(change.replace("{}", sql_name))
        names = delta.table(sql_name).columns
        asked = [*conditions[1:], "small = 5000000001", f"price = {p}00", f"price = {p} + 0.00001"]
        check(*asked, *(f"{name} = '{e}'" for name in ("event", "other") if name in names))
    table = hr.table(delta, place)
    table = table.append(
        delta.table(sql_name).where("small > 900000").selectExpr("id + 90000 AS id", "other", "small", "price", "event")
    )
    check(*asked, f"event = '{e}'", f"other = '{e}'")
    table.relearn(hr.Workload.from_sql([f"SELECT * FROM t WHERE {c}" for c in asked]))
    check(*asked, f"event = '{e}'", f"other = '{e}'")
    delta.sql(f"ALTER TABLE {sql_name} DROP COLUMN other")
    delta.sql(f"ALTER TABLE {sql_name} RENAME COLUMN event TO other")
    check(*asked, f"other = '{e}'")


# --- damage, and the budget ---


def _lookup_files(table: ManagedTable) -> list[Path]:
    side = Path(table.path.removeprefix("file:")) / "_hedgerow"
    return sorted(side.glob("lookup-*/part-*.parquet"))


def test_damaged_filters_exclude_nothing(attached: SparkSession, kind: str, own: ManagedTable) -> None:
    _asked(attached, kind, own)
    conditions = [f"{name} = {value(name, seed)}" for name in LOOKED_UP for seed in (3, 4)]
    right = _right(attached, conditions)
    r, files = Random(kind), _lookup_files(own)
    for i in range(6):
        for file in files:
            (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
            data = bytearray(file.read_bytes())
            if i < 4:
                for _ in range(1 + 40 * i):
                    data[r.randrange(len(data))] ^= 1 << r.randrange(8)
            file.write_bytes(data if i < 4 else data[: len(data) // 2])
        hr.detach(attached)
        hr.attach(attached)
        _same(attached, conditions[i % 2 :: 2], right[i % 2 :: 2])  # each column, by one of its values
    for file in files:
        file.unlink()
    hr.detach(attached)
    hr.attach(attached)
    assert _check(attached, conditions[:3]) == [FILES] * 3
    assert all(facts["damaged"] for facts in own.describe()["lookups"])
    with pytest.raises(hr.HedgerowError, match=r"its filter for look-ups of .* is damaged"):
        own.verify()


def test_a_filter_of_another_column_is_not_read(attached: SparkSession, kind: str, own: ManagedTable) -> None:
    files = _lookup_files(own)
    whole = {file: file.read_bytes() for file in files}
    for file, other in zip(files, files[1:] + files[:1], strict=True):
        (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
        file.write_bytes(whole[other])
    _asked(attached, kind, own)
    _check(attached, [f"{name} = {value(name, 3)}" for name in LOOKED_UP])


def test_the_budget(spark: SparkSession, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hedgerow.tables.lookups._MIN_ADVISED_BYTES", 0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = _written(spark, kind, tmp_path, 0.012, ("event", "num"))
    facts: dict[str, Any] = table.describe()
    assert sum(f["bytes"] for f in facts["lookups"]) <= 0.05 * facts["bytes"]  # small files have large footers
    assert len(facts["lookups"]) < 2
    assert any("get no filter" in str(w.message) and "lookup_share" in str(w.message) for w in caught)
