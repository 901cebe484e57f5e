"""Random queries that join tables give the same rows with pruning and without, before and after the tables change."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from tests.joins.star import KEYS, ROWS, SCHEMAS, TOP, a_condition, a_query, comparing, frame, rows_of, workload

BLOCK_ROWS = {"lines": 40, "orders": 20, "customers": 10, "nations": 100, "parts": 10, "suppliers": 9}


class World:
    """The tables in one format, written in layouts that look at joined tables."""

    def __init__(self, spark: SparkSession, folder: Path, format_: str, seed: int) -> None:
        self.spark, self.format, self.seed = spark, format_, seed
        self.random = Random(seed)
        self.source = {table: str(folder / "plain" / table) for table in SCHEMAS}
        for table, path in self.source.items():
            rows = frame(spark, table, rows_of(table, self.random))
            rows.repartition(2).write.format(format_).save(path)
        asked = workload(self.random, also=[comparing(self.random) for _ in range(8)])
        learner = "pando" if seed % 2 else "mto"
        options, both = hr.LearnOptions(block_rows=25, recurrence=1), seed % 4 > 0
        learned = hr.learn_tables(spark, self.source, asked, learner, options, keys=KEYS, both_directions=both)
        to = None if format_ == "delta" else str(folder / "laid out")
        hr.apply_tables(spark, self.source, learned, to)
        self.places = {t: p if to is None else f"{to}/{t}" for t, p in self.source.items()}
        self.register()

    def register(self) -> None:
        for table, path in self.places.items():
            self.spark.read.format(self.format).load(path).createOrReplaceTempView(table)

    def compare(self, n: int) -> tuple[int, int]:
        """The files opened of n queries with all that joins tell, and without; fails if rows differ."""
        opened = [0, 0]
        for _ in range(n):
            sql = a_query(self.random)
            hr.detach(self.spark)
            plain = self._rows(sql)
            hr.attach(self.spark)
            for place, setting in enumerate(("true", "false")):
                self.spark.conf.set("hedgerow.joins", setting)
                if setting == "true":
                    assert self._rows(sql) == plain, f"HEDGEROW_SEED={self.seed}, {self.format}: {sql}"
                else:
                    self.spark.sql(sql)._jdf.queryExecution().optimizedPlan()
                opened[place] += sum(scan.files_opened for scan in hr.last_query(self.spark))
                reasons = [scan.reason for scan in hr.last_query(self.spark) if scan.reason]
                assert not reasons, f"HEDGEROW_SEED={self.seed}: {reasons[0]}"
            self.spark.conf.unset("hedgerow.joins")
        hr.detach(self.spark)
        return opened[0], opened[1]

    def _rows(self, sql: str) -> list[str]:
        return sorted(map(str, self.spark.sql(sql).collect()))

    def change(self) -> None:
        """One random change of a Delta table, or an append or a repair."""
        r, spark = self.random, self.spark
        table = r.choice(list(SCHEMAS))
        name = f"delta.`{self.places[table]}`"
        match r.choice(["insert", "delete", "update", "update", "append", "repair", "relearn", "broken"]):
            case "insert":
                first = ROWS[table] + r.randrange(1000)
                frame(spark, table, rows_of(table, r, first, 5)).write.format("delta").mode("append").save(
                    self.places[table]
                )
            case "delete":
                some = f"hash({TOP[table]}) % 3 = {r.randrange(3)}"
                spark.sql(f"DELETE FROM {name} AS t WHERE {a_condition(r, table, 't')} AND {some}")
            case "update":
                columns = {
                    "lines": "qty",
                    "orders": "total",
                    "customers": "balance",
                    "parts": "size",
                    "suppliers": "rating",
                }
                column = columns.get(table)
                change = "name = 'PERU1'" if column is None else f"{column} = {column} + {r.randrange(1, 900)}"
                spark.sql(f"UPDATE {name} AS t SET {change} WHERE {a_condition(r, table, 't')}")
            case "append":
                rows = frame(spark, "lines", rows_of("lines", r, 5000 + r.randrange(1000), 30))
                hr.table(spark, self.places["lines"]).append(rows)
            case "repair":
                hr.table(spark, self.places[r.choice(["lines", "orders"])]).repair()
            case "relearn":
                hr.table(spark, self.places[r.choice(["lines", "orders"])]).relearn(workload(r))
            case "broken":
                spark.sql(f"DELETE FROM delta.`{self.places['orders']}` WHERE okey % 7 = {r.randrange(7)}")
        self.register()


def todays_seed() -> int:
    return int(os.environ.get("HEDGEROW_SEED") or date.today().toordinal())


@pytest.mark.long
@pytest.mark.parametrize("format_", ["parquet", "delta"])
def test_sample(request: Any, tmp_path: Path, format_: str) -> None:
    world = World(request.getfixturevalue("delta" if format_ == "delta" else "spark"), tmp_path, format_, todays_seed())
    opened, without = world.compare(10)
    assert opened < without
    if format_ == "delta":
        for _ in range(2):
            world.change()
            world.compare(4)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("format_", ["parquet", "delta"])
def test_many(request: Any, tmp_path: Path, format_: str, seed: int) -> None:
    spark = request.getfixturevalue("delta" if format_ == "delta" else "spark")
    world = World(spark, tmp_path, format_, todays_seed() + seed)
    opened, without = world.compare(150)
    print(f"{format_}: {opened} of {without} files")
    for _ in range(20 if format_ == "delta" else 0):
        world.change()
        world.compare(20)
