"""Rows grouped by the features that hold on them: bottom-up row groups, and Pando's cells.

features (x < 5, y = 1)     a row's vector: TRUE FALSE -> 10     blocks {11: 0, 10: 0, 00: 1}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from hedgerow.core.arrays import Bools
from hedgerow.core.layouts.base import BlockIds, Let, Write, in_brackets
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.predicates.sql_text import feature_text
from hedgerow.core.pruning.block_stats import T_BIT
from hedgerow.core.pruning.row_batch import Rows


@dataclass(frozen=True)
class GroupLayout:
    """Rows grouped by feature vector: `block_of` maps a vector, a text with 0 or 1 for each feature, to its block.

    An unknown vector goes to the first of the blocks to which it would add the fewest features.
    """

    kind: ClassVar[str] = "group"
    predicates: tuple[Predicate, ...]
    block_of: Mapping[str, int]

    @property
    def features(self) -> tuple[Predicate, ...]:
        return self.predicates

    @property
    def blocks(self) -> int:
        return max(self.block_of.values(), default=0) + 1

    def assign(self, rows: Rows) -> BlockIds:
        if not self.predicates:
            return np.zeros(len(rows), np.int32)
        holds = np.stack([rows.evaluate(p) == T_BIT for p in self.predicates], axis=1)
        packed = np.packbits(holds, axis=1)
        _, first_row, vector_of_row = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        blocks = [self._block(holds[i]) for i in first_row]
        return np.array(blocks, np.int32)[vector_of_row.reshape(-1)] if len(rows) else np.zeros(0, np.int32)

    def _block(self, vector: Bools) -> int:
        block = self.block_of.get(text_of(vector))
        if block is not None:
            return block
        return int(np.argmin((vector & ~self.vectors).sum(axis=1)))

    @cached_property
    def vectors(self) -> Bools:
        """Whether a feature holds on some row of a block, as blocks x features."""
        holds = np.zeros((self.blocks, len(self.predicates)), bool)
        for vector, block in self.block_of.items():
            holds[block] |= np.array([c == "1" for c in vector])
        return holds

    def assign_sql(self, write: Write = feature_text, let: Let = in_brackets) -> str | None:
        return None


def text_of(vector: Bools) -> str:
    """Return the vector as a key of `block_of`.

    >>> text_of(np.array([True, False]))
    '10'
    """
    return "".join("1" if v else "0" for v in vector)
