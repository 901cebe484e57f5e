"""Run random histories, ask queries after every step, and shrink the history that fails.

after each step   all rows, by Spark alone              = the model
                  some queries: attached, routed, read  = without Hedgerow = the same query over the model
                  views and cached frames: attached     = the same with Hedgerow switched off
"""

from __future__ import annotations

import json
import logging
import shutil
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import hedgerow as hr
from hedgerow.spark.start.session import temporary_settings
from tests.histories import steps_delta, steps_parquet
from tests.histories.model import Answer, Query, a_query, a_sharp_condition, answer_of, difference, frame
from tests.histories.world import ENABLED, SETTINGS, Declined, NotNow, RawError, Table, World
from tests.support.small_tables import as_if_large

FORMATS: dict[str, ModuleType] = {"delta": steps_delta, "parquet": steps_parquet}
STEPS = 10
QUERIES = 2
Step = tuple[str, int]
BELIEVING = ("attached", "routed", "read", "view", "view routed", "verify")
_UNMANAGED = "no table that Hedgerow wrote"


@dataclass(frozen=True)
class Failure:
    """What went wrong after which step; `door` is attached, routed, read, view, rows, verify or raw."""

    at: int
    door: str
    sql: str
    told: str
    believed: bool = False


@dataclass
class Tally:
    """What was done and asked, over all histories."""

    histories: int = 0
    steps: Counter[str] = field(default_factory=Counter)
    not_done: Counter[str] = field(default_factory=Counter)  # "kind: why", for what was refused or failed
    queries: int = 0
    compared: Counter[str] = field(default_factory=Counter)  # by door
    vacuous: Counter[str] = field(default_factory=Counter)  # all files of the table were opened
    no_gain: Counter[str] = field(default_factory=Counter)  # as many files as Spark and Delta alone open
    errors: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def __str__(self) -> str:
        lines = [f"{self.histories} histories, {sum(self.steps.values())} steps, {self.seconds:.0f} s"]
        lines += [f"  {name:40} {n:5}" for name, n in sorted(self.steps.items())]
        lines += [f"  not done: {why}: {n}" for why, n in self.not_done.most_common()]
        lines.append(
            f"{self.queries} queries; compared by door (vacuous: no file was skipped; no gain: no fewer than without Hedgerow):"
        )
        for door, n in sorted(self.compared.items()):
            vacuous, same = self.vacuous[door], self.no_gain[door]
            lines.append(
                f"  {door:12} {n:6}, vacuous {vacuous:6} ({vacuous / n:.0%}), no gain {same:6} ({same / n:.0%})"
            )
        lines += [f"  errors: {what}: {n}" for what, n in self.errors.most_common(12)]
        return "\n".join(lines)


# --- sessions ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sessions:
    attached: SparkSession
    plain: SparkSession
    other: SparkSession
    router: SparkSession  # routes, and reads by `table.read`
    before: dict[str, str | None]  # settings of the router, if that is not one of the three

    @staticmethod
    def of(spark: SparkSession, one_router: bool = False) -> Sessions:
        """Three new ones, of which the first is attached; `one_router`: the given session routes, not a new one."""
        new = [spark.newSession() for _ in range(3)]
        before = {key: spark.conf.get(key, None) for key in SETTINGS} if one_router else {}
        found = Sessions(new[0], new[1], new[2], spark if one_router else new[1], before)
        for session in (*new, found.router):
            for key, value in SETTINGS.items():
                session.conf.set(key, value)
        hr.attach(found.attached)
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # errors are answers here
        logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
        return found

    def close(self) -> None:
        hr.detach(self.attached)
        for key, value in self.before.items():
            if value is None:
                self.router.conf.unset(key)
            else:
                self.router.conf.set(key, value)


def start() -> SparkSession:
    """A session for the command line."""
    spark = hr.session(
        "2g",
        "local[2]",
        **{
            **SETTINGS,
            "spark.databricks.delta.snapshotPartitions": "1",
            "spark.log.level": "OFF",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m",
        },
    )
    return spark


# --- asking -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Opened:
    """The scans of a query that ran, and how many files they opened together."""

    scans: int = 0
    files: int = 0


