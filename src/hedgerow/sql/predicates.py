"""Translate boolean SQL expressions to predicates; an expression without a node of its own becomes opaque."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from hedgerow.core.predicates.nodes import (
    FALSE,
    FLIPPED_OP,
    NULL,
    TRUE,
    And,
    Cast,
    Column,
    Compare,
    CompareTerms,
    Expr,
    In,
    IsNull,
    Like,
    Not,
    Opaque,
    Or,
    Predicate,
    Prefix,
    Term,
    conjunction,
    disjunction,
    lit,
)
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.types import Type
from hedgerow.sql.literals import fold, like_prefix
from hedgerow.sql.to_sql import to_sql

Resolve = Callable[[exp.Column], Column]

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}

# The meaning of a node with any other argument is unknown.
_UNDERSTOOD_ARGUMENTS = {"this", "expression", "expressions", "low", "high", "table", "db", "catalog", "to"}

# Functions whose result type does not depend on their arguments' types.
_STRINGS = (
    *(exp.Substring, exp.Upper, exp.Lower, exp.Trim, exp.Concat, exp.Replace, exp.JSONExtractScalar),
    *(exp.RegexpExtract, exp.RegexpReplace),
)
_INTS = (exp.Length, exp.Year, exp.Month, exp.Day, exp.Hour, exp.Minute, exp.Quarter, exp.DateDiff)


def predicate_from_sql(node: exp.Expr, resolve: Resolve) -> Predicate:
    """Return the predicate with the same truth on every row."""
    if {key for key, value in node.args.items() if value} - _UNDERSTOOD_ARGUMENTS:
        return opaque(node, resolve)
    match node:
        case exp.Paren():
            return predicate_from_sql(node.this, resolve)
        case exp.And():
            return And(tuple(predicate_from_sql(k, resolve) for k in node.flatten()))
        case exp.Or():
            return Or(tuple(predicate_from_sql(k, resolve) for k in node.flatten()))
        case exp.Not():
            return Not(predicate_from_sql(node.this, resolve))
        case exp.Boolean():
            return TRUE if node.this else FALSE
        case exp.Null():
            return NULL
        case exp.Column():
            return Compare(resolve(node), "=", lit(True))
        case exp.Between():
            low, high = exp.GTE(this=node.this, expression=node.args["low"]), node.args["high"]
            return And(tuple(predicate_from_sql(k, resolve) for k in (low, exp.LTE(this=node.this, expression=high))))
        case exp.In() if node.expressions:
            return _from_in(node, resolve)
        case exp.Is():
            return _from_is(node, resolve)
        case exp.NullSafeEQ():
            return _from_null_safe(node, resolve)
        case exp.NullSafeNEQ():
            return Not(_from_null_safe(node, resolve))
        case exp.Like():
            return _from_like(node, resolve)
        case exp.StartsWith():
            prefix = fold(node.expression)
            if prefix is not None and prefix.kind == "string":
                return Prefix(term_of(node.this, resolve), prefix.value)
    op = _COMPARISONS.get(type(node))
    return opaque(node, resolve) if op is None else _from_comparison(node, op, resolve)


def term_of(node: exp.Expr, resolve: Resolve) -> Term:
    match node:
        case exp.Paren():
            return term_of(node.this, resolve)
        case exp.Column() | exp.Dot():
            column = _column_or_field(node, resolve)
            if column is not None:
                return column
        case exp.Cast() if isinstance(node.this, exp.Column):
            return Cast(resolve(node.this), Type.parse(to_sql(node.to)))
        case exp.TsOrDsToDate() if isinstance(node.this, exp.Column) and not node.args.get("format"):
            return Cast(resolve(node.this), Type.parse("date"))  # as Spark reads to_date(x)
    sql = spark_sql(node, resolve)
    # A condition inside a comparison needs its brackets: (a AND b) = FALSE.
    binds_less = isinstance(node, exp.Connector | exp.Predicate | exp.Not)
    kind = Type("string") if isinstance(node, _STRINGS) else Type("int") if isinstance(node, _INTS) else None
    return Expr(f"({sql})" if binds_less else sql, _columns_in(node, resolve), kind)


def opaque(node: exp.Expr, resolve: Resolve) -> Opaque:
    return Opaque(spark_sql(node, resolve), _columns_in(node, resolve))


def spark_sql(node: exp.Expr, resolve: Resolve) -> str:
    """Return normalised Spark SQL over the table's own columns, without qualifiers."""

    def unqualified(n: exp.Expr) -> exp.Expr:
        if not isinstance(n, exp.Column):
            return n
        parts = [exp.to_identifier(part, quoted=term_text(Column((part,))) != part) for part in resolve(n).path]
        column: exp.Expr = exp.Column(this=parts[0])
        for part in parts[1:]:
            column = exp.Dot(this=column, expression=part)
        return column

    return to_sql(node.transform(unqualified), comments=False, normalize_functions="upper")


