"""The protocol of a layout: a pure function from a row to a block id, stored as data."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from hedgerow.core.predicates.nodes import Feature
from hedgerow.core.predicates.sql_text import feature_text
from hedgerow.core.pruning.row_batch import Rows

BlockIds = npt.NDArray[np.int32]
Write: TypeAlias = Callable[[Feature], str]
Let: TypeAlias = Callable[[str], str]


def in_brackets(sql: str) -> str:
    return f"({sql})"


class Layout(Protocol):
    """A function from a row to one of `blocks` ids; `features` are the values that it needs of a row."""

    kind: ClassVar[str]

    @property
    def features(self) -> tuple[Feature, ...]: ...

    @property
    def blocks(self) -> int: ...

    def assign(self, rows: Rows) -> BlockIds: ...

    def assign_sql(self, write: Write = feature_text, let: Let = in_brackets) -> str | None:
        """Return the same function as one Spark SQL expression; None if the layout has no short one.

        `write` returns the SQL text of a feature; `let` names an expression that is used often and returns its name.
        """
