"""Readable names of methods, made from the learner and the parameters in a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.options import (
    ALGORITHM_1,
    BOTTOM_UP,
    EQUAL_BITS,
    LEARNED_BITS,
    MTO,
    PANDO,
    TUNED,
    WOODBLOCK,
    Case,
    by_bounds,
    by_trees,
)

PLAIN = {  # methods without learning
    **{"default": "as it came", "none": "as it came", "random": "random rows", "range": "sorted"},
    **{"zorder": "Z-order, equal bits", "hilbert": "Hilbert curve"},
}
_OURS = {
    **{"qdtree": "qd-tree", "bottom_up": "bottom-up", "sop_zorder": "SOP with Z-order"},
    **{"zorder_learned": "learned Z-order", "mto": "MTO", "pando": "Pando", "woodblock": "WOODBLOCK"},
}
_OUR_INDEX = "our index"  # trees or bounds are published as the index, but here ours is read
_NAMES: dict[Any, str] = {1: "MTO", **{k: f"Pando, {k} trees" for k in (2, 3, 4)}}
_PUBLISHED: tuple[tuple[str, Case], ...] = (
    ("greedy qd-tree, as published", ALGORITHM_1),
    ("WOODBLOCK, as published", WOODBLOCK),
    ("bottom-up, as published", BOTTOM_UP),
    ("bottom-up, tuned as published", TUNED),
    *(
        (f"{name}, {reading}", read)
        for name, case in (("equal bits", EQUAL_BITS), ("learned bits", LEARNED_BITS))
        for reading, read in (("as published", by_bounds(case)), (f"published layout, {_OUR_INDEX}", case))
    ),
    *(
        (f"{_NAMES[case[1]['k']]}, {reading}", read)
        for case in (MTO, *PANDO)
        for reading, read in (("as published", by_trees(case)), (f"published layout, {_OUR_INDEX}", case))
    ),
    # Trees that grow by the facts of sampled rows, with leaves of a block: nearly the published layout.
    (f"MTO, by sampled rows, {_OUR_INDEX}", ("mto", ALGORITHM_1[1])),
    *((f"{name}, by sampled rows, {_OUR_INDEX}", ("pando", {"k": k, **ALGORITHM_1[1]})) for k, name in _NAMES.items()),
)
_TABLES = ("shape", "table", "literals", "history")  # parameters that say which data it was
_UNSAID = ("form", "recurrence", "budget_seconds", "target")


def table_of(params: Mapping[str, Any]) -> str:
    """Return the name of the table or data from the parameters of a line.

    >>> table_of({"form": "full", "shape": "taxi"})
    'taxi'
    """
    return ", ".join(str(params[name]) for name in _TABLES if name in params)


def method(learner: str, params: Mapping[str, Any]) -> str:
    """Return the readable name of a learner with its parameters.

    >>> method("qdtree", {"criterion": "skip", "cells": 1, "recurrence": 1, "cuts": "atoms", "shape": "taxi"})
    'greedy qd-tree, as published'
    >>> method("qdtree", {}), method("qdtree", {"recurrence": 1}), method("range", {"recurrence": 1})
    ('qd-tree', 'qd-tree, of these queries only', 'sorted')
    >>> method("qdtree", {"overlap": True}), method("", {"verb": "learn"})
    ('qd-tree: overlap=True', 'verb=learn')
    >>> trees = {"k": 2, "cells": "tuned", "criterion": "skip", "cost": "trees"}
    >>> published = {**trees, "recurrence": 1, "cuts": "atoms"}
    >>> method("pando", published), method("pando", {**published, "index": "trees"})
    ('Pando, 2 trees, published layout, our index', 'Pando, 2 trees, as published')
    """
    own = _own(params)
    if published := next((name for name, case in _PUBLISHED if (learner, own) == (case[0], _own(case[1]))), None):
        return published
    name = PLAIN.get(learner) or _OURS.get(learner, learner)
    if params.get("recurrence") == 1 and learner not in PLAIN:
        name += ", of these queries only"
    parameters = ", ".join(f"{key}={value}" for key, value in own.items())
    return f"{name}: {parameters}" if name and parameters else name or parameters


def is_published(learner: str, params: Mapping[str, Any]) -> bool:
    """True if the layout is a paper's, and is read as in the paper.

    >>> published = {"k": 1, "cells": 1, "criterion": "skip", "cost": "trees", "recurrence": 1, "cuts": "atoms"}
    >>> is_published("pando", published), is_published("pando", {**published, "index": "trees"})
    (False, True)
    """
    return method(learner, params).endswith("published")


def is_published_layout(learner: str, params: Mapping[str, Any]) -> bool:
    """True if the layout is a paper's, and is read with our index."""
    return method(learner, params).endswith(_OUR_INDEX)


def is_default(learner: str, params: Mapping[str, Any]) -> bool:
    """True if this is one of our learners with its default parameters."""
    return learner in _OURS and method(learner, params) == _OURS[learner]


def _own(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that distinguish methods."""
    return {name: v for name, v in params.items() if name not in (*_TABLES, *_UNSAID)}
