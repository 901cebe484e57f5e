"""A decorator that compiles a loop by numba, and caches the code for later processes if a folder can be written.

Without numba the loop runs as it is, slowly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

try:
    from numba import njit
except ModuleNotFoundError:  # on an executor, which may have numpy and pyarrow only
    njit = None  # type: ignore[assignment]

HAS_NUMBA = njit is not None
F = TypeVar("F", bound=Callable[..., Any])


def compiled_loop(nogil: bool = False) -> Callable[[F], F]:
    """Decorate a function of arrays; with `nogil`, other threads run at the same time."""

    def decorated(function: F) -> F:
        if not HAS_NUMBA:
            return function
        try:
            return cast(F, njit(cache=True, nogil=nogil)(function))
        except RuntimeError:  # numba finds no folder to write its cache to, so each process compiles
            return cast(F, njit(nogil=nogil)(function))

    return decorated
