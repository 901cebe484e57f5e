"""Filters of look-ups: their false positives are those of the formula, and they only ever exclude TRUE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import collect
from hedgerow.core.pruning.evaluator import may_match, must_match, possible_outcomes
from hedgerow.core.pruning.spark_hash import hash_of, xxh64
from hedgerow.core.pruning.value_filter import MAX_FALSE_POSITIVES, Shape, best_shape
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


@pytest.mark.parametrize("bits_a_value", [10, 8, 6, 5])
def test_false_positives_are_those_of_the_formula(bits_a_value: int) -> None:
    values = np.array([6000] * 4)
    shape = best_shape(values, bits_a_value * values.sum() / 8)
    assert shape is not None
    assert shape.stored_bytes(values) <= bits_a_value * values.sum() / 8
    files = [_words(shape, range(n * 10_000, n * 10_000 + 6000)) for n in range(4)]
    for n, words in enumerate(files):
        assert all(_holds(shape, words, value) for value in range(n * 10_000, n * 10_000 + 6000, 7))
    absent = range(10**9, 10**9 + 5000)
    rate = np.mean([_holds(shape, words, value) for words in files for value in absent])
    expected = shape.false_positives(values)
    assert abs(rate - expected) < 4 * np.sqrt(expected / 20_000) + 0.05 * expected


def _words(shape: Shape, values: Sequence[int]) -> npt.NDArray[np.uint64]:
    words = np.zeros((shape.blocks, shape.words), np.uint64)
    for value in values:
        h = hash_of(BIGINT, value)
        assert h is not None
        words[shape.block(h)] |= np.array(shape.masks(h), np.uint64)
    return words


def _holds(shape: Shape, words: npt.NDArray[np.uint64], value: int) -> bool:
    h = hash_of(BIGINT, value)
    assert h is not None
    masks = np.array(shape.masks(h), np.uint64)
    return bool((words[shape.block(h)] & masks == masks).all())


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
