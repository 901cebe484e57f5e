"""Reads a Parquet footer: the number of rows, the bytes of each column, and the range or the set of its values.

A fact that a footer states need not be collected from the rows. For a column with many values, a footer states their
range. For a column with few values, the dictionaries of its chunks have the set of values:

    a short dictionary that all pages use                   its values
    a long dictionary, or none because of many values       minimum and maximum
    any other column, such as floats                        nothing
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import Value, comparable
from hedgerow.core.pruning.block_stats import MAX_DISTINCT
from hedgerow.core.pruning.words import words_in_texts
from hedgerow.spark.storage.dictionary_page import dictionary_place, dictionary_values
from hedgerow.spark.storage.folder import Folder

UNREADABLE = -1
ReadParts = Callable[[Sequence[tuple[int, int]]], list[bytes]]
_FIRST_READ_BYTES = 1 << 16  # read at once from the end of a file; a longer footer takes a second read
_RANGED = (
    *(kinds.INT, kinds.DECIMAL, kinds.STRING, kinds.BINARY, kinds.BOOLEAN),
    *(kinds.DATE, kinds.TIME, kinds.TIMESTAMP, kinds.TIMESTAMP_NTZ),
)
# The largest size of a dictionary of MAX_DISTINCT values, with its header, if compression makes it no smaller. Sets of
# texts longer than a thousand bytes are not worth their space.
_MAX_DICTIONARY_BYTES = {
    "INT32": MAX_DISTINCT * 4 + 256,
    "INT64": MAX_DISTINCT * 8 + 256,
    "BYTE_ARRAY": MAX_DISTINCT * 1024,
}
_MIN_ROWS_FOR_DICTIONARY = 4 * MAX_DISTINCT  # with so many rows, Parquet keeps the dictionary of a few values
_REBASED = {b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"}


@dataclass(frozen=True, slots=True)
class Footer:
    """The facts of a Parquet footer, on the whole file or on one row group.

    Args:
        rows: UNREADABLE if the footer cannot be read.
        columns: bytes on disk of each top-level column, by its quoted name.
        unpacked: the same after decompression.
        values: the columns whose values the file states with certainty.
        start: the byte at which a row group begins.
    """

    rows: int
    columns: Mapping[str, int]
    unpacked: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, ColumnValues] = field(default_factory=dict)
    start: int = 0


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """The values of a column in one file: bounds as canonical values, the number of NULLs, and all values if few.

    The bounds are None if all rows are NULL. `words`: the words in its texts, if they are known and few."""

    type: Type
    low: Value
    high: Value
    few: frozenset[Value] | None
    nulls: int
    words: frozenset[str] | None = None


def read_tail(folder: Folder, name: str, size: int) -> bytes:
    """Return the end of the file with the whole footer:  ... footer | length (4 bytes) | PAR1"""
    tail = folder.read_end(name, size, _FIRST_READ_BYTES)
    length = int.from_bytes(tail[-8:-4], "little") + 8
    return tail if length <= len(tail) else folder.read_end(name, size, length)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The quoted names of the columns whose values are wanted. `by_group`: of each row group, else of the whole file.

    Args:
        sets_of: their bounds, or their sets of values if these are few: one read for each chunk.
        words_of: of these also the words, which takes a read, too.
        bounds_of: their bounds are enough, even if they have few values.
    """

    sets_of: Collection[str] = ()
    words_of: Collection[str] = ()
    bounds_of: Collection[str] = ()
    by_group: bool = False

    def has(self, name: str) -> bool:
        return name in self.sets_of or name in self.words_of or name in self.bounds_of


def parse_footer(tail: bytes, wanted: Wanted, read_parts: ReadParts) -> list[Footer]:
    """Return the facts of a footer.

    `read_parts`: reads parts of the same file, each a place and a length. A file that cannot be read, and one whose row
    groups a scan cannot tell apart, has one entry.
    """
    try:
        footer = pq.read_metadata(BytesIO(tail))
        columns = footer.schema.to_arrow_schema().names
    except (pa.ArrowException, OSError):
        return [Footer(UNREADABLE, {})]  # not Parquet, encrypted, or of an unknown kind
    every = range(footer.num_row_groups)
    if wanted.by_group and footer.num_columns and _can_be_told_apart(footer):
        return [_facts(footer, columns, [g], wanted, read_parts) for g in every]
    return [_facts(footer, columns, every, wanted, read_parts)]


