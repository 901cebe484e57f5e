"""Ways to draw literals: how skewed, drifting and repeatable they are; and what two trees read of them."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.data.tpch_draws import WAYS, queries
from bench.data.tpch_templates import TEMPLATES


def _colours(way: str, unseen: bool = False) -> list[str]:
    """The words that template 9 searches for, in the order in which they are asked."""
    nine = list(TEMPLATES).index(9)
    return [sql.split("%")[1] for sql, _ in queries(way, 0, 200, unseen)[nine :: len(TEMPLATES)]]


@pytest.mark.parametrize("way", WAYS)
def test_a_seed_draws_the_same_queries_again(way: str) -> None:
    assert queries(way, 1, 5) == queries(way, 1, 5)
    assert queries(way, 1, 5) != queries(way, 2, 5)
    for sql, condition in queries(way, 1, 5):
        assert "{" not in sql and (condition in sql or condition == "TRUE")


def test_skewed_queries_ask_for_few_words_often() -> None:
    often = {way: sum(n for _, n in Counter(_colours(way)).most_common(5)) for way in ("uniform", "skewed")}
    assert often["skewed"] > 2.5 * often["uniform"]


def test_drifting_queries_ask_for_new_words_later() -> None:
    learned, unseen = set(_colours("drifting")), set(_colours("drifting", unseen=True))
    assert len(unseen - learned) > len(unseen) / 4
    assert len(set(_colours("uniform", unseen=True)) - set(_colours("uniform"))) < 10
