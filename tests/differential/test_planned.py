"""Plans of queries that take more than WHERE are judged as their answers would be; no Spark is needed for that."""

from __future__ import annotations

from itertools import chain, combinations
from random import Random

import pytest

from tests.differential.conditions import Known
from tests.differential.evaluated_rows import Rows, Term
from tests.differential.planned import Asked, some_asked
from tests.differential.sessions import EVERY, Planned

FILES = ["a", "a", "b", "b", "c", "c"]
X = Term("x", "int", ["5", "6", "6", None, "9", "9"], [1, 2, 2, None, 3, 3])
ROWS = Rows(FILES, [Known("x > 5", (False, True, True, None, True, True))], [X])


def asked(*words: str) -> list[Asked]:
    """Return those of many random queries that have all the words, and at least one."""
    found = [one for one in some_asked(Random(1), ROWS, 20_000) if all(word in one.question.sql for word in words)]
    assert found
    return found


def test_all_files_are_right() -> None:
    for one in some_asked(Random(2), ROWS, 500):
        assert one.judge(FILES, Planned(set(FILES)))
        assert one.judge(FILES, Planned({EVERY}))


def files_to_open(one: Asked) -> list[str]:
    """Return the sets of files that are right, the smallest ones only."""
    every = chain.from_iterable(combinations("abc", n) for n in range(4))
    right = [set(some) for some in every if one.judge(FILES, Planned(set(some)))]
    return ["".join(sorted(some)) for some in right if not any(other < some for other in right)]


@pytest.mark.parametrize(
    ("sql", "files"),
    [
        ("SELECT * FROM (SELECT x AS k0 FROM {t} ) ORDER BY k0   LIMIT 1", ["b"]),  # NULLS FIRST
        ("SELECT * FROM (SELECT x AS k0 FROM {t} ) ORDER BY k0 ASC NULLS LAST LIMIT 2", ["a"]),
        ("SELECT * FROM (SELECT x AS k0 FROM {t} WHERE x IS NOT NULL) ORDER BY k0 ASC  LIMIT 2", ["a"]),
        ("SELECT * FROM (SELECT x AS k0 FROM {t} WHERE x > 5) ORDER BY k0   LIMIT 1", ["a", "b"]),  # a tie
        ("SELECT * FROM (SELECT x AS k0 FROM {t} ) ORDER BY k0 DESC  LIMIT 5", ["abc"]),
        ("SELECT * FROM (SELECT * FROM {t} ) LIMIT 2", ["a", "b", "c"]),
        ("SELECT * FROM (SELECT * FROM {t} WHERE x > 5) LIMIT 2", ["c", "ab"]),
        ("SELECT * FROM (SELECT * FROM {t} ) LIMIT 0", [""]),
        ("SELECT * FROM (SELECT * FROM {t} ) LIMIT 1 OFFSET 7", [""]),
    ],
)
def test_files_to_open(sql: str, files: list[str]) -> None:
    one = next(one for one in asked("LIMIT") if one.question.sql.strip() == sql)
    assert files_to_open(one) == files


@pytest.mark.parametrize(
    ("sql", "types", "values"),
    [
        ("SELECT count(*) AS a0 FROM {t} ", ["bigint"], [["4"]]),
        ("SELECT count(x) AS a0 FROM {t} ", ["bigint"], [["3"]]),
        ("SELECT min(x) AS a0 FROM {t} ", ["int"], [["6"]]),
        ("SELECT sum(x) AS a0 FROM {t} WHERE x > 5", ["bigint"], [["24"]]),
        (
            "SELECT x AS k0, count(*) AS a0 FROM {t}  GROUP BY x",
            ["int", "bigint"],
            [["6", "1"], [None, "1"], ["9", "2"]],
        ),
    ],
)
def test_values_of_files_that_are_not_opened(sql: str, types: list[str], values: list[list[str | None]]) -> None:
    one = next(one for one in asked("AS a0") if one.question.sql == sql)
    assert one.judge(FILES, Planned({"a"}, values, types))
    assert not one.judge(FILES, Planned({"a"}))
    assert not one.judge(FILES, Planned({"a", "b"}, values, types)) or "min" in sql
    for wrong in ([*values, values[0]], [[*values[0][:-1], "5"], *values[1:]], [[*values[0][:-1], None], *values[1:]]):
        assert not one.judge(FILES, Planned({"a"}, wrong, types))
