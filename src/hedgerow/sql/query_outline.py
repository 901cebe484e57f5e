"""Says in a few words what a query takes of the rows that match: aggregates of them, the first of them, or all."""

from __future__ import annotations

from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hedgerow.core.predicates.nodes import TRUE
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import predicate_text, term_text
from hedgerow.core.workload.queries import Query, Top, shape
from hedgerow.sql.to_sql import to_sql

_ANSWERED = (exp.Count, exp.Min, exp.Max, exp.Sum)  # the aggregates that an index may answer


@dataclass(frozen=True)
class Outline:
    """A query's use of one table. Queries of one `kind` differ in literals only.

    Args:
        text: the condition, with its literals, and what the query takes of the rows that match.
        aggregates: such as "count(*)", if the result has nothing else; an index may answer these.
        top: the first rows, if the query needs no others.
    """

    kind: str
    text: str
    aggregates: tuple[str, ...]
    top: Top | None


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
    p = query.predicate(table)
    scans = [scan for scan in query.scans if scan.table.lower() == table.lower()]
    top = scans[0].top if len(scans) == 1 else None
    node = _parsed(query)
    aggregates = _aggregates(node) if len(query.scans) == 1 else ()
    first = "" if top is None else f"ORDER BY {term_text(top.column)}{' DESC' if top.descending else ''}"
    kind = " ".join(filter(None, (", ".join(aggregates), shape(p), first)))
    condition, limit = "" if p == TRUE else predicate_text(normalise(p)), "" if top is None else f"LIMIT {top.rows}"
    if aggregates and condition:
        condition = f"WHERE {condition}"
    text = " ".join(filter(None, (", ".join(aggregates), condition, first, limit)))
    if not condition and (unused := node and node.find(exp.Where)):
        text = f"{text or 'all rows'} ({to_sql(unused)})"
        kind = f"{kind} {to_sql(unused.transform(_without_literal))}"
    return Outline(kind, text or "all rows", aggregates, top)


def _parsed(query: Query) -> exp.Expr | None:
    try:
        return sqlglot.parse_one(query.text, read=query.dialect) if query.text else None
    except (SqlglotError, RecursionError):
        return None


def _aggregates(node: exp.Expr | None) -> tuple[str, ...]:
    """Return the aggregates of a query whose result is one row of them; else nothing."""
    if not isinstance(node, exp.Select) or any(node.args.get(part) for part in ("group", "having", "distinct")):
        return ()
    results = [result.unalias() for result in node.expressions]
    plain = all(isinstance(r, _ANSWERED) and isinstance(r.this, exp.Column | exp.Star) for r in results)
    return tuple(f"{r.key}({to_sql(r.this)})" for r in results) if plain else ()


def _without_literal(node: exp.Expr) -> exp.Expr:
    return exp.Placeholder() if isinstance(node, exp.Literal) else node
