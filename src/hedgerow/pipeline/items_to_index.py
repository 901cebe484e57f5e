"""Ranks the expressions and conditions that an index could describe, and keeps those that most queries ask for."""

from __future__ import annotations

from collections import Counter

from hedgerow.core.layouts.base import sql_of
from hedgerow.core.predicates.nodes import And, Column, Or, Predicate, columns_of, terms_of, walk
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.pipeline.learned import Learned
from hedgerow.spark.compute.evaluate import Item, needed

MAX_DESCRIBED_ITEMS = 300  # expressions and conditions in an index, beside plain columns


def items_to_index(learned: Learned, limit: int) -> list[Item]:
    """The items that the index describes: filtered columns, then up to `limit` expressions and conditions.

    Of those, the layout's own come first, then the ones that occur in most queries."""
    own = [x for x in learned.layout.features if isinstance(x, Predicate)]
    filtered = {c for p in learned.predicates for c in columns_of(p)}  # also inside LIKE and functions
    filtered |= {x for x in learned.layout.features if isinstance(x, Column)}  # they separate blocks, queried or not
    filtered |= {j.key_of(place) for j in learned.joined for place in range(len(j.steps))}  # to tell of their changes
    compound = [x for x in own if isinstance(x, And | Or)]  # the statistics of their parts do not suffice
    items = dict.fromkeys((*needed([*learned.predicates, *own], filtered), *learned.noted, *compound))
    uses = Counter(x for p in learned.predicates for x in {*terms_of(p), *walk(normalise(p))})
    first = {*learned.layout.features, *(t for p in own for t in terms_of(p))}
    more = [x for x in items if not isinstance(x, Column)]
    more.sort(key=lambda x: (x not in first, -uses[x], sql_of(x)))
    return [x for x in items if isinstance(x, Column)] + more[:limit]
