"""Run a function on all cores by threads: code compiled with `nogil`, and much of numpy, runs at the same time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")
SLICES_PER_CORE = 4  # several, so that no core waits long for the slowest slice
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parallel_map(f: Callable[[T], U], items: Iterable[T]) -> list[U]:
    """Apply `f` to every item in parallel. `f` must not call `parallel_map` itself: all threads could wait for one."""
    return list(_threads().map(f, items))


def parallel_map_slices(f: Callable[[slice], U], n: int) -> list[U]:
    """Divide the range from 0 to n into slices and apply `f` to every slice in parallel."""
    count = min(n, SLICES_PER_CORE * CORES)
    return parallel_map(f, [slice(n * i // count, n * (i + 1) // count) for i in range(count)])


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(CORES)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.cache_clear)  # a forked process has none of the threads
