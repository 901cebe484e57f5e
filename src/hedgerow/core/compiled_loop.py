"""compiled_loop: numba compiles a loop, and keeps the code for later processes if it finds a folder to write to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled_loop(nogil: bool = False) -> Callable[[F], F]:
    """Decorate a function of plain arrays. `nogil`: other threads run meanwhile."""

    def decorated(function: F) -> F:
        try:
            return cast(F, njit(cache=True, nogil=nogil)(function))
        except RuntimeError:  # neither the package's folder nor the user's home can be written: each process compiles
            return cast(F, njit(nogil=nogil)(function))

    return decorated