def _can_be_told_apart(footer: pq.FileMetaData) -> bool:
    """True if row groups follow each other: a scan reads those whose middle lies in its range of bytes."""
    groups = list(map(footer.row_group, range(footer.num_row_groups)))
    starts = list(map(_start, groups))
    bytes_of = [sum(g.column(i).total_compressed_size for i in range(g.num_columns)) for g in groups]
    middles = [start + size // 2 for start, size in zip(starts, bytes_of, strict=True)]
    return all(a <= b for a, b in zip(starts, middles, strict=True)) and all(map(int.__lt__, middles, starts[1:]))


def _start(group: pq.RowGroupMetaData) -> int:
    first = group.column(0)
    page, dictionary = int(first.data_page_offset), first.dictionary_page_offset
    return min(page, int(dictionary)) if dictionary else page


def _facts(
    footer: pq.FileMetaData, columns: Sequence[str], groups: Sequence[int], wanted: Wanted, read_parts: ReadParts
) -> Footer:
    sizes, chunks = {quote_name(name): 0 for name in columns}, {}
    unpacked = dict(sizes)
    paths = [footer.schema.column(i).path for i in range(footer.num_columns)]
    times = Counter(paths)
    for i, path in enumerate(paths):  # address.city: the longest prefix that is a column, as names may have dots
        owner = max((c for c in columns if f"{path}.".startswith(f"{c}.")), key=len)
        here = [footer.row_group(g).column(i) for g in groups]
        sizes[quote_name(owner)] += sum(c.total_compressed_size for c in here)
        unpacked[quote_name(owner)] += sum(c.total_uncompressed_size for c in here)
        if path == owner and times[path] == 1:  # beside a column `a.b`, a struct `a` may have a field `b`
            chunks[owner] = here
    rows = sum(footer.row_group(g).num_rows for g in groups)
    start = _start(footer.row_group(groups[0])) if groups and footer.num_columns else 0
    return Footer(rows, sizes, unpacked, _values_in(footer, chunks, wanted, read_parts), start)


def _values_in(
    footer: pq.FileMetaData, chunks: Mapping[str, list[pq.ColumnChunkMetaData]], wanted: Wanted, read_parts: ReadParts
) -> dict[str, ColumnValues]:
    if (footer.metadata or {}).keys() & _REBASED:
        return {}
    fields = footer.schema.to_arrow_schema()
    uses_dictionaries = any(c.has_dictionary_page for here in chunks.values() for c in here)
    values = {}
    for name, here in chunks.items():
        kind = fields.field(name).type
        try:
            if Type.of_arrow(kind).kind not in _RANGED or not wanted.has(quote_name(name)):
                continue
            is_short = wanted.by_group and any(_is_short(c) for c in here)
            if (
                quote_name(name) in wanted.bounds_of
                or is_short
                or any(_has_many_values(c, uses_dictionaries) for c in here)
            ):
                values[quote_name(name)] = _range_of_chunks(kind, here)
            elif quote_name(name) in wanted.sets_of:
                values[quote_name(name)] = _set_of_chunks(kind, here, read_parts)
            if pa.types.is_string(kind) and quote_name(name) in wanted.words_of and quote_name(name) in values:
                values[quote_name(name)] = _with_words(values[quote_name(name)], kind, here, read_parts)
        except (ValueError, OverflowError, pa.ArrowException, NotImplementedError):
            continue  # no statistics, pages without a dictionary, or a value that Python cannot hold
    return values


def _has_many_values(chunk: pq.ColumnChunkMetaData, uses_dictionaries: bool) -> bool:
    """True if the column has more values in this chunk than a set may have."""
    max_bytes = _MAX_DICTIONARY_BYTES.get(chunk.physical_type)
    if max_bytes is None or _nulls(chunk) == chunk.num_values:
        return False
    if chunk.has_dictionary_page:
        return bool(chunk.data_page_offset - chunk.dictionary_page_offset > max_bytes)
    return uses_dictionaries and chunk.num_values >= _MIN_ROWS_FOR_DICTIONARY


def _is_short(chunk: pq.ColumnChunkMetaData) -> bool:
    """True if the column has too few values in this chunk for a dictionary, as at the end of a file."""
    return not chunk.has_dictionary_page and chunk.num_values < _MIN_ROWS_FOR_DICTIONARY


def _range_of_chunks(kind: pa.DataType, chunks: Sequence[pq.ColumnChunkMetaData]) -> ColumnValues:
    bounds = comparable(pa.array([bound for chunk in chunks for bound in _bounds(chunk)], kind)).to_pylist()
    low, high = min(bounds, default=None), max(bounds, default=None)
    return ColumnValues(Type.of_arrow(kind), low, high, None, sum(map(_nulls, chunks)))


def _set_of_chunks(kind: pa.DataType, chunks: Sequence[pq.ColumnChunkMetaData], read_parts: ReadParts) -> ColumnValues:
    with_values = [c for c in chunks if _nulls(c) < c.num_values]
    if pa.types.is_boolean(kind):
        arrays = [pa.array(_bounds(c), kind) for c in with_values]
    else:
        arrays = _dictionaries(kind, with_values, read_parts)
    values = frozenset(v for array in arrays for v in comparable(array).to_pylist())
    few = values if len(values) <= MAX_DISTINCT else None
    low, high = min(values, default=None), max(values, default=None)
    return ColumnValues(Type.of_arrow(kind), low, high, few, sum(map(_nulls, chunks)))


def _with_words(
    known: ColumnValues, kind: pa.DataType, chunks: Sequence[pq.ColumnChunkMetaData], read_parts: ReadParts
) -> ColumnValues:
    """Return the values with the words of the texts; without words if a text is in no dictionary."""
    if known.few is not None:
        return replace(known, words=words_in_texts(known.few))
    with_values = [c for c in chunks if _nulls(c) < c.num_values]
    with suppress(ValueError, pa.ArrowException):
        arrays = _dictionaries(kind, with_values, read_parts)
        return replace(known, words=words_in_texts(v for array in arrays for v in array.to_pylist()))
    return known


def _dictionaries(kind: pa.DataType, chunks: Sequence[pq.ColumnChunkMetaData], read_parts: ReadParts) -> list[pa.Array]:
    pages = read_parts([dictionary_place(c) for c in chunks]) if chunks else []
    return [dictionary_values(kind, c, page) for c, page in zip(chunks, pages, strict=True)]


def _nulls(chunk: pq.ColumnChunkMetaData) -> int:
    if chunk.statistics is None or not chunk.statistics.has_null_count:
        raise ValueError("no statistics")
    return int(chunk.statistics.null_count)


def _bounds(chunk: pq.ColumnChunkMetaData) -> list[Value]:
    """Return minimum and maximum; the empty list if the chunk is all NULL."""
    if chunk.statistics is not None and chunk.statistics.has_min_max:
        return [chunk.statistics.min, chunk.statistics.max]
    if _nulls(chunk) < chunk.num_values:
        raise ValueError("no range")
    return []
