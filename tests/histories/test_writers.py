"""Several who write one Parquet table, in an order that is drawn, and some of them killed: no row is lost or doubled.

Each writer works in a thread and a session of its own. Before whatever it does to a file beside the data it waits at a
gate, and one of those who wait there is let through. Who is killed never passes a gate again, so it cleans up nothing,
as after `kill -9`.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Semaphore, Thread, local
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.spark.storage.folder import Folder
from hedgerow.tables.entry import total
from hedgerow.tables.managed import ManagedTable

ROWS, BATCH, LONGEST = 120, 30, 60.0
GATES = ("write", "_link", "_rename", "move", "delete", "sizes")  # what is read never changes
CROSSING = [f"{v} AND {i}" for v in ("v < 4", "v >= 3") for i in ("id < 70", "id >= 50")]
HALF = "rows were appended"  # though an error is told
Values = Counter[int]
_here = local()


class Killed(BaseException):
    """The writer is dead."""


@dataclass
class Writer:
    """Work that stops at each gate; killed at the gate with the number `dies_at`."""

    name: str
    work: Callable[[], object]
    added: Values  # the rows that the table has more when the work is done
    dies_at: int = -1
    gates: int = 0
    error: BaseException | None = None
    is_over: bool = False
    _go: Semaphore = field(default_factory=lambda: Semaphore(0))
    _waits: Semaphore = field(default_factory=lambda: Semaphore(0))

    def start(self) -> None:
        Thread(target=self._run, daemon=True).start()
        self._rest()

    def advance(self) -> None:
        """Let it through to its next gate, or to its end."""
        self._go.release()
        self._rest()

    def gate(self) -> None:
        self._waits.release()
        self._go.acquire()
        self.gates += 1
        if 0 <= self.dies_at < self.gates:
            raise Killed

    def _rest(self) -> None:
        assert self._waits.acquire(timeout=LONGEST), f"{self.name} is stuck"

    def _run(self) -> None:
        _here.writer = self
        try:
            self.work()
        except (hr.HedgerowError, PySparkException, Py4JError, Killed) as error:
            self.error = error
        finally:
            self.is_over = True
            self._waits.release()


@pytest.fixture
def gates(monkeypatch: pytest.MonkeyPatch) -> None:
    def gated(name: str) -> Callable[..., Any]:
        real = getattr(Folder, name)

        def act(self: Folder, *args: Any, **named: Any) -> Any:
            writer = getattr(_here, "writer", None)
            if writer is not None:
                writer.gate()
            return real(self, *args, **named)

        return act

    for name in GATES:
        monkeypatch.setattr(Folder, name, gated(name))


def run(writers: list[Writer], pick: Callable[[list[Writer]], Writer]) -> None:
    for writer in writers:
        writer.start()
    while busy := [w for w in writers if not w.is_over]:
        pick(busy).advance()


# --- the table, and what is done to it ----------------------------------------------------------------


def rows(spark: SparkSession, start: int, count: int) -> Any:
    return spark.range(start, start + count).selectExpr("id", "id % 7 AS v")


@pytest.fixture(
    scope="module", params=["replica", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("plain", "overlap"))]
)
def template(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    source, to = str(folder / "source"), str(folder / "table")
    rows(spark, 0, ROWS).coalesce(1).write.parquet(source)
    workload = hr.Workload.from_sql([f"SELECT * FROM t WHERE {c}" for c in CROSSING])
    overlap = request.param == "overlap"
    learned = hr.learn(
        spark, source, workload, "qdtree", hr.LearnOptions(block_rows=ROWS // 6), table="t", overlap=overlap
    )
    table = hr.apply(spark, source, learned, to)
    if request.param == "replica":
        second = hr.learn(
            spark, source, workload, "range", hr.LearnOptions(block_rows=ROWS // 6), table="t", columns=["v"]
        )
        hr.apply(spark, source, second, to, replica="second")
    assert overlap == bool(table.describe()["copied_rows"])
    return folder / "table"


def append(spark: SparkSession, path: str, start: int = 2000) -> Writer:
    own = spark.newSession()
    table = hr.table(own, path)
    return Writer(
        f"append {start}", lambda: table.append(rows(own, start, BATCH)), Counter(range(start, start + BATCH))
    )


def relearn(spark: SparkSession, path: str) -> Writer:
    own = spark.newSession()
    workload = hr.Workload.from_sql(["SELECT * FROM t WHERE id % 3 = 1"])
    return Writer("relearn", lambda: hr.table(own, path).relearn(workload), Counter())


def refresh(spark: SparkSession, path: str) -> Writer:
    own = spark.newSession()
    return Writer("refresh", lambda: hr.table(own, path).refresh_replicas(), Counter())


def replica(spark: SparkSession, path: str) -> Writer:
    own = spark.newSession()
    layout = hr.table(own, path).layout
    return Writer("replica", lambda: hr.apply(own, path, layout, path, replica="third", overwrite=True), Counter())


def relayout(spark: SparkSession, path: str) -> Writer:
    own = spark.newSession()
    layout = hr.table(own, path).layout
    return Writer("relayout", lambda: hr.apply(own, path, layout, path, overwrite=True), Counter())


OTHERS = [append, relearn, refresh, replica, relayout]


def held(frame: Any) -> Values:
    return Counter(row[0] for row in frame.select("id").collect())


def check(spark: SparkSession, path: str, writers: list[Writer], before: Values) -> ManagedTable:
    """What is there now: all that was done, and of what was killed all or nothing."""
    table = hr.table(spark, path)
    assert isinstance(table, ManagedTable)
    spark.catalog.refreshByPath(path)
    now = held(spark.read.parquet(path))
    sure = sum((w.added for w in writers if w.error is None), before)
    assert not sure - now, f"lost {sorted(sure - now)[:5]}"
    more = now - sure
    for writer in writers:
        if writer.error is not None and not (isinstance(writer.error, Killed) or HALF in str(writer.error)):
            assert not writer.added & now, f"{writer.name} said {writer.error}, but its rows are there"
        elif writer.error is not None and more & writer.added:
            assert more & writer.added == writer.added, f"half of {writer.name}"
            more -= writer.added
    assert not more, f"doubled {sorted(more)[:5]}"
    assert held(table.read()) == now
    for where in ("v = 3", "id >= 500 AND v = 2", "id < 40"):
        expected = held(spark.read.parquet(path).where(where))
        assert (
            held(table.read(where=where))
            == expected
            == held(hr.route(spark, f"SELECT * FROM parquet.`{path}` WHERE {where}"))
        )
    assert table.verify()["rows"] == now.total()
    return table


def copied(template: Path, tmp_path: Path, name: str) -> str:
    shutil.copytree(template, tmp_path / name)
    return str(tmp_path / name)


# --- the tests ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("gates")
@pytest.mark.parametrize("times", [2, pytest.param(1000, marks=pytest.mark.long)])
def test_an_append_is_killed(spark: SparkSession, template: Path, tmp_path: Path, times: int) -> None:
    """At every step, or at some: the first and the last ones among them."""
    whole = append(spark, copied(template, tmp_path, "whole"), 1000)
    run([whole], lambda busy: busy[0])
    assert whole.error is None and whole.gates > 10
    seen = Counter[bool]()
    for step in range(0, whole.gates, max(1, (whole.gates - 1) // (times - 1))):
        path = copied(template, tmp_path, f"killed-{step}")
        writer = append(spark, path, 1000)
        writer.dies_at = step
        run([writer], lambda busy: busy[0])
        assert isinstance(writer.error, Killed)
        table = check(spark, path, [writer], Counter(range(ROWS)))
        is_done = total(table.state.parts).rows > ROWS
        seen[is_done] += 1
        again = table.append(rows(spark, 2000 if is_done else 1000, BATCH))
        assert again.verify()["rows"] == total(table.state.parts).rows + BATCH
        shutil.rmtree(path)
    assert seen[False] and seen[True], seen


@pytest.mark.usefixtures("gates")
@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(100, 170), marks=pytest.mark.long)])
def test_several_write(spark: SparkSession, template: Path, tmp_path: Path, seeds: range) -> None:
    ends = Counter[str]()
    for seed in seeds:
        r = random.Random(seed)
        path = copied(template, tmp_path, f"table-{seed}")
        chosen = r.sample(OTHERS, r.choice([1, 1, 2]))
        writers = [append(spark, path, 1000), *(other(spark, path) for other in chosen)]
        for writer in writers:
            if r.random() < 0.3:
                writer.dies_at = r.randrange(25)
        run(writers, r.choice)
        for writer in writers:
            name = type(writer.error).__name__ if writer.error else "done"
            ends[f"{writer.name.split()[0]} {name}"] += 1
        try:
            check(spark, path, writers, Counter(range(ROWS)))
        except BaseException as error:
            said = [(w.name, w.dies_at, w.gates, repr(w.error)) for w in writers]
            raise AssertionError(f"seed {seed}: {error}; {said}") from error
        shutil.rmtree(path)
    print(dict(sorted(ends.items())))
