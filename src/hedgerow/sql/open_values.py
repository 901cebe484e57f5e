"""Values that are open while a workload is learned from: the time of a clock, and parameters.

    ts > now() - INTERVAL 1 DAY                a clock
    user_id = :uid, user_id IN (?, ?)          parameters

Learning puts likely values in their places. Skipping never does: it knows the values, or it opens the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from hedgerow.core.predicates.nodes import Column, Term
from hedgerow.sql.parse import parse_one
from hedgerow.sql.predicates import spark_sql, term_of
from hedgerow.sql.to_sql import to_sql
from hedgerow.sql.volatile_functions import depends_on_row_only, is_clock, is_parameter, is_volatile

Role = Literal["low", "high", "word", "value"]  # a bound of a range, the pattern of a LIKE, or any other

_RANGES: dict[type[exp.Expr], tuple[Role, Role]] = {  # the role of the right side, and of the left side
    exp.GT: ("low", "high"),
    exp.GTE: ("low", "high"),
    exp.LT: ("high", "low"),
    exp.LTE: ("high", "low"),
}
_EQUALITIES = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ)
_TEXT_TESTS = (exp.Like, exp.StartsWith)
_PLACE, _UNNAMED = "place of an open value", "parameter_"


@dataclass(frozen=True, slots=True)
class OpenValue:
    """An expression with a clock or parameters that a term of a table is compared with; `text` is its Spark SQL."""

    table: str
    term: Term
    text: str
    role: Role

    def has_parameter(self) -> bool:
        return any(map(is_parameter, parse_one(self.text).walk()))

    def at(self, time: str, value: str | None = None) -> str:
        """Return the Spark SQL with this time for clocks and this value for parameters, both as Spark SQL.

        >>> OpenValue("t", Column(("d",)), "CURRENT_DATE - 7", "low").at("TIMESTAMP '2026-11-28 10:00:00'")
        "CAST(CAST('2026-11-28 10:00:00' AS TIMESTAMP) AS DATE) - 7"
        """

        return at_time(self.text, time, value)


def at_time(sql: str, time: str, value: str | None = None) -> str:
    """Return the Spark SQL with this time for clocks and, if one is given, this value for parameters."""

    def closed(node: exp.Expr) -> exp.Expr:
        if is_clock(node):
            type_ = "DATE" if "date" in type(node).__name__.lower() + node.name.lower() else "TIMESTAMP"
            return parse_one(f"CAST({time} AS {type_})")
        return parse_one(value) if value is not None and is_parameter(node) else node

    return to_sql(parse_one(sql).transform(closed))


@dataclass(eq=False)
class OpenValues:
    """The open values of one query, collected while its conditions are read.

    Args:
        values: Spark SQL of a literal for an open value; a condition with any other one is left out.
        tables: the tables that values are known of, in lower case. Nothing is said of conditions on other tables.
    """

    values: Mapping[OpenValue, str] = field(default_factory=dict)
    tables: Collection[str] = ()
    met: list[OpenValue] = field(default_factory=list)
    _conditions: dict[int, str] = field(default_factory=dict)
    _closed: set[int] = field(default_factory=set)

    def mark(self, query: exp.Expr) -> None:
        """Number the clocks and parameters in the conditions of a query, so that none is lost without a word."""
        unnamed = (node for node in query.find_all(exp.Placeholder) if not node.this)
        for number, parameter in enumerate(unnamed, 1):
            parameter.set("this", f"{_UNNAMED}{number}")
        for clause in query.find_all(exp.Where, exp.Join):
            for node in clause.walk(prune=is_parameter):
                condition = node.find_ancestor(exp.Predicate, exp.Where, exp.Join) if is_volatile(node) else None
                if isinstance(condition, exp.Predicate):
                    number = node.meta.setdefault(_PLACE, len(self._conditions))
                    self._conditions[number] = re.sub(rf":{_UNNAMED}\d+", "?", to_sql(condition, comments=False))

    def closed(self, condition: exp.Expr, table: str, resolve: Callable[[exp.Column], Column]) -> exp.Expr | None:
        """Return the condition with values in the places of its open ones; None if one of them is unknown."""
        places = {node.meta[_PLACE] for node in condition.walk() if _PLACE in node.meta}
        if table.lower() not in self.tables:
            self._closed |= places
        condition, is_closed = condition.copy(), True
        for term, sides in _open_comparisons(condition):
            for side, role in sides:
                value = OpenValue(table, term_of(term, resolve), spark_sql(side, resolve), role)
                self.met.append(value)
                literal = self.values.get(value)
                is_closed = is_closed and literal is not None
                if literal is not None:
                    side.replace(parse_one(literal))
        if is_closed:
            self._closed |= places
        return condition if is_closed else None

    def left_out(self) -> list[str]:
        """Return the conditions that nothing is learned from, because a value in them stayed open."""
        return list(dict.fromkeys(c for n, c in self._conditions.items() if n not in self._closed))


def is_learnable(condition: exp.Expr) -> bool:
    """True if all that changes in the condition is an open value that a term of the row is compared with."""
    if depends_on_row_only(condition):
        return True
    condition = exp.paren(condition)  # a copy, inside which each node has a parent
    for _, sides in list(_open_comparisons(condition)):
        for side, _role in sides:
            side.replace(exp.Literal.number(0))
    return depends_on_row_only(condition)


def has_open_value(condition: exp.Expr) -> bool:
    return any(is_clock(node) or is_parameter(node) for node in condition.walk())


def _open_comparisons(condition: exp.Expr) -> Iterator[tuple[exp.Expr, Sequence[tuple[exp.Expr, Role]]]]:
    """Yield each comparison of a term with open values: the term, and the values with their roles."""
    for node in list(condition.walk()):
        for term, others in _sides(node):
            opened = [(other, role) for other, role in others if has_open_value(other)]
            if opened and _is_term(term) and not any(other.find(exp.Column) for other, _ in opened):
                yield term, opened


def _sides(node: exp.Expr) -> Iterator[tuple[exp.Expr, Sequence[tuple[exp.Expr, Role]]]]:
    """Yield each side of a comparison, with the sides that it is compared with and their roles."""
    if isinstance(node, _EQUALITIES) or type(node) in _RANGES:
        of_right, of_left = _RANGES.get(type(node), ("value", "value"))
        yield node.this, [(node.expression, of_right)]
        yield node.expression, [(node.this, of_left)]
    elif isinstance(node, exp.In) and node.expressions:
        yield node.this, [(value, "value") for value in node.expressions]
    elif isinstance(node, _TEXT_TESTS):
        yield node.this, [(node.expression, "word" if isinstance(node, exp.Like) else "value")]


def _is_term(node: exp.Expr) -> bool:
    return node.find(exp.Column) is not None and depends_on_row_only(node)
