"""A condition in SQL as the predicate that a workload learns from."""

from __future__ import annotations

from collections.abc import Mapping

from hedgerow.core.bind import as_schema, bind
from hedgerow.core.expr import TRUE, Predicate
from hedgerow.core.rewrite import normalise
from hedgerow.core.types import Type
from hedgerow.sql.workload import Workload


def where(condition: str) -> Predicate:
    [query] = Workload.from_sql(f"SELECT * FROM t WHERE {condition}")
    return query.predicate("t")


def about(condition: str, schema: Mapping[str, Type]) -> Predicate:
    """With the columns and literal types of a schema."""
    return TRUE if condition == "true" else normalise(bind(where(condition), as_schema(schema)))
