"""Filters written without Spark are read as they were written; a damaged one is refused, whatever byte is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, cast

import numpy as np
import pytest

from hedgerow.core.errors import HedgerowError
from hedgerow.core.pruning.value_filter import Block, Shape
from hedgerow.spark.storage.filter_files import FilterFiles, write_filter
from hedgerow.spark.storage.folder import Folder


class LocalFolder(Folder):
    """A folder on the local disk, read and written without a JVM."""

    def __init__(self, root: Path) -> None:
        super().__init__(cast(Any, None), str(root))

    def write(self, name: str, data: bytes, new: bool = False) -> bool:
        place = Path(self.root, name)
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(data)
        return True

    def read_end(self, name: str, size: int, length: int) -> bytes:
        return Path(self.root, name).read_bytes()[max(0, size - length) :]

    def read_parts(self, name: str, size: int, parts: Sequence[tuple[int, int]]) -> list[bytes]:
        data = Path(self.root, name).read_bytes()
        return [data[max(0, start) : max(0, start) + max(0, length)] for start, length in parts]


def _filter(folder: Folder, name: str, blocks: int, low_bytes: int) -> tuple[FilterFiles, list[Block]]:
    shape, random = Shape(blocks * 50, 7, 50, low_bytes), np.random.default_rng(blocks)
    made = [shape.packed(np.flatnonzero(random.random(shape.block_width) < 0.3)) for _ in range(blocks)]
    return write_filter(folder, name, shape, made), made


@pytest.mark.parametrize(("blocks", "low_bytes"), [(1, 0), (3, 2), (5000, 0), (2000, 1)])
def test_blocks_are_read_as_they_were_written(tmp_path: Path, blocks: int, low_bytes: int) -> None:
    stored, made = _filter(LocalFolder(tmp_path), "lookup-1", blocks, low_bytes)
    assert stored.all_blocks() == made
    some = Random(blocks).sample(range(blocks), min(blocks, 40))
    assert stored.blocks(some) == {number: made[number] for number in some}


def test_a_damaged_filter_is_refused(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    stored, made = _filter(folder, "lookup-1", 40, 1)
    place, refused = tmp_path / "lookup-1" / stored.files[0].name, 0
    whole = place.read_bytes()
    flipped = [*range(0, len(whole), 23), *range(len(whole) - 700, len(whole))]  # the footer most of all
    damaged = [whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :] for at in flipped]
    damaged += [whole[:at] for at in range(0, len(whole), 300)] + [whole[at:] for at in range(1, len(whole), 300)]
    for data in damaged:
        place.write_bytes(data)
        for numbers in ([0], [3, 39]):
            try:
                read = FilterFiles(folder, stored.name, stored.files, stored.shape, stored.per_file).blocks(numbers)
            except HedgerowError:
                refused += 1
            else:
                assert read == {number: made[number] for number in numbers}
    assert refused > len(damaged)


def test_a_filter_under_another_name_is_refused(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    stored, _ = _filter(folder, "lookup-1", 3, 0)
    (tmp_path / "lookup-1").rename(tmp_path / "lookup-2")
    with pytest.raises(HedgerowError, match="the filter lookup-2 is damaged"):
        FilterFiles(folder, "lookup-2", stored.files, stored.shape, stored.per_file).all_blocks()
