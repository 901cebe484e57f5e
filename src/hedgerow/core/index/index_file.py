"""The file of a block index: an Arrow table with a row for each array group of the index (rows, term, feature, ...).

The groups have different lengths, so each is an Arrow stream inside its row. Any Arrow tool can read the outer table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.core.errors import FormatError
from hedgerow.core.index.block_index import BlockIndex, CellIndex, GroupIndex
from hedgerow.core.index.file_choice import CellParts
from hedgerow.core.on_use import OnUse
from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.predicate_json import decode_predicate, encode
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import Value, from_arrow, to_arrow
from hedgerow.core.pruning.block_stats import NotedCondition, Stats, TermStats
from hedgerow.core.pruning.distinct_sets import DistinctSets
from hedgerow.core.pruning.value_codes import MAX_LISTED, ArrowValues

MAGIC = b"hedgerow-index"
DIGEST = b"hedgerow-digest"
INDEX_FORMAT = 1
_VIEWS = "blocks", "cells", "groups"
_OF_WORDS = "words_"  # prefix of the parts that describe a term's words
_SCHEMA = pa.schema(
    [("view", pa.string()), ("part", pa.string()), ("name", pa.string()), ("meta", pa.string()), ("data", pa.binary())]
)


@dataclass(frozen=True, slots=True)
class _Part:
    """One row of the file. `view`: blocks, cells or groups; `part`: what `arrays` has; `name`: a term or condition."""

    view: str
    part: str
    name: str
    meta: dict[str, Any]
    arrays: dict[str, pa.Array]


def index_bytes(index: BlockIndex) -> bytes:
    parts = list(_parts("blocks", index.blocks))
    if index.cells is not None:
        arrays = {"cell": index.cells.parts.cell, "place": index.cells.parts.place, "file": index.cells.parts.file}
        parts.append(_Part("cells", "parts", "", {}, {key: pa.array(a) for key, a in arrays.items()}))
        parts += _parts("cells", index.cells.stats)
    if index.groups is not None:
        arrays = {"block": index.groups.block, "start": index.groups.start}
        parts.append(_Part("groups", "places", "", {}, {key: pa.array(a) for key, a in arrays.items()}))
        parts += _parts("groups", index.groups.stats)
    rows = [
        {"view": p.view, "part": p.part, "name": p.name, "meta": json.dumps(p.meta), "data": _stream(p.arrays)}
        for p in parts
    ]
    schema = _SCHEMA.with_metadata({MAGIC: str(INDEX_FORMAT), DIGEST: _digest(rows)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema))
    return bytes(sink.getvalue())


def index_of_bytes(data: bytes, where: str = "these bytes") -> BlockIndex:
    try:
        table = pa.ipc.open_file(pa.py_buffer(data)).read_all()
        table.validate(full=True)  # damaged offsets would crash the process
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FormatError(f"{where} is not a block index, or it is damaged") from error
    version = (table.schema.metadata or {}).get(MAGIC)
    if version is None:
        raise FormatError(f"{where} is an Arrow file, but not a block index that Hedgerow wrote")
    if not version.isdigit() or int(version) > INDEX_FORMAT:
        raise FormatError(
            f"{where} was written by a newer Hedgerow (format {version.decode()}, this one reads {INDEX_FORMAT})"
        )
    try:
        rows = _rows_of(table)
        if table.schema.metadata.get(DIGEST) != _digest(rows):
            raise FormatError(f"{where} is a damaged block index")
        blocks, cells, groups = (_View.of_rows(where, [r for r in rows if r["view"] == view]) for view in _VIEWS)
        return BlockIndex(
            blocks.stats(),
            CellIndex(cells.stats(), cells.parts()) if cells.content else None,
            groups.groups() if groups.content else None,
        )
    except FormatError:
        raise
    except (pa.ArrowException, KeyError, ValueError, TypeError, IndexError) as error:
        raise FormatError(f"{where} is a damaged block index") from error


def _rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows with their data as buffers, so that no byte is copied."""
    columns = {name: table[name].to_pylist() for name in table.column_names if name != "data"}
    columns["data"] = [value.as_buffer() for chunk in table["data"].chunks for value in chunk]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _digest(rows: list[dict[str, Any]]) -> bytes:
    """Return a checksum of all parts. Arrow has none, and one wrong bit could skip a block with matching rows."""
    digest = hashlib.sha256()
    for row in rows:
        *words, data = row.values()
        digest.update(json.dumps([*words, len(data)]).encode())
        digest.update(data)
    return digest.hexdigest().encode()


def _parts(view: str, stats: Stats) -> Iterator[_Part]:
    yield _Part(view, "rows", "", {}, {"rows": pa.array(stats.rows)})
    for name, t in stats.terms.items():
        yield from _parts_of_term(view, name, t)
        if t.words:
            yield from _parts_of_term(view, name, t.words, _OF_WORDS)
    for name, condition in stats.conditions.items():
        yield _Part(view, "feature", name, encode(condition.predicate), {"bits": pa.array(condition.bits)})


