"""Conditions as Spark prints them are read as Spark meant them, or not at all."""

from __future__ import annotations

from random import Random

import pytest

from hedgerow.core.predicates.types import Type
from hedgerow.sql.plan_text import conditions_of

SCHEMA = {
    name: Type.parse(kind)
    for name, kind in {"n": "bigint", "s": "string", "d": "date", "b": "boolean", "price": "decimal(9,2)"}.items()
}


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("(isnotnull(d#3) AND (d#3 >= 1994-02-01))", ["d IS NOT NULL", "d >= DATE '1994-02-01'"]),
        ("s#2 LIKE a) AND (b%", ["s LIKE 'a) AND (b%'"]),
        ("NOT StartsWith(s#2, 50% (net), \\)", ["NOT (s LIKE '50\\\\% (net), \\\\\\\\%')"]),
        ("(n#1L IN (1,2) OR b#4)", ["(n IN (1, 2) OR b)"]),
        ("s#2 INSET a, b c", ["s IN ('a', 'b c')"]),
        ("(cast(s#2 as date) = 2024-01-01)", ["cast(s as date) = '2024-01-01'"]),
        ("(price#5 > cast(n#1L as decimal(9,2)))", ["price > cast(n as decimal(9,2))"]),
    ],
)
def test_conditions(text: str, sql: list[str]) -> None:
    assert conditions_of(text, SCHEMA) == (sql, 0)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "(length(replace(s#2, a, )) = 1)",
            "(n#1L > )",
            "(other#9 = 5)",
            "",
            "(((((",
            "n#1L INSET 1, ... 90 more fields",
        ),
        *("(n#1L = 5", "(b#4 = maybe)", "x" * 30_000, "(" * 300 + "n#1L = 5" + ")" * 300),
    ],
)
def test_what_cannot_be_read_is_counted(text: str) -> None:
    assert conditions_of(text, SCHEMA) == ([], 1)


def test_a_part_that_cannot_be_read_spares_the_others() -> None:
    assert conditions_of("(((n#1L = 5) AND (other#8 < 3)) AND b#4)", SCHEMA) == (["n = 5", "b"], 1)


def printed(r: Random, depth: int) -> tuple[str, str]:
    """A random condition as Spark prints it, and as SQL."""
    if depth == 0 or r.random() < 0.4:
        word = "".join(r.choice("ab (),=<> %'\\") for _ in range(r.randrange(6)))
        quoted = "'" + word.replace("\\", "\\\\").replace("'", "\\'") + "'"
        number = r.randrange(-5, 100)
        return r.choice(
            [
                (f"(s#2 = {word})", f"s = {quoted}"),
                (f"(n#1L <= {number})", f"n <= {number}"),
                ("(d#3 < 1999-12-31)", "d < DATE '1999-12-31'"),
                ("isnull(n#1L)", "n IS NULL"),
                ("b#4", "b"),
            ]
        )
    if r.random() < 0.2:
        text, sql = printed(r, depth - 1)
        return f"NOT {text}", f"NOT ({sql})"
    word = r.choice([" AND ", " OR "])
    (a, sql_a), (b, sql_b) = printed(r, depth - 1), printed(r, depth - 1)
    return f"({a}{word}{b})", f"({sql_a}{word}{sql_b})"


def test_random_conditions() -> None:
    """Some texts with brackets and commas in them have several readings, and the first one is wrong."""
    r, right = Random(1), 0
    for _ in range(400):
        text, sql = printed(r, 3)
        found, failed = conditions_of(text, SCHEMA)
        right += not failed and _flat(" AND ".join(found)) == _flat(sql)
    assert right > 300


def _flat(sql: str) -> str:
    return sql.replace("(", "").replace(")", "")
