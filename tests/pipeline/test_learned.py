"""A learned layout as JSON: all but the figures of its learning comes back, and nothing else is taken for one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hedgerow.core.errors import FormatError
from hedgerow.core.layouts.curve import Axis, BlockAxis, CurveLayout
from hedgerow.core.layouts.feature_groups import GroupLayout
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.predicates.nodes import Compare, col, lit
from hedgerow.core.workload.references import Joined, Reference
from hedgerow.pipeline.learned import Learned

LATE = Compare(col("day"), ">", lit(5))
TREE = TreeLayout((LATE,), ((0, ~0, ~1),))
CURVE = CurveLayout(
    (Axis(col("x"), "float", (1.5, float("inf"))), BlockAxis(GroupLayout((LATE,), {"1": 0, "0": 1}))), (0, 1), (3,)
)
KEY = Reference("orders", ("customer",), "customers", ("id",))
LEARNED = Learned(
    TREE,
    "orders",
    (LATE,),
    {"learner": "qdtree", "type": "int", "given": {"node": 0.5}},
    ("a warning",),
    (Compare(col("x"), "=", lit(1)),),
    "day",
    (Joined((KEY,)),),
    (col("price"),),
    (col("customer"),),
)


@pytest.mark.parametrize("layout", [TREE, CURVE, TreeLayout((), ())])
def test_a_layout_comes_back(layout: Any) -> None:
    learned = Learned(layout, *list(vars(LEARNED).values())[1:10])
    assert Learned.from_json(learned.to_json()) == learned


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("hedgerow_learned", 2),
        ("node", "Column"),
        ("layout", None),
        ("layout", {"node": "Column", "path": ["x"]}),
        ("table", 5),
        ("sort_by", 5),
        ("predicates", [{"node": "Column", "path": ["x"]}]),
        ("noted", 5),
        ("unknown", 5),
    ],
)
def test_what_is_no_layout_is_refused(member: str, value: object) -> None:
    saved = {**json.loads(LEARNED.to_json()), member: value}
    with pytest.raises(FormatError):
        Learned.from_json(json.dumps(saved))