def _parts_of_term(view: str, name: str, t: TermStats, of: str = "") -> Iterator[_Part]:
    meta = {"type": str(t.type)}
    yield _Part(view, of + "values", name, meta, {"values": _stored_values(t)})
    entries = {"low": t.low, "high": t.high, "nulls": t.nulls, "nan": t.nan}
    if t.sets:
        entries["set_of"] = t.sets.set_of
        yield _Part(view, of + "set_offsets", name, {}, {"offsets": pa.array(t.sets.offsets)})
        yield _Part(view, of + "set_codes", name, {}, {"codes": pa.array(t.sets.codes)})
    yield _Part(view, of + "term", name, meta, {key: pa.array(a) for key, a in entries.items()})


def _stored_values(t: TermStats) -> pa.Array:
    if isinstance(t.values, ArrowValues) and t.type.kind != kinds.DECIMAL:
        return t.values.array.cast(to_arrow(t.type.kind, []).type)
    return to_arrow(t.type.kind, t.values)


def _values(kind: str, stored: pa.Array) -> Sequence[Value]:
    if len(stored) <= MAX_LISTED:
        return from_arrow(kind, stored)
    return ArrowValues(_as_decimals(stored) if kind == kinds.DECIMAL else stored)


def _as_decimals(texts: pa.Array) -> pa.Array:
    """Return the numbers that are stored as texts, because each has a scale of its own; here all have the largest."""
    points, lengths = pc.find_substring(texts, "."), pc.utf8_length(texts)
    scales = pc.if_else(pc.less(points, 0), 0, pc.subtract(pc.subtract(lengths, points), 1))
    return texts.cast(pa.decimal256(76, pc.max(scales).as_py()))


@dataclass(frozen=True)
class _View:
    """The metadata and stored arrays of one view of the file, by part and name."""

    where: str
    content: dict[tuple[str, str], tuple[dict[str, Any], pa.Buffer]]

    @staticmethod
    def of_rows(where: str, rows: list[dict[str, Any]]) -> _View:
        return _View(where, {(r["part"], r["name"]): (json.loads(r["meta"]), r["data"]) for r in rows})

    def stats(self) -> Stats:
        """Return the statistics; those of a term are decoded when they are first used."""
        rows = self._copy("rows", "", "rows")
        terms = {name: partial(self._term, name, len(rows)) for part, name in self.content if part == "term"}
        conditions = {
            name: NotedCondition(decode_predicate(meta), self._copy(part, name, "bits"))
            for (part, name), (meta, _) in self.content.items()
            if part == "feature"
        }
        self._check_lengths(len(rows), *(condition.bits for condition in conditions.values()))
        return Stats(rows, OnUse(terms), conditions)

    def parts(self) -> CellParts:
        return CellParts(*(self._copy("parts", "", key) for key in ("cell", "place", "file")))

    def groups(self) -> GroupIndex:
        stats, block, start = self.stats(), *(self._copy("places", "", key) for key in ("block", "start"))
        self._check_lengths(len(stats), block, start)
        return GroupIndex(stats, block, start)

    def _copy(self, part: str, name: str, key: str) -> Any:
        return np.array(_arrays(self.content[part, name][1])[key].to_numpy(zero_copy_only=False))

    def _term(self, name: str, size: int) -> TermStats:
        try:
            return self._decoded(name, size)
        except (pa.ArrowException, KeyError, ValueError, TypeError, IndexError) as error:
            raise FormatError(f"{self.where} is a damaged block index") from error

    def _decoded(self, name: str, size: int, of: str = "") -> TermStats:
        meta, stored = self.content[of + "term", name]
        type_, entries = Type.parse(meta["type"]), _arrays(stored)
        low, high, nulls, nan = (_entries(entries[key]) for key in ("low", "high", "nulls", "nan"))
        self._check_lengths(size, low, high, nulls, nan)
        sets = None
        if "set_of" in entries:
            offsets, codes = (
                self._copy(of + "set_offsets", name, "offsets"),
                self._copy(of + "set_codes", name, "codes"),
            )
            sets = DistinctSets(_entries(entries["set_of"]), offsets, codes)
        values = _values(type_.kind, _arrays(self.content[of + "values", name][1])["values"])
        has_words = not of and (f"{_OF_WORDS}term", name) in self.content
        words = self._decoded(name, size, _OF_WORDS) if has_words else None
        return TermStats(type_, values, low, high, nulls, nan, sets, words)

    def _check_lengths(self, size: int, *arrays: Any) -> None:
        if any(len(array) != size for array in arrays):
            raise FormatError(f"{self.where} is damaged: its parts have different numbers of blocks")


def _entries(stored: pa.Array) -> Any:
    """Return an array with a value for each entry; if all are equal, as in most columns without NULLs, it needs one."""
    values = stored.to_numpy(zero_copy_only=False)
    if len(values) and (values == values[0]).all():
        return np.broadcast_to(values[:1].copy(), len(values))
    return np.array(values)


def _stream(arrays: dict[str, pa.Array]) -> bytes:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch(list(arrays.values()), names=list(arrays))
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _arrays(data: pa.Buffer) -> dict[str, pa.Array]:
    table = pa.ipc.open_stream(data).read_all().combine_chunks()
    return {name: table[name].combine_chunks() for name in table.column_names}
