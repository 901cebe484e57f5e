"""Makes learners by the names that users give them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hedgerow.core.errors import LayoutError
from hedgerow.core.learning.problem import Learner

LEARNERS = {
    "random": "hedgerow.learners.random:Random",
    "range": "hedgerow.learners.zorder.range:Range",
    "zorder": "hedgerow.learners.zorder.zorder:ZOrder",
    "hilbert": "hedgerow.learners.zorder.hilbert:Hilbert",
    "zorder_learned": "hedgerow.learners.zorder.zorder_learned:ZOrderLearned",
    "qdtree": "hedgerow.learners.qdtree.qdtree:QdTree",
    "bottom_up": "hedgerow.learners.sop.bottom_up:BottomUp",
    "sop_zorder": "hedgerow.learners.sop.sop_zorder:SopZOrder",
    "mto": "hedgerow.learners.qdtree.qdtree:QdTree",
    "pando": "hedgerow.learners.pando.pando:Pando",
    "woodblock": "hedgerow.learners.woodblock.woodblock:Woodblock",
}
AUTO = "auto"  # no learner, but the best of all
SECONDS_OF = {"woodblock": "budget_seconds", "zorder_learned": "seconds"}  # of those that search as long as they may
OF_SEVERAL_TABLES = ("mto", "pando")  # these look at joined rows, if they learn from several tables


def make_learner(name: str, **params: Any) -> Learner:
    if name not in LEARNERS:
        raise LayoutError(f"there is no learner {name!r}; there are {', '.join(LEARNERS)}")
    module, _, cls = LEARNERS[name].partition(":")
    columns = params.get("columns", ())
    params |= {"columns": (columns,) if isinstance(columns, str) else tuple(columns)} if columns else {}
    try:
        learner: Learner = getattr(import_module(module), cls)(**params)
    except TypeError as error:
        raise LayoutError(f"the learner {name} does not take these parameters: {error}") from error
    return learner
