"""Where blocks of a curve end."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from hedgerow.core.learning.curve_order import bounds_of


@given(counts=st.lists(st.integers(1, 60), min_size=1, max_size=60), least=st.integers(1, 40))
@example(counts=[1, 3, 5, 2], least=5)
def test_blocks_have_half_to_twice_the_rows_where_keys_allow_it(counts: list[int], least: int) -> None:
    """A key that many rows share may make a block larger; none is smaller but the only one."""
    keys = np.repeat(np.arange(len(counts), dtype=np.uint64), counts)
    bounds = bounds_of(keys, least)
    assert list(bounds) == sorted(set(bounds))
    block_of = np.searchsorted(np.array(bounds, np.uint64), np.arange(len(counts)), side="right")
    sizes = np.bincount(block_of, counts)
    if len(sizes) > 1:
        assert 2 * sizes.min() >= least
    for block, size in enumerate(sizes):
        largest = max(c for c, b in zip(counts, block_of, strict=True) if b == block)
        assert size <= max(2 * least, largest + least), (sizes, counts)
