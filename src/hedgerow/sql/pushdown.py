"""Push each condition down to the base tables of its columns, as far as that changes no query's result.

A row of a base table may be dropped if a condition on only this table is not TRUE. Conditions come from

    WHERE, inner ON        always; on the nullable side of an outer join only if NULLs fail the condition too
    ON of LEFT JOIN        only for the right side: a left row stays, matched or not
    derived tables, CTEs   through bare columns, set operations and group keys; never below LIMIT or a window
    a OR b                 if both sides imply a condition on that table
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
from sqlglot import exp

from hedgerow.core.predicates.nodes import Column, Compare, In, Predicate, Prefix, atoms_of, terms_of
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import Stats, TermStats
from hedgerow.core.pruning.evaluator import may_match
from hedgerow.sql.column_lineage import (
    CLAUSES,
    accepts_condition,
    column_node,
    is_pushable,
    on_side,
    over_sources,
    replace_columns,
)
from hedgerow.sql.join_edges import Conditions, Edge, edges_of_join, edges_of_where
from hedgerow.sql.open_values import OpenValues, has_open_value, is_learnable
from hedgerow.sql.predicates import predicate_from_sql
from hedgerow.sql.relations import Base, Relation, Scope, Select, SetOperation, Unknown, clauses_of
from hedgerow.sql.wanted_rows import note_wanted


@dataclass(eq=False)
class Pushdown:
    """The join edges and missing columns that are met while conditions are pushed down a tree of relations."""

    edges: list[Edge] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # columns that no table in scope has

    def push(self, relation: Relation, conditions: Conditions) -> None:
        """Push these conditions on the relation's outputs, and the relation's own conditions, to its base tables."""
        match relation:
            case Base():
                relation.filters += conditions
            case SetOperation():
                for side in (relation.left, relation.right):
                    self.push(side, [c for c in (on_side(c, relation, side) for c in conditions) if c is not None])
            case Select():
                self._select(relation, conditions)
            case Unknown():
                pass

    def _select(self, select: Select, from_outside: Conditions) -> None:
        scope = select.scope
        pushed: dict[str, Conditions] = {alias: [] for alias in scope.sources}
        nullable: set[str] = set()

        def push_to(aliases: set[str], conditions: Conditions, all_visible: bool = False) -> None:
            for alias in aliases:
                for condition in conditions:
                    implied = _condition_on(condition, scope, alias, all_visible)
                    if implied is not None and (alias not in nullable or _rejects_null(implied)):
                        pushed[alias].append(implied)

        before: set[str] = set()
        for step in select.joins:
            on, joined = _conjuncts(step.on), {step.source} & set(scope.sources)
            match step.kind:
                case "INNER" | "SEMI":
                    push_to(before | joined, on)
                case "LEFT" | "ANTI":
                    push_to(joined, on)
                case "RIGHT":
                    push_to(before, on)
            self.edges += edges_of_join(select, step, on, before)
            nullable |= joined if step.kind in ("LEFT", "FULL") else set()
            nullable |= before if step.kind in ("RIGHT", "FULL") else set()
            before |= joined
        where = select.node.args.get("where")
        unknown_clauses = set(clauses_of(select.node)) - CLAUSES
        own = _conjuncts(where.this) if isinstance(where, exp.Where) and not unknown_clauses else []
        all_visible = all(step.kind not in ("SEMI", "ANTI") and not step.using for step in select.joins)
        inner = [over_sources(c, select) for c in from_outside] if is_pushable(select) else []
        push_to(before, own + inner, all_visible)
        self.edges += edges_of_where(select, own)
        self.missing += _note_reads(select)
        note_wanted(select)
        for alias, source in scope.sources.items():
            self.push(source, pushed[alias])
        for relation in select.nested.values():
            self.push(relation, [])


def predicates(base: Base, open_values: OpenValues) -> Iterator[Predicate]:
    """Yield the conditions of the base table, over its own columns; those with an unknown value are left out."""

    def resolve(column: exp.Column) -> Column:
        return base.column([part.name for part in column.parts])

    for condition in () if base.whole else base.filters:
        closed = open_values.closed(condition, base.table, resolve) if has_open_value(condition) else condition
        if closed is not None:
            yield predicate_from_sql(closed, resolve)


# --- conditions -----------------------------------------------------------------------------------


def _conjuncts(node: exp.Expr | None) -> Conditions:
    node = None if node is None else node.unnest()
    if isinstance(node, exp.And):
        return [c for k in node.flatten() for c in _conjuncts(k)]
    return [] if node is None else [node]


def _condition_on(condition: exp.Expr, scope: Scope, alias: str, all_visible: bool) -> exp.Expr | None:
    """Return the strongest condition on one source's outputs that the condition implies; None if it implies none."""
    source = scope.sources[alias]

    def path_in_source(column: exp.Column) -> tuple[str, ...] | None:
        place = scope.resolve(column, all_visible)
        if place is None or place[0] is not scope or place[1] != alias:
            return None
        return place[2] if accepts_condition(source, place[2]) and len(place[2]) <= 4 else None

    implied = implied_condition(condition, lambda column: path_in_source(column) is not None)
    return implied and replace_columns(implied, lambda column: column_node(path_in_source(column) or ()))


