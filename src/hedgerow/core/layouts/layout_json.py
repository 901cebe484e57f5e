"""Write a layout of any kind as JSON, and read it back."""

from __future__ import annotations

import json
from typing import Any

from hedgerow.core.errors import FormatError
from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.curve import CurveLayout
from hedgerow.core.layouts.feature_groups import GroupLayout
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.layouts.tree import TreeLayout

LAYOUT_FORMAT = 1
_KINDS = {layout.kind: layout for layout in (CurveLayout, GroupLayout, OverlapLayout, TreeLayout)}


def layout_to_json(layout: Layout) -> str:
    return json.dumps({"hedgerow_layout": LAYOUT_FORMAT, **layout_to_dict(layout)})


def layout_from_json(value: str | bytes) -> Layout:
    """Read the layout that `layout_to_json` wrote; raise FormatError for anything else."""
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
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise FormatError(f"there is no layout of the kind {kind!r}; the kinds are {', '.join(sorted(_KINDS))}")
    try:
        return _KINDS[kind].from_dict(value)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise FormatError(f"this {kind} layout is damaged: {error!r}") from error
