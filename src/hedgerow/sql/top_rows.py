"""Finds ORDER BY x LIMIT k over a base table: its first rows are all that such a query needs."""

from __future__ import annotations

from sqlglot import exp

from hedgerow.core.workload.queries import Top
from hedgerow.sql.relations import Base, Select, clauses_of

_CLAUSES = {"with_", "expressions", "from_", "where", "order", "limit", "offset"}


def note_top(select: Select) -> None:
    """Note at a base table that the query needs only the first rows of an order by one of its columns."""
    node = select.node
    order, sources = node.args.get("order"), list(select.scope.sources.values())
    if len(sources) != 1 or not isinstance(sources[0], Base) or not isinstance(order, exp.Order):
        return
    rows, first, base = _number(node, "limit"), order.expressions[0], sources[0]
    is_whole = set(clauses_of(node)) - _CLAUSES or any(item.find(exp.AggFunc, exp.Window) for item in node.expressions)
    if is_whole or rows is None or not isinstance(first, exp.Ordered) or not isinstance(first.this, exp.Column):
        return
    # ORDER BY prefers the name of an output to that of a column.
    aliases = {item.alias.lower() for item in node.expressions if isinstance(item, exp.Alias)}
    place = select.scope.resolve(first.this)
    if place is None or place[0] is not select.scope or first.this.parts[0].name.lower() in aliases:
        return
    base.top = Top(base.column(place[2]), bool(first.args.get("desc")), rows + (_number(node, "offset") or 0))


def _number(node: exp.Select, clause: str) -> int | None:
    """Return the number after LIMIT or OFFSET; None if there is none, or an expression."""
    number = node.args.get(clause)
    value = None if number is None else number.expression
    return int(value.name) if isinstance(value, exp.Literal) and value.name.isdigit() else None
