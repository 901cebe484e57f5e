"""doctor: checks a session and a managed table for reasons why queries do not skip files."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import hedgerow
from hedgerow.core.errors import HedgerowError
from hedgerow.pipeline.log import report
from hedgerow.pipeline.open import open_table
from hedgerow.pipeline.route import last_query
from hedgerow.spark.compute.try_task import try_task
from hedgerow.spark.optimizer.jvm_facts import settings
from hedgerow.spark.session_settings import DELTA_SWITCHES, SWITCHES, limits, trust_line, without_engines
from hedgerow.spark.start.delta_jars import NO_DELTA
from hedgerow.spark.start.jar import gateway
from hedgerow.spark.start.java import SUPPORTED_VERSIONS
from hedgerow.spark.start.session import first_line, in_own_session, needs_jvm, spark_errors
from hedgerow.spark.storage.delta_log import has_delta
from hedgerow.tables.attach import is_attached
from hedgerow.tables.settings_fit import consequence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TRIED_SPARK = ("4.0", "4.1", "4.2")


@dataclass(frozen=True)
class Finding:
    """A fact about a session or a table; `advice` is None if all is well."""

    subject: str
    fact: str
    advice: str | None = None

    def __str__(self) -> str:
        return f"{self.subject}: {self.fact}" + ("" if self.advice is None else f"; {self.advice}")


class Findings(tuple[Finding, ...]):
    """Findings that print as lines."""

    def __repr__(self) -> str:
        return "\n".join(map(str, self))


@in_own_session
def doctor(spark: SparkSession, table: str | None = None) -> Findings:
    """Return what keeps the queries of a session, or of a table, from skipping files, and what to do about it."""
    needs_jvm(spark, "look at the session")
    return Findings((*_of_session(spark), *(() if table is None else _of_table(spark, table))))


def _of_session(spark: SparkSession) -> Iterator[Finding]:
    yield Finding("hedgerow", f"{hedgerow.__version__}, on Python {platform.python_version()}")
    tried = spark.version.startswith(tuple(f"{version}." for version in _TRIED_SPARK))
    untried = (
        f"only Spark {_TRIED_SPARK[0]} to {_TRIED_SPARK[-1]} were tried: where another differs, no file is skipped"
    )
    yield Finding("Spark", spark.version, None if tried else untried)
    java = str(spark._jvm.java.lang.System.getProperty("java.version"))  # type: ignore[union-attr]
    fits = int(java.split(".")[0]) in SUPPORTED_VERSIONS
    yield Finding("Java", java, None if fits else "Spark is tested with Java 17 and 21")
    yield Finding("Delta", "at hand") if has_delta(spark) else Finding("Delta", "not at hand", NO_DELTA)
    yield _executors(spark)
    try:
        gateway(spark)
    except HedgerowError as error:
        yield Finding("attached", "no", f"no query can skip files here: {error}")
        return
    now = settings(spark)
    for limit in limits(now):
        yield Finding(limit.kind, limit.name, f"{limit.effect}; to skip files all the same: {trust_line([limit], now)}")
    if not is_attached(spark):
        yield Finding("attached", "no", "only routed queries skip files: call hedgerow.attach(spark)")
        return
    enabled = str(spark.conf.get("hedgerow.enabled", "true")).lower() == "true"
    yield Finding("attached", "yes", None if enabled else "but hedgerow.enabled is false, so no file is skipped")
    for name, effect in (SWITCHES | (DELTA_SWITCHES if has_delta(spark) else {})).items():
        value = str(spark.conf.get(name, "true"))
        if value.lower() != "true":
            yield Finding("setting", f"{name} is {value}, so {effect}", f"to skip files again: RESET {name}")
    for scan in last_query(spark):
        opened = f"{scan.files_opened:,} of {scan.files:,} files of {scan.table}"
        yield Finding("last query", opened, scan.reason and f"the index does not help: {scan.reason}")


def _executors(spark: SparkSession) -> Finding:
    """Run a task as learning and writing do, to see what the executors' Python lacks."""
    try:
        has_numba = try_task(spark)
    except spark_errors() as error:
        return Finding("executors", "no task of Hedgerow's runs", first_line(error))
    slow = None if has_numba else "without numba there, rows are assigned to curves slowly"
    return Finding("executors", f"they run Hedgerow's tasks, with {spark.sparkContext.pythonExec}", slow)


def _of_table(spark: SparkSession, name: str) -> Iterator[Finding]:
    try:
        table = open_table(spark, name)
        facts = table.describe()
    except HedgerowError as error:
        yield Finding("table", name, str(error))
        return
    learner = f", by {facts['learner']}" if "learner" in facts else ""
    since = f", since {facts['created']}" if "created" in facts else ""
    yield Finding("layout", f"{facts['layout']}{learner}{since}")
    missing = 0 if table.format.is_shared else len(facts["missing_files"])  # Delta lists its files itself
    yield _files(facts["files"], len(facts["unknown_files"]), missing)
    differs = consequence(table.written_under, without_engines(settings(spark)))
    advice = differs and "change it back, or apply the layout again"
    yield Finding("settings", differs or "those it was written under", advice)
    for draft in facts.get("drafts", ()):
        yield Finding("draft", draft, "an append is at work, or was killed: then the next append deletes that folder")
    for replica in facts.get("replicas", ()):
        behind = None if replica["up_to_date"] else "it is not read: call refresh_replicas() on the table"
        yield Finding("replica", replica["name"], behind)
    stale = sorted(table.stale_joins())
    if stale:
        yield Finding("joined tables", f"{', '.join(stale)} changed", f"repair the table: hedgerow repair {name}")
    yield _log(spark, name)


def _files(files: int, unknown: int, missing: int) -> Finding:
    if missing:
        return Finding("files", f"{files:,}", f"{missing:,} are missing that were written: verify the table")
    if unknown == files:
        left = "its layout was rolled back or replaced: apply one again, or leave the table as it is"
        return Finding("files", f"{files:,}, of which the index knows none", left)
    if unknown:
        count = f"{files:,}, of which the index does not know {unknown:,}"
        return Finding("files", count, "every query opens those: append with Hedgerow, or apply a layout again")
    return Finding("files", f"{files:,}, all known to the index")


def _log(spark: SparkSession, name: str) -> Finding:
    try:
        logged = report(spark, name)
    except HedgerowError:
        return Finding("log", "no queries; hedgerow.log writes them down, for the autopilot to learn from")
    return Finding("log", f"{logged.workload.queries:,.0f} queries, until {logged.last}")
