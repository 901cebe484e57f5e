"""A small Delta table that several write at once, and what its rows must be afterwards.

Delta lets an operation commit if there is a serial order in which it saw what it read. Every commit says which version
it read, so the order is known: an operation works on the rows that this version had.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from threading import Thread
from typing import IO, TYPE_CHECKING

from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.predicates.nodes import Compare, Predicate, col, lit
from hedgerow.spark.write.writing import Writing
from hedgerow.tables.rewrite_plan import Plan
from tests.support.other_process import environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 300
MARK = "spark.databricks.delta.commitInfo.userMetadata"
LAST = "spark.databricks.delta.lastCommitVersionInSession"
Believed = dict[str, int]  # the mark of a step, and the version that its session says it committed


@dataclass(frozen=True)
class Step:
    """One statement of somebody else's; `mark` is how its commit is found again."""

    kind: str
    sql: str
    mark: str
    low: int
    high: int


def steps(r: random.Random, n: int, table: str) -> list[Step]:
    """Appends of new ids; changes and removals of a range of ids; compactions."""
    found = []
    for i in range(n):
        kind = r.choice(["append", "append", "append", "delete", "update", "merge", "optimize"])
        mark, low = f"step-{r.randrange(1 << 40)}", r.randrange(ROWS)
        high = low + r.randrange(1, 40)
        match kind:
            case "append":
                low = 1000 * (i + 1) + r.randrange(900) * 100_000
                high = low + r.randrange(1, 60)
                sql = f"INSERT INTO {table} SELECT id, id % 7 AS v FROM range({low}, {high})"
            case "delete":
                sql = f"DELETE FROM {table} WHERE id >= {low} AND id < {high}"
            case "update":
                sql = f"UPDATE {table} SET v = v + 100 WHERE id >= {low} AND id < {high}"
            case "merge":
                source = f"(SELECT id AS i FROM range({low}, {high}))"
                sql = f"MERGE INTO {table} USING {source} ON id = i WHEN MATCHED THEN UPDATE SET v = v + 1000"
            case _:
                sql = f"OPTIMIZE {table}"
        found.append(Step(kind, sql, mark, low, high))
    return found


def make(spark: SparkSession, path: str, with_vectors: bool) -> None:
    rows = spark.range(ROWS).selectExpr("id", "id % 7 AS v").repartition(3)
    option = {"delta.enableDeletionVectors": str(with_vectors).lower()}
    rows.write.format("delta").options(**option).save(path)


def plan() -> Plan:
    """Four blocks by id."""

    def below(n: int) -> Predicate:
        return Compare(col("id"), "<", lit(n))

    layout = TreeLayout((below(150), below(75), below(225)), ((0, 1, 2), (1, ~0, ~1), (2, ~2, ~3)))
    predicates = (below(20), Compare(col("v"), "=", lit(3)))
    items = [col("id"), col("v")]
    return Plan(layout, "t", predicates, items, {"block_rows": 75}, Writing())


# --- others ---------------------------------------------------------------------------------------


class InThread:
    """Runs statements in a thread of this process, in a session of its own."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark.newSession()

    def start(self, todo: list[Step], delay: float) -> None:
        self.believed: Believed = {}

        def work() -> None:
            time.sleep(delay)
            for step in todo:
                self.spark.conf.set(MARK, step.mark)
                self.spark.conf.unset(LAST)
                try:
                    self.spark.sql(step.sql).collect()
                except Exception:  # a conflict: the log says what was committed
                    continue
                if version := self.spark.conf.get(LAST, None):
                    self.believed[step.mark] = int(version)

        self._thread = Thread(target=work)
        self._thread.start()

    def finish(self) -> Believed:
        self._thread.join()
        return self.believed


WORKER = """
import json, sys, time
import hedgerow as hr
spark = hr.session("1g", "local[1]", **{"spark.sql.shuffle.partitions": "2", "spark.log.level": "OFF",
    "spark.databricks.delta.snapshotPartitions": "2"})
print("ready", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    believed = {}
    time.sleep(asked["delay"])
    for sql, mark in asked["todo"]:
        spark.conf.set("MARK", mark)
        spark.conf.unset("LAST")
        try:
            spark.sql(sql).collect()
        except Exception:
            continue
        if version := spark.conf.get("LAST", None):
            believed[mark] = int(version)
    print("done", json.dumps(believed), flush=True)
""".replace("MARK", MARK).replace("LAST", LAST)


class InProcess:
    """Runs statements in another process, with a Spark of its own."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", WORKER],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._until("ready")

    def start(self, todo: list[Step], delay: float) -> None:
        asked = json.dumps({"todo": [(step.sql, step.mark) for step in todo], "delay": delay})
        pipe: IO[str] = self._process.stdin  # type: ignore[assignment]
        pipe.write(asked + "\n")
        pipe.flush()

    def finish(self) -> Believed:
        found: Believed = json.loads(self._until("done"))
        return found

    def close(self) -> None:
        self._process.stdin.close()  # type: ignore[union-attr]
        self._process.wait(60)

    def _until(self, word: str) -> str:
        """What is said after the word."""
        pipe: IO[str] = self._process.stdout  # type: ignore[assignment]
        for line in pipe:
            said, _, rest = line.strip().partition(" ")
            if said == word:
                return rest
        raise RuntimeError("the other process ended")


# --- what must come out ---------------------------------------------------------------------------


def lost(spark: SparkSession, path: str, believed: Believed) -> bool:
    """Two processes committed the same version, and the log has one of the two.

    On a local disk Delta looks whether a version is there, and then renames its own to it. Other file systems do
    both at once.
    """
    history = spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()
    marks = {commit["version"]: commit["userMetadata"] for commit in history}
    return any(marks.get(version) != mark for mark, version in believed.items())


def expected(spark: SparkSession, path: str, all_steps: list[Step]) -> list[tuple[int, int]]:
    """The rows after every commit in the log, each of which worked on the version that it read."""
    history = spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()
    rows = {i: (i % 7, 0) for i in range(ROWS)}  # id -> value and the version that brought it
    by_mark = {step.mark: step for step in all_steps}
    for commit in sorted(history, key=lambda h: h["version"])[1:]:
        step = by_mark.get(commit["userMetadata"])
        if step is None:
            continue
        for i, (v, born) in list(rows.items()):
            if step.low <= i < step.high and born <= commit["readVersion"]:
                if step.kind == "delete":
                    del rows[i]
                elif step.kind in ("update", "merge"):
                    rows[i] = (v + (100 if step.kind == "update" else 1000), born)
        if step.kind == "append":
            rows |= {i: (i % 7, commit["version"]) for i in range(step.low, step.high)}
    return sorted((i, v) for i, (v, _) in rows.items())
