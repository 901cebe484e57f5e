"""Decide which predicates and terms have the same meaning in every session and never fail on a row.

x < 5, x LIKE '%a%'                          safe: columns and literals, nothing to convert; ILIKE converts letters
CAST(s AS INT) > 5, hour(at) = 3, f(x) = 1   may fail on a row, or change with time zone, ANSI mode, a function's body

Statistics about the others are used only in sessions with the settings under which they were collected.
"""

from __future__ import annotations

from collections.abc import Mapping

from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.sums import sum_text
from hedgerow.core.predicates.nodes import Cast, Column, Expr, Feature, Like, Opaque, Predicate, atoms_of, terms_of
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.types import STRING, Type


def is_session_safe(item: Feature) -> bool:
    """True if the item consists of plain columns and literals only.

    >>> from hedgerow.core.predicates.nodes import Compare, col, lit
    >>> is_session_safe(Compare(col("x"), "<", lit(5))), is_session_safe(Opaque("CAST(x AS INT) > y", ()))
    (True, False)
    """
    if isinstance(item, Column | Cast | Expr):
        return isinstance(item, Column)
    return all(isinstance(t, Column) for t in terms_of(item)) and all(map(_is_safe_atom, atoms_of(item)))


def _is_safe_atom(atom: Predicate) -> bool:
    match atom:
        case Like(term=term):
            return isinstance(term, Column)
        case Opaque():
            return False
    return True


def session_safe_index(index: BlockIndex, schema: Mapping[str, Type]) -> BlockIndex:
    """Return the index without the statistics that may not hold in every session."""

    def is_safe(p: Predicate) -> bool:
        """True if also LIKE is applied to strings only: its cast of other values may depend on the session."""
        searched = {term_text(a.term) for a in atoms_of(p) if isinstance(a, Like)}
        of_strings = all(name in schema and schema[name].kind == STRING for name in searched)
        return of_strings and is_session_safe(p)

    terms = {*schema, *map(sum_text, schema)}
    return index.map_stats(lambda stats: stats.only(terms.__contains__, is_safe))
