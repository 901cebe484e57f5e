"""Random joins give the same rows, whether the keys of one side choose the other side's files at run time or not.

python -m tests.joins.test_run_time 7 2000          # a seed, and how many comparisons to make
python -m tests.joins.test_run_time 7 2000 parquet  # on tables of one format; on Delta they take five times as long

Each query runs once in a session that skips nothing, and then under several settings in which keys choose files.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

import hedgerow as hr
from hedgerow.spark.start.session import quiet, session, spark_errors, temporary_settings
from tests.joins.star import SCHEMAS, a_query, frame, rows_of
from tests.joins.test_random import todays_seed
from tests.joins.typed_joins import LOOKED_UP, TYPED, WIDE_ROWS, a_typed_query, a_value
from tests.support.answers import attached_to, without_skipping
from tests.support.lay_out import by_ranges
from tests.support.light_session import LIGHT, drop_service_settings, keep_java_names

OURS = {"lines": "okey", "orders": "okey", "wide": "id"}  # and the column by whose ranges they are laid out
ROWS = {"wide": WIDE_ROWS, "narrow": 60}
KINDS = ["parquet", "json", "cached", "of the driver", "delta"]  # of the tables that are not ours
WAYS = 6  # of running a query, each a comparison
PER_WORLD = 1000  # comparisons
SETTINGS = {
    "adaptive.enabled": ["true", "false"],
    "autoBroadcastJoinThreshold": ["10MB", "10MB", "10MB", "2KB", "-1"],
    "adaptive.autoBroadcastJoinThreshold": ["10MB", "-1"],
    "exchange.reuse": ["true", "true", "true", "false"],
    "cbo.enabled": ["true", "false"],
    "cbo.joinReorder.enabled": ["true", "false"],
    "join.preferSortMergeJoin": ["true", "false"],
    "parquet.enableVectorizedReader": ["true", "true", "false"],
    "optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": ["10GB", "0"],
    "optimizer.dynamicPartitionPruning.reuseBroadcastOnly": ["true", "false"],
    "codegen.wholeStage": ["false", "false", "false", "true"],
}
# Spark sends a filter for each column of an INTERSECT with each task: of its usual size, 19 of them fill the heap.
SMALL_BLOOMS = {f"spark.sql.optimizer.runtime.bloomFilter.{name}": "4096" for name in ("numBits", "maxNumBits")}
ZONES = ["UTC", "UTC", "Europe/Berlin"]
SECONDS = [*["600"] * 6, "0.05", "1e-9"]  # that a query waits for keys


@dataclass
class Tally:
    """What comparisons found.

    `skipping`: those in which keys skipped files; `by_spark`: settings that change the answer of plain Spark too;
    `failed`: queries that Spark refuses."""

    compared: int = 0
    skipping: int = 0
    files: int = 0
    by_spark: int = 0
    failed: int = 0
    different: list[str] = field(default_factory=list)
    reasons: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        return (
            f"{self.compared:,} comparisons, in {self.skipping:,} of them keys skipped {self.files:,} files, "
            f"{len(self.different)} different, {self.by_spark} by Spark's own settings, {self.failed} queries failed"
        )


class World:
    """Some tables of ours, and others as plain files, cached, or as values of the driver."""

    def __init__(self, spark: SparkSession, folder: Path, format_: str, seed: int) -> None:
        self.spark, self.folder, self.format, self.random = spark, folder, format_, Random(seed)
        self.name = f"seed {seed}, {format_}"
        self.cached: list[DataFrame] = []
        self.next_id = 2000
        self.deltas = ["wide", "lines"] if format_ == "delta" else []
        for table, schema in SCHEMAS.items():
            rows = rows_of(table, self.random, n=400 if table == "lines" else None)
            made = self._values(rows, schema) if self._is(0.3) else _kept(frame(spark, table, rows))
            self._write(table, made)
        for table, count in ROWS.items():
            self._write(table, self._typed(table, range(count), is_local=self._is(0.5)))
        if format_ == "delta":
            spark.sql(f"DELETE FROM delta.`{folder}/wide` WHERE id % 11 = 3")
            spark.sql(f"DELETE FROM delta.`{folder}/lines` WHERE id % 13 = 3")

    def _is(self, likely: float) -> bool:
        return self.random.random() < likely

    def _values(self, rows: list[tuple[Any, ...]], schema: str) -> DataFrame:
        """Rows that the optimizer sees."""
        columns = [column.split() for column in schema.split(", ")]
        values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
        casts = ", ".join(f"CAST({name} AS {type_}) AS {name}" for name, type_ in columns)
        return self.spark.sql(f"SELECT {casts} FROM VALUES {values} AS v({', '.join(name for name, _ in columns)})")

    def _typed(self, table: str, ids: range, is_local: bool = False) -> DataFrame:
        values, schema = [(i, a_value(self.random, table, i)) for i in ids], "id INT, v INT"
        made = self._values(values, schema) if is_local else _kept(self.spark.createDataFrame(values, schema))
        filler = f"repeat(md5(CAST(id AS STRING)), {9 if table == 'wide' else 1}) AS filler"
        return made.selectExpr("id", *(f"{sql} AS {name}" for name, sql in TYPED.items()), filler)

    def _write(self, table: str, rows: DataFrame) -> None:
        path, spark = str(self.folder / table), self.spark
        if table not in OURS:
            kind = self.random.choice(KINDS)
            if kind in ("parquet", "json", "delta"):
                rows.coalesce(1).write.format(kind).save(path)
                reader = spark.read.format(kind)
                rows = (reader if kind == "delta" else reader.schema(rows.schema)).load(path)
                self.deltas += [table] * (kind == "delta")
            if kind == "cached":
                self.cached.append(rows.cache())
            rows.createOrReplaceTempView(table)
            return
        source = path if self.format == "delta" else f"{path}-source"
        writer = rows.coalesce(1).write.format(self.format)
        writer.options(**{"delta.enableDeletionVectors": "true"} if self.format == "delta" else {}).save(source)
        conditions = [f"{column} IS NULL" for column in rows.columns]  # so that the index describes all columns
        conditions += LOOKED_UP if table == "wide" else []
        learned = by_ranges(spark, source, OURS[table], max(20, rows.count() // 6), conditions, table)
        filters = hr.WriteOptions(lookup_share=0.3)
        hr.apply(spark, source, learned, None if self.format == "delta" else path, options=filters)
        self._register(table)

    def _register(self, table: str) -> None:
        self.spark.read.format(self.format).load(str(self.folder / table)).createOrReplaceTempView(table)

    def compare(self, n: int, tally: Tally) -> None:
        """Make n comparisons; before the last tenth of them the tables change."""
        end, change_at = tally.compared + n, tally.compared + n * 9 // 10
        with quiet(), temporary_settings(self.spark, {"spark.sql.session.timeZone": self.random.choice(ZONES)}):
            while tally.compared < change_at:
                self._compare(min(WAYS, end - tally.compared), tally)
            while tally.compared < end:
                self._compare_across_a_change(min(WAYS, end - tally.compared), tally)
        for cached in self.cached:
            cached.unpersist()

    def _compare(self, ways: int, tally: Tally) -> None:
        sql = self._query()
        plain = self._plain(sql)
        if isinstance(plain, str):
            tally.failed += 1
            return
        for _ in range(ways):
            settings = self._settings()
            with temporary_settings(self.spark, settings):
                found = _rows(lambda: self.spark.sql(sql).collect())
                scans = hr.last_query(self.spark)
                if found != plain and found == self._plain(sql):
                    tally.compared += 1
                    tally.by_spark += 1
                    continue
                self._check(found, plain, sql, settings, tally)
            skipped = sum(scan.files_opened - scan.files_read for scan in scans if scan.files_read is not None)
            tally.files += skipped
            tally.skipping += skipped > 0
            tally.reasons |= {scan.reason for scan in scans if scan.reason}

    def _plain(self, sql: str) -> list[str] | str:
        with without_skipping(self.spark):
            return _rows(lambda: self.spark.sql(sql).collect())

    def _query(self) -> str:
        return a_query(self.random) if self._is(0.2) else a_typed_query(self.random)

    def _settings(self) -> dict[str, str]:
        chosen = {f"spark.sql.{name}": self.random.choice(values) for name, values in SETTINGS.items()}
        return {**chosen, "hedgerow.runtimeBytes": "0", "hedgerow.runtimeSeconds": self.random.choice(SECONDS)}

    def _check(self, found: Any, plain: Any, sql: str, settings: dict[str, str], tally: Tally) -> None:
        tally.compared += 1
        if found != plain:
            tally.different.append(f"{self.name}, {settings}: {sql}\n  {str(found)[:300]}\n  {str(plain)[:300]}")

    def _compare_across_a_change(self, n: int, tally: Tally) -> None:
        """Plan queries, change a table, and run them."""
        settings = self._settings()
        planned: list[tuple[str, DataFrame, DataFrame]] = []
        with temporary_settings(self.spark, settings):
            while len(planned) < n:
                sql = self._query()
                with without_skipping(self.spark):
                    plain = self._planned(sql)
                if plain is None:
                    tally.failed += 1
                    continue
                attached = self._planned(sql)
                if attached is None:
                    self._check("not planned", "planned", sql, settings, tally)
                else:
                    planned.append((sql, plain, attached))
            change = self._change()
            for sql, plain, attached in planned:
                expected = _rows(plain.collect)
                if isinstance(expected, str):
                    tally.failed += 1
                else:
                    self._check(_rows(attached.collect), expected, f"{sql}; {change}", settings, tally)

    def _planned(self, sql: str) -> DataFrame | None:
        """Return a query with its plan; None if Spark refuses it, or fails to plan it."""
        try:
            planned = self.spark.sql(sql)
            planned._jdf.queryExecution().executedPlan()
            return planned
        except spark_errors():
            return None

    def _change(self) -> str:
        """Change one table, and read our tables anew from now on."""
        self.next_id += 40
        more = self._typed("wide", range(self.next_id, self.next_id + 40))
        if self.deltas and self._is(0.7):
            table, key = self.random.choice(self.deltas), self.random.randrange(7)
            column = OURS.get(table, "id" if table in ROWS else SCHEMAS.get(table, "").split(" ")[0])
            change = f"DELETE FROM delta.`{self.folder}/{table}` WHERE {column} % 7 = {key}"
            self.spark.sql(change)
        elif self._is(0.5):
            change = "append"
            hr.table(self.spark, str(self.folder / "wide")).append(more)
        else:
            change = "append by others"
            more.coalesce(1).write.format(self.format).mode("append").save(str(self.folder / "wide"))
        for table in OURS:
            self._register(table)
        return change


def _kept(rows: DataFrame) -> DataFrame:
    """Rows that the optimizer does not see, and that no query asks Python for again."""
    return rows.localCheckpoint()


def _literal(value: Any) -> str:
    return "NULL" if value is None else f"{value!r}D" if isinstance(value, float) else repr(value)


def _rows(collect: Callable[[], list[Row]]) -> list[str] | str:
    """The rows in an order; the kind of error if there are none."""
    try:
        return sorted(map(str, collect()))
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:40]}"


@pytest.mark.long
@pytest.mark.parametrize("format_", ["parquet", "delta"])
def test_sample(request: Any, tmp_path: Path, format_: str) -> None:
    spark = request.getfixturevalue("delta" if format_ == "delta" else "spark")
    tally = Tally()
    with attached_to(spark):
        World(spark, tmp_path, format_, todays_seed()).compare(120, tally)
    assert not tally.different, tally.different[0]
    assert tally.skipping > 0 and not tally.reasons, (tally, tally.reasons)


def main(seed: int, comparisons: int, *formats: str) -> int:
    keep_java_names()
    started = session("2g", "local[2]", **LIGHT, **SMALL_BLOOMS, **{"spark.sql.shuffle.partitions": "1"})
    drop_service_settings(started)
    tally, begun, worlds, formats = Tally(), monotonic(), 0, formats or ("parquet", "delta")
    with attached_to(started):
        while tally.compared < comparisons:
            with TemporaryDirectory() as folder:
                format_ = formats[worlds % len(formats)]
                world = World(started, Path(folder), format_, 1000 * seed + worlds)
                world.compare(min(PER_WORLD, comparisons - tally.compared), tally)
            worlds += 1
            print(f"{world.name}: {tally}, {60 * tally.compared / (monotonic() - begun):.0f} a minute", flush=True)
    print(*tally.different, *tally.reasons, sep="\n")
    started.stop()
    return 1 if tally.different else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
