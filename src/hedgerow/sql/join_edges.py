"""Find join edges: a row of one base table matters only if its column equals a column of some row of another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from hedgerow.sql.column_lineage import accepts_condition, trace, traces
from hedgerow.sql.relations import Base, JoinStep, Scope, Select, outputs

Conditions = list[exp.Expr]
End = tuple[str, tuple[str, ...]]  # a source's alias, and the path of names within it
Place = tuple[Scope, str, tuple[str, ...]]  # an end, with the scope of the source


@dataclass(eq=False)
class Edge:
    """A join edge: rows of `base` matter only if `column` equals `other_column` of some row of `other_base`."""

    base: Base
    column: str
    other_base: Base
    other_column: str


@dataclass(eq=False)
class Edges:
    """A collector of the edges of joins and of WHERE conditions."""

    collected: list[Edge] = field(default_factory=list)

    def add_join(self, select: Select, step: JoinStep, on: Conditions, before: set[str]) -> None:
        both = step.kind in ("INNER", "SEMI")
        for left, right in _equalities(select.scope, on):
            sources = {left[0], right[0]}
            if step.source not in sources and not both:
                continue
            if right[0] != step.source:
                left, right = right, left
            if both or step.kind in ("LEFT", "ANTI"):
                self._add_edge(select.scope, right, left)
            if both or step.kind == "RIGHT":
                self._add_edge(select.scope, left, right)
        for name in step.using if step.kind == "INNER" else ():
            merged_with = select.scope.merged.get(name.lower())
            if merged_with in before:
                self._add_edge(select.scope, (step.source, (name,)), (merged_with, (name,)))
                self._add_edge(select.scope, (merged_with, (name,)), (step.source, (name,)))

    def add_where(self, select: Select, where: Conditions) -> None:
        for a, b in _equalities(select.scope, where):
            self._add_edge(select.scope, a, b)
            self._add_edge(select.scope, b, a)
        for condition in where:
            if isinstance(condition, exp.In) and isinstance(condition.this, exp.Column):
                query = condition.args.get("query")
                self._in_edges(select, condition.this, query.unnest() if isinstance(query, exp.Expr) else None)
            if isinstance(condition, exp.Exists):
                self._exists_edges(select, condition.this)
            self._correlated(select.scope, condition)

    def _exists_edges(self, select: Select, query: exp.Expr) -> None:
        """Add the edges of EXISTS (... WHERE inner.key = outer.key): only outer rows with an inner key matter."""
        inner = next((r for node, r in select.nested.items() if node in _node_ids(query)), None)
        where = inner.node.args.get("where") if isinstance(inner, Select) else None
        if not isinstance(inner, Select) or where is None:
            return
        for condition in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
            for own, outer in _sides(inner.scope, condition):
                if own[0] is inner.scope and outer[0] is select.scope:
                    a = trace(outer[0].sources[outer[1]], outer[2])
                    b = trace(inner.scope.sources[own[1]], own[2])
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
        """Add the edge of inner.key = outer.key in a subquery's WHERE: only inner rows with an outer key matter."""
        for own, outer in _sides(scope, condition):
            if own[0] is scope and outer[0] is not scope:
                a = trace(scope.sources[own[1]], own[2])
                b = trace(outer[0].sources[outer[1]], outer[2])
                if a is not None and b is not None and accepts_condition(scope.sources[own[1]], own[2]):
                    self.collected.append(Edge(*a, *b))

    def _add_edge(self, scope: Scope, end: End, other_end: End) -> None:
        b = trace(scope.sources[other_end[0]], other_end[1])
        if b is not None and accepts_condition(scope.sources[end[0]], end[1]):
            self.collected += [Edge(*a, *b) for a in traces(scope.sources[end[0]], end[1])]


def _equalities(scope: Scope, conditions: Conditions) -> Iterator[tuple[End, End]]:
    for condition in conditions:
        if isinstance(condition, exp.EQ):
            a, b = condition.left.unnest(), condition.right.unnest()
            if isinstance(a, exp.Column) and isinstance(b, exp.Column):
                x, y = scope.resolve(a), scope.resolve(b)
                if x and y and x[0] is scope and y[0] is scope and x[1] != y[1]:
                    yield x[1:], y[1:]


def _sides(scope: Scope, condition: exp.Expr) -> list[tuple[Place, Place]]:
    """Return the origins of the two columns that the condition compares for equality, in both orders."""
    if not isinstance(condition, exp.EQ):
        return []
    sides = [scope.resolve(s) if isinstance(s, exp.Column) else None for s in (condition.left, condition.right)]
    a, b = sides
    return [] if a is None or b is None else [(a, b), (b, a)]


def _node_ids(node: exp.Expr) -> set[int]:
    return {id(node), *([id(node.parent)] if node.parent is not None else [])}
