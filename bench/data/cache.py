"""Keep generated data between runs: outside the checkout, and only when it is complete."""

from __future__ import annotations

import hashlib
import inspect
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from bench.record import progress

ROWS_OF_A_FILE = 250_000


def cache_folder() -> Path:
    named = os.environ.get("HEDGEROW_BENCH_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "hedgerow-bench"


@contextmanager
def partial(near: Path) -> Iterator[Path]:
    """Make a temporary folder beside `near`; `publish` moves finished data out of it."""
    folder = near.with_name(f"{near.name}.partial-{uuid4().hex[:8]}")
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(made: Path, target: Path) -> None:
    """Move finished data to its place; if another run was faster, its data is the same and stays."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        made.rename(target)
    except OSError:
        if not target.exists():
            raise


def generated(name: str, rows: int, rows_of: Callable[[int, int], pa.Table]) -> Path:
    """Return the folder of a table's Parquet files, made once; `rows_of` makes the rows from a number to below another.

    A change in the module of `rows_of` makes a new table.
    """

    def write(folder: Path) -> None:
        for i, start in enumerate(range(0, rows, ROWS_OF_A_FILE)):
            some = rows_of(start, min(rows, start + ROWS_OF_A_FILE))
            pq.write_table(some, folder / f"part-{i:03}.parquet", compression="zstd")

    return written_once(name, rows, write, rows_of)


def written_once(name: str, rows: int, write: Callable[[Path], None], maker: Callable[..., Any]) -> Path:
    """Return the folder of a table that `write` fills once; a change in the module of `maker` makes a new table."""
    module = inspect.getmodule(maker)
    assert module is not None
    folder = cache_folder() / f"{name}-{hashlib.sha256(inspect.getsource(module).encode()).hexdigest()[:8]}" / str(rows)
    if not folder.exists():
        progress(f"{name}: making {rows:,} rows, once")
        with partial(folder) as here:
            (here / "table").mkdir()
            write(here / "table")
            publish(here / "table", folder)
    return folder