def ask(make: Callable[[], DataFrame]) -> tuple[Answer, Opened]:
    """Its answer and what it opened."""
    try:
        asked = make()
        found = answer_of(asked.toArrow())
    except Exception as error:
        condition = getattr(error, "getCondition", lambda: None)()
        return Answer(error=condition or type(error).__name__, told=" ".join(str(error).split())[:300]), Opened()
    opened = list(_opened(asked._jdf.queryExecution().executedPlan()))
    return found, Opened(len(opened), sum(opened))


def _opened(plan: Any) -> Iterator[int]:
    """The files of each scan."""
    kind = plan.getClass().getSimpleName()
    if kind == "AdaptiveSparkPlanExec":
        yield from _opened(plan.executedPlan())
    elif kind.endswith("QueryStageExec"):
        yield from _opened(plan.plan())
    elif kind == "FileSourceScanExec":
        yield int(plan.metrics().apply("numFiles").value())
    elif not kind.startswith("Reused"):
        for below in (plan.children(), plan.subqueries()):
            for i in range(below.size()):
                yield from _opened(below.apply(i))


# --- one history ------------------------------------------------------------------------------------


class History:
    """Does steps one after the other, and asks."""

    def __init__(
        self, sessions: Sessions, folder: Path, format_: str, tally: Tally, say: Callable[[str], None]
    ) -> None:
        self.sessions, self.format, self.tally, self.say = sessions, format_, tally, say
        self.world = World(sessions.attached, sessions.plain, sessions.other, folder)
        self.steps: ModuleType = FORMATS[format_]
        self.unasked = False  # the last step that changed something was not followed by queries

    @as_if_large()
    def run(self, steps: Sequence[Step], ask_from: int = 0) -> Failure | None:
        """The first failure, if any; queries are asked after the steps from `ask_from` on."""
        started = time.perf_counter()
        self.tally.histories += 1
        self.world.folder.mkdir(parents=True)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for at, step in enumerate(steps):
                    if (found := self._step(at, step, at >= ask_from)) is not None:
                        return found
        finally:
            self.close()
            self.tally.seconds += time.perf_counter() - started
        return None

    def close(self) -> None:
        for kept in self.world.kept:
            if kept.cached:
                self.world.attached.catalog.uncacheTable(kept.name)
            self.world.attached.catalog.dropTempView(kept.name)
        shutil.rmtree(self.world.folder, ignore_errors=True)

    def _step(self, at: int, step: Step, asks: bool) -> Failure | None:
        kind, seed = step
        r = Random(f"{kind} {seed}")
        self.world.touched_now = []
        outcome, since = "done", time.perf_counter()
        try:
            told = self.steps.KINDS[kind].do(self.world, r)
            if kind in self.steps.BEHIND_SPARK:
                for table in self.world.tables:
                    self.world.plain.catalog.refreshByPath(table.path)
        except NotNow:
            outcome, told = "not now", ""
        except RawError as error:
            return Failure(at, "raw", "", str(error))
        except hr.HedgerowError as error:
            outcome, told = "refused", str(error)
        except (PySparkException, Py4JError, Declined) as error:
            if at == 0:
                raise
            condition = getattr(error, "getCondition", lambda: None)()
            outcome, told = "failed", f"{condition or type(error).__name__} {' '.join(str(error).split())[:160]}"
        self.tally.steps[kind if outcome == "done" else f"{kind} ({outcome})"] += 1
        if outcome in ("refused", "failed"):
            self.tally.not_done[f"{kind}: {_general(told, self.world)}"] += 1
        took = time.perf_counter() - since
        self.say(f"    {at:2} {took:5.1f} s {kind} {seed}: {told if outcome == 'done' else f'{outcome} {told}'}")
        if not hasattr(self.world, "main") or (outcome == "not now" and not self.unasked):
            return None
        self.unasked = not asks
        if outcome == "done":
            self.steps.remember(self.world)
        for problem in self._problems(Random(f"queries {kind} {seed}"), kind, outcome) if asks else ():
            return Failure(at, *problem, self.world.believed and problem[0] in BELIEVING)
        return None

    # --- checks, each of which yields what it finds: door, query, difference ---

    def _problems(self, r: Random, kind: str, outcome: str) -> Iterator[tuple[str, str, str]]:
        for table in self.world.tables:
            if table is self.world.main or r.random() < 0.3:
                yield from self._all_rows(table)
        if kind == "apply" and outcome == "done":
            try:
                hr.table(self.world.plain, self.world.main.path).verify()
            except Exception as error:
                yield "verify", "", f"{type(error).__name__}: {error}"
        for name in dict.fromkeys(self.world.touched_now):
            yield from self._query(r, self.world.main, None, name)
        for _ in range(QUERIES):
            table = self.world.main if r.random() < 0.75 else r.choice(self.world.tables)
            yield from self._query(r, table)
        if len(self.world.main.versions) > 1 and r.random() < 0.6:
            version = r.choice(sorted(self.world.main.versions))
            yield from self._query(r, self.world.main, version)
        for kept in r.sample(self.world.kept, min(2, len(self.world.kept))):
            yield from self._kept(r, kept)

    def _all_rows(self, table: Table) -> Iterator[tuple[str, str, str]]:
        sql = f"SELECT * FROM {table.name}"
        if table.loose:
            table.files = ask(lambda: self.world.plain.sql(sql))[1].files
            return
        held = answer_of(frame(self.world.other, table.fields, table.rows).toArrow())
        found, opened = ask(lambda: self.world.plain.sql(sql))
        table.files = opened.files
        self.tally.compared["rows"] += 1
        if not held.same(found):
            yield "rows", sql, difference(held, found)

    def _query(
        self, r: Random, table: Table, version: int | None = None, about: str | None = None
    ) -> Iterator[tuple[str, str, str]]:
        """A query of this version, about one column if that is given."""
        w = self.world
        held = table.now if version is None else table.versions[version]
        query = a_query(r, held.fields, held.rows, w.conditions, w.touched)
        if about is not None and any(f.name == about for f in held.fields):
            c = a_sharp_condition(r, held.fields, held.rows, about)
            query = Query(f"SELECT * FROM {{t}} WHERE {c}", c)
        name = table.name if version is None else f"{table.name} VERSION AS OF {version}"
        sql = query.sql.format(t=name)
        w.plain.conf.set(ENABLED, "false")
        plain, without = ask(lambda: w.plain.sql(sql))
        w.plain.conf.unset(ENABLED)
        truths = [plain]
        if not table.loose:
            twin = frame(w.other, held.fields, held.rows)
            twin.createOrReplaceTempView("twin")
            truth, _ = ask(lambda: w.other.sql(query.sql.format(t="twin")))
            truths.append(truth)
            if plain.error is None and truth.error is None and not plain.same(truth):
                if "ratio" in sql and "0.0D" in sql:  # Spark's own: in a dictionary, Parquet tells 0.0 from -0.0
                    self.tally.errors["without Hedgerow, Spark loses rows with 0.0 or -0.0"] += 1
                    return
                yield "rows", sql, f"without Hedgerow: {difference(truth, plain)}"
        self.tally.queries += 1
        for truth in truths:
            if truth.error is not None:
                self.tally.errors[f"expected {truth.error}"] += 1
        for door, make in self._doors(table, query, sql, version):
            found, opened = ask(make)
            if found.error == "HedgerowError" and _UNMANAGED in found.told:
                continue
            self.tally.compared[door] += 1
            self._count(door, found, opened, without, table.files)
            if door == "read" and table.loose and found.columns != plain.columns:
                self.tally.errors["read has the columns that were written, plain Spark those of some file"] += 1
                continue
            if not any(found.same(truth) for truth in truths):
                if found.error is None and all(truth.error is not None for truth in truths):
                    self.tally.errors[f"{door} was spared {truths[0].error}"] += 1
                    continue
                yield door, sql, difference(truths[0], found)

    def _count(self, door: str, found: Answer, opened: Opened, without: Opened, files: int) -> None:
        """Whether the comparison could have found anything; of old versions and views all files are not known."""
        if found.error is None:
            self.tally.no_gain[door] += opened.files >= without.files
            self.tally.vacuous[door] += opened.files >= max(without.files, without.scans * files)

    def _doors(
        self, table: Table, query: Query, sql: str, version: int | None
    ) -> Iterator[tuple[str, Callable[[], DataFrame]]]:
        w = self.world
        yield "attached", lambda: w.attached.sql(sql)
        yield "routed", lambda: hr.route(self.sessions.router, sql)
        if query.where is not None:
            at = {} if version is None else {"version": version}
            columns = None if query.columns is None else list(query.columns)
            yield (
                "read",
                lambda: hr.table(self.sessions.router, table.path).read(where=query.where, columns=columns, **at),
            )

    def _kept(self, r: Random, kept: Any) -> Iterator[tuple[str, str, str]]:
        w = self.world
        rows = w.main.rows
        known = [f for f in kept.fields if all(f.name in row for row in rows[:1])] or list(kept.fields[:1])
        query = a_query(r, known, rows, ())
        sql = query.sql.format(t=kept.name)
        doors: list[tuple[str, Callable[[], DataFrame]]] = [
            ("view", lambda: w.attached.sql(sql)),
            ("view routed", lambda: hr.route(w.attached, sql)),
        ]
        answers = [(door, *ask(make)) for door, make in doors]
        with temporary_settings(w.attached, {ENABLED: "false"}):
            plain, without = ask(lambda: w.attached.sql(sql))
        self.tally.queries += 1
        for door, found, opened in answers:
            self.tally.compared[door] += 1
            self._count(door, found, opened, without, 0)
            if found.same(plain):
                continue
            if plain.error is not None and found.error is None:
                self.tally.errors[f"{door} was spared {plain.error}"] += 1
                continue
            yield door, sql, difference(plain, found)