def _columns_in(node: exp.Expr, resolve: Resolve) -> tuple[Column, ...]:
    return tuple(sorted({resolve(c) for c in node.find_all(exp.Column)}, key=term_text))


def _column_or_field(node: exp.Expr, resolve: Resolve) -> Column | None:
    """Return a column, or a field of one: sqlglot reads `a.b.c` as dots over a column. None for any other node."""
    if isinstance(node, exp.Column):
        return resolve(node)
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        inner = _column_or_field(node.this, resolve)
        return inner and Column((*inner.path, node.expression.name))
    return None


def _from_comparison(node: exp.Expr, op: str, resolve: Resolve) -> Predicate:
    left, right = node.this.unnest(), node.expression.unnest()
    if isinstance(left, exp.Null) or isinstance(right, exp.Null):
        return NULL
    a, b = fold(left), fold(right)
    if a is not None and b is not None:
        return opaque(node, resolve)
    if b is not None:
        return Compare(term_of(left, resolve), op, b)
    if a is not None:
        return Compare(term_of(right, resolve), FLIPPED_OP[op], a)
    return CompareTerms(term_of(left, resolve), op, term_of(right, resolve))


def _from_in(node: exp.In, resolve: Resolve) -> Predicate:
    listed = [k.unnest() for k in node.expressions]
    folded = [fold(k) for k in listed if not isinstance(k, exp.Null)]
    literals = [value for value in folded if value is not None]
    if len(literals) < len(folded) or fold(node.this) is not None or isinstance(node.this.unnest(), exp.Tuple):
        return opaque(node, resolve)
    one_of = In(term_of(node.this, resolve), tuple(dict.fromkeys(literals)))
    return one_of if len(folded) == len(listed) else disjunction(one_of, NULL)


def _from_is(node: exp.Is, resolve: Resolve) -> Predicate:
    match node.expression:
        case exp.Null() if fold(node.this) is None:
            return IsNull(term_of(node.this, resolve))
        case exp.Boolean() as value if isinstance(node.this, exp.Column):
            column = resolve(node.this)
            return conjunction(Compare(column, "=", lit(bool(value.this))), Not(IsNull(column)))
    return opaque(node, resolve)


def _from_null_safe(node: exp.Expr, resolve: Resolve) -> Predicate:
    """Return the predicate of a <=> b, which is TRUE or FALSE, never NULL."""
    left, right = node.this.unnest(), node.expression.unnest()
    if isinstance(left, exp.Null):
        left, right = right, left
    if isinstance(left, exp.Null) or (fold(left) is not None and fold(right) is not None):
        return opaque(node, resolve)
    if isinstance(right, exp.Null):
        return IsNull(term_of(left, resolve))
    equal = _from_comparison(exp.EQ(this=left, expression=right), "=", resolve)
    terms = [term_of(side, resolve) for side in (left, right) if fold(side) is None]
    same = conjunction(equal, *(Not(IsNull(t)) for t in terms))
    return same if len(terms) == 1 else disjunction(same, conjunction(*(IsNull(t) for t in terms)))


def _from_like(node: exp.Like, resolve: Resolve) -> Predicate:
    pattern = fold(node.expression)
    if pattern is None or pattern.kind != "string" or isinstance(node.parent, exp.Escape):
        return opaque(node, resolve)
    prefix = like_prefix(pattern.value)
    if prefix is not None:
        return Prefix(term_of(node.this, resolve), prefix)
    if not any(c in pattern.value for c in "%_\\"):
        return Compare(term_of(node.this, resolve), "=", pattern)
    return Like(term_of(node.this, resolve), pattern.value)
