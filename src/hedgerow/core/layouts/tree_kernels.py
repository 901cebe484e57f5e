"""The compiled loop that takes rows down a tree of cuts."""

from __future__ import annotations

from typing import Any

from hedgerow.core.compiled_loop import compiled_loop


@compiled_loop()
def go_down(nodes: Any, goes_left: Any, ids: Any) -> None:
    """Set the block of each row; `goes_left[c, r]`: whether cut c is TRUE on row r."""
    for r in range(len(ids)):
        node = 0
        while node >= 0:
            node = nodes[node, 1] if goes_left[nodes[node, 0], r] else nodes[node, 2]
        ids[r] = ~node
