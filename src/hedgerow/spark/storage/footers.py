"""Reads Parquet footers: the number of rows, the bytes of each column, and the range of its values.

A footer holds no sets of values. So its range replaces collected statistics only for a column with too many values for
a set: its dictionary is too long for one, or Parquet gave the dictionary up because values hardly repeat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import Value, comparable
from hedgerow.core.pruning.block_stats import MAX_DISTINCT, Bound, TermStats
from hedgerow.spark.storage.folder import Folder

_MAX_THREADS = 8
_FIRST_READ_BYTES = 1 << 16  # read from the end of a file at once; a longer footer takes a second read
_RANGED = (kinds.INT, kinds.DECIMAL, kinds.STRING, kinds.BINARY, kinds.DATE, kinds.TIMESTAMP, kinds.TIMESTAMP_NTZ)
# The most bytes that a dictionary of MAX_DISTINCT values takes, with its header and a worst case of compression. Sets
# of texts longer than a thousand bytes are not worth keeping.
_MAX_DICTIONARY_BYTES = {
    "INT32": MAX_DISTINCT * 4 + 256,
    "INT64": MAX_DISTINCT * 8 + 256,
    "BYTE_ARRAY": MAX_DISTINCT * 1024,
}
_MIN_ROWS_FOR_DICTIONARY = 4 * MAX_DISTINCT  # from here on Parquet keeps the dictionary of a column with few values
_REBASED = {b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"}


@dataclass(frozen=True, slots=True)
class Footer:
    """The parts of a Parquet footer that we use.

    `columns`: bytes on disk of each top-level column, its name quoted as in texts; empty if the footer is unreadable.
    `ranges`: the ranges of columns with too many values for a set, where the footer is certain of them.
    """

    rows: int
    columns: Mapping[str, int]
    ranges: Mapping[str, ColumnRange] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """The bounds of a column in one file, as canonical values, and its NULLs."""

    type: Type
    low: Value
    high: Value
    nulls: int


def footers_of(folder: Folder, sizes: Mapping[str, int]) -> list[Footer]:
    """The footers of the files, in the order of `sizes`, which maps names to bytes."""

    def read(name: str) -> Footer:
        return _parse_footer(_read_tail(folder, name, sizes[name]))

    with ThreadPoolExecutor(_MAX_THREADS) as pool:
        return list(pool.map(read, sizes))


def mean_widths(footers: Sequence[Footer]) -> dict[str, float]:
    """The mean bytes of a value, for each column."""
    rows = max(1, sum(f.rows for f in footers))
    names = dict.fromkeys(name for f in footers for name in f.columns)
    return {name: sum(f.columns.get(name, 0) for f in footers) / rows for name in names}


def ranges(footers: Sequence[Footer], schema: Mapping[str, Type]) -> dict[str, TermStats]:
    """Statistics of the columns whose range is known for every file that has rows; entry i describes footer i."""
    full = [f for f in footers if f.rows]
    stats = {}
    for name in full[0].ranges if full else ():
        type_ = schema.get(name)
        by_file = [f.ranges.get(name) for f in footers]
        if type_ and all(r.type == type_ if r else not f.rows for r, f in zip(by_file, footers, strict=True)):
            bounds = [(Bound(r.low), Bound(r.high)) if r else None for r in by_file]
            nulls = [r.nulls if r else 0 for r in by_file]
            stats[name] = TermStats.build(type_, bounds, nulls, sets=[None if r else () for r in by_file])
    return stats


def _read_tail(folder: Folder, name: str, size: int) -> bytes:
    """The end of the file, with the whole footer:  ... footer | length (4 bytes) | PAR1"""
    tail = folder.read_end(name, size, _FIRST_READ_BYTES)
    length = int.from_bytes(tail[-8:-4], "little") + 8
    return tail if length <= len(tail) else folder.read_end(name, size, length)


def _parse_footer(tail: bytes) -> Footer:
    try:
        footer = pq.read_metadata(BytesIO(tail))
        columns = footer.schema.to_arrow_schema().names
    except (pa.ArrowException, OSError):
        return Footer(0, {})  # encrypted, not Parquet, or of an unknown kind
    sizes, chunks = {quote_name(name): 0 for name in columns}, {}
    for i in range(footer.num_columns):
        path = footer.schema.column(i).path  # address.city: its longest prefix that is a column, as names may hold dots
        owner = max((c for c in columns if f"{path}.".startswith(f"{c}.")), key=len)
        here = [footer.row_group(g).column(i) for g in range(footer.num_row_groups)]
        sizes[quote_name(owner)] += sum(c.total_compressed_size for c in here)
        if path == owner:
            chunks[owner] = here
    return Footer(footer.num_rows, sizes, _ranges_in(footer, chunks))


def _ranges_in(footer: pq.FileMetaData, chunks: Mapping[str, list[pq.ColumnChunkMetaData]]) -> dict[str, ColumnRange]:
    if (footer.metadata or {}).keys() & _REBASED:
        return {}
    fields = footer.schema.to_arrow_schema()
    uses_dictionaries = any(c.has_dictionary_page for here in chunks.values() for c in here)
    ranges = {}
    for name, here in chunks.items():
        type_ = Type.of_arrow(fields.field(name).type)
        if type_.kind in _RANGED and any(_has_many_values(c, uses_dictionaries) for c in here):
            try:
                ranges[quote_name(name)] = _range_of_chunks(fields.field(name).type, here)
            except (ValueError, OverflowError, pa.ArrowException, NotImplementedError):
                continue  # no statistics, or a value that Python cannot hold
    return ranges


def _has_many_values(chunk: pq.ColumnChunkMetaData, uses_dictionaries: bool) -> bool:
    """Whether the column has more values here than a set may hold."""
    max_bytes = _MAX_DICTIONARY_BYTES.get(chunk.physical_type)
    if max_bytes is None:
        return False
    if chunk.has_dictionary_page:
        return bool(chunk.data_page_offset - chunk.dictionary_page_offset > max_bytes)
    return uses_dictionaries and chunk.num_values >= _MIN_ROWS_FOR_DICTIONARY


def _range_of_chunks(kind: pa.DataType, chunks: Sequence[pq.ColumnChunkMetaData]) -> ColumnRange:
    ends: list[Value] = []
    nulls = 0
    for chunk in chunks:
        statistics = chunk.statistics
        if statistics is None or not statistics.has_null_count:
            raise ValueError("no statistics")
        nulls += statistics.null_count
        if statistics.has_min_max:
            ends += comparable(pa.array([statistics.min, statistics.max], kind)).to_pylist()
        elif statistics.null_count < chunk.num_values:
            raise ValueError("no range")
    return ColumnRange(Type.of_arrow(kind), min(ends), max(ends), nulls)
