"""TPC-DS's 99 and TPC-H's 22 queries over laid-out tables, with pruning and without.

Texts and data are DuckDB's. Of each query the text as it is and the text without any LIMIT run: a LIMIT between equal
rows may rightly keep others, and could hide a row that is lost.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.dataset as ds
import sqlglot
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

import hedgerow as hr
from bench.data import tpcds_tables, tpch_tables
from bench.data.duck import texts
from bench.several import schemas_of
from tests.published.changes import change, repair
from tests.published.outcome import Outcome, Skipped, collected, difference, opened, outcome, same, skipped, within
from tests.published.tally import Tally
from tests.support.answers import attached_to, scans, without_skipping

SCALE = {"tpcds": 0.02, "tpch": 0.05}
FILES, FEW = 16, 4  # of tables that queries have conditions on, and of the small ones
SMALL = 40  # rows; fewer stay one file
FORMATS = ("parquet", "delta")


@dataclass(frozen=True)
class Query:
    """A query in Spark's dialect; `whole` is the text without any LIMIT, None where it has none."""

    name: str
    sql: str
    whole: str | None


def queries(suite: str, only: Sequence[int] = ()) -> list[Query]:
    return [_query(suite, n, text) for n, text in texts(suite).items() if not only or n in only]


def _query(suite: str, number: int, text: str) -> Query:
    tree = sqlglot.parse_one(text, read="duckdb")
    sql = tree.sql("spark")
    limits = list(tree.find_all(exp.Limit))
    for limit in limits:
        limit.pop()
    return Query(f"{suite} {number}", sql, tree.sql("spark") if limits else None)


def tables(suite: str, scale: float | None = None) -> Path:
    made = {"tpcds": tpcds_tables.tables, "tpch": tpch_tables.tables}[suite]
    return made(scale or SCALE[suite])


# --- laying out -----------------------------------------------------------------------------------


@dataclass
class Laid:
    """The tables of a suite as this format, in a database of its own."""

    database: str
    files: dict[str, int] = field(default_factory=dict)


def learned(spark: SparkSession, folder: Path, asked: Sequence[str]) -> dict[str, hr.Learned | None]:
    """A layout for each table that the queries read, None for the tiny ones."""
    schemas = schemas_of(folder)
    workload = hr.Workload.from_sql(asked, schemas, "duckdb")
    found: dict[str, hr.Learned | None] = {}
    for name in sorted(set(workload.tables()) & schemas.keys()):
        rows = ds.dataset(folder / name).count_rows()
        found[name] = None if rows < SMALL else _learned(spark, folder / name, workload, rows)
    return found


