"""Filters of look-ups: their false positives are those of the formula, and they only ever exclude TRUE."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import collect
from hedgerow.core.pruning.evaluator import may_match, must_match, possible_outcomes
from hedgerow.core.pruning.spark_hash import hash_of, xxh64
from hedgerow.core.pruning.value_filter import (
    MAX_FALSE_POSITIVES,
    MIN_BLOCK_BYTES,
    Block,
    Shape,
    best_shape,
    join_filters,
)
from tests.support.random_cases import a_predicate, a_table, bits, seeds, seen, some_blocks

BIGINT = Type("bigint")


@pytest.mark.parametrize(
    ("data", "hashed"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_xxh64_is_that_of_its_authors(data: bytes, hashed: int) -> None:
    assert xxh64(data, 0) == hashed


def test_values_that_a_type_cannot_hold_have_no_hash() -> None:
    assert hash_of(Type("int"), 2**31) is None
    assert hash_of(Type("string"), "\ud800") is None
    assert hash_of(Type("decimal", 10, 2), "1.005") is None
    assert hash_of(Type("decimal", 10, 2), "1.500") == hash_of(Type("decimal", 10, 2), "1.5") is not None


@pytest.mark.parametrize("bits_a_value", [12, 10, 8, 6, 4])
@pytest.mark.parametrize("files", [4, 900])
def test_false_positives_and_bytes_are_those_of_the_formula(bits_a_value: int, files: int) -> None:
    of_file = 24_000 // files
    values = np.array([of_file] * files)
    shape = best_shape(values, bits_a_value * values.sum() / 8)
    assert shape is not None
    assert shape.stored_bytes(values) <= bits_a_value * values.sum() / 8
    blocks = _blocks(shape, [range(n * 10**6, n * 10**6 + of_file) for n in range(files)])
    columns = [b"".join(column) for column in zip(*blocks, strict=True)]
    size = sum(len(pa.compress(column, "zstd", asbytes=True)) for column in columns) + MIN_BLOCK_BYTES * len(blocks)
    assert 0.9 < size / shape.stored_bytes(values) < 1.1
    for n in range(files):
        assert n in _places(shape, blocks, n * 10**6 + n % of_file)
    rate = np.mean([len(_places(shape, blocks, value)) for value in range(10**12, 10**12 + 3000)]) / files
    expected = shape.false_positives(values)
    assert abs(rate - expected) < 5 * np.sqrt(expected / (3000 * files)) + 0.05 * expected


def test_blocks_keep_their_keys() -> None:
    for random in seeds(91_000, 200):
        shape = Shape(2**40, 9, 2**36, random.choice((0, 0, 1, 2, 4)))
        scale = 256**shape.low_bytes
        gaps = [random.choice((0, 1, 254, 255, 256, 509, 510, 511, random.randrange(3000))) for _ in range(50)]
        keys = np.unique(np.cumsum(gaps) * scale + random.randrange(scale))[: random.randrange(50)]
        block = shape.packed(keys)
        assert block == _packed(keys.tolist(), shape.low_bytes)
        assert shape.keys(block).tolist() == keys.tolist()


def test_a_joined_filter_names_the_files_of_all() -> None:
    for random in seeds(92_000, 60):
        filters, names, held = [], random.sample(range(1000), 12), dict[int, set[int]]()  # the values of each file
        hashes = 2 ** random.randint(1, 16)
        for files in (names[:5], names[5 : random.randint(6, 11)]):
            of_files = [random.sample(range(5000), random.randint(0, 200)) for _ in files]
            shape = Shape(
                hashes << random.choice((0, 0, 1, 3)), len(files), random.randint(1, hashes), random.choice((0, 1, 2))
            )
            filters.append((shape, _blocks(shape, of_files), np.array(files)))
            held |= dict(zip(files, map(set, of_files), strict=True))
        names = sorted(held)
        placed = [(shape, blocks, np.searchsorted(names, files)) for shape, blocks, files in filters]
        shape, blocks, false_positives = join_filters(placed, len(names))
        assert (shape.files, len(blocks)) == (len(names), shape.blocks)
        assert all(of.hashes % shape.hashes == 0 for of, _, _ in filters)
        short = [{shape.short(_hash(v)) for v in held[name]} for name in names]
        for value in random.sample(range(6000), 80):
            expected = [place for place, of_file in enumerate(short) if shape.short(_hash(value)) in of_file]
            assert _places(shape, blocks, value) == expected
        assert false_positives == sum(map(len, short)) / (shape.hashes * len(names))


@pytest.mark.parametrize("files", [1, 4, 200])
def test_filters_of_appends_use_their_bytes(files: int) -> None:
    counts = np.array([5000] * files)
    for bits_a_value in (5, 8, 10):
        shape = best_shape(counts, bits_a_value * counts.sum() / 8, can_join=True)
        assert shape is not None and shape.hashes & (shape.hashes - 1) == 0
        assert shape.stored_bytes(counts) <= bits_a_value * counts.sum() / 8
        assert shape.false_positives(counts) < {5: 0.16, 8: 0.026, 10: 0.0075}[bits_a_value]


def test_joined_filters_of_equal_appends_stay_precise() -> None:
    counts = np.array([500] * 4)
    shape = best_shape(counts, 2500, can_join=True)
    assert shape is not None
    filters = []
    for number in range(8):
        files = [range(value, value + 500) for value in range(number * 10**6, number * 10**6 + 4000, 1000)]
        filters.append((shape, _blocks(shape, files), np.arange(4) + 4 * number))
    joined, blocks, false_positives = join_filters(filters, 32)
    assert joined.hashes == shape.hashes
    assert false_positives == pytest.approx(shape.false_positives(counts), rel=0.05)
    alone = sum(len(gaps) + len(low) for _, of_filter, _ in filters for gaps, low in of_filter)
    assert sum(len(gaps) + len(low) for gaps, low in blocks) <= 1.05 * alone


def _blocks(shape: Shape, values: Sequence[Iterable[int]]) -> list[Block]:
    """A slow reference of what Spark builds: the values of each file as blocks."""
    keys: list[set[int]] = [set() for _ in range(shape.blocks)]
    for place, of_file in enumerate(values):
        for value in of_file:
            block, rest = divmod(shape.short(_hash(value)), shape.block_hashes)
            keys[block].add(rest * shape.files + place)
    return [_packed(sorted(of_block), shape.low_bytes) for of_block in keys]


def _packed(keys: list[int], low_bytes: int) -> Block:
    gaps, low, last = bytearray(), bytearray(), 0
    for key in keys:
        gap = (key >> 8 * low_bytes) - last
        gaps += b"\xff" * (gap // 255) + bytes([gap % 255])
        low += (key % 256**low_bytes).to_bytes(low_bytes, "big")
        last += gap
    return bytes(gaps), bytes(low)


def _places(shape: Shape, blocks: Sequence[Block], value: int) -> list[int]:
    h = _hash(value)
    return shape.places(blocks[shape.block(h)], h).tolist()


def _hash(value: int) -> int:
    h = hash_of(BIGINT, value)
    assert h is not None
    return h


@pytest.mark.parametrize("values", [[1], [5], [1000] * 50, [10, 100_000], [0, 3, 1_000_000]])
def test_shapes_keep_to_their_bytes(values: list[int]) -> None:
    counts = np.array(values)
    for size in (10.0, 100.0, 1e4, 1e6, 1e9):
        shape = best_shape(counts, size)
        if shape is not None:
            assert shape.stored_bytes(counts) <= size
            assert 0 <= shape.false_positives(counts) <= MAX_FALSE_POSITIVES


# --- in the evaluator ---


@dataclass(frozen=True)
class RandomFilter:
    """Holds what the entries hold, and more at random; knows nothing of some entries."""

    values: list[set[Any] | None]
    kind: str
    random: Random

    def may_hold(self, kind: str, values: Sequence[Any]) -> npt.NDArray[np.bool_]:
        assert kind == self.kind
        return np.array(
            [held is None or any(v in held for v in values) or self.random.random() < 0.1 for held in self.values]
        )


def test_filters_exclude_only_what_no_row_has() -> None:
    narrowed = 0
    for random in seeds(90_000, 400):
        table = a_table(random, most_rows=40)
        entry, entries = some_blocks(random, len(table))
        stats = collect(table.columns, {}, entry, entries, max_distinct=random.choice((0, 0, 2)))
        filters = {}
        for name, term in stats.terms.items():
            held: list[set[Any] | None] = [set() if random.random() < 0.8 else None for _ in range(entries)]
            for row, at in zip(table.rows, entry.tolist(), strict=True):
                of_entry = held[at]
                if of_entry is not None and row[name] is not None:
                    of_entry.add(row[name])
            if term.type.kind != "float":
                filters[name] = RandomFilter(held, term.type.kind, random)
        filtered = replace(stats, filters=filters)
        for _ in range(8):
            p = a_predicate(random, table)
            there, plain = seen(bits(p, table), entry, entries), possible_outcomes(p, stats)
            found = possible_outcomes(p, filtered)
            assert not (there & ~found).any(), p
            assert not (found & ~plain).any(), p
            assert (may_match(p, filtered) | (there & 2 == 0)).all(), p
            assert (~must_match(p, filtered) | (there & ~np.uint8(2) == 0)).all(), p
            narrowed += int((found != plain).sum())
    assert narrowed > 50
