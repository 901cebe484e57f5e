"""A managed table and its plain source, and the checks that one is as the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import hedgerow as hr
from hedgerow.tables.managed import ManagedTable
from tests.support.answers import Scan, answer, answers, ask, ask_all
from tests.support.random_queries import Question

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class World:
    """A managed table and its plain source, both under several names; whatever is put for one of ours has a twin."""

    spark: SparkSession
    table: ManagedTable
    source: str
    names: tuple[tuple[str, str], ...]
    other: str

    def plainly(self, sql: str) -> str:
        return sql.replace("ours_", "plain_").replace("OURS_", "PLAIN_").replace(self.table.path, self.source)

    def check(self, sql: str, plain: str, scans: Sequence[str] | None) -> None:
        expected = answer(self.spark.sql(plain))
        found, opened = ask(hr.route(self.spark, sql))
        assert found == expected, sql
        self.check_files(opened, scans, sql)

    def check_files(self, opened: Sequence[Scan], scans: Sequence[str] | None, sql: str) -> None:
        """Spark may see that it needs no scan, and may run one twice for a filter on the other side of a join."""
        if scans is None:
            return
        ours = [s.files for s in opened if s.files and self.table.path in s.root]
        said = [n for n in (len(self.table.files(where=c)) for c in scans) if n]
        assert max(ours, default=0) <= max(said, default=0), sql
        if len(ours) == len(said):  # Spark knows more of a query than the conditions that we name
            assert all(n <= most for n, most in zip(sorted(ours), sorted(said), strict=True)), sql

    def ask(self, question: Question, name: int) -> None:
        ours, theirs = self.names[name % len(self.names)]
        sql = question.sql.replace("$D", self.other)
        self.check(sql.replace("$E", ours), sql.replace("$E", theirs), question.scans)

    def check_reads(self, conditions: Sequence[str], columns: Sequence[str] | None = None) -> None:
        plain = answers(self.spark.read.parquet(self.source), conditions, columns)
        found, opened = ask_all([self.table.read(where=c, columns=columns) for c in conditions])
        for c, ours, theirs in zip(conditions, found, plain, strict=True):
            assert ours == theirs, c
        self.check_files(opened, conditions, "all conditions")
        kept = sum(len(self.table.files(where=c)) for c in conditions)
        assert kept < 0.9 * len(conditions) * len(self.table.known), "nothing was tried"


def register(spark: SparkSession, table: ManagedTable, source: str) -> tuple[tuple[str, str], ...]:
    """Every way to name a table, ours and the plain one."""
    spark.sql(f"CREATE TABLE ours_c USING parquet LOCATION '{table.path}'")
    spark.sql(f"CREATE TABLE plain_c USING parquet LOCATION '{source}'")
    spark.read.parquet(table.path).createOrReplaceTempView("ours_v")
    table.read().createOrReplaceTempView("ours_r")
    for name in ("plain_v", "plain_r"):
        spark.read.parquet(source).createOrReplaceTempView(name)
    ours = (
        f"parquet.`{table.path}`",
        "ours_c",
        "OURS_V",
        "default.`Ours_C`",
        f"PARQUET.`{table.path}/`",
        "ours_r",
    )
    theirs = (f"parquet.`{source}`", "plain_c", "PLAIN_V", "default.`Plain_C`", f"PARQUET.`{source}/`", "plain_r")
    return tuple(zip(ours, theirs, strict=True))


def forget(spark: SparkSession) -> None:
    for name in ("ours_c", "plain_c"):
        spark.sql(f"DROP TABLE IF EXISTS {name}")
    for name in ("ours_v", "ours_r", "plain_v", "plain_r", "kinds"):
        spark.catalog.dropTempView(name)
