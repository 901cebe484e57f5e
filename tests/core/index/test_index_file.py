"""A block index on disk: it comes back whole, or one sentence says what is wrong."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hedgerow.core.errors import FormatError
from hedgerow.core.index import index_file as store
from hedgerow.core.index.block_index import BlockIndex, CellIndex
from hedgerow.core.index.file_choice import CellParts
from hedgerow.core.index.index_file import index_bytes, index_of_bytes
from hedgerow.core.predicates.nodes import Like, Predicate, Term, col
from hedgerow.core.predicates.predicate_json import decode, decode_predicate
from hedgerow.core.pruning.block_stats import collect


@pytest.fixture(scope="module")
def index() -> BlockIndex:
    columns: dict[Term, Any] = {
        col("n"): pa.array([1, None, 2**63 - 1, -(2**63)]),
        col("x"): pa.array([0.5, float("nan"), None, float("inf")]),
        col("s"): pa.array(["", "😀", None, "it's"]),
        col("raw"): pa.array([b"\x00", b"\xff", None, b""]),
        col("d"): pa.array([-(10**8), 0, None, 10**8], pa.int32()).cast(pa.date32()),
        col("gone"): pa.array([None] * 4, pa.decimal128(10, 2)),
        col("flag"): pa.array([True, False, None, True]),
    }
    noted: dict[Predicate, Any] = {Like(col("s"), "%\U0001f600%"): np.array([1, 2, 4, 1], np.uint8)}
    parts = CellParts(np.array([0, 1, 1]), np.array([0, 1, ~0]), np.array([0, 1, 3]))
    cells = CellIndex(collect(columns, None, [0, 1, 1, 2], 3), parts)
    return BlockIndex(collect(columns, noted, [0, 0, 1, 2], 4), cells)


@pytest.fixture(scope="module")
def data(index: BlockIndex) -> bytes:
    return index_bytes(index)


def test_it_comes_back_whole(index: BlockIndex, data: bytes) -> None:
    """Equal parts are written as equal bytes, so bytes compare everything."""
    again = index_of_bytes(data)
    assert index_bytes(again) == data
    assert again.blocks.terms["d"].values == index.blocks.terms["d"].values


def test_any_arrow_tool_reads_the_file(data: bytes) -> None:
    table = pa.ipc.open_file(pa.py_buffer(data)).read_all()
    assert {"view", "part", "name"} <= set(table.column_names)
    assert "feature" in table["part"].to_pylist()


def refused(data: bytes) -> str:
    with pytest.raises(FormatError) as error:
        index_of_bytes(data, "t.index")
    return str(error.value)


def test_no_arrow_file() -> None:
    assert refused(b"") == refused(b"PAR1 something") == "t.index is not a block index, or it is damaged"


def test_a_foreign_arrow_file() -> None:
    sink = pa.BufferOutputStream()
    table = pa.table({"x": [1]})
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    assert refused(bytes(sink.getvalue())) == "t.index is an Arrow file, but not a block index that Hedgerow wrote"


def test_a_newer_version(index: BlockIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as future:
        future.setattr(store, "INDEX_FORMAT", 2)
        newer = index_bytes(index)
    assert refused(newer) == "t.index was written by a newer Hedgerow (format 2, this one reads 1)"


def test_every_truncation_is_noticed(data: bytes) -> None:
    for length in range(0, len(data), 97):
        refused(data[:length])


def test_no_damage_goes_unnoticed(data: bytes) -> None:
    """One wrong bit may be an error, or may hit a byte that says nothing; it never reads as another index."""
    random = Random(0)
    noticed = 0
    for _ in range(300):
        damaged = bytearray(data)
        damaged[random.randrange(len(data))] ^= 1 << random.randrange(8)
        try:
            assert index_bytes(index_of_bytes(bytes(damaged))) == data
        except FormatError:
            noticed += 1
    assert noticed > 200


@pytest.mark.parametrize("value", [None, 5, "x", [], {}, {"node": "Nothing"}, {"node": "Compare"}, {"literal": "int"}])
def test_what_is_no_predicate_is_refused(value: object) -> None:
    with pytest.raises(FormatError, match="not what Hedgerow wrote"):
        decode(value)


def test_a_term_is_no_predicate() -> None:
    with pytest.raises(FormatError, match="term"):
        decode_predicate({"node": "Column", "path": ["x"]})
