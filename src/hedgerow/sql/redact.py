"""Replace the literals of a condition by hashes: equal literals by equal hashes, which cannot be reversed."""

from __future__ import annotations

import hmac

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hedgerow.sql.to_sql import to_sql

_LITERALS = (
    *(exp.Literal, exp.HexString, exp.BitString, exp.ByteString, exp.RawString, exp.National, exp.UnicodeString),
    exp.JSONPath,
)


def redact(condition: str, key: bytes) -> str:
    """Return the condition without its literals; only with the key can a guess of a literal be checked.

    >>> redact("day > DATE '1994-01-01' AND note LIKE '%secret%'", b"key")
    "day > CAST('#d4d33d97' AS DATE) AND note LIKE '#432f7161'"
    """
    try:
        tree = sqlglot.parse_one(condition, read="spark")
    except (SqlglotError, ValueError, RecursionError):
        return "'#unreadable'"
    return to_sql(tree.transform(lambda node: _hashed(node, key)))


def _hashed(node: exp.Expr, key: bytes) -> exp.Expr:
    if not isinstance(node, _LITERALS):
        return node
    return exp.Literal.string("#" + hmac.digest(key, to_sql(node).encode(), "sha256").hex()[:8])
