"""Terms and predicates as columns that Spark computes, and back as rows that core can reason about.

Core compares plain columns by itself; what only Spark understands (LIKE, functions, UDFs) becomes a column here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hedgerow.core.expr import (
    Column,
    Opaque,
    Predicate,
    Term,
    atoms,
    term_text,
    terms,
    text,
)
from hedgerow.core.rows import Rows
from hedgerow.core.stats import F_BIT, N_BIT, T_BIT, Bits
from hedgerow.core.types import OTHER, Type

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

Computed = Mapping[str, Term | Predicate]  # the name of a computed column, and what it holds


def needed(predicates: Iterable[Predicate], more: Iterable[Term] = ()) -> list[Term | Predicate]:
    """Every term, and every atom that only Spark can evaluate, in the order of their texts."""
    found: dict[str, Term | Predicate] = {term_text(t): t for t in more}
    for p in predicates:
        found.update({term_text(t): t for t in terms(p)})
        found.update({text(a): a for a in atoms(p) if isinstance(a, Opaque)})
    return [found[key] for key in sorted(found)]


def usable(
    frame: DataFrame, wanted: Iterable[Term | Predicate], schema: Mapping[str, Type]
) -> tuple[list[Term | Predicate], list[str]]:
    """Those that Spark can analyse over this table and core can hold, and a sentence for each of the others."""
    from pyspark.errors import PySparkException

    kept: list[Term | Predicate] = []
    refused: list[str] = []
    for item in wanted:
        if isinstance(item, Column) and schema.get(term_text(item), Type(OTHER)).kind == OTHER:
            continue
        try:
            frame.select(_column(item))
            kept.append(item)
        except PySparkException as error:
            refused.append(f"{_text(item)} is left out: {str(error).splitlines()[0]}")
    return kept, refused


def computed(items: Iterable[Term | Predicate]) -> dict[str, Term | Predicate]:
    return {f"_h{i}": item for i, item in enumerate(items)}


def columns(items: Computed) -> list[SparkColumn]:
    return [_column(item).alias(name) for name, item in items.items()]


def rows_of(batch: pa.Table | pa.RecordBatch, items: Computed) -> Rows:
    """The computed columns of an Arrow batch as core's rows."""
    values: dict[Term, pa.Array | pa.ChunkedArray] = {}
    truths: dict[Predicate, Bits] = {}
    for name, item in items.items():
        array = batch.column(name)
        if isinstance(item, Predicate):
            truths[item] = _bits(array)
        else:
            values[item] = array
    return Rows(values, truths)


def _bits(array: pa.Array | pa.ChunkedArray) -> Bits:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    truth = array.fill_null(False).to_numpy(zero_copy_only=False)
    null = array.is_null().to_numpy(zero_copy_only=False)
    return np.where(null, N_BIT, np.where(truth, T_BIT, F_BIT)).astype(np.uint8)


def _column(item: Term | Predicate) -> SparkColumn:
    from pyspark.sql import functions as f

    return f.expr(_text(item))


def _text(item: Term | Predicate) -> str:
    return text(item) if isinstance(item, Predicate) else term_text(item)
