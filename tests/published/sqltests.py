"""Spark's own `sql-tests/inputs` over tables that are laid out, with pruning and without.

A file of inputs makes its own tables, mostly as temporary views of a few rows. After such a statement the view's rows
are written, laid out by the first column that can be sorted, and the view is made anew over the written table; the
standard tables (`testdata`, `onek`, `tenk1` and others) are laid out at the start. Then every query runs twice, on the
same tables, with `hedgerow.enabled` false and true.

    CREATE TEMP VIEW t AS VALUES ...   ->   rows  ->  a few files  ->  CREATE TEMP VIEW t AS SELECT * FROM parquet.`...`

Rows are compared in the text that Spark's own suite compares, and so are the types of the columns.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import hedgerow as hr
from tests.published.outcome import Outcome, Skipped, difference, outcome, same, skipped
from tests.published.tally import Tally
from tests.published.tpc import switched_off

HOW = (
    "The inputs are no part of this project. Fetch them with `mvn dependency:copy "
    "-Dartifact=org.apache.spark:spark-sql_2.13:4.2.0:jar:tests -DoutputDirectory=<folder>`, unpack that jar "
    "there (`unzip spark-sql_2.13-4.2.0-tests.jar 'sql-tests/inputs/*' 'test-data/postgresql/*'`) and name the folder."
)
FILES, LARGE_FILES = 4, 8
VIEW = re.compile(
    r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+VIEW\s+(?P<name>`[^`]+`|\w+)\s*(?:\([^()]*\)\s*)?AS\b", re.I
)
QUERY = re.compile(r"[\s(]*(SELECT|WITH|VALUES|FROM|TABLE|MAP|REDUCE)\b", re.I)
NAMES_A_TABLE = re.compile(r"\b(FROM|TABLE|JOIN)\b", re.I)
WRITES = re.compile(r"\b(INSERT|MERGE|UPDATE|DELETE)\b", re.I)
# Not the same twice, or about the files themselves.
BY_CHANCE = re.compile(
    r"\b(rand|randn|random|uuid|randstr|uniform|shuffle|now|current_timestamp|current_date|current_time|curdate|"
    r"localtimestamp|localtime|unix_timestamp|monotonically_increasing_id|input_file_\w+|spark_partition_id|"
    r"tablesample|_metadata)\b",
    re.I,
)
ONEK = (
    "unique1 INT, unique2 INT, two INT, four INT, ten INT, twenty INT, hundred INT, thousand INT, twothousand INT, "
    "fivethous INT, tenthous INT, odd INT, even INT, stringu1 STRING, stringu2 STRING, string4 STRING"
)
CSV = {"aggtest": ("agg", "a INT, b FLOAT"), "onek": ("onek", ONEK), "tenk1": ("tenk", ONEK)}
KEYS = {"testdata": "key", "aggtest": "a", "onek": "unique1", "tenk1": "unique1"}
SORTABLE = re.compile(
    r"(tinyint|smallint|int|bigint|float|double|decimal\(\d+,\d+\)|string|date|timestamp|timestamp_ntz)"
)


# --- reading the files ----------------------------------------------------------------------------


def statements(file: Path, root: Path) -> tuple[list[str], dict[str, str]]:
    """The statements of an input file, those of imported files first, and the settings that it asks for."""
    found: list[str] = []
    settings: dict[str, str] = {}
    lines = file.read_text(encoding="utf-8").splitlines()
    for line in lines:
        if line.startswith("--IMPORT "):
            found += statements(root / line.removeprefix("--IMPORT ").strip(), root)[0]
        if line.startswith("--SET "):
            pairs = (pair.partition("=") for pair in line.removeprefix("--SET ").split(","))
            settings.update((key.strip(), value.strip()) for key, _, value in pairs)
    code: list[str] = []
    whole = False
    for line in lines:
        if line.startswith(("--QUERY-DELIMITER-START", "--QUERY-DELIMITER-END")):
            found += ["\n".join(code)] if whole else split("\n".join(code))
            code, whole = [], line.startswith("--QUERY-DELIMITER-START")
        elif not line.strip().startswith("--"):
            code.append(line)
    return [s for s in (*found, *split("\n".join(code))) if s.strip()], settings


_PARTS = re.compile(
    r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|\$\$.*?\$\$|;|[^'\"`;/$-]+|.", re.DOTALL
)


def split(code: str) -> list[str]:
    """At semicolons that stand outside of texts, names and comments.

    >>> split("SELECT ';' AS `;`; -- one; more\\nSELECT 2")
    ["SELECT ';' AS `;`", ' -- one; more\\nSELECT 2']
    """
    found = [""]
    for part in _PARTS.findall(code):
        if part == ";":
            found.append("")
        else:
            found[-1] += part
    return [s for s in found if s.strip()]


# --- laying out -----------------------------------------------------------------------------------


@dataclass
class Layer:
    """Writes frames as laid-out Parquet; the same rows only once."""

    spark: SparkSession
    folder: Path
    made: dict[str, str] = field(default_factory=dict)

    def lay_out(self, frame: DataFrame, label: str, key: str | None = None, files: int = FILES) -> str | None:
        """The path of the table, or None where the frame cannot be written or sorted, or has but a row."""
        text = frame._jdf.schema().json() + "\n".join(sorted(map(str, frame._jdf.collectAsList()))) + label
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        source, place = str(self.folder / f"source-{digest}" / "v"), str(self.folder / f"laid-{digest}")
        if digest not in self.made:
            self.made[digest] = place if self._written(frame, source, place, key, files) else ""
        return self.made[digest] or None

    def _written(self, frame: DataFrame, source: str, place: str, key: str | None, files: int) -> bool:
        types = [(f.name(), f.dataType().catalogString()) for f in frame._jdf.schema().fields()]
        by = key or next((name for name, kind in types if SORTABLE.fullmatch(kind)), None)
        if by is None or not re.fullmatch(r"\w+", by):
            return False
        frame.coalesce(1).write.parquet(source)
        rows = self.spark.read.parquet(source).count()
        if rows < 2:
            return False
        asked = hr.Workload.from_sql([f"SELECT * FROM v WHERE {by} IS NOT NULL AND {n} IS NULL" for n, _ in types[:6]])
        learned = hr.learn(
            self.spark,
            source,
            asked,
            "range",
            hr.LearnOptions(block_rows=max(1, rows // files), sample_rows=rows, exact=False),
            columns=[by],
        )
        hr.apply(self.spark, source, learned, place)
        return True


def standard_tables(spark: SparkSession, inputs: Path, layer: Layer) -> list[str]:
    """The tables that Spark's suite makes before it starts."""
    data = inputs / "test-data" / "postgresql"
    frames: dict[str, DataFrame] = {
        "testdata": spark.range(1, 101).selectExpr("CAST(id AS INT) AS key", "CAST(id AS STRING) AS value"),
        "arraydata": spark.sql(
            "SELECT * FROM VALUES (array(1, 2, 3), array(array(1, 2, 3))), (array(2, 3, 4), array(array(2, 3, 4))) "
            "AS t(arraycol, nestedarraycol)"
        ),
        "mapdata": spark.range(1, 6).selectExpr(
            "map_from_entries(transform(slice(array('a', 'b', 'c', 'd', 'e'), 1, 6 - CAST(id AS INT)), "
            "(x, i) -> struct(i + 1 AS k, concat(x, id) AS v))) AS mapcol"
        ),
    }
    for name, (file, schema) in CSV.items():
        frames[name] = spark.read.csv(str(data / f"{file}.data"), schema, sep="\t")
    for name, frame in frames.items():
        place = layer.lay_out(frame, name, KEYS[name], LARGE_FILES) if name in KEYS else None
        if place is None:
            place = str(layer.folder / name)
            frame.coalesce(1).write.parquet(place)
        spark.sql(f"CREATE TABLE {name} USING parquet LOCATION '{place}'")
    return list(frames)


