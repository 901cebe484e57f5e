"""Explain why a query skips blocks: by the parts of its condition that no row of a block satisfies.

day >= '1995-03-01' AND name LIKE '%green%' AND price > 5
blocks 0 to 7     no row satisfies day >= '1995-03-01'; there, day is 1992-01-02 to 1995-02-28
blocks 8, 9, 12   no row satisfies name LIKE '%green%'
block 14          no row satisfies all parts at once
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.predicates.nodes import And, Literal, Predicate, atoms_of, terms_of
from hedgerow.core.predicates.normal_form import negate, normalise
from hedgerow.core.predicates.sql_text import literal_text, predicate_text, readable, term_text
from hedgerow.core.pruning.block_stats import Stats, TermStats
from hedgerow.core.pruning.evaluator import may_match, must_match


@dataclass(frozen=True)
class Skipped:
    """Blocks in which no row satisfies `never`; `because` says how that is known, if one fact tells it."""

    never: Predicate
    blocks: Ints
    because: str | None = None

    def __str__(self) -> str:
        because = "" if self.because is None else f"; {self.because}"
        return readable(f"no row satisfies {predicate_text(self.never)}{because}")


def skipped(index: BlockIndex, p: Predicate) -> list[Skipped]:
    """Return the blocks that cannot hold a row on which `p` is TRUE, each with one part of `p` that excludes it.

    Parts that exclude many blocks come first. If no single part excludes a block, the reason is `p` itself.
    """
    p = normalise(p)
    unexplained = ~index.may_hold(p)
    conjuncts = list(p.children) if isinstance(p, And) else []
    excluded = {part: ~index.may_hold(part) for part in conjuncts}
    reasons = []
    while conjuncts and unexplained.any():
        best = max(conjuncts, key=lambda part: int((excluded[part] & unexplained).sum()))
        if not (excluded[best] & unexplained).any():
            break
        reasons.append(_skipped(index, best, excluded[best] & unexplained))
        unexplained &= ~excluded[best]
        conjuncts.remove(best)
    return [*reasons, _skipped(index, p, unexplained)] if unexplained.any() else reasons


def _skipped(index: BlockIndex, never: Predicate, blocks: Bools) -> Skipped:
    places = np.flatnonzero(blocks)
    return Skipped(never, places, _fact(index, never, places))


def _fact(index: BlockIndex, p: Predicate, blocks: Ints) -> str | None:
    """Return the range of the only term in these blocks, if it excludes the condition; or that a filter does."""
    stats = index.blocks
    terms = [t for t in terms_of(p) if term_text(t) in stats.terms]
    if len(terms) != 1:
        return None
    name = term_text(terms[0])
    term = stats.terms[name]
    blocks = blocks[term.has_value[blocks]]
    if not len(blocks):
        return f"there, {name} has no value"
    if name in index.filtered and index.without_filters.may_hold(p)[blocks].any():
        return f"the filters of {name} exclude it"
    low, high = int(term.low[blocks].min()), int(term.high[blocks].max())
    if low % 2 == 0 or high % 2 == 0:  # gaps between the listed values
        return None
    nulls, nan = term.nulls[blocks].max(keepdims=True), np.array([term.nan[blocks].any()])
    span = TermStats(term.type, term.values, np.array([low], np.int32), np.array([high], np.int32), nulls, nan)
    if may_match(p, Stats(np.ones(1, np.int64), {name: span}, {}))[0]:
        return None  # the range of each block excludes it, but the range over all blocks does not
    texts = [literal_text(Literal(term.type.kind, term.values[code // 2])) for code in (low, high)]
    return f"there, {name} is {texts[0]} to {texts[1]}"


def all_match(index: BlockIndex, p: Predicate) -> Bools:
    """Return for each block whether all its rows match."""
    return must_match(p, index.blocks)


def undecided_atoms(index: BlockIndex, p: Predicate) -> Sequence[Predicate]:
    """Return the atoms that the index decides in no block."""
    atoms = dict.fromkeys(atoms_of(normalise(p)))
    return [a for a in atoms if index.may_hold(a).all() and index.may_hold(negate(a)).all()]
