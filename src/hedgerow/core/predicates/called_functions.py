"""Finds the functions that the text of an expression or a condition calls."""

from __future__ import annotations

import re

_CALL, _STRING_LITERAL = re.compile(r"([\w.`]+)\s*\("), re.compile(r"'(?:[^'\\]|\\.)*'")
# Words before a bracket that are not functions.
_KEYWORDS = frozenset(("and", "or", "not", "in", "like", "ilike", "rlike", "is", "case", "when", "then", "else", "as"))
_KEYWORDS |= {"cast", "decimal", "between", "any", "all", "div"}


def called_functions(sql: str) -> set[str]:
    """Return the names in lower case.

    >>> sorted(called_functions("Near(x, abs(y)) AND (s IN ('f(1)', 'g'))"))
    ['abs', 'near']
    """
    return set(_CALL.findall(_STRING_LITERAL.sub("", sql).lower())) - _KEYWORDS


def outer_call(sql: str) -> str:
    """Return the function in lower case if the text is one call; else an empty text.

    >>> outer_call("Near(x, ')')"), outer_call("near(x) + far(y)")
    ('near', '')
    """
    name, bracket, rest = _STRING_LITERAL.sub("", sql).partition("(")
    depth = [1]
    for c in rest:
        depth.append(depth[-1] + (c == "(") - (c == ")"))
    is_one_call = bracket and depth[-1] == 0 and 0 not in depth[:-1]
    return name.strip().lower() if is_one_call else ""
