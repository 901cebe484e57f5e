"""The protocol of a layout: a pure function from a row to a block id, stored as data."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from hedgerow.core.errors import FormatError
from hedgerow.core.predicates.nodes import Cast, Column, Expr, Predicate, Term
from hedgerow.core.predicates.sql_text import predicate_text, term_text
from hedgerow.core.pruning.row_batch import Rows

BlockIds = npt.NDArray[np.int32]
Feature: TypeAlias = Predicate | Term
Write: TypeAlias = Callable[[Feature], str]
Let: TypeAlias = Callable[[str], str]
LAYOUT_FORMAT = 1


def sql_of(feature: Feature) -> str:
    """Return the SQL text of a predicate or a term."""
    return term_text(feature) if isinstance(feature, Column | Cast | Expr) else predicate_text(feature)


def in_brackets(sql: str) -> str:
    return f"({sql})"


class Layout(Protocol):
    """A function from a row to one of `blocks` ids; `features` are the values that it needs of a row."""

    kind: ClassVar[str]

    @property
    def features(self) -> tuple[Feature, ...]: ...

    @property
    def blocks(self) -> int: ...

    def assign(self, rows: Rows) -> BlockIds: ...

    def assign_sql(self, write: Write = sql_of, let: Let = in_brackets) -> str | None:
        """Return the same function as one Spark SQL expression; None if the layout has no short one.

        `write` returns the SQL text of a feature; `let` names an expression that is used often and returns its name.
        """

    def to_dict(self) -> dict[str, Any]: ...


# The class of each kind, imported only when a layout of that kind is read.
_CLASS_OF_KIND = {
    "curve": "hedgerow.core.layouts.curve:CurveLayout",
    "group": "hedgerow.core.layouts.feature_groups:GroupLayout",
    "overlap": "hedgerow.core.layouts.overlap:OverlapLayout",
    "tree": "hedgerow.core.layouts.tree:TreeLayout",
}


def layout_to_json(layout: Layout) -> str:
    return json.dumps({"hedgerow_layout": LAYOUT_FORMAT, **layout_to_dict(layout)})


def layout_from_json(value: str | bytes) -> Layout:
    """Read the layout that `layout_to_json` wrote; FormatError for anything else."""
    try:
        fields = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"this is not a layout, because it is not valid JSON: {error}") from error
    if not isinstance(fields, dict) or "hedgerow_layout" not in fields:
        raise FormatError("this JSON is not a Hedgerow layout: it has no hedgerow_layout")
    if fields["hedgerow_layout"] > LAYOUT_FORMAT:
        raise FormatError(f"this layout was written by a newer Hedgerow (format {fields['hedgerow_layout']})")
    return layout_from_dict(fields)


def layout_to_dict(layout: Layout) -> dict[str, Any]:
    return {"kind": layout.kind, **layout.to_dict()}


def layout_from_dict(value: dict[str, Any]) -> Layout:
    if value.get("kind") not in _CLASS_OF_KIND:
        kinds = ", ".join(sorted(_CLASS_OF_KIND))
        raise FormatError(f"there is no layout of the kind {value.get('kind')!r}; the kinds are {kinds}")
    module, _, name = _CLASS_OF_KIND[value["kind"]].partition(":")
    try:
        layout: Layout = getattr(import_module(module), name).from_dict(value)
        return layout
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise FormatError(f"this {value['kind']} layout is damaged: {error!r}") from error
