"""Replaces the literals of a condition by hashes: the same literal by the same hash, which nobody can turn back."""

from __future__ import annotations

import hmac

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hedgerow.sql.written import written

_LITERALS = (
    *(exp.Literal, exp.HexString, exp.BitString, exp.ByteString, exp.RawString, exp.National, exp.UnicodeString),
    exp.JSONPath,
)


def redacted(condition: str, key: bytes) -> str:
    """The condition without its literals; only who has the key can tell whether a literal was a certain value.

    >>> redacted("day > DATE '1994-01-01' AND note LIKE '%secret%'", b"key")
    "day > CAST('#d4d33d97' AS DATE) AND note LIKE '#432f7161'"
    """
    try:
        tree = sqlglot.parse_one(condition, read="spark")
    except (SqlglotError, ValueError, RecursionError):
        return "'#unreadable'"
    return written(tree.transform(lambda node: _hashed(node, key)))


def _hashed(node: exp.Expr, key: bytes) -> exp.Expr:
    if not isinstance(node, _LITERALS):
        return node
    return exp.Literal.string("#" + hmac.digest(key, written(node).encode(), "sha256").hex()[:8])
