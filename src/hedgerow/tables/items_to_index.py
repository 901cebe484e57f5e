"""Chooses the expressions and conditions that an index describes: the ones in most queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from hedgerow.core.index.sums import is_sum, sum_of
from hedgerow.core.layouts.base import Layout
from hedgerow.core.predicates.nodes import And, Column, Feature, Or, Predicate, Term, columns_of, terms_of, walk
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import feature_text, term_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import MAX_DISTINCT, Stats
from hedgerow.core.pruning.words import searched_for_words
from hedgerow.core.workload.conditions_to_note import conditions_to_note
from hedgerow.core.workload.references import Joined
from hedgerow.spark.compute.evaluate import needed

MAX_DESCRIBED_ITEMS = 300  # the number of expressions and conditions in an index, without columns


def items_to_index(
    layout: Layout,
    predicates: Sequence[Predicate],
    noted: Sequence[Predicate],
    joined: Sequence[Joined],
    limit: int,
    summed: Sequence[Column] = (),
    described: Sequence[Column] = (),
) -> list[Feature]:
    """Return the items that the index describes: columns, then up to `limit` expressions and conditions, then sums.

    The columns are those in conditions, the `summed` and the `described` ones. The layout's own expressions and
    conditions come first, then the ones in most queries."""
    cuts = [x for x in layout.features if isinstance(x, Predicate)]
    filtered = {c for p in predicates for c in columns_of(p)}  # also inside LIKE and functions
    filtered |= {x for x in layout.features if isinstance(x, Column)}  # they separate blocks, queried or not
    filtered |= {*summed, *described}  # a sum is of use beside the bounds and the NULLs of its column
    filtered |= {j.key_of(place) for j in joined for place in range(len(j.steps))}  # to find changed keys
    compound = [x for x in cuts if isinstance(x, And | Or)]  # the statistics of their parts do not suffice
    items = dict.fromkeys((*needed([*predicates, *cuts], filtered), *noted, *compound))
    uses = Counter(x for p in predicates for x in {*terms_of(p), *walk(normalise(p))})
    first = {*layout.features, *(t for p in cuts for t in terms_of(p))}
    more = [x for x in items if not isinstance(x, Column)]
    more.sort(key=lambda x: (x not in first, -uses[x], feature_text(x)))
    return [x for x in items if isinstance(x, Column)] + more[:limit] + list(map(sum_of, summed))


def known_columns(names: Iterable[str], schema: Mapping[str, Type]) -> tuple[Column, ...]:
    """Return the columns of these names that a table has."""
    return tuple(column for name in names if term_text(column := Column((name,))) in schema)


def items_of_new_queries(
    layout: Layout,
    predicates: Sequence[Predicate],
    known: Stats,
    described: Sequence[Feature],
    joined: Sequence[Joined],
    limit: int,
    summed: Sequence[Column] = (),
    keys: Sequence[Column] = (),
) -> list[Feature]:
    """Return the items that the index of written files has to describe for new queries; columns and sums remain."""

    def distinct(term: Term) -> int:
        stats = known.terms.get(term_text(term))
        if stats is None or stats.sets is None or (stats.sets.set_of < 0).any():
            return MAX_DISTINCT + 1
        return len(stats.values)

    noted = conditions_to_note(predicates, distinct)
    columns_and_sums = [item for item in described if isinstance(item, Column) or is_sum(item)]
    items = items_to_index(layout, predicates, noted, joined, limit, summed, keys)
    return list(dict.fromkeys((*columns_and_sums, *items)))


def without_words(items: Sequence[Feature], known: Stats) -> set[str]:
    """Return the names of the columns that the items search for words, and whose words the index does not have."""
    return {name for name in searched_for_words(items) if name not in known.terms or known.terms[name].words is None}
