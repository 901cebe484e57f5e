"""Checks of a suite's lines that must hold on any machine: of quality, never of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def sound(lines: Sequence[dict[str, Any]]) -> None:
    """Assert that no learner reads fewer rows than match."""
    for line in lines:
        for read, bound in (("rows_read", "bound"), ("rows_read_unseen", "bound_unseen")):
            assert line[read] >= line[bound], f"{line['learner']} reads {line[read]}, but {line[bound]} match"


def check(lines: Sequence[dict[str, Any]], beside: str, learned: float, unseen: float) -> None:
    """Assert that the lines are sound, and that a qd-tree is better than `beside`."""
    sound(lines)
    better(lines, beside, learned, unseen)


def better(lines: Sequence[dict[str, Any]], beside: str, learned: float, unseen: float) -> None:
    """Assert that a qd-tree reads less than these shares of the rows that `beside` reads."""
    for read, share in (("rows_read", learned), ("rows_read_unseen", unseen)):
        peers = [line[read] for line in lines if line["learner"] == beside]
        for line in lines:
            if peers and line["learner"] == "qdtree":
                assert line[read] < share * min(peers), f"{read}: {line[read]}, {beside}: {min(peers)}"
