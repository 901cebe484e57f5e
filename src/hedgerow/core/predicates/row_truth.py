"""Evaluate a predicate on one row, in three-valued logic: slow, and the reference for all faster evaluation.

a AND b   TRUE  FALSE NULL        a OR b   TRUE  FALSE NULL        NOT a
TRUE      TRUE  FALSE NULL        TRUE     TRUE  TRUE  TRUE        TRUE  -> FALSE
FALSE     FALSE FALSE FALSE       FALSE    TRUE  FALSE NULL        FALSE -> TRUE
NULL      NULL  FALSE NULL        NULL     TRUE  NULL  NULL        NULL  -> NULL
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from hedgerow.core.errors import assert_never
from hedgerow.core.predicates.nodes import (
    And,
    Compare,
    CompareTerms,
    Const,
    In,
    IsNull,
    Like,
    Not,
    Opaque,
    Or,
    Predicate,
    Prefix,
)
from hedgerow.core.predicates.sql_text import predicate_text, term_text

OPS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def truth(p: Predicate, row: Mapping[str, Any]) -> bool | None:
    """Evaluate to True, False or None (NULL). A row maps the text of a term or opaque predicate to its value.

    >>> from hedgerow.core.predicates.nodes import col, lit
    >>> truth(Or((Compare(col("x"), "<", lit(5)), IsNull(col("y")))), {"x": None, "y": 1}) is None
    True
    """
    match p:
        case Const(value):
            return value
        case Compare(term, op, literal):
            value = row[term_text(term)]
            return None if value is None else bool(OPS[op](value, literal.value))
        case CompareTerms(left, op, right):
            a, b = row[term_text(left)], row[term_text(right)]
            return None if a is None or b is None else OPS[op](a, b)
        case In(term, literals):
            value = row[term_text(term)]
            return None if value is None else any(value == x.value for x in literals)
        case Prefix(term, prefix):
            value = row[term_text(term)]
            return None if value is None else bool(value.startswith(prefix))
        case IsNull(term):
            return row[term_text(term)] is None
        case Like() | Opaque():
            outcome: bool | None = row[predicate_text(p)]
            return outcome
        case Not(child):
            inner = truth(child, row)
            return None if inner is None else not inner
        case And(kids):
            results = [truth(k, row) for k in kids]
            return False if False in results else None if None in results else True
        case Or(kids):
            results = [truth(k, row) for k in kids]
            return True if True in results else None if None in results else False
    assert_never(p)
