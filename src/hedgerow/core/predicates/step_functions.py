"""Predicates about one term (a column or an expression) as step functions.

A step function maps the term's value, or NULL, to TRUE, FALSE or NULL, and changes only at a few values:

    x >= 5 AND x <> 9      value   ----------5=========9==========>     NULL
                           truth     FALSE    |  TRUE  F   TRUE         NULL

Ranges, IN lists, prefixes, their negations and every AND/OR of them are such functions. Then p implies q if q is TRUE
wherever p is, and p is a contradiction if it is TRUE nowhere. On a block whose values lie between a minimum and a
maximum, p can have only the outcomes of the steps between these two, and on its NULLs the outcome of NULL.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.nodes import (
    FALSE,
    TRUE,
    And,
    Compare,
    Const,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Prefix,
    Term,
    conjunction,
    disjunction,
)
from hedgerow.core.predicates.values import Value, prefix_end

Outcome = bool | None
# A break is a value and a side: it lies just below or just above the value.
Break = tuple[Value, int]
BELOW, ABOVE = 0, 1


@dataclass(frozen=True, slots=True)
class Steps:
    """A step function: `outcomes[i]` holds between `breaks[i - 1]` and `breaks[i]`; neighbours differ."""

    breaks: tuple[Break, ...]
    outcomes: tuple[Outcome, ...]
    on_null: Outcome

    def at(self, value: Value) -> Outcome:
        return self.outcomes[bisect_right(self.breaks, (value, BELOW))]

    def where_true(self, values: Sequence[Value]) -> list[tuple[int, int]]:
        """Return the slices (start, end) of the sorted values on which this is TRUE."""
        places = ((bisect_right if side == ABOVE else bisect_left)(values, value) for value, side in self.breaks)
        ends = [0, *places, len(values)]
        return [(a, b) for a, b, o in zip(ends[:-1], ends[1:], self.outcomes, strict=True) if o is True and a < b]


@dataclass(frozen=True, slots=True)
class Stepwise:
    """The step function of a term; `kind` is the kind of the literals, or None if there are none (IS NULL)."""

    term: Term
    kind: str | None
    steps: Steps


def and3(a: Outcome, b: Outcome) -> Outcome:
    return False if a is False or b is False else None if a is None or b is None else True


def or3(a: Outcome, b: Outcome) -> Outcome:
    return True if a is True or b is True else None if a is None or b is None else False


def not3(a: Outcome) -> Outcome:
    return None if a is None else not a


def _steps(pieces: list[tuple[Break | None, Outcome]], on_null: Outcome) -> Steps:
    """Build steps from (start, outcome) pieces in order, the first with start None; merge equal neighbours."""
    breaks: list[Break] = []
    outcomes: list[Outcome] = []
    for start, outcome in pieces:
        if outcomes and outcomes[-1] is outcome:
            continue
        if start is not None:
            breaks.append(start)
        outcomes.append(outcome)
    return Steps(tuple(breaks), tuple(outcomes), on_null)


def combine(f: Callable[[Outcome, Outcome], Outcome], a: Steps, b: Steps) -> Steps:
    """Return the step function `f(a, b)`, for a connective `f` such as `and3`."""
    pieces: list[tuple[Break | None, Outcome]] = [(None, f(a.outcomes[0], b.outcomes[0]))]
    i = j = 0
    while i < len(a.breaks) or j < len(b.breaks):
        if j == len(b.breaks) or (i < len(a.breaks) and a.breaks[i] <= b.breaks[j]):
            start = a.breaks[i]
            j += j < len(b.breaks) and b.breaks[j] == start
            i += 1
        else:
            start = b.breaks[j]
            j += 1
        pieces.append((start, f(a.outcomes[i], b.outcomes[j])))
    return _steps(pieces, f(a.on_null, b.on_null))


def invert(a: Steps) -> Steps:
    return Steps(a.breaks, tuple(map(not3, a.outcomes)), not3(a.on_null))


def _compare(op: str, v: Value) -> Steps:
    below, above = (v, BELOW), (v, ABOVE)
    match op:
        case "<":  #   =====v-----
            return Steps((below,), (True, False), None)
        case "<=":  #  =====V-----
            return Steps((above,), (True, False), None)
        case ">":  #   -----v=====
            return Steps((above,), (False, True), None)
        case ">=":  #  -----V=====
            return Steps((below,), (False, True), None)
        case "=":  #   -----V-----
            return Steps((below, above), (False, True, False), None)
    return Steps((below, above), (True, False, True), None)


@lru_cache(maxsize=1 << 15)
def stepwise(p: Predicate) -> Stepwise | None:
    """Return the step function of a predicate about one term with literals of one kind; None for other predicates."""
    match p:
        case Compare(term, op, literal):
            return Stepwise(term, literal.kind, _compare(op, literal.value))
        case In(term, literals):
            if len({x.kind for x in literals}) > 1:
                return None
            pieces: list[tuple[Break | None, Outcome]] = [(None, False)]
            for v in sorted({x.value for x in literals}):
                pieces += [((v, BELOW), True), ((v, ABOVE), False)]
            return Stepwise(term, literals[0].kind if literals else None, _steps(pieces, None))
        case Prefix(term, prefix):
            end = prefix_end(prefix)
            pieces = [(None, prefix == "")] + ([((prefix, BELOW), True)] if prefix else [])
            return Stepwise(term, kinds.STRING, _steps(pieces + ([((end, BELOW), False)] if end else []), None))
        case IsNull(term):
            return Stepwise(term, None, Steps((), (False,), True))
        case Not(child):
            inner = stepwise(child)
            return inner and Stepwise(inner.term, inner.kind, invert(inner.steps))
        case And(kids):
            return combined_stepwise(and3, kids)
        case Or(kids):
            return combined_stepwise(or3, kids)
    return None


def combined_stepwise(f: Callable[[Outcome, Outcome], Outcome], kids: tuple[Predicate, ...]) -> Stepwise | None:
    """Return the step function of the children joined by `f`; None unless all are constants or about the same term."""
    of_children = [stepwise(k) for k in kids if not isinstance(k, Const)]
    functions: list[Stepwise] = [function for function in of_children if function]
    if not functions or len(functions) < len(of_children):
        return None
    literal_kinds = {function.kind for function in functions} - {None}
    if len({function.term for function in functions}) > 1 or len(literal_kinds) > 1:
        return None
    steps = [function.steps for function in functions]
    steps += [Steps((), (k.value,), k.value) for k in kids if isinstance(k, Const)]
    return Stepwise(functions[0].term, next(iter(literal_kinds), None), reduce(lambda a, b: combine(f, a, b), steps))


def true_within(a: Steps, b: Steps) -> bool:
    """True if `b` is TRUE wherever `a` is TRUE."""
    if a.on_null is True and b.on_null is not True:
        return False
    for i, outcome in enumerate(a.outcomes):
        if outcome is True:
            first = bisect_right(b.breaks, a.breaks[i - 1]) if i else 0
            last = bisect_left(b.breaks, a.breaks[i]) if i < len(a.breaks) else len(b.breaks)
            if any(b_outcome is not True for b_outcome in b.outcomes[first : last + 1]):
                return False
    return True


def true_points(steps: Steps) -> list[Value] | None:
    """Return the only values on which the steps are TRUE; None if they are TRUE on a range."""
    spans = zip((None, *steps.breaks), (*steps.breaks, None), steps.outcomes, strict=True)
    points = [_point(start, end) for start, end, outcome in spans if outcome is True]
    return None if None in points else [point[0] for point in points if point]


def predicate_from_steps(s: Stepwise) -> Predicate | None:
    """Return the shortest predicate with these steps; None if some value maps to NULL, since no atom does that.

    >>> from hedgerow.core.predicates.nodes import col, lit
    >>> from hedgerow.core.predicates.sql_text import predicate_text
    >>> x = col("x")
    >>> bounds = And((Compare(x, ">=", lit(5)), Compare(x, ">", lit(7)), Compare(x, "<", lit(9))))
    >>> predicate_text(predicate_from_steps(stepwise(bounds)))
    'x > 7 AND x < 9'
    """
    steps, term = s.steps, s.term
    if None in steps.outcomes:
        return None
    if not steps.breaks:
        on_value, on_null = steps.outcomes[0], steps.on_null
        if on_null is None:
            return Not(In(term, ())) if on_value else In(term, ())
        if on_value is on_null:
            return TRUE if on_value else FALSE
        return Not(IsNull(term)) if on_value else IsNull(term)
    body = _value_predicate(term, s.kind or "", steps)
    match steps.on_null:
        case True:
            return disjunction(*_operands(Or, body), IsNull(term))
        case False:
            return conjunction(*_operands(And, body), Not(IsNull(term)))
    return body


def _operands(node: type[And] | type[Or], p: Predicate) -> tuple[Predicate, ...]:
    return p.children if isinstance(p, node) else (p,)


def _value_predicate(term: Term, kind: str, steps: Steps) -> Predicate:
    """Return a predicate with these steps on values; its outcome on NULL may differ."""
    starts: list[Break | None] = [None, *steps.breaks]
    ends: list[Break | None] = [*steps.breaks, None]
    spans = list(zip(starts, ends, steps.outcomes, strict=True))
    holes = [_point(a, b) for a, b, outcome in spans if outcome is False]
    if all(hole is not None for hole in holes):  # TRUE except at some values: <> or NOT IN
        return _equals_any(term, kind, [h[0] for h in holes if h], negated=True)
    if len(holes) == 1:  # TRUE except in one range
        a, b = next((a, b) for a, b, outcome in spans if outcome is False)
        if a is not None and isinstance(hole := _range(term, kind, a, b), Prefix):
            return Not(hole)
    points = [p[0] for a, b, outcome in spans if outcome is True and (p := _point(a, b))]
    ranges = [_range(term, kind, a, b) for a, b, outcome in spans if outcome is True and not _point(a, b)]
    return disjunction(*([_equals_any(term, kind, points)] if points else []), *ranges)


def _point(start: Break | None, end: Break | None) -> tuple[Value] | None:
    """Return the only value between two breaks, in a tuple because it may be falsy; None if there are more."""
    if start is None or end is None or start[1] != BELOW or end != (start[0], ABOVE):
        return None
    return (start[0],)


def _equals_any(term: Term, kind: str, values: list[Any], negated: bool = False) -> Predicate:
    if len(values) == 1:
        return Compare(term, "<>" if negated else "=", Literal(kind, values[0]))
    listed = In(term, tuple(Literal(kind, v) for v in values))
    return Not(listed) if negated else listed


def _range(term: Term, kind: str, start: Break | None, end: Break | None) -> Predicate:
    if kind == kinds.STRING and start and start[1] == BELOW and start[0]:
        following = prefix_end(start[0])
        if (end is None and following is None) or end == (following, BELOW):
            return Prefix(term, start[0])
    bounds = []
    if start is not None:
        bounds.append(Compare(term, ">" if start[1] == ABOVE else ">=", Literal(kind, start[0])))
    if end is not None:
        bounds.append(Compare(term, "<=" if end[1] == ABOVE else "<", Literal(kind, end[0])))
    return conjunction(*bounds)
