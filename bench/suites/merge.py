"""Time the merging of row groups by the number of distinct vectors (thesis, Fig. 4.1), and count how much their order
gains (Fig. 4.2): in memory and without Spark.

There are forty features, few of them frequent, as with filters; rows are spread as unevenly over the vectors. Files are
filled with one group after the other, once in the order of `chained` and once in random order. `ratio` is the number of
zeros in the vectors of these files, the first divided by the second.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.options import Options
from bench.record import line, progress
from hedgerow.core.arrays import Bools, Ints
from hedgerow.learners.sop.clustering import chained, grouped_rows

FEATURES, BLOCKS = 40, 64
VECTORS = {"quick": (1 << 8, 1 << 10), "full": tuple(1 << k for k in range(8, 16))}
GROUPS_PER_FILE = 4


def run(options: Options) -> Iterator[dict[str, Any]]:
    merged_of(*some_vectors(16, 0))  # compile before timing
    for n in VECTORS[options.form]:
        progress(f"merge: {n} vectors")
        vectors, rows, weights = some_vectors(n, options.seed)
        start = time.perf_counter()
        blocks = merged_of(vectors, rows, weights)
        seconds = time.perf_counter() - start
        groups = merged_of(vectors, rows, weights, BLOCKS * GROUPS_PER_FILE)
        group_vectors = np.array([np.logical_or.reduce(vectors[groups == g]) for g in range(groups.max() + 1)])
        sizes = np.bincount(groups, weights=rows)
        order = chained(group_vectors)
        none = np.random.default_rng(options.seed).permutation(len(group_vectors))
        zeros = [zeros_of(group_vectors[o], sizes[o], int(rows.sum()) // BLOCKS) for o in (order, none)]
        yield line(
            suite="merge",
            params={"form": options.form, "vectors": n, "features": FEATURES},
            rows=int(rows.sum()),
            blocks=int(blocks.max()) + 1,
            block_rows=int(rows.sum()) // BLOCKS,
            learn_seconds=round(seconds, 2),
            ratio=round(zeros[0] / max(1, zeros[1]), 3),
            seed=options.seed,
        )


def some_vectors(n: int, seed: int) -> tuple[Bools, Ints, list[float]]:
    """Draw `n` different vectors, how many rows have each, and the weights of the features."""
    r = np.random.default_rng(seed)
    share = r.beta(0.5, 1.5, FEATURES)
    distinct = np.zeros((0, FEATURES), bool)
    while len(distinct) < n:
        distinct = np.unique(np.concatenate([distinct, r.random((4 * n, FEATURES)) < share]), axis=0)
    picked = distinct[np.sort(r.choice(len(distinct), n, replace=False))]
    return picked, r.zipf(1.5, n).clip(1, 100_000), r.integers(1, 50, FEATURES).astype(float).tolist()


def merged_of(vectors: Bools, rows: Ints, weights: list[float], blocks: int = BLOCKS) -> Ints:
    return grouped_rows(vectors, rows, weights, max(1, int(rows.sum()) // blocks))


def zeros_of(groups: Bools, rows: Ints, file_rows: int) -> int:
    """Count the features that no row of a file has, over all files; a large group fills several files."""
    ends = np.cumsum(rows)
    first, last = (ends - rows) // file_rows, (ends - 1) // file_rows
    has_feature = np.zeros((int(last.max()) + 1, groups.shape[1]), bool)
    for vector, a, b in zip(groups, first.astype(int), last.astype(int), strict=True):
        has_feature[a : b + 1] |= vector
    return int((~has_feature).sum())
