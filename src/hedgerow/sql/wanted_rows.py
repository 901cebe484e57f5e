"""Finds what a SELECT needs of the matching rows of a base table: the first rows, any rows, or aggregates.

    ORDER BY x LIMIT k      Top
    LIMIT k                 AnyRows
    count, sum, avg, ...    Aggregates, with GROUP BY too; also DISTINCT, which has groups without values

Such a query may leave out matching rows only if no row can fail. So every part that is evaluated for a row has to be
one that Spark's rule knows as harmless (`NEVER_FAIL` in `spark/judged`), and all of the WHERE has to be understood.
"""

from __future__ import annotations

from sqlglot import exp

from hedgerow.core.predicates.nodes import Column, Term
from hedgerow.core.workload.wanted_rows import Aggregates, AnyRows, Function, Top, WantedRows
from hedgerow.sql.predicates import term_of
from hedgerow.sql.relations import Base, Select, clauses_of

_LIMITED = {"with_", "expressions", "from_", "where", "order", "limit", "offset"}
_AGGREGATED = {*_LIMITED, "group", "having", "distinct"}
_FUNCTIONS: dict[type[exp.Expr], Function] = {
    **{exp.Count: "count", exp.Sum: "sum", exp.Min: "min", exp.Max: "max", exp.Avg: "avg"}
}
_NEVER_FAIL = (
    *(exp.Alias, exp.Column, exp.Dot, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Star, exp.Paren),
    *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between),
    *(exp.Is, exp.IsNan, exp.If, exp.Case, exp.Coalesce, exp.Greatest, exp.Least, exp.Neg, exp.Ordered),
    *(exp.Like, exp.Contains, exp.StartsWith, exp.EndsWith, exp.Length, exp.Lower, exp.Upper, exp.Reverse),
    *(exp.Substring, exp.Trim, exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfWeek, exp.DayOfYear),
    *(exp.WeekOfYear, exp.Hour, exp.Minute, exp.Second, exp.TsOrDsToDate),
)


def note_wanted(select: Select) -> None:
    """Note at a base table what the query needs of its matching rows, if it does not need all of them."""
    base = next(iter(select.scope.sources.values()), None)
    where = select.node.args.get("where")
    if len(select.scope.sources) == 1 and isinstance(base, Base) and (where is None or _never_fails(where.this)):
        base.wanted = _limited(select, base) or _aggregates(select, base)


def _limited(select: Select, base: Base) -> WantedRows | None:
    node = select.node
    rows, order = _number(node, "limit"), node.args.get("order")
    ordered = order.expressions if isinstance(order, exp.Order) else []
    # ORDER BY prefers the name of an output to that of a column.
    names = {item.alias.lower() for item in node.expressions if isinstance(item, exp.Alias)}
    if set(clauses_of(node)) - _LIMITED or rows is None or not all(map(_never_fails, (*node.expressions, *ordered))):
        return None
    rows += _number(node, "offset") or 0
    if not ordered:
        return AnyRows(rows)
    first = ordered[0]
    if not isinstance(first.this, exp.Column) or first.this.parts[0].name.lower() in names:
        return None
    column = _term(select, base, first.this)
    descending, nulls_first = bool(first.args.get("desc")), bool(first.args.get("nulls_first"))
    return Top(column, descending, rows, nulls_first) if isinstance(column, Column) else None


def _aggregates(select: Select, base: Base) -> Aggregates | None:
    node, group, distinct = select.node, select.node.args.get("group"), select.node.args.get("distinct")
    parts = [part for part in (*node.expressions, node.args.get("having"), node.args.get("order")) if part is not None]
    nodes = [n for part in parts for n in part.walk()]
    functions = [n for n in nodes if isinstance(n, exp.AggFunc)]
    values = [_value(select, base, function) for function in functions]
    is_other = any(isinstance(n, exp.Query | exp.Window | exp.Filter | exp.Anonymous) for n in nodes)
    if set(clauses_of(node)) - _AGGREGATED or is_other or None in values:
        return None
    if isinstance(distinct, exp.Distinct):
        if group or functions or distinct.args.get("on"):
            return None
        keys = node.expressions
    else:
        keys = group.expressions if isinstance(group, exp.Group) and clauses_of(group) == ["expressions"] else []
        if not keys and (group or not functions):
            return None
    groups = [_term(select, base, _key(select, key)) for key in keys]
    if None in groups:
        return None
    return Aggregates(tuple(v for v in values if v is not None), tuple(g for g in groups if g is not None))


def _value(select: Select, base: Base, function: exp.Expr) -> tuple[Function, Column | None] | None:
    """Return an aggregate as a name and a column; None if it is another one."""
    name, of = _FUNCTIONS.get(type(function)), function.this
    if name is None or function.args.get("expressions"):
        return None
    if name == "count" and isinstance(of, exp.Star | exp.Literal):
        return name, None
    column = _term(select, base, of) if isinstance(of, exp.Column) else None
    return (name, column) if isinstance(column, Column) else None


def _key(select: Select, key: exp.Expr) -> exp.Expr:
    """Return the expression that a key of GROUP BY means: it may name an output, or give its place."""
    items = select.node.expressions
    if isinstance(key, exp.Literal) and not key.is_string:
        return items[int(key.name) - 1].unalias() if 0 < int(key.name) <= len(items) else key
    if isinstance(key, exp.Column) and select.scope.resolve(key) is None:
        named = [item for item in items if isinstance(item, exp.Alias) and item.alias.lower() == key.name.lower()]
        return named[0].unalias() if len(named) == 1 else key
    return key.unalias()


def _term(select: Select, base: Base, node: exp.Expr) -> Term | None:
    """Return a column of the table, or an expression over its columns that cannot fail; None for anything else."""
    columns = list(node.find_all(exp.Column))
    places = [select.scope.resolve(column) for column in columns]
    if not columns or not _never_fails(node) or any(place is None or place[0] is not select.scope for place in places):
        return None

    def column_of(column: exp.Column) -> Column:
        place = select.scope.resolve(column)
        return base.column(place[2] if place else ())

    return term_of(node, column_of)


def _never_fails(node: exp.Expr) -> bool:
    """True if the value of an expression is that of every row, without an error; a literal may have any type."""
    children = node.iter_expressions()
    if isinstance(node, exp.Cast):
        return isinstance(node.this, exp.Literal)
    return isinstance(node, _NEVER_FAIL) and all(map(_never_fails, children))


def _number(node: exp.Select, clause: str) -> int | None:
    """Return the number after LIMIT or OFFSET; None if there is none, or an expression."""
    number = node.args.get(clause)
    value = None if number is None else number.expression
    return int(value.name) if isinstance(value, exp.Literal) and value.name.isdigit() else None
