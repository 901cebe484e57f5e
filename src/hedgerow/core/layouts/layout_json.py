"""Write a layout of any kind as JSON, and read it back."""

from __future__ import annotations

import json

from hedgerow.core.errors import FormatError
from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.curve import Axis, BlockAxis, CurveLayout
from hedgerow.core.layouts.feature_groups import GroupLayout
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.predicates.nodes import Feature
from hedgerow.core.predicates.predicate_json import decode, encode

LAYOUT_FORMAT = 1
_LAYOUTS = CurveLayout, GroupLayout, OverlapLayout, TreeLayout
LAYOUT_CLASSES = (*_LAYOUTS, Axis, BlockAxis)


def layout_to_json(layout: Layout) -> str:
    return json.dumps({"hedgerow_layout": LAYOUT_FORMAT, **encode(layout)})


def layout_from_json(value: str | bytes) -> Layout:
    """Read the layout that `layout_to_json` wrote; raise FormatError for anything else."""
    try:
        fields = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"this is not a layout, because it is not valid JSON: {error}") from error
    if not isinstance(fields, dict) or "hedgerow_layout" not in fields:
        raise FormatError("this JSON is not a Hedgerow layout: it has no hedgerow_layout")
    written_by = fields.pop("hedgerow_layout")
    if written_by != LAYOUT_FORMAT:
        raise FormatError(f"this layout was written by another Hedgerow (format {written_by})")
    return checked(decode(fields, LAYOUT_CLASSES))


def checked(layout: object) -> Layout:
    """Return a layout that was read; FormatError if it is damaged, or something else."""
    try:
        if isinstance(layout, _LAYOUTS) and layout.blocks and all(isinstance(f, Feature) for f in layout.features):
            return layout
    except (TypeError, AttributeError, ValueError) as error:
        raise FormatError(f"this layout is damaged: {error!r}") from error
    raise FormatError("this is not a layout, or a damaged one")
