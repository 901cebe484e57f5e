"""Statistics of a term from bounds that others state for each file, such as Delta's log."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.core.arrays import Ints
from hedgerow.core.predicates.nodes import Column
from hedgerow.core.pruning.block_stats import TermStats, collect


def stated_bounds(low: pa.Array, high: pa.Array, nulls: Ints, rows: Ints) -> TermStats:
    """Return the statistics of entries with these bounds, NULLs and rows; `nulls`: -1 if unknown.

    A missing bound, or NaN in its place, is unknown; but an entry of NULLs or NaN only has no values.

    >>> low, high = pa.array([3, None, None]), pa.array([5, None, None])
    >>> term = stated_bounds(low, high, np.array([0, 7, -1]), np.array([7, 7, 7]))
    >>> term.has_value.tolist(), term.is_unknown.tolist()
    ([True, False, True], [False, False, True])
    """
    n, bounds = len(low), pa.concat_arrays([low, high])
    term = collect({Column(("x",)): bounds}, None, np.tile(np.arange(n), 2), n, max_distinct=0).terms["x"]
    no_value = (nulls == rows) | (
        pc.is_nan(low).fill_null(False).to_numpy(zero_copy_only=False) if pa.types.is_floating(low.type) else False
    )
    missing = pc.is_null(bounds, nan_is_null=True).to_numpy(zero_copy_only=False).reshape(2, n)
    unknown = missing & ~no_value
    return replace(
        term,
        low=np.where(unknown[0], 0, term.low).astype(np.int32),
        high=np.where(unknown[1], 2 * len(term.values), term.high).astype(np.int32),
        nulls=nulls,
        nan=missing[1] & (nulls != rows),  # NaN is above all values
    )
