"""A table's state as JSON: all that a part has comes back, also names that mark a kind of value there."""

from __future__ import annotations

from decimal import Decimal

import pytest

from hedgerow.core.errors import FormatError
from hedgerow.core.predicates.nodes import Compare, col, lit
from hedgerow.core.pruning.value_filter import Shape
from hedgerow.core.workload.references import Joined, Reference
from hedgerow.spark.compute.checksum import Checksum
from hedgerow.spark.storage.filter_files import FilterFile
from hedgerow.spark.write.writing import Writing
from hedgerow.tables.entry import Entry
from hedgerow.tables.lookups import Lookup
from hedgerow.tables.operations import OperationsFile
from hedgerow.tables.sealed import sealed
from hedgerow.tables.state import TableState
from hedgerow.tables.stored_joins import StoredJoin

MARKS = {"node": "Column", "type": "int", "literal": "x", "plain": "y"}
VALUES = (Decimal("1.50"), float("nan"), float("-inf"), -0.0, 1e300, b"\x00\xff", "1.5", 2**62, True)
KEY = Reference("orders", ("node", "type"), "customers", ("plain", "literal"))
ENTRY = Entry(
    id="a",
    index="b",
    layout="c",
    fields=({"name": "type", "type": "integer", "nullable": True, "metadata": dict(MARKS)},),
    settings=dict(MARKS),
    writing=Writing(5, 3, 1000, ("a",), by_key=True, options=dict(MARKS), lookup_share=0.5),
    statistics=(col("k"), *(Compare(col("k"), "=", lit(value)) for value in VALUES)),
    checksum=Checksum(1, 2**70, 3),
    joined=(StoredJoin(Joined((KEY,)), ("place",), ("version",), (("int", "int"),), dict(MARKS)),),
    seals={"index-b.arrow": "digest"},
    origin={**MARKS, "given": {"type": 0.5}},
    write="a",
    files=3,
    lookups=(
        Lookup("lookup-1", ("k",), "bigint", Shape(1, 2, 3, 4), (FilterFile("a.parquet", 5, "digest"),), 1, 0, 1, 0.01),
    ),
)


def test_a_state_comes_back() -> None:
    earlier = (OperationsFile("operations-1.json", 5, "digest"),)
    state = TableState("parquet", "t", (ENTRY, ENTRY), ({"operation": "apply", **MARKS},), "a", earlier)
    again = TableState.of_bytes(state.to_bytes(), "here")
    assert again == state
    assert again.parts[1].lookups[0].sizes == {"a.parquet": 5}


@pytest.mark.parametrize(
    "part", [5, {}, {"node": "Column", "path": ["x"]}, {"node": "Entry"}, {"node": "Entry", "id": 5}]
)
def test_what_is_no_part_is_refused(part: object) -> None:
    with pytest.raises(FormatError, match="the state of here is damaged"):
        TableState.of_bytes(sealed({**vars(TableState("parquet")), "parts": [part]}), "here")
