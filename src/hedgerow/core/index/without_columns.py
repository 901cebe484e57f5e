"""Remove or replace an index's statistics about some columns or functions, which may have other values now."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.predicates.called_functions import called_functions
from hedgerow.core.predicates.nodes import Feature, columns_in
from hedgerow.core.predicates.sql_text import feature_text, predicate_text, quote_name
from hedgerow.core.pruning.block_stats import Stats


def without_columns(index: BlockIndex, items: Sequence[Feature], lost: Collection[str]) -> BlockIndex:
    """Return the index without the statistics of items that mention a lost top-level column, given in lower case."""
    if not lost:
        return index
    names = {feature_text(i) for i in items if mentions(i, lost)}
    return index.map_stats(lambda stats: stats.only(lambda name: name not in names, lambda p: not mentions(p, lost)))


def without_functions(index: BlockIndex, changed: Collection[str]) -> BlockIndex:
    """Return the index without the statistics of items that call one of these functions, given in lower case."""
    if not changed:
        return index

    def is_kept(sql: str) -> bool:
        return called_functions(sql).isdisjoint(changed)

    return index.map_stats(lambda stats: stats.only(is_kept, lambda p: is_kept(predicate_text(p))))


def mentions(item: Feature, names: Collection[str]) -> bool:
    """True if the item has any of these top-level columns, given in lower case."""
    return any(not {quote_name(c.path[0]).lower(), c.path[0].lower()}.isdisjoint(names) for c in columns_in(item))


def only(index: BlockIndex, items: Sequence[Feature]) -> BlockIndex:
    """Return the index with statistics of these items only."""
    names = {feature_text(i) for i in items}
    return index.map_stats(lambda stats: stats.only(names.__contains__, lambda p: predicate_text(p) in names))


def with_columns(index: BlockIndex, fresh: BlockIndex) -> BlockIndex:
    """Return the index with fresh statistics of some items; those of cells stay as they are."""

    def joined(old: Stats, new: Stats) -> Stats:
        return Stats(old.rows, {**old.terms, **new.terms}, {**old.conditions, **new.conditions})

    groups = index.groups
    if groups is not None and fresh.groups is not None:
        groups = replace(groups, stats=joined(groups.stats, fresh.groups.stats))
    return BlockIndex(joined(index.blocks, fresh.blocks), index.cells, groups)
