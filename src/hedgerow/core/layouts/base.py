"""What every layout is: a pure function from a row to a block id, written down as data."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from hedgerow.core.errors import FormatError
from hedgerow.core.predicates.nodes import Cast, Column, Expr, Predicate, Term
from hedgerow.core.predicates.sql_text import term_text, text
from hedgerow.core.pruning.block_stats import Stats
from hedgerow.core.pruning.row_batch import Rows

BlockIds = npt.NDArray[np.int32]
Feature: TypeAlias = Predicate | Term
Write: TypeAlias = Callable[[Feature], str]
Let: TypeAlias = Callable[[str], str]
VERSION = 1


def sql_of(feature: Feature) -> str:
    return term_text(feature) if isinstance(feature, Column | Cast | Expr) else text(feature)


def in_brackets(sql: str) -> str:
    return f"({sql})"


class Layout(Protocol):
    """`features` is what must be computed of a row; `assign` and `assign_sql` turn it into one of `blocks` ids."""

    kind: ClassVar[str]

    @property
    def features(self) -> tuple[Feature, ...]: ...

    @property
    def blocks(self) -> int: ...

    def assign(self, rows: Rows) -> BlockIds: ...

    def assign_sql(self, write: Write = sql_of, let: Let = in_brackets) -> str | None:
        """The same function as one Spark SQL expression, where there is one.

        `write` gives each feature's text; `let` takes a part that is used often and gives what to call it by.
        """

    def regions(self) -> Stats:
        """What each block promises about its rows before any is seen."""

    def to_dict(self) -> dict[str, Any]: ...


# Where each kind lives; imported when a layout of that kind is read, so that no import has to come first.
_KINDS = {
    "curve": "hedgerow.core.layouts.curve:CurveLayout",
    "group": "hedgerow.core.layouts.feature_groups:GroupLayout",
    "nested": "hedgerow.core.layouts.nested:NestedLayout",
    "overlap": "hedgerow.core.layouts.overlap:OverlapLayout",
    "tree": "hedgerow.core.layouts.tree:TreeLayout",
}


def layout_to_json(layout: Layout) -> str:
    return json.dumps({"hedgerow_layout": VERSION, **layout_to_dict(layout)})


def layout_from_json(value: str) -> Layout:
    """The layout that `layout_to_json` wrote; FormatError for anything else."""
    try:
        found = json.loads(value)
    except ValueError as error:
        raise FormatError(f"this is no JSON, so no layout: {error}") from error
    if not isinstance(found, dict) or "hedgerow_layout" not in found:
        raise FormatError("this JSON is no layout of Hedgerow's")
    if found["hedgerow_layout"] > VERSION:
        raise FormatError(f"this layout was written by a newer Hedgerow (format {found['hedgerow_layout']})")
    return layout_from_dict(found)


def layout_to_dict(layout: Layout) -> dict[str, Any]:
    return {"kind": layout.kind, **layout.to_dict()}


def layout_from_dict(value: dict[str, Any]) -> Layout:
    if value.get("kind") not in _KINDS:
        raise FormatError(
            f"there is no layout of the kind {value.get('kind')!r}; known are {', '.join(sorted(_KINDS))}"
        )
    module, _, name = _KINDS[value["kind"]].partition(":")
    try:
        found: Layout = getattr(import_module(module), name).from_dict(value)
        return found
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise FormatError(f"this {value['kind']} layout is damaged: {error!r}") from error
