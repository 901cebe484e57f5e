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

from hedgerow.core.expr import Column, Compare, In, Predicate, Prefix, atoms, term_text, terms
from hedgerow.core.outcomes import may_match
from hedgerow.core.rewrite import normalise
from hedgerow.core.stats import Stats, TermStats
from hedgerow.core.types import Type
from hedgerow.sql.predicates import predicate_of
from hedgerow.sql.relations import (
    Base,
    JoinStep,
    Relation,
    Scope,
    Select,
    SetOperation,
    Unknown,
    given,
    outputs,
)

# Conditions with any of these inside say nothing that holds for a row by itself, today and tomorrow.
_UNSAFE = (
    *(exp.Query, exp.AggFunc, exp.Window, exp.UDTF, exp.Explode, exp.Placeholder, exp.Parameter),
    *(
        exp.SessionParameter,
        exp.Rand,
        exp.Randn,
        exp.Uuid,
        exp.CurrentDate,
        exp.CurrentTime,
        exp.CurrentTimestamp,
    ),
    *(exp.CurrentUser, exp.Star, exp.Lambda),
)
_UNSAFE_NAMES = frozenset(
    """
    rand random randn uuid now current_date curdate current_timestamp localtimestamp current_timezone
    unix_timestamp input_file_name input_file_block_start input_file_block_length monotonically_increasing_id
    spark_partition_id current_user user session_user current_database current_catalog current_schema shuffle
    version randstr uniform explode explode_outer posexplode posexplode_outer inline inline_outer stack
    grouping grouping_id raise_error assert_true reflect java_method try_reflect
    """.split()  # noqa: SIM905
)
# A SELECT with any other clause takes no conditions from outside; beyond the second set nor its own WHERE.
_PLAIN_CLAUSES = {
    "with_",
    "expressions",
    "from_",
    "joins",
    "laterals",
    "where",
    "group",
    "having",
    "order",
    "distinct",
}
_CLAUSES = _PLAIN_CLAUSES | {
    "limit",
    "offset",
    "qualify",
    "windows",
    "sort",
    "cluster",
    "distribute",
    "hint",
    "into",
}

Conditions = list[exp.Expr]


@dataclass(eq=False)
class Edge:
    """Rows of `base` matter only if `column` equals `other_column` of some row of `other`."""

    base: Base
    column: str
    other: Base
    other_column: str


@dataclass(eq=False)
class Pushdown:
    """Collects the edges while conditions are handed down."""

    edges: list[Edge] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # columns that none of the tables in reach has

    def push(self, relation: Relation, wanted: Conditions) -> None:
        """Hand `wanted`, conditions about the relation's outputs, and the relation's own conditions to its bases."""
        match relation:
            case Base():
                relation.filters += wanted
            case SetOperation():
                for side in (relation.left, relation.right):
                    self.push(side, [c for c in (_by_position(w, relation, side) for w in wanted) if c is not None])
            case Select():
                self._select(relation, wanted)
            case Unknown():
                pass

    def _select(self, select: Select, wanted: Conditions) -> None:
        scope = select.scope
        handed: dict[str, Conditions] = {alias: [] for alias in scope.sources}
        nullable: set[str] = set()

        def hand(conditions: Conditions, to: set[str]) -> None:
            for alias in to:
                for condition in conditions:
                    found = _about(condition, scope, alias)
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
            self._join_edges(select, step, on, before)
            nullable |= here if step.kind in ("LEFT", "FULL") else set()
            nullable |= before if step.kind in ("RIGHT", "FULL") else set()
            before |= here
        where = select.node.args.get("where")
        odd = set(given(select.node)) - _CLAUSES
        own = _conjuncts(where.this) if isinstance(where, exp.Where) and not odd else []
        hand(own + [_substituted(w, select) for w in wanted if _plain_select(select)], before)
        self._where_edges(select, own)
        self.missing += _note_reads(select)
        for alias, source in scope.sources.items():
            self.push(source, handed[alias])
        for relation in select.nested.values():
            self.push(relation, [])

    # --- join edges ---

    def _join_edges(self, select: Select, step: JoinStep, on: Conditions, before: set[str]) -> None:
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

    def _where_edges(self, select: Select, own: Conditions) -> None:
        for a, b in _equalities(select.scope, own):
            self._edge(select.scope, a, b)
            self._edge(select.scope, b, a)
        for condition in own:
            if isinstance(condition, exp.In) and isinstance(condition.this, exp.Column):
                query = condition.args.get("query")
                self._in_edges(select, condition.this, query.unnest() if isinstance(query, exp.Expr) else None)
            self._correlated(select.scope, condition)

    def _in_edges(self, select: Select, column: exp.Column, query: exp.Expr | None) -> None:
        found = select.scope.resolve(column)
        inner = next((r for node, r in select.nested.items() if query is not None and node in _ids(query)), None)
        columns = None if inner is None else outputs(inner)
        if found is None or inner is None or not columns or len(columns) != 1 or found[0] is not select.scope:
            return
        a = _trace(select.scope.sources[found[1]], found[2])
        b = _trace(inner, (columns[0][0],))
        if a is not None and b is not None:
            self.edges.append(Edge(*a, *b))
            if _takes(inner, (columns[0][0],)):
                self.edges.append(Edge(*b, *a))

    def _correlated(self, scope: Scope, condition: exp.Expr) -> None:
        """inner.key = outer.key in a subquery's WHERE: inner rows matter only for keys that the outer side has."""
        if not isinstance(condition, exp.EQ):
            return
        sides = [scope.resolve(s) if isinstance(s, exp.Column) else None for s in (condition.left, condition.right)]
        for mine, outer in (sides, sides[::-1]):
            if mine is not None and outer is not None and mine[0] is scope and outer[0] is not scope:
                a = _trace(scope.sources[mine[1]], mine[2])
                b = _trace(outer[0].sources[outer[1]], outer[2])
                if a is not None and b is not None and _takes(scope.sources[mine[1]], mine[2]):
                    self.edges.append(Edge(*a, *b))

    def _edge(self, scope: Scope, mine: tuple[str, tuple[str, ...]], other: tuple[str, tuple[str, ...]]) -> None:
        a, b = _trace(scope.sources[mine[0]], mine[1]), _trace(scope.sources[other[0]], other[1])
        if a is not None and b is not None and _takes(scope.sources[mine[0]], mine[1]):
            self.edges.append(Edge(*a, *b))


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


