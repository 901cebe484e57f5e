"""A sample of a table's rows, with the number of rows and the widths of the columns of the whole table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from hedgerow.core.arrays import Bits
from hedgerow.core.errors import LayoutError
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.predicates.schema import as_schema
from hedgerow.core.predicates.sql_text import predicate_text, quote_name
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import T_BIT
from hedgerow.core.pruning.row_batch import Rows


@dataclass(frozen=True)
class Sample:
    """Rows of a table; `width` is the mean size in bytes of a column's values in the whole table, as stored.

    `unpacked` is the same after decompression, for columns where it is known.
    """

    rows: Rows
    table_rows: int
    schema: Mapping[str, Type]
    width: Mapping[str, float] = field(default_factory=dict)
    unpacked: Mapping[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def fraction(self) -> float:
        return len(self) / self.table_rows if self.table_rows else 1.0

    def part(self, rows: int, seed: int = 0) -> Sample:
        """Return `rows` random rows, in their order.

        Rows at equal distances would not do: every second row of a table may be of one kind.
        """
        if rows >= len(self):
            return self
        places = np.random.default_rng(seed).choice(len(self), rows, replace=False)
        return replace(self, rows=self.rows.take(np.sort(places)))

    def noting(self, predicates: Iterable[Predicate]) -> Sample:
        """Return the same rows with the outcomes of these predicates noted, as in an index."""
        truths = dict(self.rows.truths)
        for p in predicates:
            with suppress(LayoutError):
                truths[p] = self.rows.evaluate(p)
        return replace(self, rows=self.rows.with_truths(truths))

    @cached_property
    def _selectivities(self) -> dict[str, float | None]:
        return {}

    def selectivity(self, p: Predicate) -> float | None:
        """Return the share of rows on which the predicate is TRUE, from a cache; None if only Spark can evaluate it."""
        cache, key = self._selectivities, predicate_text(p)
        if key not in cache:
            try:
                cache[key] = float((self.rows.evaluate(p) == T_BIT).mean())
            except LayoutError:
                cache[key] = None
        return cache[key]

    @staticmethod
    def of_table(table: pa.Table, truths: Mapping[Predicate, Bits] | None = None) -> Sample:
        """Return all rows of an Arrow table as a sample; `truths`: the outcomes of predicates on each row."""
        if not table.num_rows:
            raise LayoutError("the table is empty, so there is nothing to learn from")
        rows = Rows(Rows.of_table(table).columns, truths or {})
        width = {quote_name(name): table[name].nbytes / table.num_rows for name in table.column_names}
        return Sample(rows, table.num_rows, as_schema(table.schema), width)
