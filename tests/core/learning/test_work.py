"""The work of reading a row: values of fixed size cost the same, a text costs by its length."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.work import share_of_work
from hedgerow.core.predicates.nodes import TRUE, Compare, Predicate, col, lit

TABLE = pa.table({"d": pa.array([1]), "price": pa.array([1.5]), "note": pa.array(["x" * 24])})
SAMPLE = replace(Sample.of_table(TABLE), unpacked={"d": 0.1, "price": 8.0, "note": 21.0})
ON_NOTE = Compare(col("note"), "=", lit("a"))


@pytest.mark.parametrize(
    ("reads", "p", "share"),
    [
        (("d",), TRUE, 3 / 30),
        (("price",), TRUE, 3 / 30),  # stored bytes do not count
        (("note",), TRUE, 24 / 30),
        (("D", "note"), TRUE, 27 / 30),
        (("d",), ON_NOTE, 27 / 30),
        ((), ON_NOTE, 24 / 30),
        (None, ON_NOTE, 1),
    ],
)
def test_share(reads: tuple[str, ...] | None, p: Predicate, share: float) -> None:
    assert share_of_work(SAMPLE, reads, p) == pytest.approx(share)


def test_without_footers() -> None:
    sample = replace(SAMPLE, unpacked={}, width={"d": 4.0, "price": 8.0, "note": 13.0})
    assert share_of_work(sample, ("note",), TRUE) == pytest.approx(16 / 22)
    assert share_of_work(replace(sample, width={}), ("note",), TRUE) == 1