def _general(told: str, world: World) -> str:
    for table in world.tables:
        told = told.replace(table.path, "t")
    return told.replace(str(world.folder), "")[:150]


# --- many histories -----------------------------------------------------------------------------------


def a_history(format_: str, seed: int, steps: int = STEPS) -> list[Step]:
    """The start, and kinds of steps by their weight."""
    module, r = FORMATS[format_], Random(f"{format_} {seed}")
    kinds = list(module.KINDS.values())
    names = r.choices([k.name for k in kinds], [k.weight for k in kinds], k=steps)
    return [(name, r.randrange(100_000)) for name in (*module.START, *names)]


@dataclass
class Machine:
    """Runs histories in one set of sessions."""

    spark: SparkSession
    folder: Path
    format: str
    say: Callable[[str], None] = lambda _: None
    tally: Tally = field(default_factory=Tally)
    one_router: bool = False
    runs: int = 0

    def __post_init__(self) -> None:
        self.sessions = Sessions.of(self.spark, self.one_router)

    def close(self) -> None:
        self.sessions.close()

    def run(self, steps: Sequence[Step], ask_from: int = 0, tally: Tally | None = None) -> Failure | None:
        self.runs += 1
        folder = self.folder / f"{self.format}{self.runs}"
        return History(self.sessions, folder, self.format, tally or self.tally, self.say).run(steps, ask_from)

    def shrink(self, steps: Sequence[Step], failure: Failure, seconds: float = 120) -> tuple[list[Step], Failure]:
        """Leave steps out while the same door still fails after the last one."""
        until = time.perf_counter() + seconds
        kept, best = list(steps[: failure.at + 1]), failure
        only_last = True
        if (again := self._fails(kept, failure, only_last)) is None:
            only_last = False  # the queries before are part of it
        else:
            best = again
        size = max(1, (len(kept) - 2) // 2)
        while size:
            at = 1
            while at < len(kept) - 1 and time.perf_counter() < until:
                shorter = [*kept[:at], *kept[min(at + size, len(kept) - 1) :]]
                found = self._fails(shorter, failure, only_last)
                if found is None:
                    at += size
                else:
                    kept, best = shorter, found
            size //= 2
        return kept, best

    def _fails(self, steps: Sequence[Step], failure: Failure, only_last: bool) -> Failure | None:
        say, self.say = self.say, lambda _: None
        try:
            found = self.run(steps, len(steps) - 1 if only_last else 0, Tally())
        except Exception:
            return None
        finally:
            self.say = say
        same = found is not None and found.door == failure.door and found.at == len(steps) - 1
        return found if same else None


def report(format_: str, seed: int | None, steps: Sequence[Step], failure: Failure) -> str:
    """A failing history, as a person can run it again."""
    word = "believed" if failure.believed else "FAILURE"
    told = json.dumps([list(step) for step in steps])
    return "\n".join(
        [
            f"{word} of history {seed}: {failure.door} after step {failure.at} ({steps[failure.at][0]})",
            f"  query: {failure.sql}",
            f"  {failure.told}",
            f"  python -m tests.histories --format {format_} --replay '{told}'",
        ]
    )