def implied_condition(node: exp.Expr, accepts: Callable[[exp.Column], bool]) -> exp.Expr | None:
    """Return the strongest condition, with only columns that `accepts` allows, that holds wherever `node` is TRUE."""
    node = node.unnest()
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
        node = exp.And(this=low, expression=exp.LTE(this=node.this.copy(), expression=node.args["high"].copy()))
    match node:
        case exp.And():
            implied = [part for k in node.flatten() if (part := implied_condition(k, accepts)) is not None]
            return exp.and_(*implied, copy=False) if implied else None
        case exp.Or():
            sides = [implied_condition(k, accepts) for k in node.flatten()]
            return exp.or_(*sides, copy=False) if None not in sides else None
        case exp.Not():
            inner = node.this.unnest()
            if isinstance(inner, exp.Not):
                return implied_condition(inner.this, accepts)
            if isinstance(inner, exp.And | exp.Or):
                opposite = exp.Or if isinstance(inner, exp.And) else exp.And
                kids: list[exp.Expr] = [exp.Not(this=exp.paren(k.copy())) for k in inner.flatten()]
                return implied_condition(reduce(lambda a, b: opposite(this=a, expression=b), kids), accepts)
    columns = list(node.find_all(exp.Column))
    return node.copy() if columns and is_learnable(node) and all(map(accepts, columns)) else None


def _rejects_null(condition: exp.Expr) -> bool:
    """True if the condition is not TRUE when all columns are NULL; evaluates it on a block with one such row."""
    p = normalise(predicate_from_sql(condition, lambda c: Column(tuple(part.name for part in c.parts))))
    kinds: dict[str, str] = {term_text(t): "string" for t in terms_of(p) if isinstance(t, Column)}
    for atom in atoms_of(p):
        match atom:
            case Compare(term=Column() as t, literal=literal) | In(term=Column() as t, literals=(literal, *_)):
                kinds[term_text(t)] = literal.kind
            case Prefix(term=Column() as t):
                kinds[term_text(t)] = "string"
    nulls = {name: TermStats.build(Type(kind), [None], [1], [False]) for name, kind in kinds.items()}
    return not may_match(p, Stats(np.ones(1, np.int64), nulls, {}))[0]


# --- columns that a query reads -------------------------------------------------------------------


def _note_reads(select: Select) -> list[str]:
    """Note the columns that the select's own expressions read; return the columns that no table in scope has."""
    node = select.node
    missing: list[str] = []
    if isinstance(node.parent, exp.Exists):
        node = node.copy().select("1", append=False, copy=False)  # EXISTS never reads its select list
    aliases = {item.alias.lower() for item in node.expressions if item.alias}
    for n in node.walk(prune=lambda n: n is not node and isinstance(n, exp.Query)):
        if isinstance(n, exp.Star) and not isinstance(n.parent, exp.Count):
            starred = [n.parent.table.lower()] if isinstance(n.parent, exp.Column) else list(select.scope.sources)
            for alias in starred:
                _note_read(select.scope.sources.get(alias), None)
        elif isinstance(n, exp.Column) and not isinstance(n.this, exp.Star):
            place = select.scope.resolve(n)
            if place is not None:
                source = place[0].sources[place[1]]
                _note_read(source, place[2][0])
                if isinstance(n.parent, exp.Sum | exp.Avg) and isinstance(source, Base) and len(place[2]) == 1:
                    source.sums.add(source.spelled(place[2][0]))
            elif n.table or n.name.lower() not in aliases:  # ORDER BY may name an output
                _note_all_read(select.scope)
                if not select.scope.has_alias(names := [p.name for p in n.parts]) and select.scope.lacks(names):
                    missing.append(".".join(names))
    return missing


def _note_all_read(scope: Scope | None) -> None:
    while scope is not None:
        for source in scope.sources.values():
            _note_read(source, None)
        scope = scope.outer


def _note_read(source: Relation | None, name: str | None) -> None:
    if not isinstance(source, Base):
        return
    if name is None:
        source.reads = set(source.columns.values()) if source.columns is not None else None
    elif source.reads is not None:
        source.reads.add(source.spelled(name))
