"""The file of a block index: an Arrow table with a row for each array group of the index (rows, term, feature, ...).

The groups have different lengths, so each is an Arrow stream inside its row. Any Arrow tool can read the outer table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hedgerow.core.errors import FormatError
from hedgerow.core.index.block_index import BlockIndex, CellIndex
from hedgerow.core.index.file_choice import CellParts
from hedgerow.core.predicates.predicate_json import decode_predicate, encode
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import from_arrow, to_arrow
from hedgerow.core.pruning.block_stats import NotedCondition, Stats, TermStats
from hedgerow.core.pruning.distinct_sets import DistinctSets

MAGIC = b"hedgerow-index"
DIGEST = b"hedgerow-digest"
INDEX_FORMAT = 1
_OF_WORDS = "words_"  # prefix of the parts that describe a term's words
_SCHEMA = pa.schema(
    [("view", pa.string()), ("part", pa.string()), ("name", pa.string()), ("meta", pa.string()), ("data", pa.binary())]
)


@dataclass(frozen=True, slots=True)
class _Part:
    """One row of the file. `view`: blocks or cells; `part`: the content of `arrays`; `name`: the term or condition."""

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
        rows = table.to_pylist()
        if table.schema.metadata.get(DIGEST) != _digest(rows):
            raise FormatError(f"{where} is a damaged block index")
        blocks, cells = (_View.of_rows([r for r in rows if r["view"] == view]) for view in ("blocks", "cells"))
        return BlockIndex(blocks.stats(), CellIndex(cells.stats(), cells.parts()) if cells.content else None)
    except FormatError:
        raise
    except (pa.ArrowException, KeyError, ValueError, TypeError, IndexError) as error:
        raise FormatError(f"{where} is a damaged block index") from error


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
    yield _Part(view, of + "values", name, meta, {"values": to_arrow(t.type.kind, t.values)})
    entries = {"low": t.low, "high": t.high, "nulls": t.nulls, "nan": t.nan}
    if t.sets:
        entries["set_of"] = t.sets.set_of
        yield _Part(view, of + "set_offsets", name, {}, {"offsets": pa.array(t.sets.offsets)})
        yield _Part(view, of + "set_codes", name, {}, {"codes": pa.array(t.sets.codes)})
    yield _Part(view, of + "term", name, meta, {key: pa.array(a) for key, a in entries.items()})


@dataclass(frozen=True)
class _View:
    """The metadata and arrays of one view of the file, by part and name."""

    content: dict[tuple[str, str], tuple[dict[str, Any], dict[str, pa.Array]]]

    @staticmethod
    def of_rows(rows: list[dict[str, Any]]) -> _View:
        return _View({(r["part"], r["name"]): (json.loads(r["meta"]), _arrays(r["data"])) for r in rows})

    def stats(self) -> Stats:
        terms = {name: self._term(name) for part, name in self.content if part == "term"}
        conditions = {
            name: NotedCondition(decode_predicate(meta), self._copy(part, name, "bits"))
            for (part, name), (meta, _) in self.content.items()
            if part == "feature"
        }
        stats = Stats(self._copy("rows", "", "rows"), terms, conditions)
        _check_lengths(stats)
        return stats

    def parts(self) -> CellParts:
        return CellParts(*(self._copy("parts", "", key) for key in ("cell", "place", "file")))

    def _copy(self, part: str, name: str, key: str) -> Any:
        return np.array(self.content[part, name][1][key].to_numpy(zero_copy_only=False))

    def _term(self, name: str, of: str = "") -> TermStats:
        part = of + "term"
        meta, arrays = self.content[part, name]
        type_ = Type.parse(meta["type"])
        sets = None
        if "set_of" in arrays:
            sets = DistinctSets(
                self._copy(part, name, "set_of"),
                self._copy(of + "set_offsets", name, "offsets"),
                self._copy(of + "set_codes", name, "codes"),
            )
        values = from_arrow(type_.kind, self.content[of + "values", name][1]["values"])
        low, high, nulls, nan = (self._copy(part, name, key) for key in ("low", "high", "nulls", "nan"))
        has_words = not of and (f"{_OF_WORDS}term", name) in self.content
        words = self._term(name, _OF_WORDS) if has_words else None
        return TermStats(type_, values, low, high, nulls, nan, sets, words)


def _check_lengths(stats: Stats) -> None:
    lengths = {len(stats), *(len(t.low) for t in stats.terms.values())}
    lengths |= {len(t.words.low) for t in stats.terms.values() if t.words}
    lengths |= {len(condition.bits) for condition in stats.conditions.values()}
    if len(lengths) != 1:
        raise FormatError("the block index is damaged: its parts have different numbers of blocks")


def _stream(arrays: dict[str, pa.Array]) -> bytes:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch(list(arrays.values()), names=list(arrays))
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _arrays(data: bytes) -> dict[str, pa.Array]:
    table = pa.ipc.open_stream(pa.py_buffer(data)).read_all().combine_chunks()
    return {name: table[name].combine_chunks() for name in table.column_names}
