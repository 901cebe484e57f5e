"""Exchanges what an index says of some columns, because they were replaced or have other values now."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hedgerow.core.index.block_index import BlockIndex, View
from hedgerow.core.predicates.nodes import Predicate, Term, columns_in
from hedgerow.core.predicates.sql_text import predicate_text, quote_name, term_text
from hedgerow.core.pruning.block_stats import Stats


def without_columns(index: BlockIndex, items: Sequence[Term | Predicate], lost: Collection[str]) -> BlockIndex:
    """The index without statistics of items that mention a lost top-level column; names in lower case."""
    if not lost:
        return index
    names = {predicate_text(i) if isinstance(i, Predicate) else term_text(i) for i in items if mentions(i, lost)}
    views = []
    for view in index.views:
        terms = {name: t for name, t in view.stats.terms.items() if name not in names}
        conditions = {name: f for name, f in view.stats.conditions.items() if not mentions(f.predicate, lost)}
        views.append(View(Stats(view.stats.rows, terms, conditions), view.membership, view.parts))
    return BlockIndex(tuple(views))


def mentions(item: Term | Predicate, names: Collection[str]) -> bool:
    """Whether the item has any of these top-level columns, given in lower case."""
    return any(not {quote_name(c.path[0]).lower(), c.path[0].lower()}.isdisjoint(names) for c in columns_in(item))


def only(index: BlockIndex, items: Sequence[Term | Predicate]) -> BlockIndex:
    """The index with statistics of these items only."""
    terms = {term_text(i) for i in items if not isinstance(i, Predicate)}
    conditions = {predicate_text(i) for i in items if isinstance(i, Predicate)}
    views = []
    for view in index.views:
        kept = {name: t for name, t in view.stats.terms.items() if name in terms}
        noted = {name: f for name, f in view.stats.conditions.items() if name in conditions}
        views.append(View(Stats(view.stats.rows, kept, noted), view.membership, view.parts))
    return BlockIndex(tuple(views))


def with_columns(index: BlockIndex, fresh: Stats) -> BlockIndex:
    """The index of an unreplicated table with fresh statistics of some items."""
    view = index.views[0]
    stats = view.stats
    joined = Stats(stats.rows, {**stats.terms, **fresh.terms}, {**stats.conditions, **fresh.conditions})
    return BlockIndex((View(joined, view.membership, view.parts), *index.views[1:]))
