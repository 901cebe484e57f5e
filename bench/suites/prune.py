"""Time the decision which of n blocks a query opens, with 100 mixed predicates over 20 columns.

A fifth each are conjunctions of ranges, IN of 50 values, prefixes, LIKE that a noted condition answers, and ORs of
ANDs. Nothing about a predicate is cached when it is timed, and the index is loaded from its file.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from bench.options import Options
from bench.record import line, progress
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.index_file import index_bytes, index_of_bytes
from hedgerow.core.predicates.nodes import And, Compare, In, Like, Or, Predicate, Prefix, col, lit
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.pruning.block_stats import ANY, NotedCondition, Stats, collect

SIZES = {"quick": (1_000, 10_000), "full": (1_000, 10_000, 100_000)}
NUMBERS, WORDS, FEW, FEATURES = 10, 5, 5, 20
ROWS_PER_BLOCK = 4


def run(options: Options) -> Iterator[dict[str, Any]]:
    form, seed = options.form, options.seed
    for n in SIZES[form]:
        progress(f"prune: an index of {n:,} blocks")
        index = _stored(make_index(n, seed))
        queries = [make_query(i, random.Random(seed * 1000 + i)) for i in range(100)]
        index.to_open(Compare(col("n0"), "<", lit(0)))  # imports and lazy set-up are not to be timed
        times, opened = [], []
        for p in queries:
            start = time.perf_counter()
            is_open = index.to_open(p)
            times.append((time.perf_counter() - start) * 1e3)
            opened.append(is_open.mean())
        p50, p99 = np.percentile(times, (50, 99))
        yield line(
            suite="prune",
            params={"form": form, "columns": NUMBERS + WORDS + FEW, "index": f"{n:,} blocks"},
            blocks=n,
            queries=len(queries),
            blocks_read=round(float(np.mean(opened)), 4),
            p50_ms=round(float(p50), 3),
            p99_ms=round(float(p99), 3),
            details={"us_per_block": round(float(p50) * 1e3 / n, 4)},
            seed=seed,
        )


def make_index(n: int, seed: int) -> BlockIndex:
    """Make the index of a table sorted by its first column: numbers, words, and columns of few distinct values."""
    rng = np.random.default_rng(seed)
    rows = n * ROWS_PER_BLOCK
    columns: dict[Any, pa.Array] = {}
    for i in range(NUMBERS):
        drift = np.arange(rows) * 10 if i % 2 == 0 else 0
        columns[col(f"n{i}")] = pa.array(drift + rng.integers(0, 1000 * (i + 1), rows))
    for i in range(WORDS):
        ids = np.sort(rng.integers(0, 1_000_000, rows)) if i == 0 else rng.integers(0, 50_000, rows)
        columns[col(f"w{i}")] = pa.array([f"{_word(v)}" for v in ids.tolist()])
    for i in range(FEW):
        columns[col(f"f{i}")] = pa.array(rng.integers(0, 10 * (i + 1) ** 2, rows))
    stats = collect(columns, None, np.arange(rows) // ROWS_PER_BLOCK, n)
    features = {}
    for i in range(FEATURES):
        p = _like(i)
        features[predicate_text(p)] = NotedCondition(
            p, rng.choice(np.array([1, 3, ANY], np.uint8), n, p=[0.8, 0.15, 0.05])
        )
    return BlockIndex(Stats(stats.rows, stats.terms, features))


def make_query(i: int, rng: random.Random) -> Predicate:
    match i % 5:
        case 0:
            return And(tuple(p for c in rng.sample(range(NUMBERS), 3) for p in _range(c, rng)))
        case 1:
            column, span = (f"n{rng.randrange(NUMBERS)}", 40_000) if i % 2 else (f"f{rng.randrange(1, FEW)}", 250)
            return In(col(column), tuple(lit(v) for v in rng.sample(range(span), 50)))
        case 2:
            return Prefix(col(f"w{rng.randrange(WORDS)}"), _word(rng.randrange(1_000_000))[:3])
        case 3:
            return And((_like(rng.randrange(FEATURES)), *_range(rng.randrange(NUMBERS), rng)))
    sides = []
    for _ in range(3):
        few = rng.randrange(FEW)
        equal = Compare(col(f"f{few}"), "=", lit(rng.randrange(10 * (few + 1) ** 2)))
        sides.append(And((*_range(rng.randrange(NUMBERS), rng), equal)))
    return Or(tuple(sides))


def _range(column: int, rng: random.Random) -> tuple[Predicate, Predicate]:
    start = rng.randrange(40_000)
    term = col(f"n{column}")
    return Compare(term, ">=", lit(start)), Compare(term, "<", lit(start + rng.randrange(10, 5_000)))


def _like(i: int) -> Predicate:
    return Like(col(f"w{i % WORDS}"), f"%{_word(i)}%")


def _word(v: int) -> str:
    """Return a word of six letters; words of nearby numbers share a beginning."""
    letters = []
    for _ in range(6):
        v, digit = divmod(v, 26)
        letters.append(chr(97 + digit))
    return "".join(reversed(letters))


def _stored(index: BlockIndex) -> BlockIndex:
    return index_of_bytes(index_bytes(index))
