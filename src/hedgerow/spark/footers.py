"""Sizes from Parquet footers: rows, and the bytes of each column, without reading a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from hedgerow.core.expr import quote_name
from hedgerow.spark.folder import Folder

_AT_ONCE = 8
_GUESS = 1 << 16  # bytes of a footer that are read without asking for its length first


@dataclass(frozen=True, slots=True)
class Footer:
    """`columns`: bytes on disk of each top-level column, its name quoted as in texts; empty where we cannot tell."""

    rows: int
    columns: Mapping[str, int]


def footers_of(folder: Folder, sizes: Mapping[str, int]) -> list[Footer]:
    """One for each file, given with its size."""

    def read(name: str) -> Footer:
        return _parse(_tail(folder, name, sizes[name]))

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(read, sizes))


def mean_widths(footers: Sequence[Footer]) -> dict[str, float]:
    """Bytes of a column's value, on average."""
    rows = max(1, sum(f.rows for f in footers))
    names = dict.fromkeys(name for f in footers for name in f.columns)
    return {name: sum(f.columns.get(name, 0) for f in footers) / rows for name in names}


def _tail(folder: Folder, name: str, size: int) -> bytes:
    """The end of the file, the whole footer in it:  ... footer | length (4 bytes) | PAR1"""
    tail = folder.read_end(name, size, _GUESS)
    length = int.from_bytes(tail[-8:-4], "little") + 8
    return tail if length <= len(tail) else folder.read_end(name, size, length)


def _parse(tail: bytes) -> Footer:
    try:
        footer = pq.read_metadata(BytesIO(tail))
        columns = footer.schema.to_arrow_schema().names
    except (pa.ArrowException, OSError):
        return Footer(0, {})  # encrypted, no Parquet at all, or written in a way we do not know
    found = {quote_name(name): 0 for name in columns}
    for i in range(footer.num_columns):
        path = footer.schema.column(i).path  # address.city: the longest column that begins it, for names may hold dots
        owner = max((c for c in columns if f"{path}.".startswith(f"{c}.")), key=len)
        groups = range(footer.num_row_groups)
        found[quote_name(owner)] += sum(footer.row_group(g).column(i).total_compressed_size for g in groups)
    return Footer(footer.num_rows, found)
