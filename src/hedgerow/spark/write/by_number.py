"""Divides rows among Spark's partitions by a number in each row: rows with the number 7 go to partition 7.

Spark sends a row to the partition `pmod(murmur3(key, 42), count)`. So each number is replaced by a key whose partition
has that number. (From Spark 4.1 on, `repartitionById` does the same.)
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Ints = npt.NDArray[np.int32]
_SEED = 42
_KEYS_AT_ONCE = 1 << 16


def divided(frame: DataFrame, count: int, number: Column) -> DataFrame:
    """Return the rows in `count` partitions, each in the partition of its number; another number is an error."""
    from pyspark.sql import functions as f

    keys = f.split(f.lit(" ".join(map(str, keys_of(count).tolist()))), " ").cast("array<int>")  # a constant
    no_key = f.raise_error(f.lit("a row has no place to be written to"))
    return frame.repartition(count, f.coalesce(f.get(keys, number), no_key))


@lru_cache(maxsize=4)
def keys_of(count: int) -> Ints:
    """Return for each partition an int that Spark sends there."""
    keys = np.full(count, -1, np.int32)
    first = 0
    while (keys < 0).any():
        candidates = np.arange(first, first + _KEYS_AT_ONCE, dtype=np.int32)
        partitions, at = np.unique(_hash(candidates) % count, return_index=True)
        new = keys[partitions] < 0
        keys[partitions[new]] = candidates[at[new]]
        first += _KEYS_AT_ONCE
    return keys


def _hash(keys: Ints) -> Ints:
    """Return Spark's hash of ints: Murmur3 for 32 bits, as a signed number."""
    with np.errstate(over="ignore"):
        k = keys.astype(np.uint32) * np.uint32(0xCC9E2D51)
        h = np.uint32(_SEED) ^ (_turned(k, 15) * np.uint32(0x1B873593))
        h = _turned(h, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        h ^= np.uint32(4)  # the bytes of a key
        h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        return (h ^ (h >> np.uint32(16))).astype(np.int32)


def _turned(x: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
    return (x << np.uint32(bits)) | (x >> np.uint32(32 - bits))
