"""Follows an output name into a relation, and decides which conditions on it may be pushed inside.

Conditions pass through plain columns, set operations and group keys. They do not pass below LIMIT, a window, DISTINCT
ON or a ROLLUP: there, leaving out a row would change other rows.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from hedgerow.sql.relations import Base, Relation, Scope, Select, SetOperation, Unknown, clauses_of, outputs

# A SELECT with a clause outside this set accepts no conditions from outside. With one outside of CLAUSES, not even its
# own WHERE is used.
_PLAIN_CLAUSES = set("with_ expressions from_ joins laterals where group having order distinct".split())  # noqa: SIM905
# Functions that may aggregate rows; one that sqlglot does not know may do so too.
_MAY_AGGREGATE = (exp.AggFunc, exp.Anonymous, exp.Any)
CLAUSES = _PLAIN_CLAUSES | set("limit offset qualify windows sort cluster distribute hint into".split())  # noqa: SIM905


def accepts_condition(relation: Relation, path: tuple[str, ...]) -> bool:
    """Whether a condition on this output may be pushed into the relation."""
    match relation:
        case Base(columns=columns):
            return columns is None or path[0].lower() in columns
        case Unknown():
            return False
        case SetOperation():
            place = _output_place(relation, path[0])
            sides = (relation.left, relation.right)
            names = [None if place is None else _name_at(side, place) for side in sides]
            odd = set(clauses_of(relation.node)) - {"with_", "this", "expression", "distinct", "order", "sort"}
            return not odd and all(
                n is not None and accepts_condition(s, (n, *path[1:])) for s, n in zip(sides, names, strict=True)
            )
        case Select():
            if not plain_select(relation):
                return False
            node = output_of(relation, path[0])
            return node is not None and (isinstance(node, exp.Column) or len(path) == 1) and _is_key(relation, node)


def output_of(relation: Relation, name: str) -> exp.Expr | None:
    """The expression behind an output; None if it is ambiguous or not known."""
    nodes = [node for n, node in outputs(relation) or () if n.lower() == name.lower()]
    if len(nodes) == 1:
        return nodes[0]
    if isinstance(relation, Select) and outputs(relation) is None and _star_only(relation):
        return exp.column(name, table=next(iter(relation.scope.sources)), quoted=True)
    return None


def _star_only(select: Select) -> bool:
    """Whether this is SELECT * FROM one source, so that every output is a column of the source."""
    items = select.node.expressions
    plain = len(items) == 1 and isinstance(items[0], exp.Star) and not any(items[0].args.values())
    return plain and len(select.scope.sources) == 1 and not select.renamed


def _output_place(relation: Relation, name: str) -> int | None:
    places = [i for i, (n, _) in enumerate(outputs(relation) or ()) if n.lower() == name.lower()]
    return places[0] if len(places) == 1 else None


def _name_at(relation: Relation, place: int) -> str | None:
    named = outputs(relation)
    if named is None or place >= len(named):
        return None
    name = named[place][0]
    return name if sum(n.lower() == name.lower() for n, _ in named) == 1 else None


def plain_select(select: Select) -> bool:
    """Whether input rows that give no wanted output row may be left out without a change to other output rows."""
    node = select.node
    if set(clauses_of(node)) - _PLAIN_CLAUSES:
        return False
    distinct, group = node.args.get("distinct"), node.args.get("group")
    if isinstance(distinct, exp.Distinct) and distinct.args.get("on"):
        return False
    if isinstance(group, exp.Group) and clauses_of(group) != ["expressions"]:
        return False  # ROLLUP, CUBE, GROUPING SETS, ALL: a key may be NULL although no input row has NULL
    listed = [*node.expressions, *([node.args["having"]] if node.args.get("having") else [])]
    own = [n for item in listed for n in item.walk(prune=lambda n: isinstance(n, exp.Query))]
    if any(isinstance(n, exp.Window) for n in own):
        return False
    return bool(group) or not (node.args.get("having") or any(isinstance(n, _MAY_AGGREGATE) for n in own))


def _is_key(select: Select, node: exp.Expr) -> bool:
    """Whether an output is the same for all input rows behind an output row: a group key, or any without GROUP BY."""
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


def trace(relation: Relation, path: tuple[str, ...]) -> tuple[Base, str] | None:
    """The base column behind an output, followed through plain columns; None if it is none."""
    match relation:
        case Base() if len(path) == 1:
            return relation, (relation.columns or {}).get(path[0].lower(), path[0])
        case Select():
            node = output_of(relation, path[0])
            place = relation.scope.resolve(node) if isinstance(node, exp.Column) and len(path) == 1 else None
            if place is not None and place[0] is relation.scope:
                return trace(relation.scope.sources[place[1]], place[2])
    return None


def traces(relation: Relation, path: tuple[str, ...]) -> list[tuple[Base, str]]:
    """As `trace`, and the columns of all sides of a UNION, INTERSECT or EXCEPT."""
    match relation:
        case SetOperation() if len(path) == 1:
            place = _output_place(relation, path[0])
            names = [None if place is None else _name_at(side, place) for side in (relation.left, relation.right)]
            sides = zip((relation.left, relation.right), names, strict=True)
            return [found for side, name in sides if name is not None for found in traces(side, (name,))]
        case Select():
            node = output_of(relation, path[0])
            resolved = relation.scope.resolve(node) if isinstance(node, exp.Column) and len(path) == 1 else None
            if resolved is not None and resolved[0] is relation.scope:
                return traces(relation.scope.sources[resolved[1]], resolved[2])
    found = trace(relation, path)
    return [] if found is None else [found]


def over_sources(condition: exp.Expr, select: Select) -> exp.Expr:
    """Rewrites a condition on a select's outputs to the columns of its sources."""

    def inner(column: exp.Column) -> exp.Expr:
        first, *rest = (p.name for p in column.parts)
        node = output_of(select, first)
        if node is None:
            return exp.Column(this=exp.Star())  # never used: `accepts_condition` refuses this name
        node = node.copy()
        if rest and isinstance(node, exp.Column):
            return column_node((*(p.name for p in node.parts), *rest))
        return node if isinstance(node, exp.Column) else exp.paren(node, copy=False)

    return replace_columns(condition, inner)


def on_side(condition: exp.Expr, relation: SetOperation, side: Relation) -> exp.Expr | None:
    """Rewrites a condition on a set operation's outputs to those of one side, by position; None if it cannot be."""
    names: dict[str, str] = {}
    for column in condition.find_all(exp.Column):
        place = _output_place(relation, column.parts[0].name)
        name = None if place is None else _name_at(side, place)
        if name is None:
            return None
        names[column.parts[0].name] = name
    return replace_columns(condition, lambda c: column_node((names[c.parts[0].name], *(p.name for p in c.parts[1:]))))


def replace_columns(node: exp.Expr, f: Callable[[exp.Column], exp.Expr]) -> exp.Expr:
    return node.copy().transform(lambda n: f(n) if isinstance(n, exp.Column) else n, copy=False)


def column_node(path: tuple[str, ...]) -> exp.Column:
    keys = ("this", "table", "db", "catalog")
    return exp.Column(**{k: exp.to_identifier(p, quoted=True) for k, p in zip(keys, path[::-1], strict=False)})
