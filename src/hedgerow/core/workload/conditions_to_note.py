"""Chooses conditions that bounds and values of blocks cannot answer, so that the index notes their outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice

from hedgerow.core.predicates.nodes import And, Compare, CompareTerms, In, Or, Predicate, Prefix, Term, columns_of, walk
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.pruning.block_stats import MAX_DISTINCT


def conditions_to_note(
    predicates: Sequence[Predicate], distinct: Callable[[Term], int], limit: int = 128
) -> tuple[Predicate, ...]:
    """The most frequent conditions that a block's bounds and values cannot answer; the index notes their outcomes.

    Such are comparisons of columns with each other, equalities and prefixes on a column of many values, and ANDs and
    ORs about several columns that occur more than once, such as a repeated query. `distinct`: how many values a term
    has.
    """
    counts: Counter[Predicate] = Counter()
    for part in (part for p in predicates for part in set(walk(normalise(p)))):
        match part:
            case CompareTerms():
                counts[part] += 1
            case And() | Or() if len(columns_of(part)) > 1:
                counts[part] += 1
            case Compare(term, "=", _) | In(term, (_, *_)) | Prefix(term) if distinct(term) > MAX_DISTINCT:
                counts[part] += 1
    frequent = (p for p, n in counts.most_common() if n > 1 or not isinstance(p, And | Or))
    return tuple(sorted(islice(frequent, limit), key=predicate_text))
