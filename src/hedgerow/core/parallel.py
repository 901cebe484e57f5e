"""Work on all cores by threads: what is compiled with `nogil` lets the others run, and so does much of numpy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")
PARTS = 4  # for each core, so that none waits long for the others
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def each(some: Callable[[T], U], items: Iterable[T]) -> list[U]:
    """What this says of each, side by side. It must not call `each` itself: all threads could wait for one."""
    return list(_threads().map(some, items))


def in_parts(some: Callable[[slice], U], n: int) -> list[U]:
    """What this says of stretches of 0 to n."""
    parts = min(n, PARTS * CORES)
    return each(some, [slice(n * i // parts, n * (i + 1) // parts) for i in range(parts)])


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(CORES)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.cache_clear)  # a forked process has none of the threads
