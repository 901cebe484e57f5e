"""Says in a few words what a query takes of the rows that match: aggregates of them, the first of them, or all."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError

from hedgerow.core.predicates.nodes import TRUE
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import predicate_text, readable, term_text
from hedgerow.core.workload.queries import Query, shape
from hedgerow.core.workload.wanted_rows import Aggregates, AnyRows, Top, WantedRows
from hedgerow.sql.parse import parse_one
from hedgerow.sql.to_sql import to_sql


@dataclass(frozen=True)
class Outline:
    """A query's use of one table. Queries of one `kind` differ in literals only.

    Args:
        text: the condition, with its literals, and what the query takes of the rows that match.
        wanted: the same as the query's scan says it; None: all of these rows.
    """

    kind: str
    text: str
    wanted: WantedRows | None


def outline_of(query: Query, table: str) -> Outline:
    """Return the outline of a query of this table.

    >>> from hedgerow.sql.workload import Workload
    >>> def outlined(sql):
    ...     return outline_of(Workload.from_sql(sql).queries[0], "t").text
    >>> outlined("SELECT * FROM t WHERE x > 5 ORDER BY y DESC LIMIT 10")
    'x > 5 ORDER BY y DESC LIMIT 10'
    >>> outlined("SELECT count(*) FROM t"), outlined("SELECT max(y) AS last FROM t WHERE x = 1")
    ('count(*)', 'max(y) WHERE x = 1')
    >>> outlined("SELECT * FROM t"), outlined("SELECT * FROM t WHERE x < rand()")
    ('all rows', 'all rows (WHERE x < RAND())')
    """
    p, wanted = query.predicate(table), query.wanted(table)
    begin, end, limit = _texts(wanted)
    condition = "" if p == TRUE else predicate_text(normalise(p))
    if begin and condition:
        condition = f"WHERE {condition}"
    kind = " ".join(filter(None, (begin, shape(p), end)))
    text = " ".join(filter(None, (begin, condition, end, limit)))
    if not condition and (unused := _where(query)):
        text = f"{text or 'all rows'} ({to_sql(unused)})"
        kind = f"{kind} {to_sql(unused.transform(_without_literal))}"
    return Outline(kind, readable(text or "all rows"), wanted)


def _texts(wanted: WantedRows | None) -> tuple[str, str, str]:
    """Return three texts: one before the condition, one after it, and the number of rows."""
    match wanted:
        case Top(column, descending, rows):
            return "", f"ORDER BY {term_text(column)}{' DESC' if descending else ''}", f"LIMIT {rows}"
        case AnyRows(rows):
            return "", "LIMIT", str(rows)
        case Aggregates(values, groups):
            listed = ", ".join(f"{name}({'*' if of is None else term_text(of)})" for name, of in values)
            by = ", ".join(map(term_text, groups))
            return listed or f"the values of {by}", f"GROUP BY {by}" if listed and by else "", ""
    return "", "", ""


def _where(query: Query) -> exp.Expr | None:
    try:
        return parse_one(query.text, query.dialect).find(exp.Where) if query.text else None
    except (SqlglotError, RecursionError):
        return None


def _without_literal(node: exp.Expr) -> exp.Expr:
    return exp.Placeholder() if isinstance(node, exp.Literal) else node
