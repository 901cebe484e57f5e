"""The work of reading a row, in the columns that a query needs: by it, a query counts when a layout is learned."""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.score import read_columns
from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.nodes import Predicate

# Measured on lineitem, in nanoseconds: a value of fixed size takes about as long as three bytes of a text, however many
# bytes it has in the file. A text is unpacked and searched byte by byte.
_VALUE, _BYTE_OF_TEXT = 3.0, 1.0
_FIXED_SIZE = (
    *(kinds.INT, kinds.DECIMAL, kinds.FLOAT, kinds.BOOLEAN),
    *(kinds.DATE, kinds.TIMESTAMP, kinds.TIMESTAMP_NTZ),
)


def share_of_work(sample: Sample, reads: Sequence[str] | None, p: Predicate) -> float:
    """The work of reading a row for a query that reads these columns (None: all), as a share of reading all columns."""
    work = {name: _work(sample, name) for name in (sample.unpacked or sample.width)}
    names = read_columns(reads, p)
    if names is None or not work:
        return 1.0
    lower = {name.lower() for name in names}
    return sum(w for name, w in work.items() if name.lower() in lower) / sum(work.values())


def _work(sample: Sample, name: str) -> float:
    type_ = sample.schema.get(name)
    if type_ is not None and type_.kind in _FIXED_SIZE:
        return _VALUE
    return _VALUE + _BYTE_OF_TEXT * (sample.unpacked or sample.width)[name]
