"""The learning curve is what it says, on a month of a few hundred rows."""

from __future__ import annotations

from bench.report.learning_curve import drawn
from hedgerow.learners.woodblock.woodblock import Point


def test_drawing() -> None:
    assert drawn([]) == []
    assert drawn([Point(1.0, 32, 0.5, 0.6), Point(2.5, 64, 0.4, 0.4)], width=10) == [
        "    1.0 s       32 trees  50.00 %  #####-",
        "    2.5 s       64 trees  40.00 %  ####",
    ]
