"""Trust only what stands in the text: before a query prunes, each expression that Spark alone understands must be there
word for word.

A feature is found by its text, and that text is what sqlglot writes for an expression. For `log10(x)` it writes
`LOG(10, x)`, whose last digit differs. So an expression of a query whose tokens are not the query's own is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import count, pairwise, takewhile

import sqlglot
from sqlglot import Token, TokenType
from sqlglot.errors import SqlglotError

from hedgerow.core.expr import And, Column, Not, Opaque, Or, Predicate, columns, term_text, terms

_END = "\0"
_LIKES = ("like", "ilike", "rlike", "regexp")
_QUANTIFIERS = ("any", "all", "some")
_STRINGS = (TokenType.STRING, TokenType.NATIONAL_STRING, TokenType.RAW_STRING, TokenType.UNICODE_STRING)


@dataclass(frozen=True)
class Written:
    """A Spark SQL text; `names` are those of its tables, which may stand before a column."""

    sql: str
    names: frozenset[str] = frozenset()

    @cached_property
    def tokens(self) -> list[Token]:
        try:
            return list(sqlglot.tokenize(self.sql, read="spark"))
        except SqlglotError:
            return []

    @property
    def is_plain(self) -> bool:
        """Nothing in it that Spark replaces before it parses, or that names a table in a way we do not follow."""
        words = [raw for raw, _ in self._words]
        named = any(a == "identifier" and b == "(" for a, b in pairwise(words))
        escaped = any(t.token_type in _STRINGS and "\\" in self._raw(t) for t in self.tokens)
        odd = any(t.token_type in _STRINGS[1:] for t in self.tokens) or "table" in words or "|>" in self.sql
        renamed = any(word in ("where", "having") and self._only_names(i + 1) for i, word in enumerate(words))
        return bool(words) and "${" not in self.sql and not (named or escaped or odd or renamed)

    def _only_names(self, at: int) -> bool:
        """Names in brackets begin there. To Spark FROM t WHERE (x) has no condition: it calls t WHERE, its column x."""
        words = [raw for raw, _ in self._words[at:]]
        inside = list(takewhile(lambda word: word != ")", words[1:]))
        return words[:1] == ["("] and len(inside) % 2 == 1 and set(inside[1::2]) <= {","}

    def _raw(self, token: Token) -> str:
        return self.sql[token.start : token.end + 1]

    @cached_property
    def _words(self) -> list[tuple[str, bool]]:
        """Each token's text, and whether it is a name; letter case counts in strings only."""
        found = []
        for token in self.tokens:
            raw = self._raw(token)
            is_name = raw.startswith("`") or token.token_type == TokenType.VAR
            found.append((raw if token.token_type in _STRINGS else raw.strip("`").lower(), is_name))
        return found

    @cached_property
    def _texts(self) -> tuple[str, ...]:
        """As it stands; and without the names of tables before columns, and NOT before LIKE, which its reader moves."""
        words = [raw for raw, _ in self._words]
        short: list[str] = []
        for i, word in enumerate(words):
            after = [*words[i + 1 : i + 3], "", ""]
            if word == "not" and after[0] in _LIKES and after[1] not in _QUANTIFIERS:
                continue
            short.append(word)
        bare: list[str] = []
        skip = False
        for i, word in enumerate(short):
            if skip:
                skip = False
            elif word in self.names and short[i + 1 : i + 2] == ["."]:
                skip = True
            else:
                bare.append(word)
        return tuple(_END + _END.join(t) + _END for t in (words, short, bare))

    def has(self, text: str) -> bool:
        """The text stands in it, token by token."""
        wanted = _END + _END.join(raw for raw, _ in Written(text)._words) + _END
        return any(wanted in text for text in self._texts) or (text[:1] == "(" and self.has(text[1:-1]))


def as_written(p: Predicate, sql: str, names: Iterable[str] = ()) -> Predicate:
    """The predicate, with every atom unknown whose expressions do not stand in the text.

    >>> from hedgerow.core.expr import col, text
    >>> text(as_written(Opaque("LOG(10, x) > y", (col("x"), col("y"))), "log10(x) > y"))
    '(unknown 0: LOG(10, x) > y)'
    """
    source, number = Written(sql, frozenset(n.lower() for n in names)), count()

    def known(p: Predicate) -> Predicate:
        match p:
            case And(kids):
                return And(tuple(map(known, kids)))
            case Or(kids):
                return Or(tuple(map(known, kids)))
            case Not(kid):
                return Not(known(kid))
        texts = [p.sql] if isinstance(p, Opaque) else [term_text(t) for t in terms(p) if not isinstance(t, Column)]
        if all(source.has(text) for text in texts):
            return p
        # Each is another: what is written alike may have been two things.
        return Opaque(f"unknown {next(number)}: {', '.join(texts)}", tuple(sorted(columns(p), key=term_text)))

    return known(p)
