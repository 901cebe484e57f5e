"""Answers the requests of `MoreThanWhere.java`: the files that a LIMIT needs, and aggregates from statistics."""

from __future__ import annotations

import numpy as np

from hedgerow.core.arrays import Ints
from hedgerow.core.errors import HedgerowError, assert_never
from hedgerow.core.index.aggregates import Aggregate, Count, Extreme, Sum
from hedgerow.core.index.top_k import Order
from hedgerow.core.predicates.nodes import TRUE
from hedgerow.core.predicates.types import INT
from hedgerow.spark import wire
from hedgerow.tables.opened_table import OpenedTable, bit_text
from hedgerow.tables.wire_conditions import ConditionReader, value_text

Request = wire.ChooseRows | wire.Aggregate


def answer(table: OpenedTable, reader: ConditionReader, request: Request) -> wire.Answer:
    """Return the answer to a request about an opened table; refuse what the index cannot know."""
    try:
        match request:
            case wire.ChooseRows():
                return _limited_rows(table, reader, request)
            case wire.Aggregate():
                return _aggregates(table, reader, request)
    except (HedgerowError, ValueError) as error:
        return wire.Refused(str(error))
    assert_never(request)


def _limited_rows(
    table: OpenedTable, reader: ConditionReader, request: wire.ChooseRows
) -> wire.Chosen | wire.Probe | wire.Refused:
    left, p, order = _rows_left(table, request.scanned), reader.read(request.where), request.order
    index, k, probe = table.index.joined, request.rows, None
    if order is None:
        chosen = index.any_rows(p, left, k)
    else:
        by = Order(reader.typed_term(order.by), order.descending, order.nulls_first)
        matched = index.matched(p, left)
        chosen = index.first_rows(matched, by, k)
        probe = index.probe(matched, by, k, chosen) if request.probe else None
    if probe is not None:
        value = value_text(by.by.type.kind, probe.last_value)
        assert value is not None  # NULL is no bound
        return wire.Probe(bit_text(probe.files), value, None if chosen is None else bit_text(chosen))
    if chosen is None:
        return wire.Refused("the index does not know enough rows for the limit")
    return wire.Chosen(bit_text(chosen), "limit" if order is None else "top-k")


def _aggregates(table: OpenedTable, reader: ConditionReader, request: wire.Aggregate) -> wire.Aggregated | wire.Refused:
    groups = list(map(reader.typed_term, request.groups))
    values = [_read(reader, value) for value in request.values]
    left, p, index = _rows_left(table, request.scanned), reader.read(request.where), table.index
    partials = index.joined.aggregates(p, left, groups, values)
    if partials.opened.any() and not partials.rows and not index.joined.may_answer(index.rows, groups, values):
        return wire.Refused("no file can answer, whatever the condition")
    kinds = [term.type.kind for term in groups] + [INT if isinstance(a, Count) else a.of.type.kind for a in values]
    rows = [(*group, *of_group) for group, of_group in partials.rows.items()]
    return wire.Aggregated(bit_text(partials.opened), [list(map(value_text, kinds, row)) for row in rows])


def _read(reader: ConditionReader, value: wire.Count | wire.Extreme | wire.Sum) -> Aggregate:
    where = TRUE if value.where is None else reader.read(value.where)
    match value:
        case wire.Count(of):
            return Count(None if of is None else reader.typed_term(of), where)
        case wire.Extreme(of, greatest):
            return Extreme(reader.typed_term(of), greatest, where)
        case wire.Sum(of, _, as_double):
            return Sum(reader.typed_term(of), where, as_double)
    assert_never(value)


def _rows_left(table: OpenedTable, scanned: wire.ScannedRows) -> Ints:
    changes = np.zeros(table.index.count + 1, np.int64)
    changes[np.array(scanned.runs, np.intp)] = 1
    read_once = np.cumsum(changes)[:-1] % 2 == 1
    return table.index.rows_left(read_once, dict(zip(scanned.deleted_in, scanned.deleted, strict=True)))
