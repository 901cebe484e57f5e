"""What a suite asserts of its own lines can fail."""

from __future__ import annotations

import pytest

from bench.report.quality import check


def line(learner: str, read: float, unseen: float | None = None, bound: float = 0.1) -> dict[str, object]:
    reads = {"rows_read": read, "rows_read_unseen": read if unseen is None else unseen}
    return {"learner": learner, **reads, "bound": bound, "bound_unseen": bound}


def test_what_must_hold() -> None:
    check([line("random", 0.7), line("qdtree", 0.4)], "random", 0.8, 0.9)
    check([line("range", 0.7), line("qdtree", 0.65)], "random", 0.8, 0.9)
    with pytest.raises(AssertionError, match=r"rows_read: 0\.6, random: 0\.7"):
        check([line("random", 0.7), line("qdtree", 0.6)], "random", 0.8, 0.9)
    with pytest.raises(AssertionError, match="rows_read_unseen"):
        check([line("random", 0.7), line("qdtree", 0.4, unseen=0.65)], "random", 0.8, 0.9)
    with pytest.raises(AssertionError, match="match"):
        check([line("qdtree", 0.05)], "random", 0.8, 0.9)
