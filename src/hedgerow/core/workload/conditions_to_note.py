"""Choose the conditions whose outcomes the index notes, because the bounds and values of blocks cannot decide them."""

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
    """Return the most frequent conditions that a block's bounds and values cannot decide.

    Examples are comparisons of two columns, equalities and prefixes on a column of many values, and an AND or OR about
    several columns that occurs more than once. `distinct` returns the number of values of a term.
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
