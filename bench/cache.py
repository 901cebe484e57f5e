"""Where generated data is kept between runs: outside the checkout, whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


def cache_folder() -> Path:
    named = os.environ.get("HEDGEROW_BENCH_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "hedgerow-bench"


@contextmanager
def partial(near: Path) -> Iterator[Path]:
    """A folder to work in beside `near`, gone in the end: what is ready is moved out of it by `publish`."""
    folder = near.with_name(f"{near.name}.partial-{uuid4().hex[:8]}")
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(made: Path, target: Path) -> None:
    """Give it its name; if another run was faster, what that one made is the same."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        made.rename(target)
    except OSError:
        if not target.exists():
            raise
