"""Reads the filters of look-ups: a few row groups of the Parquet files that `write/build_filter` wrote.

Small filters are also written here, without Spark, when several are joined.

Each block and each footer has a digest, because Arrow may end the process if it reads a damaged footer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from io import BytesIO, RawIOBase
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hedgerow.core.errors import FormatError, HedgerowError
from hedgerow.core.pruning.value_filter import Block, Shape
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.footer import read_tail

_MAX_THREADS = 8
ROW_GROUP_BYTES = 64 << 10
DIGEST_BYTES = 8  # of a block


class FilterFile(NamedTuple):
    """A file of a filter, with the digest of its footer."""

    name: str
    size: int
    footer: str


@dataclass(frozen=True)
class FilterFiles:
    """The filter files of a column in the folder `name`: each row has a block; its digest follows its low bytes.

    `files`: in the order of the blocks; each has `per_file` blocks, the last one the rest."""

    folder: Folder
    name: str
    files: tuple[FilterFile, ...]
    shape: Shape
    per_file: int
    _footers: dict[int, pq.FileMetaData] = field(default_factory=dict, repr=False, compare=False)

    def blocks(self, numbers: Iterable[int]) -> dict[int, Block]:
        """Return the blocks with these numbers, by number; FormatError or StorageError if a file is damaged."""
        by_file: dict[int, list[int]] = {}
        for number in sorted(set(numbers)):
            by_file.setdefault(number // self.per_file, []).append(number)
        if len(by_file) == 1:
            return self._read(*by_file.popitem())
        with ThreadPoolExecutor(_MAX_THREADS) as pool:
            read = pool.map(self._read, by_file, by_file.values())
            return {number: blocks for of_file in read for number, blocks in of_file.items()}

    def all_blocks(self) -> list[Block]:
        """Return all blocks in order."""
        return list(self.blocks(range(self.shape.blocks)).values())

    def _read(self, file: int, numbers: list[int]) -> dict[int, Block]:
        try:
            return self._parsed(file, numbers)
        except HedgerowError:
            raise
        except Exception as error:  # a damaged file misleads Arrow in any way: it may return NULLs, or other types
            raise FormatError(f"the filter {self.name} is damaged") from error

    def _parsed(self, file: int, numbers: list[int]) -> dict[int, Block]:
        name, size, _ = self.files[file]
        footer = self._footer(file)
        ends = np.cumsum([footer.row_group(i).num_rows for i in range(footer.num_row_groups)])
        if footer.num_rows != min(self.per_file, self.shape.blocks - file * self.per_file):
            raise FormatError(f"the filter {self.name} is damaged")
        rows = [number - file * self.per_file for number in numbers]
        group_of = np.searchsorted(ends, rows, side="right").tolist()
        groups = sorted(set(group_of))
        parts = [_place(footer.row_group(group)) for group in groups]
        contents = self.folder.read_parts(f"{self.name}/{name}", size, parts)
        blocks = {
            group: _blocks(footer, group, start, data, size)
            for group, (start, _), data in zip(groups, parts, contents, strict=True)
        }
        return {
            number: self._unsealed(number, blocks[group][row - int(ends[group]) + len(blocks[group])])
            for number, row, group in zip(numbers, rows, group_of, strict=True)
        }

    def _footer(self, file: int) -> pq.FileMetaData:
        if file not in self._footers:
            name, size, footer = self.files[file]
            tail = _read_footer(self.folder, f"{self.name}/{name}", size)
            if _digest(tail) != footer:
                raise FormatError(f"the filter {self.name} is damaged")
            self._footers[file] = pq.read_metadata(BytesIO(tail))
        return self._footers[file]

    def _unsealed(self, number: int, sealed: Block) -> Block:
        gaps, low, digest = sealed[0], sealed[1][:-DIGEST_BYTES], sealed[1][-DIGEST_BYTES:]
        if seal(self.name, number, gaps + low) != digest:
            raise FormatError(f"the filter {self.name} is damaged")
        return gaps, low


def write_filter(folder: Folder, name: str, shape: Shape, blocks: Sequence[Block]) -> FilterFiles:
    """Write a small filter as one file into the folder `name`, as `build_filter` does."""
    size, file = sum(len(gaps) + len(low) for gaps, low in blocks), "part-00000.parquet"
    sealed = [low + seal(name, number, gaps + low) for number, (gaps, low) in enumerate(blocks)]
    gaps = pa.array([gaps for gaps, _ in blocks], pa.binary())
    table = pa.table({"block": pa.array(range(len(blocks))), "gaps": gaps, "low": pa.array(sealed, pa.binary())})
    rows = max(1, len(blocks) * ROW_GROUP_BYTES // max(1, size))
    sink = BytesIO()
    pq.write_table(table, sink, rows, use_dictionary=False, compression="zstd", write_statistics=False)
    folder.write(f"{name}/{file}", sink.getvalue())
    folder.write(f"{name}/_SUCCESS", b"")
    return files_written(folder, name, {file: sink.tell()}, shape, len(blocks))


def files_written(folder: Folder, name: str, sizes: Mapping[str, int], shape: Shape, per_file: int) -> FilterFiles:
    """Return a filter that was just written as files of these sizes."""
    files = (
        (file, size, _digest(_read_footer(folder, f"{name}/{file}", size))) for file, size in sorted(sizes.items())
    )
    return FilterFiles(folder, name, tuple(map(FilterFile._make, files)), shape, per_file)


def _read_footer(folder: Folder, path: str, size: int) -> bytes:
    tail = read_tail(folder, path, size)
    return tail[-int.from_bytes(tail[-8:-4], "little") - 8 :]


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def seal(name: str, number: int, data: bytes) -> bytes:
    """Return the digest of a block."""
    return sha256(data + f"{name}:{number}".encode()).digest()[:DIGEST_BYTES]


def _place(group: pq.RowGroupMetaData) -> tuple[int, int]:
    """Return where the gaps and low bytes of a row group begin, and their length."""
    gaps, low = group.column(1), group.column(2)
    return gaps.data_page_offset, low.data_page_offset + low.total_compressed_size - gaps.data_page_offset


def _blocks(footer: pq.FileMetaData, group: int, start: int, data: bytes, size: int) -> list[Block]:
    file = pq.ParquetFile(pa.PythonFile(_Part(start, data, size), "r"), metadata=footer)
    table = file.read_row_group(group, columns=["gaps", "low"], use_threads=False)
    return list(zip(table["gaps"].to_pylist(), table["low"].to_pylist(), strict=True))


class _Part(RawIOBase):
    """A file of which only one part is in memory; other parts are not read."""

    def __init__(self, start: int, data: bytes, size: int) -> None:
        self._start, self._data, self._size, self._at = start, data, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        begin = self._at - self._start
        end = len(self._data) if size < 0 else begin + size
        if begin < 0 or end > len(self._data):
            raise ValueError("this part of the file was not read")
        self._at += end - begin
        return self._data[begin:end]
