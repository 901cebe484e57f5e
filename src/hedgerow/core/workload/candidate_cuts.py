"""Collect candidate cuts: the atoms of a workload's predicates and, on demand, others beside them, and subtrees."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal as Choice
from typing import get_args

from hedgerow.core.effort import NORMAL, Amounts
from hedgerow.core.errors import LayoutError
from hedgerow.core.predicates.nodes import (
    ATOMS,
    Column,
    Compare,
    Const,
    In,
    IsNull,
    Like,
    Literal,
    Or,
    Predicate,
    Prefix,
    Term,
    atoms_of,
    columns_of,
    walk,
)
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.predicates.types import STRING
from hedgerow.core.pruning.block_stats import MAX_DISTINCT

Kind = Choice["atoms", "usual", "atoms+subtrees", "usual+subtrees"]
USUAL: Kind = "usual"  # "atoms" are the cuts of the qd-tree paper, 3.4
_MAX_LISTED = 8  # an IN list of more values gives no cuts where its values begin


def cuts_of(
    predicates: Iterable[Predicate],
    weights: Iterable[float] | None = None,
    kind: Kind = USUAL,
    amounts: Amounts = NORMAL,
) -> tuple[Predicate, ...]:
    """Return distinct cuts in the order of their texts; where they are too many, those of the heaviest queries.

    >>> from hedgerow.core.predicates.nodes import And, Compare, col, lit
    >>> p = And((Compare(col("x"), ">=", lit(5)), Compare(col("y"), "=", lit(1))))
    >>> [predicate_text(c) for c in cuts_of([p], kind="atoms+subtrees")]
    ['x >= 5', 'x >= 5 AND y = 1', 'y = 1']
    """
    if kind not in get_args(Kind):
        raise LayoutError(f"cuts must be {' or '.join(get_args(Kind))}, not {kind!r}")
    weight_of: dict[Predicate, float] = {}
    listed = list(predicates)
    for p, weight in zip(listed, weights or [1.0] * len(listed), strict=True):
        normal = normalise(p)
        for cut in set(_parts(normal, kind)):
            if not isinstance(cut, Const):
                weight_of[cut] = weight_of.get(cut, 0.0) + weight
    heaviest = sorted(weight_of, key=lambda cut: (-weight_of[cut], predicate_text(cut)))
    refused = [cut for cut in heaviest if is_advanced(cut)][amounts.advanced :] if amounts.advanced is not None else []
    allowed = [cut for cut in heaviest if cut not in set(refused)]
    return tuple(sorted(allowed[: amounts.cuts], key=predicate_text))


def _parts(p: Predicate, kind: Kind) -> Iterable[Predicate]:
    """Return the parts of a condition that may be cuts: all, or its atoms, and usually each OR that leaves a box."""
    if "subtrees" in kind:
        return walk(p)
    return (part for part in walk(p) if isinstance(part, ATOMS) or ("usual" in kind and _leaves_a_box(part)))


def _leaves_a_box(p: Predicate) -> bool:
    """True for an OR of bounds of several columns, such as `x > 9 OR y > 7`.

    None of its sides lets a query skip rows by itself. The rows on which it does not hold have bounds on all of these
    columns, so that queries with stricter bounds skip them, too.

    >>> from hedgerow.core.predicates.nodes import col, lit
    >>> x, y, z = Compare(col("x"), ">", lit(9)), Compare(col("y"), ">", lit(7)), Compare(col("z"), "=", lit(1))
    >>> [_leaves_a_box(p) for p in (Or((x, y)), Or((x, x)), Or((x, z)))]
    [True, False, False]
    """
    return isinstance(p, Or) and len(columns_of(p)) > 1 and all(_is_bound(side) for side in p.children)


def _is_bound(p: Predicate) -> bool:
    return isinstance(p, Compare) and p.op in ("<", "<=", ">", ">=")


def is_advanced(cut: Predicate) -> bool:
    """True if a part of the cut does not compare one column with literals: every such cut is a statistic of each block.

    >>> from hedgerow.core.predicates.nodes import CompareTerms, col, lit
    >>> is_advanced(Compare(col("x"), "<", lit(3))), is_advanced(CompareTerms(col("x"), "<", col("y")))
    (False, True)
    """
    plain = (Compare, In, Prefix, IsNull)
    return not all(isinstance(atom, plain) and isinstance(atom.term, Column) for atom in atoms_of(cut))


def begins(cut: Predicate, distinct: Callable[[Term], int]) -> list[Predicate]:
    """Return cuts where the values of an equality, an IN list or a prefix begin; only for a column of many values.

    A condition with too few rows for a block is no cut, but the place where its values begin may be one.

    >>> from hedgerow.core.predicates.nodes import col
    >>> [predicate_text(b) for b in begins(Prefix(col("url"), "/api/"), lambda term: 1000)]
    ["url >= '/api/'"]
    """
    match cut:
        case Compare(term, "=", literal) if distinct(term) > MAX_DISTINCT:
            return [Compare(term, ">=", literal)]
        case In(term, literals) if len(literals) <= _MAX_LISTED and distinct(term) > MAX_DISTINCT:
            return [Compare(term, ">=", literal) for literal in literals]
        case Prefix(term, prefix) if prefix and distinct(term) > MAX_DISTINCT:
            return [Compare(term, ">=", Literal(STRING, prefix))]
    return []


def without_value(cut: Predicate) -> list[Predicate]:
    """Return the cut that keeps rows without a value by themselves: none of them matches a comparison with values.

    >>> from hedgerow.core.predicates.nodes import col, lit
    >>> without_value(Compare(col("coupon"), "=", lit("ten")))
    [IsNull(term=Column(path=('coupon',)))]
    """
    match cut:
        case Compare(term) | In(term) | Prefix(term) | Like(term):
            return [IsNull(term)]
    return []
