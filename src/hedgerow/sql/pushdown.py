"""Move each condition to the base tables it speaks of, as far as that changes no query's result.

A row of a base table may be left out if some condition that speaks only of it is not TRUE, and

    WHERE, inner ON        always; on the nullable side of an outer join only if NULLs fail the condition too
    ON of LEFT JOIN        only for the right side: a left row stays, matched or not
    derived tables, CTEs   through plain columns, set operations and group keys; never below LIMIT or a window
    a OR b                 if both sides say something about that table
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
from hedgerow.sql.edges import Edges
from hedgerow.sql.predicates import predicate_of
from hedgerow.sql.relations import Base, Relation, Scope, Select, SetOperation, Unknown, given
from hedgerow.sql.through import CLAUSES, by_position, named, plain_select, replaced, substituted, takes

# Conditions with any of these inside say nothing that holds for a row by itself, today and tomorrow.
_UNSAFE = (
    *(exp.Query, exp.AggFunc, exp.Window, exp.UDTF, exp.Explode, exp.Placeholder, exp.Parameter, exp.SessionParameter),
    *(exp.Star, exp.Lambda),
)
_UNSAFE_NAMES = frozenset(
    """
    rand random randn uuid now current_date current_time curdate current_timestamp localtimestamp current_timezone
    unix_timestamp input_file_name input_file_block_start input_file_block_length monotonically_increasing_id
    spark_partition_id current_user user session_user current_database current_catalog current_schema shuffle
    version randstr uniform explode explode_outer posexplode posexplode_outer inline inline_outer stack
    grouping grouping_id raise_error assert_true reflect java_method try_reflect
    """.replace("_", "").split()
)

Conditions = list[exp.Expr]


@dataclass(eq=False)
class Pushdown:
    """Collects the edges while conditions are handed down."""

    edges: Edges = field(default_factory=Edges)
    missing: list[str] = field(default_factory=list)  # columns that none of the tables in reach has

    def push(self, relation: Relation, wanted: Conditions) -> None:
        """Hand `wanted`, conditions about the relation's outputs, and the relation's own conditions to its bases."""
        match relation:
            case Base():
                relation.filters += wanted
            case SetOperation():
                for side in (relation.left, relation.right):
                    self.push(side, [c for c in (by_position(w, relation, side) for w in wanted) if c is not None])
            case Select():
                self._select(relation, wanted)
            case Unknown():
                pass

    def _select(self, select: Select, wanted: Conditions) -> None:
        scope = select.scope
        handed: dict[str, Conditions] = {alias: [] for alias in scope.sources}
        nullable: set[str] = set()

        def hand(conditions: Conditions, to: set[str], all_seen: bool = False) -> None:
            for alias in to:
                for condition in conditions:
                    found = _about(condition, scope, alias, all_seen)
                    if found is not None and (alias not in nullable or _rejects_null(found)):
                        handed[alias].append(found)

        before: set[str] = set()
        for step in select.joins:
            on, here = _conjuncts(step.on), {step.source} & set(scope.sources)
            match step.kind:
                case "INNER" | "SEMI":
                    hand(on, before | here)
                case "LEFT" | "ANTI":
                    hand(on, here)
                case "RIGHT":
                    hand(on, before)
            self.edges.of_join(select, step, on, before)
            nullable |= here if step.kind in ("LEFT", "FULL") else set()
            nullable |= before if step.kind in ("RIGHT", "FULL") else set()
            before |= here
        where = select.node.args.get("where")
        odd = set(given(select.node)) - CLAUSES
        own = _conjuncts(where.this) if isinstance(where, exp.Where) and not odd else []
        all_seen = all(step.kind not in ("SEMI", "ANTI") and not step.using for step in select.joins)
        hand(own + [substituted(w, select) for w in wanted if plain_select(select)], before, all_seen)
        self.edges.of_where(select, own)
        self.missing += _note_reads(select)
        for alias, source in scope.sources.items():
            self.push(source, handed[alias])
        for relation in select.nested.values():
            self.push(relation, [])


def predicates(base: Base) -> Iterator[Predicate]:
    """The base's conditions, over its own columns."""
    if base.whole:
        return
    for condition in base.filters:
        yield predicate_of(condition, lambda c: _own(base, c))


def _own(base: Base, column: exp.Column) -> Column:
    first, *rest = (p.name for p in column.parts)
    return Column(((base.columns or {}).get(first.lower(), first), *rest))


# --- conditions -----------------------------------------------------------------------------------


def _conjuncts(node: exp.Expr | None) -> Conditions:
    node = None if node is None else node.unnest()
    if isinstance(node, exp.And):
        return [c for k in node.flatten() for c in _conjuncts(k)]
    return [] if node is None else [node]