def _learned(spark: SparkSession, source: Path, workload: hr.Workload, rows: int) -> hr.Learned:
    """By the conditions on it, or else by its key, which every table is joined by."""
    if rows >= FILES * SMALL:
        try:
            made = hr.learn(
                spark, str(source), workload, options=hr.LearnOptions(block_rows=rows // FILES), table=source.name
            )
            if made.blocks >= FEW:
                return made
        except hr.HedgerowError:
            pass
    key = ds.dataset(source).schema.names[0]
    by_key = hr.Workload.from_sql([f"SELECT * FROM {source.name} WHERE {key} = 1"])
    return hr.learn(
        spark,
        str(source),
        by_key,
        "range",
        hr.LearnOptions(block_rows=rows // (FILES if rows >= FILES * SMALL else FEW)),
        table=source.name,
        columns=[key],
    )


def lay_out(
    spark: SparkSession, folder: Path, layouts: Mapping[str, hr.Learned | None], to: Path, kind: str, suite: str
) -> Laid:
    laid = Laid(f"{suite}_{kind}")
    spark.sql(f"CREATE DATABASE {laid.database} LOCATION '{to}/{laid.database}'")
    for name, layout in layouts.items():
        source, place, table = folder / name, to / laid.database / name, f"{laid.database}.{name}"
        if kind == "delta":
            spark.read.parquet(str(source)).coalesce(1).write.format("delta").save(str(place))
            if layout is not None:
                hr.apply(spark, str(place), layout)
        elif layout is not None:
            hr.apply(spark, str(source), layout, to=str(place))
        else:
            place = source
        spark.sql(f"CREATE TABLE {table} USING {kind} LOCATION '{place}'")
        laid.files[name] = len(spark.table(table).inputFiles())
    return laid


def lay_out_together(spark: SparkSession, folder: Path, asked: Sequence[str], to: Path, kind: str, suite: str) -> Laid:
    """The tables in layouts that look at joined tables."""
    laid = Laid(f"{suite}_{kind}_joined")
    spark.sql(f"CREATE DATABASE {laid.database} LOCATION '{to}/{laid.database}'")
    workload = hr.Workload.from_sql(asked, schemas_of(folder), "duckdb")
    names = sorted(set(workload.tables()) & schemas_of(folder).keys())
    places = {name: str(folder / name) for name in names}
    rows = max(ds.dataset(place).count_rows() for place in places.values())
    learned = hr.learn_tables(
        spark, places, workload, "mto", hr.LearnOptions(block_rows=max(SMALL, rows // (2 * FILES)))
    )
    goal = {name: str(to / laid.database / name) for name in names}
    if kind == "delta":
        for name, place in places.items():
            vectors = {"delta.enableDeletionVectors": "true"}
            spark.read.parquet(place).coalesce(1).write.format("delta").options(**vectors).save(goal[name])
        hr.apply_tables(spark, goal, learned)
    else:
        hr.apply_tables(spark, places, learned, to=str(to / laid.database))
    for name, place in goal.items():
        spark.sql(f"CREATE TABLE {laid.database}.{name} USING {kind} LOCATION '{place}'")
        laid.files[name] = len(spark.table(f"{laid.database}.{name}").inputFiles())
    return laid


# --- running --------------------------------------------------------------------------------------


@contextmanager
def switched_off(spark: SparkSession) -> Iterator[None]:
    with without_skipping(spark):
        yield


@dataclass
class Runner:
    """Runs each text plain and with us: attached, or routed in a session that is not attached.

    the text as it is      plain   routed
    without its LIMIT      plain   attached     (where it has none: plain, routed and attached)
    """

    spark: SparkSession
    other: SparkSession
    tally: Tally
    kind: str

    def run(self, query: Query) -> None:
        before: list[DataFrame] = []
        seen: list[DataFrame] = []
        whole = self.plainly(query.whole or query.sql, before)
        plain = whole if query.whole is None else self.plainly(query.sql, [])
        attached = outcome(lambda: _kept(self.spark.sql(query.whole or query.sql), seen), collected)
        skips = skipped(self.spark, seen[0]) if seen else Skipped()
        if seen and not attached.error:
            found = list(scans(seen[0]))
            self.tally.scans += len(found)
            self.tally.comets += sum(scan.by_comet for scan in found)
        if skips and self.kind == "delta":  # Delta skips files of its own: only what it would have opened counts
            skips = Skipped(skips.scans, opened(before[0]), opened(seen[0]))
        routed = outcome(lambda: hr.route(self.other, query.sql), collected)
        if plain.refused and plain == attached == routed:
            self.tally.not_run[plain.error] += 1
            return
        if not same(whole, attached):
            self._differs(f"{query.name}, attached", query.whole or query.sql, whole, attached)
        if not same(plain, routed):
            tie = query.whole is not None and len(plain.rows) == len(routed.rows) and within(routed, whole)
            self.tally.ties += tie
            if not tie:
                self._differs(f"{query.name}, routed", query.sql, plain, routed)
        self.tally.count(query.name, plain, skips)

    def plainly(self, sql: str, into: list[DataFrame]) -> Outcome:
        with switched_off(self.spark):
            return outcome(lambda: _kept(self.spark.sql(sql), into), collected)

    def _differs(self, name: str, sql: str, plain: Outcome, found: Outcome) -> None:
        self.tally.different.append((name, sql, difference(plain, found)))


def _kept(frame: DataFrame, into: list[Any]) -> DataFrame:
    into.append(frame)
    return frame


def run_joined(
    spark: SparkSession,
    suite: str,
    folder: Path,
    to: Path,
    only: Sequence[int] = (),
    formats: Sequence[str] = FORMATS,
    rounds: int = 0,
    seed: int = 0,
) -> Iterator[Tally]:
    """As `run`, over layouts that look at joined tables.

    Of Delta again after so many changes of every table and a repair of all, and again after keys are not unique."""
    asked, r = queries(suite, only), Random(seed)
    texts_asked = [text for n, text in texts(suite).items() if not only or n in only]
    for kind in formats:
        laid = lay_out_together(spark, folder, texts_asked, to, kind, suite)
        try:
            yield _compared(spark, laid, asked, f"{suite} (joined, {kind})", kind)
            if not rounds or kind != "delta":
                continue
            managed = [n for n in sorted(laid.files) if (to / laid.database / n / "_hedgerow").exists()]
            for again in (False, True):
                done = 0
                for _ in range(3 if again else rounds):
                    for name in laid.files:
                        change(spark, f"{laid.database}.{name}", r, again)
                    done += repair(spark, str(to / laid.database / r.choice(managed)))
                if not again:
                    done += sum(repair(spark, str(to / laid.database / name)) for name in managed)
                title = f"{suite} (joined, changed{' and keys broken' if again else ''}, {done} repairs)"
                yield _compared(spark, laid, asked, title, kind)
        finally:
            spark.sql(f"DROP DATABASE {laid.database} CASCADE")


def _compared(spark: SparkSession, laid: Laid, asked: Sequence[Query], title: str, kind: str) -> Tally:
    """The queries over these tables, with pruning and without."""
    tally = Tally(title, notes=[f"  files: {laid.files}"])
    other = spark.newSession()
    for session in (spark, other):
        session.sql(f"USE {laid.database}")
    with attached_to(spark):
        runner = Runner(spark, other, tally, kind)
        for query in asked:
            runner.run(query)
            print(f"{query.name}, {kind}: {len(tally.different)} different", file=sys.stderr, flush=True)
        for session in (spark, other):
            session.sql("USE default")
    return tally


def run(
    spark: SparkSession, suite: str, folder: Path, to: Path, only: Sequence[int] = (), formats: Sequence[str] = FORMATS
) -> Iterator[Tally]:
    """One tally for each format; `only` limits it to some queries and the tables that they read."""
    asked = queries(suite, only)
    layouts = learned(spark, folder, [text for n, text in texts(suite).items() if not only or n in only])
    for kind in formats:
        laid = lay_out(spark, folder, layouts, to, kind, suite)
        try:
            yield _compared(spark, laid, asked, f"{suite} ({kind})", kind)
        finally:
            spark.sql(f"DROP DATABASE {laid.database} CASCADE")