# --- running --------------------------------------------------------------------------------------


@dataclass
class Runner:
    """Runs the statements of one file after the other in one session."""

    spark: SparkSession
    layer: Layer
    tally: Tally
    kept: Sequence[str]
    views: Counter[str] = field(default_factory=Counter)

    def run(self, name: str, asked: Sequence[str], settings: dict[str, str]) -> None:
        with switched_off(self.spark):
            for key, value in settings.items():
                self.spark.conf.set(key, value)
        for i, sql in enumerate(asked):
            if BY_CHANCE.search(sql):
                self.tally.not_run["by chance or about files"] += 1
            elif QUERY.match(sql) and not WRITES.search(sql):
                self.compare(f"{name} #{i}", sql)
            else:
                self.once(sql)
        self.clear()

    def once(self, sql: str) -> None:
        """A statement that is no query; a view of its own rows is put over files."""
        self.tally.not_run["statements that are no query"] += 1
        with switched_off(self.spark):
            try:
                self.spark.sql(sql)
            except Exception:
                return
            view = VIEW.match(sql)
            if view is not None:
                self.views["over files" if self._over_files(view["name"]) else "left as they are"] += 1

    def _over_files(self, name: str) -> bool:
        try:
            frame = self.spark.table(name)
            if "parquet" in frame._jdf.queryExecution().optimizedPlan().toString():
                return False  # what it stands on is laid out already
            place = self.layer.lay_out(frame, "")
            if place is None:
                return False
            self.spark.read.parquet(place).createOrReplaceTempView(name.strip("`"))
        except Exception:
            return False
        return True

    def compare(self, name: str, sql: str) -> None:
        if not NAMES_A_TABLE.search(sql):
            self.tally.not_run["queries that read no file"] += 1
            return
        try:
            with switched_off(self.spark):
                reads = "parquet" in self.spark.sql(sql)._jdf.queryExecution().optimizedPlan().toString()
        except Exception:
            self.tally.not_run["refused by Spark"] += 1
            return
        if not reads:
            self.tally.not_run["queries that read no file"] += 1
            return
        plain = self.plainly(sql)
        seen: list[DataFrame] = []

        def kept() -> DataFrame:
            seen.append(self.spark.sql(sql))
            return seen[0]

        attached = outcome(kept, shown)
        if not same(plain, attached):
            if self._varies(sql, plain):
                self.tally.not_run["answered otherwise without us, too"] += 1
                return
            self.tally.different.append((name, sql, difference(plain, attached)))
        self.tally.count(name, plain, skipped(self.spark, seen[0]) if seen else Skipped())

    def plainly(self, sql: str) -> Outcome:
        with switched_off(self.spark):
            return outcome(lambda: self.spark.sql(sql), shown)

    def _varies(self, sql: str, plain: Outcome) -> bool:
        """Is the answer another one where the same rows come in another order?"""
        with switched_off(self.spark):
            for key, value in (
                ("files.maxPartitionBytes", "1b"),
                ("shuffle.partitions", "5"),
                ("adaptive.enabled", "false"),
            ):
                before = str(self.spark.conf.get(f"spark.sql.{key}"))
                self.spark.conf.set(f"spark.sql.{key}", value)
                try:
                    if not same(plain, outcome(lambda: self.spark.sql(sql), shown)):
                        return True
                finally:
                    self.spark.conf.set(f"spark.sql.{key}", before)
        return False

    def clear(self) -> None:
        """What a file leaves behind: settings, views, tables, databases."""
        spark = self.spark
        for sql in ("RESET", "USE spark_catalog.default"):
            spark.sql(sql)
        for key, value in SETTINGS.items():
            spark.conf.set(key, value)
        catalog = spark._jsparkSession.catalog()
        for table in spark.catalog.listTables():
            if table.isTemporary:
                catalog.dropTempView(table.name)
            elif table.name not in self.kept:
                spark.sql(f"DROP {'VIEW' if table.tableType == 'VIEW' else 'TABLE'} IF EXISTS default.`{table.name}`")
        for table in spark.catalog.listTables("global_temp"):
            if table.database == "global_temp" or table.namespace == ["global_temp"]:
                catalog.dropGlobalTempView(table.name)
        for database in spark.catalog.listDatabases():
            if database.name != "default":
                spark.sql(f"DROP DATABASE `{database.name}` CASCADE")


