"""Requests beyond WHERE, as the optimizer rule sends them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.predicates.nodes import Expr, col
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import collect
from hedgerow.spark import wire
from hedgerow.tables import more_than_where
from hedgerow.tables.known_files import KnownFiles
from hedgerow.tables.opened_table import OpenedTable
from hedgerow.tables.part import JoinedParts
from hedgerow.tables.wire_conditions import ConditionReader

MONTH = Expr("month(day)", (col("day"),))
COLUMNS = {
    col("x"): pa.array([1, 2, 5, 6, 8, 9, 7, 7], pa.int64()),
    col("Price"): pa.array([Decimal(n).scaleb(-2) for n in (100, 250, 300, 400, 5, 6, 7, 8)], pa.decimal128(8, 2)),
    col("day"): pa.array([date(2024, 1, 1)] * 4 + [date(2024, 2, 1)] * 4),
    col("word"): pa.array(["a", "b", "c", "d", "e", "f", None, None]),
    col("f"): pa.array([0.0, 1.5, float("nan"), 2.0, 3.0, float("inf"), 4.0, 5.0]),
    MONTH: pa.array([1] * 4 + [2] * 4),
}
SCHEMA = {"x": "bigint", "Price": "decimal(8,2)", "`day`": "date", "word": "string", "f": "double"}
TRUE = wire.Constant(True)
ALL = wire.ScannedRows([0, 4], [], [])


def an_opened_table() -> tuple[OpenedTable, ConditionReader]:
    """Four files of two rows each."""
    stats = collect(COLUMNS, None, np.repeat(np.arange(4), 2), 4)
    zeros = np.zeros(4, np.int64)
    known = KnownFiles(tuple("abcd"), zeros, stats.rows, zeros, {})
    part = JoinedParts(known, BlockIndex(stats), (), np.ones(4, bool))
    schema = {name: Type.parse(kind) for name, kind in SCHEMA.items()}
    return OpenedTable("t", [part], schema, [MONTH], [], None, {}), ConditionReader(schema, [MONTH])


def answer(request: Any) -> Any:
    """The answer after both have crossed the wire."""
    return wire.read(wire.write(more_than_where.answer(*an_opened_table(), wire.read(wire.write(request)))))


def column(name: str, cast: str | None = None) -> wire.Column:
    kinds = {term.strip("`").lower(): kind for term, kind in SCHEMA.items()}
    return wire.Column([name], kinds[name.lower()], cast)


def first(by: wire.Side, rows: int, scanned: wire.ScannedRows = ALL, descending: bool = True) -> Any:
    return answer(wire.ChooseRows("0", TRUE, scanned, wire.Order(by, descending, False), rows))


def test_first_rows() -> None:
    assert first(column("X"), 2) == wire.Chosen("0010", "top-k")
    assert first(column("price"), 1, descending=False) == wire.Chosen("0010", "top-k")
    assert first(column("x"), 2, wire.ScannedRows([0, 4], [2], [1])).bits == "0011"
    assert first(column("x"), 2, wire.ScannedRows([0, 2, 3, 4], [], [])).bits == "0011"
    assert first(wire.Expression(0, "int"), 3) == wire.Chosen("0011", "top-k")
    assert isinstance(first(column("x"), 9), wire.Refused)


@pytest.mark.parametrize("by", [column("x", "double"), wire.Column(["x"], "int"), wire.Value("1", "int")])
def test_an_order_that_the_index_does_not_know_is_refused(by: wire.Side) -> None:
    assert isinstance(first(by, 2), wire.Refused)


def test_a_term_of_another_kind_has_no_bounds() -> None:
    assert isinstance(first(wire.Expression(0, "string"), 2), wire.Refused)


def test_any_rows() -> None:
    above_4 = wire.Compare(column("x"), ">", wire.Value("4", "bigint"))
    assert answer(wire.ChooseRows("0", above_4, ALL, None, 3)) == wire.Chosen("0110", "limit")
    assert isinstance(answer(wire.ChooseRows("0", above_4, ALL, None, 7)), wire.Refused)
    assert isinstance(answer(wire.ChooseRows("0", wire.And([above_4, wire.Unknown()]), ALL, None, 1)), wire.Refused)


def test_aggregates() -> None:
    above_5 = wire.Compare(column("x"), ">", wire.Value("5", "bigint"))
    least, most = (wire.Extreme(column("Price"), greatest, None) for greatest in (False, True))
    words = wire.Count(column("word"), None)
    values = [wire.Count(None, None), words, least, most]
    assert answer(wire.Aggregate("0", above_5, ALL, [], values)) == wire.Aggregated(
        "0100", [["4", "2", "0.05", "0.08"]]
    )
    filtered = [wire.Count(None, above_5), wire.Extreme(column("word"), True, above_5)]
    assert answer(wire.Aggregate("0", TRUE, ALL, [], filtered)) == wire.Aggregated("0100", [["4", "f"]])
    by_month = wire.Aggregate("0", TRUE, ALL, [wire.Expression(0, "int")], [wire.Extreme(column("f"), True, None)])
    assert answer(by_month) == wire.Aggregated("0100", [["1", "1.5"], ["2", "Infinity"]])


def test_aggregates_that_no_file_can_answer() -> None:
    rows, no_file = wire.Count(None, None), wire.Compare(column("x"), ">", wire.Value("99", "bigint"))
    refused = wire.Refused("no file can answer, whatever the condition")
    for where in (TRUE, wire.Unknown()):
        assert answer(wire.Aggregate("0", where, ALL, [column("f")], [rows])) == refused
        assert answer(wire.Aggregate("0", where, ALL, [], [wire.Sum(column("x"), None, False), rows])) == refused
    for where in (wire.Unknown(), no_file):
        assert isinstance(answer(wire.Aggregate("0", where, ALL, [column("day")], [rows])), wire.Aggregated)
    assert isinstance(answer(wire.Aggregate("0", no_file, ALL, [column("f")], [rows])), wire.Aggregated)
