"""Follow an output column of a relation to its origin, and decide whether a condition on it may be pushed inside.

Conditions pass through bare columns, set operations and group keys. They do not pass below LIMIT, a window, DISTINCT ON
or a ROLLUP: there, dropping a row would change other rows.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from hedgerow.sql.relations import Base, Relation, Scope, Select, SetOperation, Unknown, clauses_of, outputs

# A SELECT accepts conditions from outside only if it has no other clauses. If it has clauses outside of CLAUSES, not
# even its own WHERE is used.
_PUSHABLE_CLAUSES = set("with_ expressions from_ joins laterals where group having order distinct".split())  # noqa: SIM905
# A set operation accepts conditions only if it has no other clauses.
_SET_CLAUSES = {"with_", "this", "expression", "distinct", "order", "sort"}
# Functions that may aggregate rows; a function that sqlglot does not know may be one.
_MAY_AGGREGATE = (exp.AggFunc, exp.Anonymous, exp.Any)
CLAUSES = _PUSHABLE_CLAUSES | set("limit offset qualify windows sort cluster distribute hint into".split())  # noqa: SIM905


def accepts_condition(relation: Relation, path: tuple[str, ...]) -> bool:
    """True if a condition on this output may be pushed into the relation."""
    match relation:
        case Base(columns=columns):
            return columns is None or path[0].lower() in columns
        case Unknown():
            return False
        case SetOperation():
            if set(clauses_of(relation.node)) - _SET_CLAUSES:
                return False
            names = ((side, name_on_side(relation, side, path[0])) for side in (relation.left, relation.right))
            return all(name is not None and accepts_condition(side, (name, *path[1:])) for side, name in names)
        case Select():
            if not is_pushable(relation):
                return False
            node = output_of(relation, path[0])
            return node is not None and (isinstance(node, exp.Column) or len(path) == 1) and _is_key(relation, node)


def output_of(relation: Relation, name: str) -> exp.Expr | None:
    """Return the expression of an output; None if it is ambiguous or unknown."""
    nodes = [node for n, node in outputs(relation) or () if n.lower() == name.lower()]
    if len(nodes) == 1:
        return nodes[0]
    if isinstance(relation, Select) and outputs(relation) is None and _is_single_star(relation):
        return exp.column(name, table=next(iter(relation.scope.sources)), quoted=True)
    return None


def _is_single_star(select: Select) -> bool:
    """True if this is SELECT * FROM one source, so that every output is a column of the source."""
    items = select.node.expressions
    has_star = len(items) == 1 and isinstance(items[0], exp.Star) and not any(items[0].args.values())
    return has_star and len(select.scope.sources) == 1 and not select.renamed


def name_on_side(relation: SetOperation, side: Relation, name: str) -> str | None:
    """Return the name that one side of a set operation gives to an output; None if it is ambiguous or unknown."""
    places = [i for i, (n, _) in enumerate(outputs(relation) or ()) if n.lower() == name.lower()]
    names = [n for n, _ in outputs(side) or ()]
    if len(places) != 1 or places[0] >= len(names):
        return None
    name = names[places[0]]
    return name if sum(n.lower() == name.lower() for n in names) == 1 else None


def is_pushable(select: Select) -> bool:
    """True if dropping the input rows of some output rows changes no other output row."""
    node = select.node
    if set(clauses_of(node)) - _PUSHABLE_CLAUSES:
        return False
    distinct, group = node.args.get("distinct"), node.args.get("group")
    if isinstance(distinct, exp.Distinct) and distinct.args.get("on"):
        return False
    if isinstance(group, exp.Group) and clauses_of(group) != ["expressions"]:
        return False  # ROLLUP, CUBE, GROUPING SETS, ALL: a key may be NULL although no input row has NULL
    expressions = [*node.expressions, *([node.args["having"]] if node.args.get("having") else [])]
    nodes = [n for e in expressions for n in e.walk(prune=lambda n: isinstance(n, exp.Query))]
    if any(isinstance(n, exp.Window) for n in nodes):
        return False
    return bool(group) or not (node.args.get("having") or any(isinstance(n, _MAY_AGGREGATE) for n in nodes))


def _is_key(select: Select, node: exp.Expr) -> bool:
    """True if all input rows of one output row have the same value of this output.

    With GROUP BY, it must be a group key. Without, it must have no aggregate.
    """
    group = select.node.args.get("group")
    if not isinstance(group, exp.Group):
        return not any(isinstance(n, exp.AggFunc) for n in node.walk())
    for key in group.expressions:
        if isinstance(key, exp.Literal) and not key.is_string:
            items, at = select.node.expressions, int(key.name) - 1
            key = items[at].unalias() if 0 <= at < len(items) else key
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


def origins(relation: Relation, path: tuple[str, ...], in_sets: bool = True) -> list[tuple[Base, str]]:
    """Return the base columns that an output comes from, through bare columns and the sides of set operations only.

    `in_sets`: if False, an output of a set operation has no origins."""
    if len(path) != 1:
        return []
    match relation:
        case Base(columns=columns):
            return [(relation, (columns or {}).get(path[0].lower(), path[0]))]
        case SetOperation() if in_sets:
            names = [(side, name_on_side(relation, side, path[0])) for side in (relation.left, relation.right)]
            return [origin for side, name in names if name is not None for origin in origins(side, (name,))]
        case Select(scope=scope):
            node = output_of(relation, path[0])
            place = scope.resolve(node) if isinstance(node, exp.Column) else None
            if place is not None and place[0] is scope:
                return origins(scope.sources[place[1]], place[2], in_sets)
    return []


def single_origin(relation: Relation, path: tuple[str, ...]) -> tuple[Base, str] | None:
    """Return the base column that an output comes from, through bare columns only; None if there is none."""
    return next(iter(origins(relation, path, in_sets=False)), None)


def over_sources(condition: exp.Expr, select: Select) -> exp.Expr:
    """Rewrite a condition on a select's outputs to the columns of its sources."""

    def inner(column: exp.Column) -> exp.Expr:
        output, *fields = (p.name for p in column.parts)
        node = output_of(select, output)
        if node is None:
            return exp.Column(this=exp.Star())  # never used: `accepts_condition` refuses this name
        node = node.copy()
        if fields and isinstance(node, exp.Column):
            return column_node((*(p.name for p in node.parts), *fields))
        return node if isinstance(node, exp.Column) else exp.paren(node, copy=False)

    return replace_columns(condition, inner)


def on_side(condition: exp.Expr, relation: SetOperation, side: Relation) -> exp.Expr | None:
    """Rewrite a condition on a set operation's outputs to the outputs of one side; None if it is impossible."""
    names: dict[str, str] = {}
    for column in condition.find_all(exp.Column):
        name = name_on_side(relation, side, column.parts[0].name)
        if name is None:
            return None
        names[column.parts[0].name] = name
    return replace_columns(condition, lambda c: column_node((names[c.parts[0].name], *(p.name for p in c.parts[1:]))))


def replace_columns(node: exp.Expr, f: Callable[[exp.Column], exp.Expr]) -> exp.Expr:
    return node.copy().transform(lambda n: f(n) if isinstance(n, exp.Column) else n, copy=False)


def column_node(path: tuple[str, ...]) -> exp.Column:
    keys = ("this", "table", "db", "catalog")
    return exp.Column(**{k: exp.to_identifier(p, quoted=True) for k, p in zip(keys, path[::-1], strict=False)})
