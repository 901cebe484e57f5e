"""Conditions that the index notes beside bounds and values."""

from __future__ import annotations

from hedgerow.core.predicates.nodes import And, Compare, Opaque, Prefix, col, lit
from hedgerow.core.workload.conditions_to_note import conditions_to_note

DISTINCT = {col("ip"): 4096, col("kind"): 6, col("text"): 9999}.__getitem__


def test_conditions_that_come_again_are_noted_as_a_whole() -> None:
    both = And((Compare(col("ip"), "<", lit(50)), Compare(col("kind"), "=", lit(3))))
    once = And((Compare(col("ip"), "<", lit(60)), Opaque("note LIKE '%broken%'", (col("note"),))))
    assert both in conditions_to_note((both, both, once), DISTINCT)
    assert once not in conditions_to_note((both, both, once), DISTINCT)


def test_prefixes_of_many_values_are_noted() -> None:
    many, few = Prefix(col("text"), "a"), Prefix(col("kind"), "a")
    assert conditions_to_note((many, few), DISTINCT) == (many,)


def test_the_number_of_conditions_is_limited() -> None:
    many = tuple(Compare(col("ip"), "=", lit(v)) for v in range(9))
    assert len(conditions_to_note(many, DISTINCT, limit=4)) == 4
