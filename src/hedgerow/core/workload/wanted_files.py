"""The files that a query opens if it needs fewer than its WHERE: with ORDER BY and LIMIT, LIMIT, or aggregates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.errors import assert_never
from hedgerow.core.index.aggregates import Aggregate, Count, Extreme, Sum
from hedgerow.core.index.joined_index import JoinedIndex
from hedgerow.core.index.sums import averaged_as_double
from hedgerow.core.index.top_k import Order
from hedgerow.core.index.whole_matches import TypedTerm
from hedgerow.core.predicates.nodes import Predicate, Term
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.types import OTHER, Type
from hedgerow.core.workload.score import Means
from hedgerow.core.workload.wanted_rows import Aggregates, AnyRows, Function, Top, WantedRows


def files_for(
    index: JoinedIndex, wanted: WantedRows, p: Predicate, left: Ints, schema: Mapping[str, Type]
) -> Bools | None:
    """Return the files to open for what a query wants of the rows on which `p` is TRUE; None if WHERE decides."""

    def typed(term: Term) -> TypedTerm:
        name = term_text(term)
        types = [part.blocks.terms[name].type for part in index.indexes if name in part.blocks.terms]
        return TypedTerm(term, schema.get(name) or next(iter(types), Type(OTHER)))

    match wanted:
        case AnyRows(rows):
            return index.any_rows(p, left, rows)
        case Top(column, descending, rows, nulls_first):
            return index.first_rows(index.matched(p, left), Order(typed(column), descending, nulls_first), rows)
        case Aggregates(values, groups):
            parts = [a for name, of in values for a in _aggregates_of(name, None if of is None else typed(of))]
            partials = index.aggregates(p, left, list(map(typed, groups)), parts)
            return partials.opened if partials.rows else None
    assert_never(wanted)


def means_of(wanted: WantedRows) -> Means:
    """Return the name of the means that answer such a query."""
    return "top-k" if isinstance(wanted, Top) else "aggregates" if isinstance(wanted, Aggregates) else "limit"


def _aggregates_of(name: Function, of: TypedTerm | None) -> Sequence[Aggregate]:
    """Return the aggregates from which Spark computes a function; without a column it is `count(*)`."""
    if of is None:
        return [Count()]
    match name:
        case "avg":
            return [Sum(of, as_double=averaged_as_double(of.type)), Count(of)]
        case "count":
            return [Count(of)]
        case "sum":
            return [Sum(of)]
    return [Extreme(of, greatest=name == "max")]