def _about(condition: exp.Expr, scope: Scope, alias: str) -> exp.Expr | None:
    """The strongest condition on one source that follows, about the source's outputs; None if none does."""
    source = scope.sources[alias]

    def mine(column: exp.Column) -> tuple[str, ...] | None:
        found = scope.resolve(column)
        ours = found is not None and found[0] is scope and found[1] == alias and _takes(source, found[2])
        return found[2] if ours and found is not None and len(found[2]) <= 4 else None

    found = implied(condition, lambda column: mine(column) is not None)
    return found and _replaced(found, lambda column: _named(mine(column) or ()))


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
    return not any(
        isinstance(n, _UNSAFE) or (isinstance(n, exp.Anonymous) and n.name.lower() in _UNSAFE_NAMES)
        for n in node.walk()
    )


def _rejects_null(condition: exp.Expr) -> bool:
    """Not TRUE for a row of nothing but NULLs: the one evaluator is asked about a block of such rows."""
    p = normalise(predicate_of(condition, lambda c: Column(tuple(part.name for part in c.parts))))
    kinds: dict[str, str] = {term_text(t): "string" for t in terms(p) if isinstance(t, Column)}
    for atom in atoms(p):
        match atom:
            case Compare(term=Column() as t, literal=literal) | In(term=Column() as t, literals=(literal, *_)):
                kinds[term_text(t)] = literal.kind
            case Prefix(term=Column() as t):
                kinds[term_text(t)] = "string"
    nulls = {name: TermStats.build(Type(kind), [None], [1], [False]) for name, kind in kinds.items()}
    return not may_match(p, Stats(np.ones(1, np.int64), nulls, {}))[0]


# --- through relations ----------------------------------------------------------------------------


def _takes(relation: Relation, path: tuple[str, ...]) -> bool:
    """Whether a condition on this output may be handed to the relation."""
    match relation:
        case Base(columns=columns):
            return columns is None or path[0].lower() in columns
        case Unknown():
            return False
        case SetOperation():
            place = _place(relation, path[0])
            sides = (relation.left, relation.right)
            names = [None if place is None else _name_at(side, place) for side in sides]
            odd = set(given(relation.node)) - {"with_", "this", "expression", "distinct", "order", "sort"}
            return not odd and all(
                n is not None and _takes(s, (n, *path[1:])) for s, n in zip(sides, names, strict=True)
            )
        case Select():
            if not _plain_select(relation):
                return False
            node = _output(relation, path[0])
            return node is not None and (isinstance(node, exp.Column) or len(path) == 1) and _grouped_by(relation, node)


def _output(relation: Relation, name: str) -> exp.Expr | None:
    found = [node for n, node in outputs(relation) or () if n.lower() == name.lower()]
    if len(found) == 1:
        return found[0]
    if isinstance(relation, Select) and outputs(relation) is None and _star_only(relation):
        return exp.column(name, table=next(iter(relation.scope.sources)), quoted=True)
    return None


def _star_only(select: Select) -> bool:
    """SELECT * FROM one source whose columns are not known: every name is the source's."""
    items = select.node.expressions
    plain = len(items) == 1 and isinstance(items[0], exp.Star) and not any(items[0].args.values())
    return plain and len(select.scope.sources) == 1 and not select.renamed


def _place(relation: Relation, name: str) -> int | None:
    found = [i for i, (n, _) in enumerate(outputs(relation) or ()) if n.lower() == name.lower()]
    return found[0] if len(found) == 1 else None


