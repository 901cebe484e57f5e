"""Groups of neighbours, decided first, change no answer: entries are chosen as if each were decided by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.predicates.values import Value
from hedgerow.core.pruning import block_stats, evaluator
from hedgerow.core.pruning.block_stats import ANY, F_BIT, T_BIT, TermStats
from hedgerow.core.pruning.evaluator import may_match, must_match, possible_outcomes
from tests.property.test_soundness import CHANGES, Blocks, collect_some
from tests.support.random_cases import Table, a_predicate, a_table, related, seeds


@pytest.fixture(params=[2, 3], autouse=True)
def few_make_a_group(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of two or three entries, and groups of such groups, and so on."""
    for module in (block_stats, evaluator):
        monkeypatch.setattr(module, "GROUP", request.param)
    monkeypatch.setattr(block_stats, "MIN_GROUPED", 2)


class SomeFilter:
    """A filter of look-ups for one column: some entries pass whatever is looked up, others if they hold the value."""

    def __init__(self, random: Random, table: Table, b: Blocks, name: str) -> None:
        own = np.isin(np.arange(len(b.stats)), b.entry)  # other entries have rows that are not known here
        self.passing = ~own | np.array([random.random() < 0.5 for _ in own], bool)
        self.values = [row.get(name) for row in table.rows]
        self.entry = b.entry

    def may_hold(self, kind: str, values: Sequence[Value]) -> Bools:
        may_hold = self.passing.copy()
        may_hold[[entry for value, entry in zip(self.values, self.entry, strict=True) if value in values]] = True
        return may_hold


def differing(first_seed: int, tables: int) -> list[str]:
    """Return the predicates that groups answer otherwise than entries one by one."""
    found = []
    for random in seeds(first_seed, tables):
        table = a_table(random, most_rows=40)
        queries = [a_predicate(random, table) for _ in range(4)]
        features = tuple(related(random, table, random.choice(queries)) for _ in range(random.randint(0, 3)))
        b = collect_some(random, table, features=features)
        for change in random.choices(CHANGES, k=random.choice((0, 1, 1, 2))):
            b = change(random, table, b)
        filters = {n: SomeFilter(random, table, b, n) for n in b.stats.terms if random.random() < 0.3}
        grouped = replace(b.stats, filters=filters)
        alone = replace(grouped, are_sorted=False)
        for p in queries:
            asked = [(possible_outcomes(p, s), may_match(p, s), must_match(p, s)) for s in (grouped, alone)]
            wanted = [[possible_outcomes(p, s, w) & w for w in (T_BIT, F_BIT, ANY)] for s in (grouped, alone)]
            pairs = [*zip(*asked, strict=True), *zip(*wanted, strict=True)]
            if any((by_groups != one_by_one).any() for by_groups, one_by_one in pairs):
                found.append(predicate_text(p))
    return found


def test_groups_change_no_answer() -> None:
    assert differing(90_000, 400) == []


@pytest.mark.long
def test_groups_change_no_answer_in_many_cases() -> None:
    assert differing(95_000, 8_000) == []


def test_a_group_that_forgets_nulls_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    of_groups = block_stats._of_groups

    def forgetful(t: TermStats, starts: Ints) -> TermStats:
        group = of_groups(t, starts)
        return replace(group, nulls=np.zeros_like(group.nulls))

    monkeypatch.setattr(block_stats, "_of_groups", forgetful)
    assert differing(90_000, 200)
