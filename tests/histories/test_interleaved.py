"""Hedgerow's commits between the phases of other transactions, in an order that is fixed: no sleeping, no luck.

Before each phase of a transaction Delta asks the observer of its thread. The one that Delta ships for its own fuzzer
waits there until it is let through:

    initial  the snapshot is chosen      prepare  the commit is made ready      commit  conflicts are sought, the log is written

Two transactions of three phases have twenty orders. Which one loses is Delta's affair. What must hold: who says that it
committed has committed, who does not has changed nothing, Hedgerow changes no row, and its index lies about none.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import hedgerow as hr
from tests.support.answers import attached_to
from tests.support.lay_out import by_ranges

PHASES = ("initial", "prepare", "commit")
ORDERS = sorted({"".join(order) for order in itertools.permutations("hhhooo")})  # h: Hedgerow, o: the other
ROWS = 120
LONGEST = 60.0  # seconds for one phase
Rows = dict[int, int]
CONDITIONS = ("id < 15", "v = 3", "v >= 100", "id >= 1000 AND v = 2", "id BETWEEN 40 AND 60")
Work = Callable[["SparkSession", str], object]


class Stepped:
    """Work in a thread and a session of its own; its first transaction goes on phase by phase."""

    def __init__(self, spark: SparkSession, work: Work, path: str) -> None:
        jvm: Any = spark._jvm
        delta = jvm.org.apache.spark.sql.delta
        self._module = getattr(delta, "TransactionExecutionObserver")  # noqa: B009  # its static methods
        self._nothing = getattr(getattr(delta, "NoOpTransactionExecutionObserver$"), "MODULE$")
        self._phases = delta.fuzzer.OptimisticTransactionPhases.forName("stepped")
        self._observer = delta.fuzzer.PhaseLockingTransactionExecutionObserver(self._phases)
        self._observer.setNextObserver(self._nothing, True)  # later transactions are not held up
        self._todo = iter(PHASES)
        self.error: BaseException | None = None
        self._thread = Thread(target=self._run, args=(spark.newSession(), work, path), daemon=True)
        self._thread.start()

    def _run(self, spark: SparkSession, work: Work, path: str) -> None:
        self._module.setObserver(self._observer)
        try:
            work(spark, path)
        except (hr.HedgerowError, PySparkException, Py4JError) as error:
            self.error = error
        finally:
            self._module.setObserver(self._nothing)

    def advance(self) -> None:
        """Let it through the next phase, and wait for its end."""
        match next(self._todo):
            case "initial":
                self._through(self._phases.initialPhase())
            case "prepare":
                self._through(self._phases.preparePhase())
            case _:
                for phase in (self._phases.backfillPhase(), self._phases.postCommitPhase()):
                    phase.entryBarrier().unblock()
                self._phases.postCommitPhase().exitBarrier().unblock()
                self._phases.commitPhase().entryBarrier().unblock()
                self._thread.join(LONGEST)
                assert not self._thread.is_alive(), "it waits for something else"

    def _through(self, phase: Any) -> None:
        phase.entryBarrier().unblock()
        until = time.monotonic() + LONGEST
        while self._thread.is_alive() and not phase.hasLeft():  # what changes nothing may never come here
            assert time.monotonic() < until, f"stuck in {phase.name()}"
            time.sleep(0.005)


# --- who works, and what comes of it ------------------------------------------------------------------


def apply(spark: SparkSession, path: str) -> None:
    hr.apply(spark, path, learned(spark, path, "v"))


def append_by_hedgerow(spark: SparkSession, path: str) -> None:
    hr.table(spark, path).append(spark.range(2000, 2020).selectExpr("id", "id % 7 AS v"))


def rollback(spark: SparkSession, path: str) -> None:
    table: Any = hr.table(spark, path)
    table.rollback()


def learned(spark: SparkSession, path: str, column: str) -> Any:
    return by_ranges(spark, path, column, ROWS // 6, CONDITIONS)


def sql(text: str) -> Work:
    def work(spark: SparkSession, path: str) -> object:
        return spark.sql(text.format(t=f"delta.`{path}`")).collect()

    return work


OURS: dict[str, tuple[Work, Callable[[Rows], Rows]]] = {
    "apply": (apply, lambda rows: rows),
    "append": (append_by_hedgerow, lambda rows: rows | {i: i % 7 for i in range(2000, 2020)}),
    "rollback": (rollback, lambda rows: rows),
}
OTHERS: dict[str, tuple[Work, Callable[[Rows], Rows]]] = {
    "append": (
        sql("INSERT INTO {t} SELECT id, id % 7 AS v FROM range(1000, 1030)"),
        lambda rows: rows | {i: i % 7 for i in range(1000, 1030)},
    ),
    "delete": (sql("DELETE FROM {t} WHERE id < 20"), lambda rows: {i: v for i, v in rows.items() if i >= 20}),
    "update": (
        sql("UPDATE {t} SET v = v + 100 WHERE id BETWEEN 30 AND 50"),
        lambda rows: {i: v + 100 if 30 <= i <= 50 else v for i, v in rows.items()},
    ),
    "merge": (
        sql(
            "MERGE INTO {t} USING (SELECT id AS i FROM range(100, 130)) ON id = i WHEN MATCHED THEN UPDATE SET v = 500 "
            "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (i, 600)"
        ),
        lambda rows: rows | {i: 500 if i in rows else 600 for i in range(100, 130)},
    ),
    "optimize": (sql("OPTIMIZE {t}"), lambda rows: rows),
    "zorder": (sql("OPTIMIZE {t} ZORDER BY (v)"), lambda rows: rows),
    "apply": (apply, lambda rows: rows),
}


def held(spark: SparkSession, path: str, where: str = "true") -> list[tuple[int, int]]:
    return sorted(map(tuple, spark.read.format("delta").load(path).where(where).collect()))


def interleave(spark: SparkSession, path: str, ours: str, other: str, order: str, vectors: bool) -> tuple[str, str]:
    """A table, two transactions in this order; how each of them ended."""
    before = {i: i % 7 for i in range(ROWS)}
    option = {"delta.enableDeletionVectors": str(vectors).lower()}
    spark.range(ROWS).selectExpr("id", "id % 7 AS v").repartition(3).write.format("delta").options(**option).save(path)
    if ours != "apply":
        hr.apply(spark, path, learned(spark, path, "id"))
    files = {"h": Stepped(spark, OURS[ours][0], path), "o": Stepped(spark, OTHERS[other][0], path)}
    for who in order:
        files[who].advance()
    h, o = files["h"].error, files["o"].error
    assert h is None or isinstance(h, hr.HedgerowError), f"no sentence of our own: {h}"
    assert h is None or "\n" not in str(h)
    # Both committed: the changes do not meet, and come in either order to the same.
    expected = before if o is not None else OTHERS[other][1](before)
    expected = expected if h is not None else OURS[ours][1](expected)
    assert held(spark, path) == sorted(expected.items()), (h, o)
    check_queries(spark, path)
    return _told(h), _told(o)


def check_queries(spark: SparkSession, path: str) -> None:
    """Every door answers as Spark alone does; a table that was not rewritten may not be managed."""
    attached = spark.newSession()
    with attached_to(attached):
        for where in CONDITIONS:
            plain, text = held(spark, path, where), f"SELECT * FROM delta.`{path}` WHERE {where}"
            assert sorted(map(tuple, attached.sql(text).collect())) == plain, where
            assert sorted(map(tuple, hr.route(spark, text).collect())) == plain, where
        try:
            table = hr.table(spark, path)
        except hr.HedgerowError as error:
            assert "no table that Hedgerow wrote" in str(error)
            return
        for where in CONDITIONS:
            assert sorted(map(tuple, table.read(where=where).collect())) == held(spark, path, where), where
        table.verify()


def _told(error: BaseException | None) -> str:
    return "committed" if error is None else type(error).__name__


SAMPLE = [
    ("apply", "append", "hohhoo"),
    ("apply", "delete", "hohoho"),
    ("apply", "merge", "hhoooh"),
    ("append", "optimize", "hohoho"),
]


@pytest.mark.long
@pytest.mark.parametrize(("ours", "other", "order"), SAMPLE)
def test_interleaved(delta: SparkSession, tmp_path: Path, ours: str, other: str, order: str) -> None:
    interleave(delta, str(tmp_path / "t"), ours, other, order, vectors=True)


@pytest.mark.long
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("ours", OURS)
def test_all_orders(delta: SparkSession, tmp_path: Path, ours: str, other: str) -> None:
    ended = {}
    for i, order in enumerate(ORDERS):
        ended[order] = interleave(delta, str(tmp_path / order), ours, other, order, vectors=i % 2 == 0)
    # One after the other, both go through; a rollback after a change of its files is refused.
    if other in ("optimize", "zorder"):  # it chose its files before: Delta gives it up, and no row is the worse for it
        assert ended["hhhooo"][0] == "committed"
    else:
        assert ended["hhhooo"] == ("committed", "committed")
    assert ours == "rollback" or ended["ooohhh"] == ("committed", "committed")
    print(ours, other, ended)
