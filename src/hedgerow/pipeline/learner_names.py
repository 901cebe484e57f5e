"""Makes learners by the names that users give them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from hedgerow.core.errors import LayoutError
from hedgerow.core.learning.problem import Learner
from hedgerow.learners.curves.hilbert import Hilbert
from hedgerow.learners.curves.range import Range
from hedgerow.learners.curves.zorder import ZOrder
from hedgerow.learners.curves.zorder_learned import ZOrderLearned
from hedgerow.learners.pando.pando import Pando
from hedgerow.learners.qdtree.qdtree import QdTree
from hedgerow.learners.random import Random
from hedgerow.learners.sop.bottom_up import BottomUp
from hedgerow.learners.sop.sop_zorder import SopZOrder
from hedgerow.learners.woodblock.woodblock import Woodblock
from hedgerow.pipeline.learn_options import LearnOptions

LEARNERS: dict[str, Callable[..., Learner]] = {
    "random": Random,
    "range": Range,
    "zorder": ZOrder,
    "hilbert": Hilbert,
    "zorder_learned": ZOrderLearned,
    "qdtree": QdTree,
    "bottom_up": BottomUp,
    "sop_zorder": SopZOrder,
    "mto": QdTree,  # on joined rows
    "pando": Pando,
    "woodblock": Woodblock,
}
AUTO = "auto"  # tries all learners and takes the best layout
DEFAULT = "qdtree"
SECONDS_OF = {"woodblock": "budget_seconds", "zorder_learned": "seconds"}  # parameters that limit the time of a search
OF_SEVERAL_TABLES = ("mto", "pando")  # these use joined rows if they learn from several tables


@dataclass(frozen=True)
class NamedLearner:
    """A learner's name, with parameters.

    `title`: its name for people. `trees`: the number of layouts that it makes, each for a full copy of the table."""

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    trees: int = 1

    @property
    def makes_a_tree(self) -> bool:
        return self.name in ("qdtree", "mto", "woodblock") and not self.params.get("overlap")

    def make(self, **more: Any) -> Learner:
        """Return the learner; LayoutError if there is none with this name and these parameters."""
        return make_learner(self.name, **{**self.params, **more})

    def limited_to(self, seconds: float) -> NamedLearner:
        """Return the same learner, with less time if it searches as long as it may."""
        limit = {SECONDS_OF[self.name]: seconds} if self.name in SECONDS_OF else {}
        return replace(self, params={**self.params, **limit})


def make_learner(name: str, **params: Any) -> Learner:
    """Return a learner; LayoutError if there is none with this name and these parameters."""
    if name not in LEARNERS:
        raise LayoutError(f"there is no learner {name!r}; there are {', '.join(LEARNERS)}")
    columns = params.get("columns", ())
    params |= {"columns": (columns,) if isinstance(columns, str) else tuple(columns)} if columns else {}
    try:
        return LEARNERS[name](**params)
    except TypeError as error:
        raise wrong_params(name, params, str(error)) from error


def wrong_params(name: str, params: Iterable[str], reason: str) -> LayoutError:
    """Return the error for parameters that a learner does not take."""
    options = [field.name for field in fields(LearnOptions) if field.name in params]
    if options:
        return LayoutError(f"{options[0]} is no parameter of a learner: pass options=LearnOptions({options[0]}=...)")
    return LayoutError(f"the learner {name} does not take these parameters: {reason}")
