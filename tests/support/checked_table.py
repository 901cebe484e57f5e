"""A managed table and its plain source, and the checks that one is as the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.tables.managed import ManagedTable
from tests.support.answers import Scan, answer, answers, ask, ask_all


@dataclass(frozen=True)
class World:
    """A managed table and its plain source, under the names `ours_c` and `plain_c`, as views `_v` and as read `_r`."""

    spark: SparkSession
    table: ManagedTable
    source: str

    def check(self, sql: str, scans: Sequence[str] | None) -> None:
        """Compare a routed query with its plain twin; `scans` has a condition for each scan, None: not known."""
        plain = sql.replace("ours_", "plain_").replace("OURS_", "PLAIN_").replace(self.table.path, self.source)
        expected = answer(self.spark.sql(plain))
        found, opened = ask(hr.route(self.spark, sql))
        assert found == expected, sql
        if scans is not None:
            self._check_files(opened, scans, sql)

    def _check_files(self, opened: Sequence[Scan], scans: Sequence[str], sql: str) -> None:
        """Spark may see that it needs no scan, and may run one twice for a filter on the other side of a join."""
        ours = [s.files for s in opened if s.files and self.table.path in s.root]
        said = [n for n in (len(self.table.files(where=c)) for c in scans) if n]
        assert max(ours, default=0) <= max(said, default=0), sql
        if len(ours) == len(said):  # Spark knows more of a query than the conditions that we name
            assert all(n <= most for n, most in zip(sorted(ours), sorted(said), strict=True)), sql

    def check_reads(self, conditions: Sequence[str], columns: Sequence[str] | None = None) -> None:
        plain = answers(self.spark.read.parquet(self.source), conditions, columns)
        found, opened = ask_all([self.table.read(where=c, columns=columns) for c in conditions])
        for c, ours, theirs in zip(conditions, found, plain, strict=True):
            assert ours == theirs, c
        self._check_files(opened, conditions, "all conditions")
        kept = sum(len(self.table.files(where=c)) for c in conditions)
        assert kept < 0.9 * len(conditions) * len(self.table.known), "nothing was tried"


@contextmanager
def named(spark: SparkSession, table: ManagedTable, source: str) -> Iterator[World]:
    """The table and its source under their names."""
    for name, path in (("ours", table.path), ("plain", source)):
        spark.sql(f"CREATE TABLE {name}_c USING parquet LOCATION '{path}'")
        spark.read.parquet(path).createOrReplaceTempView(f"{name}_v")
        spark.read.parquet(path).createOrReplaceTempView(f"{name}_r")
    table.read().createOrReplaceTempView("ours_r")
    yield World(spark, table, source)
    for name in ("ours", "plain"):
        spark.sql(f"DROP TABLE {name}_c")
        spark.catalog.dropTempView(f"{name}_v")
        spark.catalog.dropTempView(f"{name}_r")
