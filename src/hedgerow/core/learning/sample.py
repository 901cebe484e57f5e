"""Rows drawn from a table, with what is known of the whole: how many rows it has and how wide its columns are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from hedgerow.core.errors import LayoutError
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.predicates.schema import as_schema
from hedgerow.core.predicates.sql_text import predicate_text, quote_name
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import T_BIT, Bits
from hedgerow.core.pruning.row_batch import Rows


@dataclass(frozen=True)
class Sample:
    """`width` is the mean size in bytes of a column's value in the whole table."""

    rows: Rows
    table_rows: int
    schema: Mapping[str, Type]
    width: Mapping[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def fraction(self) -> float:
        return len(self) / self.table_rows if self.table_rows else 1.0

    def noting(self, predicates: Iterable[Predicate]) -> Sample:
        """The same rows with the outcomes of these noted, as an index would note them."""
        truths = dict(self.rows.truths)
        for p in predicates:
            with suppress(LayoutError):
                truths[p] = self.rows.evaluate(p)
        return replace(self, rows=Rows(self.rows.columns, truths))

    @cached_property
    def _selectivities(self) -> dict[str, float | None]:
        return {}

    def selectivity(self, p: Predicate) -> float | None:
        """The share of rows on which the predicate is TRUE; None where only Spark could say. Remembered: many ask."""
        known = self._selectivities
        if predicate_text(p) not in known:
            try:
                known[predicate_text(p)] = float((self.rows.evaluate(p) == T_BIT).mean())
            except LayoutError:
                known[predicate_text(p)] = None
        return known[predicate_text(p)]

    @staticmethod
    def of_table(
        table: pa.Table,
        rows: int | None = None,
        seed: int = 0,
        truths: Mapping[Predicate, Bits] | None = None,
    ) -> Sample:
        """`rows` rows of an Arrow table at random (all by default), in the table's order; `truths` per table row."""
        if not table.num_rows:
            raise LayoutError("the table is empty, so there is nothing to learn from")
        whole = Rows(Rows.of_table(table).columns, truths or {})
        width = {quote_name(name): table[name].nbytes / table.num_rows for name in table.column_names}
        picked = whole
        if rows is not None and rows < table.num_rows:
            picked = whole.take(np.sort(np.random.default_rng(seed).choice(table.num_rows, rows, replace=False)))
        return Sample(picked, table.num_rows, as_schema(table.schema), width)
