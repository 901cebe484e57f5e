"""Shows the progress of long work in a terminal: one bar for each step, moved by Spark's finished tasks.

Elsewhere, as in a notebook, a line names each step that takes long.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Thread, Timer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.progress import Progress, TaskID

_LOGGER = logging.getLogger("hedgerow")
_REFRESH_SECONDS = 0.2
SILENT_SECONDS = 10.0  # a shorter step is not named where there is no terminal
_has_bars = ContextVar("_has_bars", default=True)


@contextmanager
def step(spark: SparkSession, title: str) -> Iterator[None]:
    """Show a bar on standard error while the body runs, if that is a terminal; else the title, if it takes long."""
    if not _has_bars.get():
        yield
        return
    if not sys.stderr.isatty():
        _LOGGER.info("%s", title)
        timer = Timer(SILENT_SECONDS, print, [f"hedgerow: {title} ..."], {"file": sys.stderr, "flush": True})
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bars = Progress(
        TextColumn("{task.description:<24}"), BarColumn(), TimeElapsedColumn(), console=Console(file=sys.stderr)
    )
    done = Event()
    with bars:
        task = bars.add_task(title, total=None)
        watcher = Thread(target=_watch, args=(spark, bars, task, done), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()
        bars.update(task, total=1, completed=1)


@contextmanager
def without_bars() -> Iterator[None]:
    """Show no steps in this thread while the body runs: several at once would not tell whose they are."""
    token = _has_bars.set(False)
    try:
        yield
    finally:
        _has_bars.reset(token)


def _watch(spark: SparkSession, bars: Progress, task: TaskID, done: Event) -> None:
    """Move the bar by the finished tasks of the active stages, until the step is done."""
    status = spark.sparkContext.statusTracker()
    while not done.wait(_REFRESH_SECONDS):
        stages = [s for s in map(status.getStageInfo, status.getActiveStageIds()) if s is not None]
        total = sum(s.numTasks for s in stages)
        bars.update(task, total=total or None, completed=sum(s.numCompletedTasks for s in stages))