def _about(condition: exp.Expr, scope: Scope, alias: str, all_seen: bool) -> exp.Expr | None:
    """The strongest condition on one source that follows, about the source's outputs; None if none does."""
    source = scope.sources[alias]

    def mine(column: exp.Column) -> tuple[str, ...] | None:
        found = scope.resolve(column, all_seen)
        ours = found is not None and found[0] is scope and found[1] == alias and takes(source, found[2])
        return found[2] if ours and found is not None and len(found[2]) <= 4 else None

    found = implied(condition, lambda column: mine(column) is not None)
    return found and replaced(found, lambda column: named(mine(column) or ()))


def implied(node: exp.Expr, speaks: Callable[[exp.Column], bool]) -> exp.Expr | None:
    """The strongest condition that `node` being TRUE implies and that has only columns that `speaks` accepts."""
    node = node.unnest()
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
        node = exp.And(this=low, expression=exp.LTE(this=node.this.copy(), expression=node.args["high"].copy()))
    match node:
        case exp.And():
            kept = [found for k in node.flatten() if (found := implied(k, speaks)) is not None]
            return exp.and_(*kept, copy=False) if kept else None
        case exp.Or():
            sides = [implied(k, speaks) for k in node.flatten()]
            return exp.or_(*sides, copy=False) if None not in sides else None
        case exp.Not():
            inner = node.this.unnest()
            if isinstance(inner, exp.Not):
                return implied(inner.this, speaks)
            if isinstance(inner, exp.And | exp.Or):
                opposite = exp.Or if isinstance(inner, exp.And) else exp.And
                kids: list[exp.Expr] = [exp.Not(this=exp.paren(k.copy())) for k in inner.flatten()]
                return implied(reduce(lambda a, b: opposite(this=a, expression=b), kids), speaks)
    columns = list(node.find_all(exp.Column))
    return node.copy() if columns and _safe(node) and all(map(speaks, columns)) else None


def _safe(node: exp.Expr) -> bool:
    return not any(isinstance(n, _UNSAFE) or _names(n) & _UNSAFE_NAMES for n in node.walk())


def _names(node: exp.Expr) -> set[str]:
    """What a function is called, by the query or by sqlglot, without underscores."""
    if not isinstance(node, exp.Func):
        return set()
    names = [node.name] if isinstance(node, exp.Anonymous) else [type(node).__name__, *node.sql_names()]
    return {name.lower().replace("_", "") for name in names}


def _rejects_null(condition: exp.Expr) -> bool:
    """Not TRUE for a row of nothing but NULLs: the one evaluator is asked about a block of such rows."""
    p = normalise(predicate_of(condition, lambda c: Column(tuple(part.name for part in c.parts))))
    kinds: dict[str, str] = {term_text(t): "string" for t in terms_of(p) if isinstance(t, Column)}
    for atom in atoms_of(p):
        match atom:
            case Compare(term=Column() as t, literal=literal) | In(term=Column() as t, literals=(literal, *_)):
                kinds[term_text(t)] = literal.kind
            case Prefix(term=Column() as t):
                kinds[term_text(t)] = "string"
    nulls = {name: TermStats.build(Type(kind), [None], [1], [False]) for name, kind in kinds.items()}
    return not may_match(p, Stats(np.ones(1, np.int64), nulls, {}))[0]


# --- reads ---


def _note_reads(select: Select) -> list[str]:
    """Note which columns the select's own expressions name; returns those that no table in reach has."""
    node = select.node
    missing: list[str] = []
    if isinstance(node.parent, exp.Exists):
        node = node.copy().select("1", append=False, copy=False)  # what EXISTS selects is never read
    aliases = {item.alias.lower() for item in node.expressions if item.alias}
    for n in node.walk(prune=lambda n: n is not node and isinstance(n, exp.Query)):
        if isinstance(n, exp.Star) and not isinstance(n.parent, exp.Count):
            starred = [n.parent.table.lower()] if isinstance(n.parent, exp.Column) else list(select.scope.sources)
            for alias in starred:
                _read(select.scope.sources.get(alias), None)
        elif isinstance(n, exp.Column) and not isinstance(n.this, exp.Star):
            found = select.scope.resolve(n)
            if found is not None:
                _read(found[0].sources[found[1]], found[2][0])
            elif n.table or n.name.lower() not in aliases:  # ORDER BY may name an output
                _read_all(select.scope)
                if not select.scope.has_alias(names := [p.name for p in n.parts]) and select.scope.lacks(names):
                    missing.append(".".join(names))
    return missing


def _read_all(scope: Scope | None) -> None:
    while scope is not None:
        for source in scope.sources.values():
            _read(source, None)
        scope = scope.outer


def _read(source: Relation | None, name: str | None) -> None:
    if not isinstance(source, Base):
        return
    if name is None:
        source.reads = set(source.columns.values()) if source.columns is not None else None
    elif source.reads is not None:
        source.reads.add((source.columns or {}).get(name.lower(), name))
