"""What every layout must do, whatever its kind: route every row, always the same way, and keep what it promises."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest

from hedgerow.core.errors import FormatError
from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.layout_json import layout_from_json, layout_to_json
from hedgerow.core.learning.problem import Learner, Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.learners.curves.zorder_learned import ZOrderLearned
from hedgerow.learners.qdtree.qdtree import QdTree
from hedgerow.learners.sop.bottom_up import BottomUp
from hedgerow.learners.sop.sop_zorder import SopZOrder
from hedgerow.learners.woodblock.woodblock import Woodblock
from tests.support.published_forms import PUBLISHED, published_cuts, published_learner
from tests.support.random_cases import LAYOUTS, Table, a_layout, a_predicate, a_table, bits, seeds, some_rows

LEARNERS: dict[str, Learner] = {
    "bottom_up queries": BottomUp(),
    "bottom_up sop": BottomUp(cost="sop"),
    "sop_zorder": SopZOrder(points=2),
    **{
        f"qdtree {way} {cells}": QdTree(way, cells=cells)
        for way, cells in (("skip", 6), ("gain_ratio", 1), ("gain_ratio", 6))
    },
    "zorder_learned": ZOrderLearned(iterations=12),
}
LEARNERS["woodblock"] = Woodblock(max_trees=8, at_once=4, budget_seconds=None, reward="log")
LIMITS: dict[str, dict[str, Any]] = {
    "WOODBLOCK": {"max_trees": 8, "at_once": 4, "budget_seconds": None},
    "learned bits": {"iterations": 4},
}
# Tuned groups differ from others by features that a tenth of the rows has: so small a table has none.
FORMS = [form for form in PUBLISHED if form != "tuned bottom-up"]
LEARNERS |= {form: published_learner(form, **LIMITS.get(form, {})) for form in FORMS}
pytestmark = pytest.mark.parametrize("kind", [*LAYOUTS, *LEARNERS])
EACH, SLOW = 60, 12  # cases of each kind; of those that search for long


def cases(kind: str) -> list[tuple[Random, Table, Layout]]:
    """A layout, and rows it has never seen: other values, NULL and NaN among them."""
    found = []
    for state, table, layout in _made(kind):
        random = Random()
        random.setstate(state)
        found.append((random, some_rows(random, table), layout))
    return found


@cache
def _made(kind: str) -> list[tuple[Any, Table, Layout]]:
    made = []
    for random in seeds(0, SLOW if kind in ("woodblock", *LIMITS) else EACH):
        table = a_table(random)
        layout = learned(random, table, kind) if kind in LEARNERS else a_layout(random, table, kind)
        made.append((random.getstate(), table, layout))
    return made


def learned(random: Random, table: Table, kind: str) -> Layout:
    """A learner's layout for random queries."""
    queries = tuple(a_predicate(random, table, random.choice((0, 1, 2))) for _ in range(random.randint(0, 5)))
    sample = Sample(rows_of(table), len(table), {})
    return LEARNERS[kind].fit(Problem.build(sample, queries, random.randint(1, 2), cuts=published_cuts(kind)))


def rows_of(table: Table) -> Rows:
    return Rows(table.columns, {p: bits(p, table) for p in table.opaque})


def test_every_row_has_a_block(kind: str) -> None:
    for _, table, layout in cases(kind):
        ids = layout.assign(rows_of(table))
        assert ids.dtype == np.int32
        assert len(ids) == len(table)
        assert ((ids >= 0) & (ids < layout.blocks)).all()


def test_all_blocks_are_used_by_some_kind_of_row(kind: str) -> None:
    """The suite would prove little if the random layouts put everything in one block."""
    assert (
        sum(len(set(layout.assign(rows_of(table)).tolist())) > 1 for _, table, layout in cases(kind))
        > len(_made(kind)) // 8
    )


def test_chunks_and_order_do_not_matter(kind: str) -> None:
    for random, table, layout in cases(kind):
        rows = rows_of(table)
        whole = layout.assign(rows)
        order = np.array(random.sample(range(len(table)), len(table)))
        assert layout.assign(rows.take(order)).tolist() == whole[order].tolist()
        cut = random.randint(0, len(table))
        parts = [layout.assign(rows.take(np.arange(*ends))) for ends in ((0, cut), (cut, len(table)))]
        assert np.concatenate(parts).tolist() == whole.tolist()


def test_the_features_are_enough(kind: str) -> None:
    """Spark computes only `features`: terms as columns, predicates as outcomes."""
    for _, table, layout in cases(kind):
        columns = {t: table.columns[t] for t in layout.features if t in table.columns}
        truths = {p: bits(p, table) for p in layout.features if isinstance(p, Predicate)}
        assert len(columns) + len(truths) == len(layout.features)
        if layout.features:
            assert layout.assign(Rows(columns, truths)).tolist() == layout.assign(rows_of(table)).tolist()


def test_json(kind: str) -> None:
    for _, table, layout in cases(kind):
        again = layout_from_json(layout_to_json(layout))
        assert again == layout
        assert again.blocks == layout.blocks
        assert again.features == layout.features
        assert again.assign(rows_of(table)).tolist() == layout.assign(rows_of(table)).tolist()


def test_damaged_json_is_one_error(kind: str) -> None:
    random, _, layout = cases(kind)[0]
    data = layout_to_json(layout)
    for _ in range(50):
        at = random.randrange(len(data))
        try:
            layout_from_json(data[:at] + random.choice('0"[{x') + data[at + 1 :])
        except FormatError as error:
            assert "\n" not in str(error)
