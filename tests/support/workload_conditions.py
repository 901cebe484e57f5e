"""A condition in SQL as the predicate that a workload learns from."""

from __future__ import annotations

from collections.abc import Mapping

from hedgerow.core.predicates.binding import bind
from hedgerow.core.predicates.nodes import TRUE, Predicate
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.schema import as_schema
from hedgerow.core.predicates.types import Type
from hedgerow.sql.workload import Workload


def where(condition: str) -> Predicate:
    [query] = Workload.from_sql(f"SELECT * FROM t WHERE {condition}")
    return query.predicate("t")


def about(condition: str, schema: Mapping[str, Type]) -> Predicate:
    """With the columns and literal types of a schema."""
    return TRUE if condition == "true" else normalise(bind(where(condition), as_schema(schema)))
