"""A decorator that compiles a loop by numba, and caches the code for later processes if a folder can be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled_loop(nogil: bool = False) -> Callable[[F], F]:
    """Decorate a function of arrays; with `nogil`, other threads run at the same time."""

    def decorated(function: F) -> F:
        try:
            return cast(F, njit(cache=True, nogil=nogil)(function))
        except RuntimeError:  # numba finds no folder to write its cache to, so each process compiles
            return cast(F, njit(nogil=nogil)(function))

    return decorated
