"""Split the WHERE of a query into its conjuncts, the conditions that AND joins."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import SqlglotError

from hedgerow.sql.parse import parse_one
from hedgerow.sql.to_sql import to_sql


def where_conjuncts(sql: str) -> list[str]:
    """Return the texts of the conjuncts of the outermost WHERE; the empty list if a column there names its table.

    >>> where_conjuncts("SELECT a FROM t WHERE a = 1 AND (b = 2 OR c = 3)")
    ['a = 1', 'b = 2 OR c = 3']
    >>> where_conjuncts("SELECT t.a FROM t WHERE t.a = 1")
    []
    """
    try:
        where = parse_one(sql).args.get("where")
    except SqlglotError:
        return []
    if where is None or any(column.table for column in where.find_all(exp.Column)):
        return []
    condition = where.this
    conjuncts = condition.flatten() if isinstance(condition, exp.And) else [condition]
    return [to_sql(conjunct) for conjunct in conjuncts]
