"""What must hold of a suite's lines, whatever the machine: quality, never time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def sound(lines: Sequence[dict[str, Any]]) -> None:
    """No one reads less than what matches."""
    for found in lines:
        for read, bound in (("rows_read", "bound"), ("rows_read_unseen", "bound_unseen")):
            assert found[read] >= found[bound], f"{found['learner']} reads {found[read]}, but {found[bound]} match"


def check(lines: Sequence[dict[str, Any]], beside: str, learned: float, unseen: float) -> None:
    """Sound, and a qd-tree better than what stands beside it."""
    sound(lines)
    better(lines, beside, learned, unseen)


def better(lines: Sequence[dict[str, Any]], beside: str, learned: float, unseen: float) -> None:
    """A qd-tree reads less than these shares of what `beside` reads."""
    for read, share in (("rows_read", learned), ("rows_read_unseen", unseen)):
        theirs = [found[read] for found in lines if found["learner"] == beside]
        for found in lines:
            if theirs and found["learner"] == "qdtree":
                assert found[read] < share * min(theirs), f"{read}: {found[read]}, {beside}: {min(theirs)}"
