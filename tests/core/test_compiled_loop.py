"""Compiled code is kept for later processes where that is possible, and else compiled in each."""

from __future__ import annotations

from typing import Any

import pytest
from numba import njit

from hedgerow.core.compiled_loop import compiled_loop


@pytest.mark.parametrize("nogil", [False, True])
def test_where_nothing_can_be_kept(nogil: bool) -> None:
    written: dict[str, Any] = {}
    exec("def doubled(n):\n    return 2 * n", written)  # as in a folder that cannot be written: it lies in no file
    with pytest.raises(RuntimeError, match="cannot cache"):
        njit(cache=True)(written["doubled"])
    assert compiled_loop(nogil)(written["doubled"])(21) == 42
