"""Makes learners by the names that users give them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hedgerow.core.errors import LayoutError
from hedgerow.core.learning.problem import Learner
from hedgerow.learners.pando.pando import Pando
from hedgerow.learners.qdtree.qdtree import QdTree
from hedgerow.learners.random import Random
from hedgerow.learners.sop.bottom_up import BottomUp
from hedgerow.learners.sop.sop_zorder import SopZOrder
from hedgerow.learners.woodblock.woodblock import Woodblock
from hedgerow.learners.zorder.hilbert import Hilbert
from hedgerow.learners.zorder.range import Range
from hedgerow.learners.zorder.zorder import ZOrder
from hedgerow.learners.zorder.zorder_learned import ZOrderLearned

LEARNERS: dict[str, Callable[..., Learner]] = {
    "random": Random,
    "range": Range,
    "zorder": ZOrder,
    "hilbert": Hilbert,
    "zorder_learned": ZOrderLearned,
    "qdtree": QdTree,
    "bottom_up": BottomUp,
    "sop_zorder": SopZOrder,
    "mto": QdTree,  # on rows that have the columns of joined tables too
    "pando": Pando,
    "woodblock": Woodblock,
}
AUTO = "auto"  # no learner, but the best of all
SECONDS_OF = {"woodblock": "budget_seconds", "zorder_learned": "seconds"}  # of those that search as long as they may
OF_SEVERAL_TABLES = ("mto", "pando")  # these look at joined rows, if they learn from several tables


def make_learner(name: str, **params: Any) -> Learner:
    if name not in LEARNERS:
        raise LayoutError(f"there is no learner {name!r}; there are {', '.join(LEARNERS)}")
    columns = params.get("columns", ())
    params |= {"columns": (columns,) if isinstance(columns, str) else tuple(columns)} if columns else {}
    try:
        return LEARNERS[name](**params)
    except TypeError as error:
        raise LayoutError(f"the learner {name} does not take these parameters: {error}") from error
