"""Side by side, in the order of what was given, in forked processes as well."""

from __future__ import annotations

import os
import sys

import pytest

from hedgerow.core.parallel import parallel_map, parallel_map_slices


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, 1000])
def test_parts_are_all_there_is_once_and_in_order(n: int) -> None:
    assert [i for part in parallel_map_slices(lambda own: list(range(n))[own], n) for i in part] == list(range(n))


def test_an_error_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        parallel_map(lambda x: 1 / x, [1, 0, 2])


@pytest.mark.skipif(not hasattr(os, "fork") or sys.platform == "darwin", reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_in_a_forked_process() -> None:
    assert parallel_map(abs, [-1, 2]) == [1, 2]
    child = os.fork()
    if not child:
        os._exit(0 if parallel_map(abs, [-3]) == [3] else 1)
    assert os.waitpid(child, 0)[1] == 0
