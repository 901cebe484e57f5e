"""Find join edges: a row of one base table matters only if its column equals a column of some row of another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from hedgerow.sql.column_lineage import accepts_condition, origins, single_origin
from hedgerow.sql.relations import Base, JoinStep, Relation, Scope, Select, outputs

Conditions = list[exp.Expr]
End = tuple[str, tuple[str, ...]]  # a source's alias, and the path of names within it
Place = tuple[Scope, str, tuple[str, ...]]  # an end, with the scope of the source


@dataclass(eq=False)
class Edge:
    """A join edge: rows of `base` matter only if `column` equals the other column of some row; None: a computed one."""

    base: Base
    column: str
    other: tuple[Base, str] | None


def edges_of_join(select: Select, step: JoinStep, on: Conditions, before: set[str]) -> Iterator[Edge]:
    """Yield the edges of a join. `before`: the aliases of the sources before it."""
    both = step.kind in ("INNER", "SEMI")
    for left, right in _equalities(select.scope, on):
        if step.source not in (left[0], right[0]) and not both:
            continue
        if right[0] != step.source:
            left, right = right, left
        if both or step.kind in ("LEFT", "ANTI"):
            yield from _edges(select.scope, right, left)
        if both or step.kind == "RIGHT":
            yield from _edges(select.scope, left, right)
    for name in step.using if step.kind == "INNER" else ():
        merged_with = select.scope.merged.get(name.lower())
        if merged_with in before:
            yield from _edges(select.scope, (step.source, (name,)), (merged_with, (name,)))
            yield from _edges(select.scope, (merged_with, (name,)), (step.source, (name,)))


def edges_of_where(select: Select, where: Conditions) -> Iterator[Edge]:
    """Yield the edges of the conditions of a WHERE."""
    for a, b in _equalities(select.scope, where):
        yield from _edges(select.scope, a, b)
        yield from _edges(select.scope, b, a)
    for condition in where:
        if isinstance(condition, exp.In) and isinstance(condition.this, exp.Column):
            yield from _edges_of_in(select, condition.this, condition.args.get("query"))
        if isinstance(condition, exp.Exists):
            yield from _edges_of_exists(select, condition.this)
        yield from _edges_to_outer(select.scope, condition)


def _edges_of_exists(select: Select, query: exp.Expr) -> Iterator[Edge]:
    """Yield the edges of EXISTS (... WHERE inner.key = outer.key): only outer rows with an inner key matter."""
    inner = _nested(select, query)
    where = inner.node.args.get("where") if isinstance(inner, Select) else None
    if not isinstance(inner, Select) or where is None:
        return
    for condition in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
        for own, outer in _sides(inner.scope, condition):
            if own[0] is inner.scope and outer[0] is select.scope:
                a = _base_column(outer)
                if a is not None:
                    yield Edge(*a, _base_column(own))


def _edges_of_in(select: Select, column: exp.Column, query: exp.Expr | None) -> Iterator[Edge]:
    """Yield the edges of key IN (SELECT key ...)."""
    resolved = select.scope.resolve(column)
    inner = None if query is None else _nested(select, query.unnest())
    columns = None if inner is None else outputs(inner)
    if resolved is None or inner is None or not columns or len(columns) != 1 or resolved[0] is not select.scope:
        return
    a, b = _base_column(resolved), single_origin(inner, (columns[0][0],))
    if a is not None:
        yield Edge(*a, b)
    if b is not None and accepts_condition(inner, (columns[0][0],)):
        yield Edge(*b, a)


def _edges_to_outer(scope: Scope, condition: exp.Expr) -> Iterator[Edge]:
    """Yield the edge of inner.key = outer.key in a subquery's WHERE: only inner rows with an outer key matter."""
    for own, outer in _sides(scope, condition):
        if own[0] is scope and outer[0] is not scope:
            a = _base_column(own)
            if a is not None and accepts_condition(scope.sources[own[1]], own[2]):
                yield Edge(*a, _base_column(outer))


def _edges(scope: Scope, end: End, other_end: End) -> Iterator[Edge]:
    """Yield the edges of `end = other_end`: base rows behind `end` matter only with a partner behind `other_end`."""
    if accepts_condition(scope.sources[end[0]], end[1]):
        b = _base_column((scope, *other_end))
        yield from (Edge(*a, b) for a in origins(scope.sources[end[0]], end[1]))


def _base_column(place: Place) -> tuple[Base, str] | None:
    scope, alias, path = place
    return single_origin(scope.sources[alias], path)


def _nested(select: Select, query: exp.Expr) -> Relation | None:
    """Return the relation of a subquery in the select's expressions."""
    ids = {id(query), id(query.parent)}
    return next((relation for node, relation in select.nested.items() if node in ids), None)


def _equalities(scope: Scope, conditions: Conditions) -> Iterator[tuple[End, End]]:
    for condition in conditions:
        if isinstance(condition, exp.EQ):
            a, b = condition.left.unnest(), condition.right.unnest()
            if isinstance(a, exp.Column) and isinstance(b, exp.Column):
                x, y = scope.resolve(a), scope.resolve(b)
                if x and y and x[0] is scope and y[0] is scope and x[1] != y[1]:
                    yield x[1:], y[1:]


def _sides(scope: Scope, condition: exp.Expr) -> list[tuple[Place, Place]]:
    """Return the two columns of an equality as a pair of places, in both orders; nothing for other conditions."""
    if not isinstance(condition, exp.EQ):
        return []
    a, b = (scope.resolve(s) if isinstance(s, exp.Column) else None for s in (condition.left, condition.right))
    return [] if a is None or b is None else [(a, b), (b, a)]
