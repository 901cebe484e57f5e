"""The means by which a query may read less of an attached table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from hedgerow.core.index.sums import summable
from hedgerow.core.predicates.nodes import TRUE, Column
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.types import OTHER, STRING, Type
from hedgerow.core.pruning.value_filter import looked_up
from hedgerow.core.workload.queries import Query, summed_columns
from hedgerow.core.workload.score import Means
from hedgerow.core.workload.wanted_rows import Aggregates, AnyRows, Function, Top
from hedgerow.spark.storage.source import Source


def means_of(source: Source, queries: Sequence[Query], lookups: Collection[Column] = ()) -> list[tuple[Means, ...]]:
    """Return the means that serve each query. `lookups`: the columns that would get filters of look-ups."""

    def means(query: Query, is_answered: bool) -> Iterator[Means]:
        p, wanted = query.predicate(source.name), query.wanted(source.name)
        if p != TRUE:
            yield "where"
        if any(column in lookups for column, _ in looked_up([p])):
            yield "look-up"
        if isinstance(wanted, Top):
            yield "top-k"
        if isinstance(wanted, AnyRows):
            yield "limit"
        if is_answered:
            yield "aggregates"

    return [tuple(means(query, a)) for query, a in zip(queries, answered(source, queries), strict=True)]


def answered(source: Source, queries: Sequence[Query]) -> list[bool]:
    """Return for each query whether an index answers all that it wants of files whose rows all match.

    Texts have no exact bounds; sums are known of the columns that the queries sum."""
    summed = set(summable(summed_columns(queries, source.name), source.schema))

    def is_known(function: Function, column: Column | None) -> bool:
        if function == "count" or column is None:
            return True
        type_ = source.schema.get(term_text(column), Type(OTHER))
        return type_.kind not in (STRING, OTHER) if function in ("min", "max") else column in summed

    def is_answered(query: Query) -> bool:
        wanted = query.wanted(source.name)
        return isinstance(wanted, Aggregates) and all(is_known(*value) for value in wanted.values)

    return list(map(is_answered, queries))