def _name_at(relation: Relation, place: int) -> str | None:
    found = outputs(relation)
    if found is None or place >= len(found):
        return None
    name = found[place][0]
    return name if sum(n.lower() == name.lower() for n, _ in found) == 1 else None


def _plain_select(select: Select) -> bool:
    """Leaving out input rows that give no wanted output row leaves all other output rows as they were."""
    node = select.node
    if set(given(node)) - _PLAIN_CLAUSES:
        return False
    distinct, group = node.args.get("distinct"), node.args.get("group")
    if isinstance(distinct, exp.Distinct) and distinct.args.get("on"):
        return False
    if isinstance(group, exp.Group) and given(group) != ["expressions"]:
        return False  # ROLLUP, CUBE, GROUPING SETS, ALL: a key may be NULL for another reason than its rows
    listed = [*node.expressions, *([node.args["having"]] if node.args.get("having") else [])]
    own = [n for item in listed for n in item.walk(prune=lambda n: isinstance(n, exp.Query))]
    if any(isinstance(n, exp.Window) for n in own):
        return False
    return bool(group) or not (node.args.get("having") or any(isinstance(n, exp.AggFunc) for n in own))


def _grouped_by(select: Select, node: exp.Expr) -> bool:
    """Without GROUP BY any output will do; with one, only its keys."""
    group = select.node.args.get("group")
    if not isinstance(group, exp.Group):
        return not any(isinstance(n, exp.AggFunc) for n in node.walk())
    for key in group.expressions:
        if isinstance(key, exp.Literal) and not key.is_string:
            items, place = select.node.expressions, int(key.name) - 1
            key = items[place].unalias() if 0 <= place < len(items) else key
        if key == node or _same_column(select.scope, key, node):
            return True
    return False


def _same_column(scope: Scope, a: exp.Expr, b: exp.Expr) -> bool:
    if not isinstance(a, exp.Column) or not isinstance(b, exp.Column):
        return False
    x, y = scope.resolve(a), scope.resolve(b)
    return x is not None and y is not None and x[0] is y[0] and x[1] == y[1] and _lower(x[2]) == _lower(y[2])


def _lower(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(p.lower() for p in path)


def _substituted(condition: exp.Expr, select: Select) -> exp.Expr:
    """A condition on a select's outputs, over the columns of its sources."""

    def inner(column: exp.Column) -> exp.Expr:
        first, *rest = (p.name for p in column.parts)
        node = _output(select, first)
        if node is None:
            return exp.Column(this=exp.Star())  # `_takes` refused it: no name resolves to this
        node = node.copy()
        if rest and isinstance(node, exp.Column):
            return _named((*(p.name for p in node.parts), *rest))
        return node if isinstance(node, exp.Column) else exp.paren(node, copy=False)

    return _replaced(condition, inner)


def _by_position(condition: exp.Expr, relation: SetOperation, side: Relation) -> exp.Expr | None:
    names: dict[str, str] = {}
    for column in condition.find_all(exp.Column):
        place = _place(relation, column.parts[0].name)
        name = None if place is None else _name_at(side, place)
        if name is None:
            return None
        names[column.parts[0].name] = name
    return _replaced(condition, lambda c: _named((names[c.parts[0].name], *(p.name for p in c.parts[1:]))))


def _replaced(node: exp.Expr, f: Callable[[exp.Column], exp.Expr]) -> exp.Expr:
    return node.copy().transform(lambda n: f(n) if isinstance(n, exp.Column) else n, copy=False)


def _named(path: tuple[str, ...]) -> exp.Column:
    keys = ("this", "table", "db", "catalog")
    return exp.Column(**{k: exp.to_identifier(p, quoted=True) for k, p in zip(keys, path[::-1], strict=False)})


# --- edges and reads ------------------------------------------------------------------------------


def _equalities(
    scope: Scope, conditions: Conditions
) -> Iterator[tuple[tuple[str, tuple[str, ...]], tuple[str, tuple[str, ...]]]]:
    for condition in conditions:
        if isinstance(condition, exp.EQ):
            a, b = condition.left.unnest(), condition.right.unnest()
            if isinstance(a, exp.Column) and isinstance(b, exp.Column):
                x, y = scope.resolve(a), scope.resolve(b)
                if x and y and x[0] is scope and y[0] is scope and x[1] != y[1]:
                    yield x[1:], y[1:]


def _trace(relation: Relation, path: tuple[str, ...]) -> tuple[Base, str] | None:
    """The base column whose values an output has, followed through plain columns."""
    match relation:
        case Base() if len(path) == 1:
            return relation, (relation.columns or {}).get(path[0].lower(), path[0])
        case Select():
            node = _output(relation, path[0])
            found = relation.scope.resolve(node) if isinstance(node, exp.Column) and len(path) == 1 else None
            if found is not None and found[0] is relation.scope:
                return _trace(relation.scope.sources[found[1]], found[2])
    return None


def _ids(node: exp.Expr) -> set[int]:
    return {id(node), *([id(node.parent)] if node.parent is not None else [])}


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
