"""What long work shows in a terminal: one bar a step, moved by Spark's finished tasks. Elsewhere nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.progress import Progress, TaskID

_EVERY = 0.2  # seconds


@contextmanager
def step(spark: SparkSession, title: str) -> Iterator[None]:
    """A bar on standard error while the body runs."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    shown = Progress(
        TextColumn("{task.description:<24}"), BarColumn(), TimeElapsedColumn(), console=Console(file=sys.stderr)
    )
    done = Event()
    with shown:
        task = shown.add_task(title, total=None)
        watcher = Thread(target=_watch, args=(spark, shown, task, done), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()
        shown.update(task, total=1, completed=1)


def _watch(spark: SparkSession, shown: Progress, task: TaskID, done: Event) -> None:
    status = spark.sparkContext.statusTracker()
    while not done.wait(_EVERY):
        stages = [s for s in map(status.getStageInfo, status.getActiveStageIds()) if s is not None]
        total = sum(s.numTasks for s in stages)
        shown.update(task, total=total or None, completed=sum(s.numCompletedTasks for s in stages))
