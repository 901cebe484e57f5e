"""What Parquet footers say without reading a row: rows, the bytes of each column, and where values range.

A footer has no sets of values, so its range is all there is to know only where a column has many: its dictionary is too
long for a few, or Parquet gave it up because values hardly repeat.
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

_AT_ONCE = 8
_GUESS = 1 << 16  # bytes of a footer that are read without asking for its length first
_RANGED = (kinds.INT, kinds.DECIMAL, kinds.STRING, kinds.BINARY, kinds.DATE, kinds.TIMESTAMP, kinds.TIMESTAMP_NTZ)
# The longest a dictionary of few values can be, its header and what compression may add included; texts longer than a
# thousand bytes make no set worth keeping.
_FEW = {"INT32": MAX_DISTINCT * 4 + 256, "INT64": MAX_DISTINCT * 8 + 256, "BYTE_ARRAY": MAX_DISTINCT * 1024}
_REPEATING = 4 * MAX_DISTINCT  # rows from which on a dictionary of few values always pays
_REBASED = {b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"}


@dataclass(frozen=True, slots=True)
class Footer:
    """`columns`: bytes on disk of each top-level column, its name quoted as in texts; empty where we cannot tell.

    `ranges`: of those that have many values and a range that is certain.
    """

    rows: int
    columns: Mapping[str, int]
    ranges: Mapping[str, Range] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Range:
    """Canonical values."""

    type: Type
    low: Value
    high: Value
    nulls: int


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


def ranges(footers: Sequence[Footer], schema: Mapping[str, Type]) -> dict[str, TermStats]:
    """Statistics of the columns of which every file that has rows knows the range; entry i is footer i."""
    full = [f for f in footers if f.rows]
    found = {}
    for name in full[0].ranges if full else ():
        type_ = schema.get(name)
        of = [f.ranges.get(name) for f in footers]
        if type_ and all(r.type == type_ if r else not f.rows for r, f in zip(of, footers, strict=True)):
            bounds = [(Bound(r.low), Bound(r.high)) if r else None for r in of]
            nulls = [r.nulls if r else 0 for r in of]
            found[name] = TermStats.build(type_, bounds, nulls, sets=[None if r else () for r in of])
    return found


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
    found, chunks = {quote_name(name): 0 for name in columns}, {}
    for i in range(footer.num_columns):
        path = footer.schema.column(i).path  # address.city: the longest column that begins it, for names may hold dots
        owner = max((c for c in columns if f"{path}.".startswith(f"{c}.")), key=len)
        here = [footer.row_group(g).column(i) for g in range(footer.num_row_groups)]
        found[quote_name(owner)] += sum(c.total_compressed_size for c in here)
        if path == owner:
            chunks[owner] = here
    return Footer(footer.num_rows, found, _ranges(footer, chunks))


def _ranges(footer: pq.FileMetaData, chunks: Mapping[str, list[pq.ColumnChunkMetaData]]) -> dict[str, Range]:
    if (footer.metadata or {}).keys() & _REBASED:
        return {}
    fields = footer.schema.to_arrow_schema()
    uses_dictionaries = any(c.has_dictionary_page for here in chunks.values() for c in here)
    found = {}
    for name, here in chunks.items():
        type_ = Type.of_arrow(fields.field(name).type)
        if type_.kind in _RANGED and any(_many(c, uses_dictionaries) for c in here):
            try:
                found[quote_name(name)] = _range(fields.field(name).type, here)
            except (ValueError, OverflowError, pa.ArrowException, NotImplementedError):
                continue  # no statistics, or a value that Python cannot hold
    return found


def _many(chunk: pq.ColumnChunkMetaData, uses_dictionaries: bool) -> bool:
    """Whether the column has more values here than a set may hold."""
    few = _FEW.get(chunk.physical_type)
    if few is None:
        return False
    if chunk.has_dictionary_page:
        return bool(chunk.data_page_offset - chunk.dictionary_page_offset > few)
    return uses_dictionaries and chunk.num_values >= _REPEATING


def _range(kind: pa.DataType, chunks: Sequence[pq.ColumnChunkMetaData]) -> Range:
    ends: list[Value] = []
    nulls = 0
    for chunk in chunks:
        known = chunk.statistics
        if known is None or not known.has_null_count:
            raise ValueError("no statistics")
        nulls += known.null_count
        if known.has_min_max:
            ends += comparable(pa.array([known.min, known.max], kind)).to_pylist()
        elif known.null_count < chunk.num_values:
            raise ValueError("no range")
    return Range(Type.of_arrow(kind), min(ends), max(ends), nulls)
