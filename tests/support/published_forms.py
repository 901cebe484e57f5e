"""The papers' methods as learners: `bench/options` has their parameters, and tests give the searches less time."""

from __future__ import annotations

from typing import Any

from bench.options import ALGORITHM_1, BOTTOM_UP, EQUAL_BITS, LEARNED_BITS, MTO, PANDO, TUNED, WOODBLOCK, Case
from hedgerow.core.learning.problem import Learner
from hedgerow.core.workload.candidate_cuts import USUAL, Kind
from hedgerow.pipeline.learner_names import make_learner

PUBLISHED: dict[str, Case] = {
    "Algorithm 1": ALGORITHM_1,
    "bottom-up": BOTTOM_UP,
    "tuned bottom-up": TUNED,
    "WOODBLOCK": WOODBLOCK,
    "MTO": MTO,
    "Pando-2": PANDO[0],
    "equal bits": EQUAL_BITS,
    "learned bits": LEARNED_BITS,
}
_OF_LEARNING = ("recurrence", "cuts")  # parameters that are not the learner's: `cuts` is the problem's


def published_learner(form: str, **limits: Any) -> Learner:
    """Return the learner of a published form; `limits` replace its parameters."""
    name, params = PUBLISHED[form]
    return make_learner(name, **{k: v for k, v in params.items() if k not in _OF_LEARNING} | limits)


def published_cuts(form: str) -> Kind:
    """Return which conditions may divide rows; the usual ones where a form does not say."""
    kind: Kind = PUBLISHED.get(form, ("", {}))[1].get("cuts", USUAL)
    return kind
