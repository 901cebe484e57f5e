"""The sentence of an advice gives ranges, and says where a gain comes from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.seconds import Estimate
from hedgerow.core.workload.score import QueryScore, Score
from hedgerow.pipeline.advice import Advice
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.proposals import Proposal

SECONDS = Estimate(5.0, 1.0)


def advice(rows_then: float, rows_now: float = 0.9, files_now: float = 0.9) -> Advice:
    """Return the advice for a table of 1 GB, whose queries get faster; 12 files would be written."""
    layout = TreeLayout((), ())
    score = Score.mean([QueryScore("q1", rows_then, 0.1, rows_then, 0.01)], [1.0], 12)
    best = Proposal("qdtree", Learned(layout, "t", estimate=SECONDS, usual=SECONDS), score)
    return Advice("t", 10_000_000, 1 << 30, rows_now, files_now, 5.0, 0.01, (best,), (90.0, 300.0), ())


def test_a_rewrite_takes_from_the_least_to_the_most() -> None:
    assert advice(0.1).pays_back_after == (23, 76)
    assert advice(0.1).sentence == "take qdtree: the rewrite takes 90 to 300 s, which 23 to 76 queries save"
    assert replace(advice(0.1), rewrite_seconds=None).sentence == "take qdtree"
    assert "10.0% of the rows, 12 files, 1.00 s a query" in str(advice(0.1))


@pytest.mark.parametrize(
    ("then", "now", "files", "by_index"),
    [
        (0.08, 0.07, 1.0, True),  # sorted already, but each footer is read
        (0.01, 0.07, 1.0, False),  # fewer rows are read
        (0.08, 0.07, 0.08, False),  # an index, or the log of Delta, already says which files to open
    ],
)
def test_what_an_index_would_gain_by_itself_is_said(then: float, now: float, files: float, by_index: bool) -> None:
    found = advice(then, now, files)
    assert found.gains_by_index == by_index
    assert ("its index gains this" in found.sentence) == by_index
    assert found.to_dict()["files_read"] == files
