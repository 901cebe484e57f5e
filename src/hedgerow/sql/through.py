"""How a name at the outside of a relation continues inside it, and which conditions may follow it there.

Through plain columns, set operations and group keys they may; below LIMIT, a window, DISTINCT ON or a ROLLUP a row that
is left out would change other rows.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from hedgerow.sql.relations import Base, Relation, Scope, Select, SetOperation, Unknown, given, outputs

# A SELECT with any other clause takes no conditions from outside; beyond the second set nor its own WHERE.
_PLAIN_CLAUSES = set("with_ expressions from_ joins laterals where group having order distinct".split())  # noqa: SIM905
# Functions that may turn many rows into one; a function that sqlglot does not know may be anything.
_MAY_AGGREGATE = (exp.AggFunc, exp.Anonymous, exp.Any)
CLAUSES = _PLAIN_CLAUSES | set("limit offset qualify windows sort cluster distribute hint into".split())  # noqa: SIM905


def takes(relation: Relation, path: tuple[str, ...]) -> bool:
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
                n is not None and takes(s, (n, *path[1:])) for s, n in zip(sides, names, strict=True)
            )
        case Select():
            if not plain_select(relation):
                return False
            node = output_of(relation, path[0])
            return node is not None and (isinstance(node, exp.Column) or len(path) == 1) and _grouped_by(relation, node)


def output_of(relation: Relation, name: str) -> exp.Expr | None:
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


def plain_select(select: Select) -> bool:
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
    return bool(group) or not (node.args.get("having") or any(isinstance(n, _MAY_AGGREGATE) for n in own))


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


def trace(relation: Relation, path: tuple[str, ...]) -> tuple[Base, str] | None:
    """The base column whose values an output has, followed through plain columns."""
    match relation:
        case Base() if len(path) == 1:
            return relation, (relation.columns or {}).get(path[0].lower(), path[0])
        case Select():
            node = output_of(relation, path[0])
            found = relation.scope.resolve(node) if isinstance(node, exp.Column) and len(path) == 1 else None
            if found is not None and found[0] is relation.scope:
                return trace(relation.scope.sources[found[1]], found[2])
    return None


def substituted(condition: exp.Expr, select: Select) -> exp.Expr:
    """A condition on a select's outputs, over the columns of its sources."""

    def inner(column: exp.Column) -> exp.Expr:
        first, *rest = (p.name for p in column.parts)
        node = output_of(select, first)
        if node is None:
            return exp.Column(this=exp.Star())  # `takes` refused it: no name resolves to this
        node = node.copy()
        if rest and isinstance(node, exp.Column):
            return named((*(p.name for p in node.parts), *rest))
        return node if isinstance(node, exp.Column) else exp.paren(node, copy=False)

    return replaced(condition, inner)


def by_position(condition: exp.Expr, relation: SetOperation, side: Relation) -> exp.Expr | None:
    names: dict[str, str] = {}
    for column in condition.find_all(exp.Column):
        place = _place(relation, column.parts[0].name)
        name = None if place is None else _name_at(side, place)
        if name is None:
            return None
        names[column.parts[0].name] = name
    return replaced(condition, lambda c: named((names[c.parts[0].name], *(p.name for p in c.parts[1:]))))


def replaced(node: exp.Expr, f: Callable[[exp.Column], exp.Expr]) -> exp.Expr:
    return node.copy().transform(lambda n: f(n) if isinstance(n, exp.Column) else n, copy=False)


def named(path: tuple[str, ...]) -> exp.Column:
    keys = ("this", "table", "db", "catalog")
    return exp.Column(**{k: exp.to_identifier(p, quoted=True) for k, p in zip(keys, path[::-1], strict=False)})
