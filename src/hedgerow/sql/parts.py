"""Splits the WHERE of a query into the parts that AND joins."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hedgerow.sql.written import written


def parts_of(sql: str, dialect: str = "spark") -> list[str]:
    """The texts of the parts of the outermost WHERE; none if there is no such, or if the parts name their table.

    >>> parts_of("SELECT a FROM t WHERE a = 1 AND (b = 2 OR c = 3)"), parts_of("SELECT t.a FROM t WHERE t.a = 1")
    (['a = 1', 'b = 2 OR c = 3'], [])
    """
    try:
        where = sqlglot.parse_one(sql, read=dialect).args.get("where")
    except SqlglotError:
        return []
    if where is None or any(column.table for column in where.find_all(exp.Column)):
        return []
    condition = where.this
    parts = condition.flatten() if isinstance(condition, exp.And) else [condition]
    return [written(part, dialect) for part in parts]
