"""The thesis's example: bounds of expressions and noted conditions decide about files."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.predicates.nodes import Predicate, terms_of
from hedgerow.core.pruning.block_stats import F_BIT, T_BIT, collect
from hedgerow.sql.workload import Workload


def test_statistics_of_the_thesis() -> None:
    """Fig. 4.3: a file's bounds decide about an expression, and its bits about a condition."""

    def asked(condition: str) -> Predicate:
        return Workload.from_sql([f"SELECT * FROM t WHERE {condition}"]).queries[0].predicate("t")

    courier, broken = asked("shipping['courier'] = 'DHL'"), asked("note LIKE '%broken%'")
    month = next(iter(terms_of(asked("month(shipped) > 10"))))
    stats = collect(
        {month: pa.array([3, 7, 9])},
        {courier: np.array([T_BIT, F_BIT, F_BIT], np.uint8), broken: np.full(3, F_BIT, np.uint8)},
    )
    index = BlockIndex(stats)
    opened = {text: bool(index.to_open(asked(text))[0]) for text in ("month(shipped) > 10", "month(shipped) > 8")}
    assert opened == {"month(shipped) > 10": False, "month(shipped) > 8": True}
    assert index.to_open(courier)[0] and not index.to_open(broken)[0]
    assert not index.to_open(asked("month(shipped) > 8 AND note LIKE '%broken%'"))[0]
    assert index.to_open(asked("note LIKE '%lost%'"))[0]  # nothing is known about it
