"""A layout inside a layout: each outer block is laid out again by its own inner layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hedgerow.core.layouts.base import (
    BlockIds,
    Feature,
    Layout,
    Let,
    Write,
    in_brackets,
    layout_from_dict,
    layout_to_dict,
    sql_of,
)
from hedgerow.core.pruning.block_stats import Stats, repeat
from hedgerow.core.pruning.row_batch import Rows


@dataclass(frozen=True)
class NestedLayout:
    """An outer layout whose block i is divided by the layout `inner[i]`; the blocks of `inner[0]` come first."""

    kind: ClassVar[str] = "nested"
    outer: Layout
    inner: tuple[Layout, ...]

    @property
    def features(self) -> tuple[Feature, ...]:
        return tuple(dict.fromkeys((*self.outer.features, *(f for layout in self.inner for f in layout.features))))

    @property
    def _starts(self) -> list[int]:
        """The first block of each inner layout, then the number of all blocks."""
        return [0, *np.cumsum([layout.blocks for layout in self.inner]).tolist()]

    @property
    def blocks(self) -> int:
        return self._starts[-1]

    def assign(self, rows: Rows) -> BlockIds:
        outer = self.outer.assign(rows)
        ids = np.zeros(len(rows), np.int32)
        for i, layout in enumerate(self.inner):
            here = np.flatnonzero(outer == i)
            if len(here):
                ids[here] = layout.assign(rows.take(here)) + self._starts[i]
        return ids

    def assign_sql(self, write: Write = sql_of, let: Let = in_brackets) -> str | None:
        outer = self.outer.assign_sql(write, let)
        parts = [layout.assign_sql(write, let) for layout in self.inner]
        if outer is None or None in parts:
            return None
        cases = " ".join(f"WHEN {i} THEN {self._starts[i]} + {sql}" for i, sql in enumerate(parts))
        return f"CASE {let(outer)} {cases} END"

    def regions(self) -> Stats:
        """The bounds of each outer block, which hold for all blocks inside it."""
        owner = np.repeat(np.arange(len(self.inner)), [layout.blocks for layout in self.inner])
        return repeat(self.outer.regions(), owner)

    def to_dict(self) -> dict[str, Any]:
        return {
            "outer": layout_to_dict(self.outer),
            "inner": [layout_to_dict(layout) for layout in self.inner],
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> NestedLayout:
        return cls(layout_from_dict(value["outer"]), tuple(layout_from_dict(v) for v in value["inner"]))
