"""A condition that is TRUE on one row is TRUE on the summaries of all rows with its key."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from hedgerow.core.predicates.nodes import Column, Predicate, conjunction
from hedgerow.core.predicates.row_truth import truth
from hedgerow.core.predicates.schema import as_schema
from hedgerow.core.predicates.sql_text import predicate_text, quote_name, term_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.workload import summaries as module
from hedgerow.core.workload.summaries import Summary, choose_summaries, on_summaries
from hedgerow.sql.workload import Workload
from tests.support.random_cases import Table, a_predicate, a_table, related, seeds, some_rows

GROUP = "okey<-lines.okey"
LINES = as_schema(
    {"okey": "bigint", "qty": "int", "day": "date", "until": "date", "mode": "string", "at": "array<int>"}
)


def condition(where: str) -> Predicate:
    (query,) = Workload.from_sql(f"SELECT * FROM lines WHERE {where}", {"lines": dict(LINES)})
    return query.predicate("lines")


def chosen(*where: str, **more: Any) -> tuple[Summary, ...]:
    return choose_summaries([(condition(w), 1.0) for w in where], LINES, **more)[0]


def names(summaries: tuple[Summary, ...]) -> list[str]:
    return [summary.name for summary in summaries]


def summarised(summaries: tuple[Summary, ...], table: Table) -> dict[str, Any]:
    """The summaries of all rows of a table, slowly."""
    row: dict[str, Any] = {}
    for s in summaries:
        if isinstance(s.of, Column):
            values = [r[term_text(s.of)] for r in table.rows if r[term_text(s.of)] is not None]
            value = (min if s.function == "min" else max)(values, default=None)
        else:
            value = True if any(truth(s.of, r) for r in table.rows) else None
        row[f"{quote_name(GROUP)}.{quote_name(s.name)}"] = value
    return row


def count_useful(random: Random) -> int:
    """The conditions of a random case that the summaries say is TRUE on no row; AssertionError if it is on one."""
    table, useful = a_table(random, plain=True), 0
    schema = {term_text(term): Type(kind) for term, kind in table.kinds.items()}
    asked = [a_predicate(random, table) for _ in range(3)]
    summaries, _ = choose_summaries([(p, 1.0) for p in asked], schema)
    for group in [some_rows(random, table, 3) for _ in range(3)]:
        row = summarised(summaries, group)
        for p in [*asked, *(related(random, table, p) for p in asked)]:
            holds = truth(on_summaries(p, summaries, GROUP), row) is True
            assert holds or not any(truth(p, r) for r in group.rows), (predicate_text(p), names(summaries))
            useful += not holds
    return useful


def test_no_row_is_missed() -> None:
    assert sum(map(count_useful, seeds(0, 600))) > 1000


MUTANTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "an equality with more than the least value": ("_OF_MIN", lambda old: {**old, "=": "<"}),
    "<= as <": ("_OF_MIN", lambda old: {**old, "<=": "<"}),
    "> as on the least value": ("_OF_MIN", lambda old: {**old, ">": ">"}),
    "the greatest value without equality": ("_OF_MAX", lambda old: {**old, ">=": ">"}),
    "implied by, not implies": ("implies", lambda old: lambda p, q: old(q, p)),
    "OR as AND": ("disjunction", lambda _: conjunction),
    "a prefix ends too early": ("prefix_end", lambda _: lambda prefix: prefix or None),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_planted_bugs(name: str) -> None:
    target, change = MUTANTS[name]
    with patch.object(module, target, change(getattr(module, target))), pytest.raises(AssertionError):
        for random in seeds(0, 600):
            count_useful(random)


def test_choice() -> None:
    late = "day < until"
    several = chosen(f"qty < 5 AND {late}", "qty < 7 AND mode = 'AIR'", "mode IN ('AIR', 'SHIP')", "okey = 3")
    bounds = ["max(mode)", "max(qty)", "min(mode)", "min(qty)"]
    conditions = ["any(mode = 'AIR')", "any(mode = 'SHIP')", "any(mode IN ('AIR', 'SHIP'))", "any(`day` < until)"]
    wholes = ["any(`day` < until AND qty < 5)", "any(mode = 'AIR' AND qty < 7)"]
    assert sorted(names(several)) == sorted([*bounds, *conditions, *wholes, "any(okey = 3)", "min(okey)", "max(okey)"])
    own = chosen("okey = 3", "okey = 3 AND qty < 5", keys=["okey"])
    assert names(own) == ["min(qty)", "max(qty)", "any(okey = 3 AND qty < 5)"]
    assert names(chosen(late, "mode = 'AIR'", late, least_queries=2)) == [
        "min(mode)",
        "max(mode)",
        "any(`day` < until)",
    ]
    # Of what Spark alone evaluates, and of columns without an order, nothing is said.
    assert names(chosen("year(day) = 1995 AND qty < 5", "size(at) > 1", "at IS NULL")) == ["min(qty)", "max(qty)"]
    asked = [(condition(f"mode = 'm{i}'"), float(i)) for i in range(5)]
    found, more = choose_summaries(asked, LINES, limit=2)
    assert names(found)[2:] == ["any(mode = 'm4')", "any(mode = 'm3')"] and more == 3


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("qty < 5", "min(qty) < 5"),
        ("qty BETWEEN 5 AND 7", "max(qty) >= 5 AND min(qty) < 8"),
        ("qty = 5", "max(qty) >= 5 AND min(qty) <= 5"),
        ("qty < 5 OR day < until", "any(`day` < until) = TRUE OR min(qty) < 5"),
        ("mode = 'AIR' AND qty <> 3", "any(mode = 'AIR') = TRUE"),
        ("mode = 'RAIL'", "max(mode) >= 'RAIL' AND min(mode) <= 'RAIL'"),
        ("mode IN ('AIR', 'RAIL')", "any(mode = 'AIR') = TRUE OR (max(mode) >= 'RAIL' AND min(mode) <= 'RAIL')"),
        ("mode LIKE 'R%'", "max(mode) >= 'R' AND min(mode) < 'S'"),
        (
            "mode = 'AIR' AND qty < 2",
            "any(mode = 'AIR' AND qty < 3) = TRUE AND any(mode = 'AIR') = TRUE AND min(qty) < 2",
        ),
        ("until < day", "TRUE"),
        ("NOT day < until", "TRUE"),
        ("length(mode) = 3", "TRUE"),
        ("qty < 3 AND qty > 5", "FALSE"),
    ],
)
def test_conditions(where: str, expected: str) -> None:
    stored = chosen("qty < 9", "day < until", "mode = 'AIR'", "mode = 'AIR' AND qty < 3")
    found = predicate_text(on_summaries(condition(where), stored, GROUP)).replace(f"{quote_name(GROUP)}.", "")
    assert found.replace("``", '"').replace("`", "").replace('"', "`") == expected