SETTINGS = {
    "spark.sql.session.timeZone": "America/Los_Angeles",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.legacy.allowNonEmptyLocationInCTAS": "true",
}


def shown(frame: DataFrame) -> Sequence[Any]:
    """The rows as Spark's own suite shows them: Python has no form for some of their types."""
    plan = frame._jdf.queryExecution().executedPlan()
    jvm: Any = frame.sparkSession._jvm
    text = jvm.org.apache.spark.sql.execution.HiveResult.hiveResultString(plan)
    return [_numbers(line) for line in text.mkString("\n\x00").split("\n\x00")] if text.size() else []


_DOUBLE = re.compile(r"-?\d+\.\d{9,}(?:E-?\d+)?|-?\d+\.\d+E-?\d+")


def _numbers(line: str) -> tuple[Any, ...]:
    """The line, and apart from it its long fractions, which are compared as doubles."""
    return (_DOUBLE.sub("~", line), *map(float, _DOUBLE.findall(line)))


def input_files(inputs: Path, only: Sequence[str]) -> Iterator[tuple[str, Path]]:
    root = inputs / "sql-tests" / "inputs"
    for file in sorted(root.rglob("*.sql")):
        name = str(file.relative_to(root))
        if not only or any(name.startswith(o) for o in only):
            yield name, file


def run(spark: SparkSession, inputs: Path, folder: Path, only: Sequence[str] = ()) -> Tally:
    tally = Tally("sql-tests")
    layer = Layer(spark, folder)
    kept = standard_tables(spark, inputs, layer)
    hr.attach(spark)
    runner = Runner(spark, layer, tally, kept)
    runner.clear()
    try:
        for name, file in input_files(inputs, only):
            asked, settings = statements(file, inputs / "sql-tests" / "inputs")
            if name.startswith("nonansi"):
                settings = {"spark.sql.ansi.enabled": "false", **settings}
            try:
                runner.run(name, asked, settings)
            except Exception as error:
                tally.not_run["whole files that our runner cannot run"] += 1
                tally.notes.append(f"  {name}: {str(error).splitlines()[0]}")
                runner.clear()
            print(f"{name}: {tally.compared} compared, {len(tally.different)} different", file=sys.stderr, flush=True)
    finally:
        hr.detach(spark)
        spark.sql("RESET")
        for table in kept:
            spark.sql(f"DROP TABLE {table}")
    tally.notes.insert(0, f"  views: {', '.join(f'{n} {what}' for what, n in runner.views.items())}")
    return tally
