"""The data of Fig. 4 of the qd-tree paper: four arms of a cross, a row in the middle, and a query for each arm."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

# x and y from, and below; the middle is 4 <= x < 6, 4 <= y < 6
ARMS = ((0, 4, 4, 6), (6, 10, 4, 6), (4, 6, 0, 4), (4, 6, 6, 10))
CONDITIONS = tuple(
    f"x >= {a}.0D AND x < {b}.0D AND y >= {c}.0D AND y < {d}.0D"
    for a, b, c, d in ((0, 6, 4, 6), (4, 10, 4, 6), (4, 6, 0, 6), (4, 6, 4, 10))
)


def arms(rows: int, seed: int) -> pa.Table:
    """`rows` rows in each arm of the cross, and one in the middle."""
    random = np.random.default_rng(seed)
    x = np.concatenate([*(random.uniform(a, b, rows) for a, b, _, _ in ARMS), [5.0]])
    y = np.concatenate([*(random.uniform(a, b, rows) for _, _, a, b in ARMS), [5.0]])
    return pa.table({"x": x, "y": y})
