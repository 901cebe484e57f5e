"""Finds join edges: a row of one base table matters only if its column equals a column of some row of another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from hedgerow.sql.relations import Base, JoinStep, Scope, Select, outputs
from hedgerow.sql.through import accepts_condition, trace, traces

Conditions = list[exp.Expr]
End = tuple[str, tuple[str, ...]]  # a source's alias, and the path of names within it
Place = tuple[Scope, str, tuple[str, ...]]  # the same, with the scope of the source


@dataclass(eq=False)
class Edge:
    """Rows of `base` matter only if `column` equals `other_column` of some row of `other`."""

    base: Base
    column: str
    other: Base
    other_column: str


@dataclass(eq=False)
class Edges:
    """Collects the edges of joins (`of_join`) and of WHERE conditions (`of_where`)."""

    collected: list[Edge] = field(default_factory=list)

    def of_join(self, select: Select, step: JoinStep, on: Conditions, before: set[str]) -> None:
        both = step.kind in ("INNER", "SEMI")
        for left, right in _equalities(select.scope, on):
            ends = {left[0], right[0]}
            if step.source not in ends and not both:
                continue
            if right[0] != step.source:
                left, right = right, left
            if both or step.kind in ("LEFT", "ANTI"):
                self._edge(select.scope, right, left)
            if both or step.kind == "RIGHT":
                self._edge(select.scope, left, right)
        for name in step.using if step.kind == "INNER" else ():
            other = select.scope.merged.get(name.lower())
            if other in before:
                self._edge(select.scope, (step.source, (name,)), (other, (name,)))
                self._edge(select.scope, (other, (name,)), (step.source, (name,)))

    def of_where(self, select: Select, own: Conditions) -> None:
        for a, b in _equalities(select.scope, own):
            self._edge(select.scope, a, b)
            self._edge(select.scope, b, a)
        for condition in own:
            if isinstance(condition, exp.In) and isinstance(condition.this, exp.Column):
                query = condition.args.get("query")
                self._in_edges(select, condition.this, query.unnest() if isinstance(query, exp.Expr) else None)
            if isinstance(condition, exp.Exists):
                self._exists_edges(select, condition.this)
            self._correlated(select.scope, condition)

    def _exists_edges(self, select: Select, query: exp.Expr) -> None:
        """Adds the edges of EXISTS (... WHERE inner.key = outer.key): only outer rows with an inner key matter."""
        inner = next((r for node, r in select.nested.items() if node in _node_ids(query)), None)
        where = inner.node.args.get("where") if isinstance(inner, Select) else None
        if not isinstance(inner, Select) or where is None:
            return
        for condition in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
            for mine, outer in _sides(inner.scope, condition):
                if mine[0] is inner.scope and outer[0] is select.scope:
                    a = trace(outer[0].sources[outer[1]], outer[2])
                    b = trace(inner.scope.sources[mine[1]], mine[2])
                    if a is not None and b is not None:
                        self.collected.append(Edge(*a, *b))

    def _in_edges(self, select: Select, column: exp.Column, query: exp.Expr | None) -> None:
        resolved = select.scope.resolve(column)
        inner = next((r for node, r in select.nested.items() if query is not None and node in _node_ids(query)), None)
        columns = None if inner is None else outputs(inner)
        if resolved is None or inner is None or not columns or len(columns) != 1 or resolved[0] is not select.scope:
            return
        a = trace(select.scope.sources[resolved[1]], resolved[2])
        b = trace(inner, (columns[0][0],))
        if a is not None and b is not None:
            self.collected.append(Edge(*a, *b))
            if accepts_condition(inner, (columns[0][0],)):
                self.collected.append(Edge(*b, *a))

    def _correlated(self, scope: Scope, condition: exp.Expr) -> None:
        """Adds the edge of inner.key = outer.key in a subquery's WHERE: only inner rows with an outer key matter."""
        for mine, outer in _sides(scope, condition):
            if mine[0] is scope and outer[0] is not scope:
                a = trace(scope.sources[mine[1]], mine[2])
                b = trace(outer[0].sources[outer[1]], outer[2])
                if a is not None and b is not None and accepts_condition(scope.sources[mine[1]], mine[2]):
                    self.collected.append(Edge(*a, *b))

    def _edge(self, scope: Scope, mine: End, other: End) -> None:
        b = trace(scope.sources[other[0]], other[1])
        if b is not None and accepts_condition(scope.sources[mine[0]], mine[1]):
            self.collected += [Edge(*a, *b) for a in traces(scope.sources[mine[0]], mine[1])]


def _equalities(scope: Scope, conditions: Conditions) -> Iterator[tuple[End, End]]:
    for condition in conditions:
        if isinstance(condition, exp.EQ):
            a, b = condition.left.unnest(), condition.right.unnest()
            if isinstance(a, exp.Column) and isinstance(b, exp.Column):
                x, y = scope.resolve(a), scope.resolve(b)
                if x and y and x[0] is scope and y[0] is scope and x[1] != y[1]:
                    yield x[1:], y[1:]


def _sides(scope: Scope, condition: exp.Expr) -> list[tuple[Place, Place]]:
    """The origins of the two columns that the condition compares for equality, in both orders."""
    if not isinstance(condition, exp.EQ):
        return []
    sides = [scope.resolve(s) if isinstance(s, exp.Column) else None for s in (condition.left, condition.right)]
    a, b = sides
    return [] if a is None or b is None else [(a, b), (b, a)]


def _node_ids(node: exp.Expr) -> set[int]:
    return {id(node), *([id(node.parent)] if node.parent is not None else [])}
