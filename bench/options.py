"""The options of a run, for all suites; a suite reads only some of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

Form = Literal["quick", "full"]
Case = tuple[str, Mapping[str, Any]]  # a learner and its parameters

# The papers' methods as parameters of ours. `recurrence=1` learns from the queries as they are, and `cuts="atoms"`
# divides rows by their conditions only.
_PLAIN: dict[str, Any] = {"recurrence": 1, "cuts": "atoms"}
ALGORITHM_1: Case = ("qdtree", {"criterion": "skip", "cells": 1, **_PLAIN})
BOTTOM_UP: Case = ("bottom_up", {"cost": "features", **_PLAIN})
TUNED: Case = ("bottom_up", {"cost": "features", "tuned": True, **_PLAIN})  # BU+
WOODBLOCK: Case = ("woodblock", {"budget_seconds": 300, **_PLAIN})
_TREES: dict[str, Any] = {"criterion": "skip", "cost": "trees", **_PLAIN}
MTO: Case = ("pando", {"k": 1, "cells": 1, **_TREES})
PANDO: tuple[Case, ...] = tuple(("pando", {"k": k, "cells": "tuned", **_TREES}) for k in (2, 3, 4))
# Values of `index`, by default ours: the trees are the index, as published; or bounds, which every Parquet reader has.
BY_TREES, BY_BOUNDS = "trees", "bounds"
EQUAL_BITS: Case = ("zorder", {"axes": "values", "recurrence": 1})
LEARNED_BITS: Case = ("zorder_learned", {"search": "bayes", "axes": "values", "recurrence": 1})


def by_trees(case: Case) -> Case:
    """Return a case whose queries choose blocks by the trees of the learner alone."""
    return case[0], {**case[1], "index": BY_TREES}


def by_bounds(case: Case) -> Case:
    """Return a case whose queries choose blocks by the bounds of columns alone."""
    return case[0], {**case[1], "index": BY_BOUNDS}


def learn_arguments(case: Case, **options: Any) -> dict[str, Any]:
    """Return the arguments of `learn` for a case, whose parameters are the learner's or options of learning."""
    from hedgerow.pipeline.learn_options import LearnOptions

    learner, params = case
    names = {f.name for f in fields(LearnOptions)}
    options |= {name: value for name, value in params.items() if name in names}
    own = {name: value for name, value in params.items() if name not in names}
    return {"learner": learner, "options": LearnOptions(**options), **own}


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run; None or empty stands for the default of the suite's form."""

    form: Form = "full"
    seed: int = 0
    learners: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    sf: float | None = None
    months: tuple[str, ...] = ()

    def cases(self, default: tuple[Case, ...]) -> tuple[Case, ...]:
        """Return the learners to run, each with the given parameters, or the default cases."""
        if self.params and not self.learners:
            raise SystemExit("--param sets a parameter of a learner here: name the learner with --learner")
        return tuple((name, self.params) for name in self.learners) or default
