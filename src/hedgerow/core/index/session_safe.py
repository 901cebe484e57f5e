"""Decide which predicates and terms have the same meaning in every session and never fail on a row.

x < 5, x LIKE '%a%'                          safe: columns and literals, nothing to convert; ILIKE converts letters
CAST(s AS INT) > 5, hour(at) = 3, f(x) = 1   may fail on a row, or change with time zone, ANSI mode, a function's body

Statistics about the others are used only in sessions with the settings under which they were collected.
"""

from __future__ import annotations

from collections.abc import Mapping

from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.predicates.nodes import (
    Cast,
    Column,
    Expr,
    Feature,
    Like,
    Opaque,
    Predicate,
    atoms_of,
    terms_of,
)
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.types import STRING, Type
from hedgerow.core.pruning.block_stats import Stats


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
    return index.map_stats(lambda stats: _safe_stats(stats, schema))


def _safe_stats(stats: Stats, schema: Mapping[str, Type]) -> Stats:
    def only_of_strings(p: Predicate) -> bool:
        """True if LIKE is applied to strings only: it casts other values to text, which may depend on the session."""
        searched = {term_text(a.term) for a in atoms_of(p) if isinstance(a, Like)}
        return all(name in schema and schema[name].kind == STRING for name in searched)

    terms = {name: t for name, t in stats.terms.items() if name in schema}
    conditions = {
        name: f for name, f in stats.conditions.items() if is_session_safe(f.predicate) and only_of_strings(f.predicate)
    }
    return Stats(stats.rows, terms, conditions)
