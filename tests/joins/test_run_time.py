"""Random joins give the same rows, whether the keys of one side choose the other side's files at run time or not.

python -m tests.joins.test_run_time 7 2000    # a seed, and how many queries in each format
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.spark.start.session import session, temporary_settings
from tests.joins.star import SCHEMAS, a_query, frame, rows_of
from tests.joins.test_random import todays_seed
from tests.support.answers import attached_to, without_skipping
from tests.support.lay_out import by_ranges

OURS = {"lines": "okey", "orders": "okey", "wide": "id"}  # and the column by whose ranges they are laid out
# Columns of one number `v`, all in its order; some are of types in which different numbers are equal.
TYPED = {
    **{"y": "CAST(v % 100 AS TINYINT)", "h": "CAST(v AS SMALLINT)", "i": "CAST(v AS INT)", "l": "CAST(v AS BIGINT)"},
    **{"m": "CAST(v / 4 AS DECIMAL(10, 2))", "o": "CAST(v / 8 AS DECIMAL(12, 3))", "f": "CAST(v AS DOUBLE) / 2"},
    **{"s": "lpad(CAST(v AS STRING), 4, '0')", "u": "concat(CAST(v DIV 7 AS STRING), ' ')"},
    **{"d": "date_add(DATE '1999-12-01', v)", "t": "timestamp_seconds(CAST(v AS BIGINT) * 43200)"},
    **{"r": "hash(v)", "q": "md5(CAST(v AS STRING))"},  # in no order: only filters of look-ups tell files apart
    **{"n": "TIMESTAMP_NTZ '1970-01-01 00:00:00' + make_interval(0, 0, 0, 0, v * 12)"},
}
NUMBERS, TIMES, TEXTS = "yhilmof", "dtn", "su"
LOOKED_UP = ["r = 1607884268", "q = 'c4ca4238a0b923820dcc509a6f75849b'"]
ALWAYS = {"hedgerow.runtimeBytes": "0", "hedgerow.runtimeSeconds": "600"}
SETTINGS = {
    "adaptive.enabled": ["true", "false"],
    "autoBroadcastJoinThreshold": ["10MB", "10MB", "-1"],
    "codegen.wholeStage": ["true", "false"],
    "exchange.reuse": ["true", "true", "true", "false"],
    "cbo.enabled": ["true", "false"],
    "session.timeZone": ["UTC", "Europe/Berlin"],
}


class World:
    """Some tables of ours, and others as plain files, cached, or as values of the driver."""

    def __init__(self, spark: SparkSession, folder: Path, format_: str, seed: int) -> None:
        self.spark, self.format, self.random = spark, format_, Random(seed)
        for table in SCHEMAS:
            self._write(
                folder, table, frame(spark, table, rows_of(table, self.random, n=400 if table == "lines" else None))
            )
        for table, most in (("wide", 1000), ("narrow", 60)):
            values = [(i, None if self.random.random() < 0.1 else self._value(most, i)) for i in range(most)]
            typed = [f"{sql} AS {name}" for name, sql in TYPED.items()]
            filler = f"repeat(md5(CAST(id AS STRING)), {9 if table == 'wide' else 1}) AS filler"
            made = spark.createDataFrame(values, "id INT, v INT").selectExpr("id", *typed, filler)
            self._write(folder, table, made)
        if format_ == "delta":
            spark.sql(f"DELETE FROM delta.`{folder}/wide` WHERE id % 11 = 3")
            spark.sql(f"DELETE FROM delta.`{folder}/lines` WHERE id % 13 = 3")

    def _value(self, most: int, i: int) -> int:
        return (
            i
            if most == 1000
            else self.random.choice([self.random.randrange(-50, 1100), self.random.randrange(300, 320)])
        )

    def _write(self, folder: Path, table: str, rows: Any) -> None:
        path, spark = str(folder / table), self.spark
        if table not in OURS:
            kind = self.random.choice(["parquet", "json", "cached", "local"])
            if kind in ("parquet", "json"):
                rows.write.format(kind).save(path)
                rows = spark.read.format(kind).schema(rows.schema).load(path)
            rows = rows.cache() if kind == "cached" else rows
            rows.createOrReplaceTempView(table)
            return
        source = path if self.format == "delta" else f"{path}-source"
        writer = rows.coalesce(1).write.format(self.format)
        writer.options(**{"delta.enableDeletionVectors": "true"} if self.format == "delta" else {}).save(source)
        conditions = [f"{column} IS NULL" for column in rows.columns]  # so that the index describes all columns
        conditions += LOOKED_UP if table == "wide" else []
        learned = by_ranges(spark, source, OURS[table], max(20, rows.count() // 10), conditions, table)
        filters = hr.WriteOptions(lookup_share=0.3)
        hr.apply(spark, source, learned, None if self.format == "delta" else path, options=filters)
        spark.read.format(self.format).load(path).createOrReplaceTempView(table)

    def compare(self, n: int) -> int:
        """Compare n queries; return how many files were skipped at run time."""
        skipped = 0
        for _ in range(n):
            sql = a_query(self.random) if self.random.random() < 0.4 else a_typed_query(self.random)
            settings = {f"spark.sql.{k}": self.random.choice(v) for k, v in SETTINGS.items()}
            with temporary_settings(self.spark, {**settings, **ALWAYS}):
                with without_skipping(self.spark):
                    plain = self._rows(sql)
                assert self._rows(sql) == plain, f"{settings}: {sql}"
                scans = hr.last_query(self.spark)
            assert not [scan.reason for scan in scans if scan.reason], sql
            skipped += sum(scan.files_opened - scan.files_read for scan in scans if scan.files_read is not None)
        return skipped

    def _rows(self, sql: str) -> list[str]:
        try:
            return sorted(map(str, self.spark.sql(sql).collect()))
        except AnalysisException:
            raise  # the query means nothing
        except Exception as error:
            return [type(error).__name__, str(error)[:40]]


def _key(r: Random) -> str:
    family = r.choice([NUMBERS, NUMBERS, TIMES, TEXTS, "r", "q"])
    mine, theirs = r.choice(family), r.choice(family)
    if r.random() < 0.5:
        theirs = mine
    cast = r.choice(["a.{0} = b.{1}"] * 6 + ["CAST(a.{0} AS STRING) = CAST(b.{1} AS STRING)", "a.{0} <=> b.{1}"])
    if family == NUMBERS:
        cast = r.choice(
            [cast, cast, "CAST(a.{0} AS BIGINT) = b.{1}", "a.{0} = CAST(b.{1} AS INT)", "b.{1} + 1 = a.{0}"]
        )
    return cast.format(mine, theirs)


def _where(r: Random, a: str, most: int) -> str:
    low = r.randrange(most)
    return r.choice(
        [
            *("TRUE", f"{a}.id < {low}", f"{a}.id BETWEEN {low} AND {low + most // 5}", f"{a}.i IS NULL"),
            *(f"{a}.s LIKE '%{r.randrange(10)}'", f"{a}.l % {r.randrange(2, 9)} = 1", f"{a}.id = {low}"),
        ]
    )


def _side(r: Random, table: str, most: int) -> str:
    columns = ", ".join(["id", *TYPED])
    where = _where(r, table, most)
    return r.choice(
        [
            *[f"(SELECT * FROM {table} WHERE {where})"] * 4,
            f"(SELECT DISTINCT {columns} FROM {table} WHERE {where})",
            f"(SELECT {columns} FROM {table} WHERE {where} UNION ALL SELECT {columns} FROM {table} WHERE id = 7)",
            f"(SELECT {columns} FROM {table} WHERE {where} ORDER BY id LIMIT {r.randrange(1, most)})",
            f"(SELECT max(id) AS id, {', '.join(f'{c}' for c in TYPED)} FROM {table} GROUP BY {', '.join(TYPED)})",
        ]
    )


def a_typed_query(r: Random) -> str:
    """A join of two tables over keys of any types, with any kind of join, and perhaps a third side."""
    wide, narrow = _side(r, "wide", 1000), _side(r, r.choice(["narrow", "narrow", "narrow", "wide"]), 60)
    on = " AND ".join(_key(r) for _ in range(r.choice([1, 1, 1, 2])))
    kind = r.choice(
        ["JOIN"] * 4 + ["LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "IN", "NOT IN"]
    )
    hint = r.choice(
        ["", "", "", "/*+ BROADCAST(b) */", "/*+ MERGE(b) */", "/*+ SHUFFLE_HASH(b) */", "/*+ BROADCAST(a) */"]
    )
    column = r.choice("ilsdt")
    if kind in ("IN", "NOT IN"):
        return f"SELECT count(*), sum(a.id) FROM {wide} a WHERE a.{column} {kind} (SELECT {column} FROM {narrow} b)"
    both = kind not in ("LEFT SEMI JOIN", "LEFT ANTI JOIN")
    if r.random() < 0.3:
        wide, narrow = narrow, wide
    third = (
        f" JOIN {_side(r, 'narrow', 60)} c ON {_key(r).replace('a.', 'c.').replace('b.', 'a.')}"
        if r.random() < 0.3
        else ""
    )
    values = "a.id, b.id" if both else "a.id"
    return f"SELECT {hint} {values} FROM {wide} a {kind} {narrow} b ON {on}{third}"


@pytest.mark.long
@pytest.mark.parametrize("format_", ["parquet", "delta"])
def test_sample(request: Any, tmp_path: Path, format_: str) -> None:
    spark = request.getfixturevalue("delta" if format_ == "delta" else "spark")
    seed = todays_seed()
    with attached_to(spark):
        assert World(spark, tmp_path, format_, seed).compare(30) > 0, f"HEDGEROW_SEED={seed}"


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        started = session("3g", "local[2]", **{"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"})
        with attached_to(started):
            for one in ("parquet", "delta"):
                world = World(started, Path(folder, one), one, int(sys.argv[1]))
                print(
                    one,
                    int(sys.argv[2]),
                    "queries,",
                    world.compare(int(sys.argv[2])),
                    "files skipped at run time",
                    flush=True,
                )
        started.stop()
