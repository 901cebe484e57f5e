"""Parse SQL text with sqlglot; parameters may have any name, `:from` and `:1` too."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import pairwise

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError

_NAME = re.compile(r"\w+")
_ENDS_VALUE = re.compile(r"""[\w'"`)\]]""")


def parse(sql: str, dialect: str = "spark") -> list[exp.Expr | None]:
    """Return the statements of a text, None for an empty one; ParseError or TokenError if it is not SQL.

    sqlglot takes no word of SQL and no number as the name of a parameter, so those become plain words.

    >>> parse("SELECT a FROM t WHERE a BETWEEN :from AND :to")[0].sql("spark")
    'SELECT a FROM t WHERE a BETWEEN :from AND :to'
    """
    try:
        return sqlglot.parse(sql, read=dialect)
    except ParseError:
        tokens = Dialect.get_or_raise(dialect).tokenize(sql)
        for colon, name in pairwise(tokens):
            if colon.token_type != TokenType.COLON or _ENDS_VALUE.match(sql, colon.start - 1):  # a:b, or a[1:2]
                continue
            if _NAME.fullmatch(sql, colon.end + 1, name.end + 1):
                name.token_type = TokenType.VAR
        with suppress(ParseError):
            return Dialect.get_or_raise(dialect).parser().parse(tokens, sql)
        raise


def parse_one(sql: str, dialect: str = "spark") -> exp.Expr:
    """Return the first statement, or a condition; ParseError or TokenError if there is none."""
    node = next(iter(parse(sql, dialect)), None)
    if node is None:
        raise ParseError(f"there is no SQL in {sql!r}")
    return node
