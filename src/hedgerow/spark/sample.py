"""Draw a sample in one Spark job, with everything in it evaluated that only Spark understands."""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow.core.errors import HedgerowError
from hedgerow.core.expr import Predicate, Term
from hedgerow.core.sample import Sample
from hedgerow.spark.evaluate import columns, computed, needed, rows_of, usable
from hedgerow.spark.source import Source

LEAST_SAMPLE, MOST_SAMPLE, SAMPLE_PER_BLOCK = 10_000, 1_000_000, 100
# Bytes of a value before anything better is known.
_WIDTH = {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "float": 4, "date": 4, "string": 16, "binary": 32}


def sample_size(table_rows: int, block_rows: int) -> int:
    """100 sample rows for each least block, within reason."""
    return min(table_rows, max(LEAST_SAMPLE, min(MOST_SAMPLE, SAMPLE_PER_BLOCK * -(-table_rows // block_rows))))


def draw(
    source: Source, predicates: Sequence[Predicate], rows: int, table_rows: int, seed: int, terms: Sequence[Term] = ()
) -> tuple[Sample, list[str]]:
    """About `rows` rows, and what Spark could not evaluate, a sentence each."""
    if not table_rows:
        raise HedgerowError(f"the table {source.name} is empty, so there is nothing to learn from")
    items, refused = usable(source.frame, needed(predicates, terms), source.schema)
    if not items:
        raise HedgerowError(f"no query filters {source.name} on a column that Hedgerow can compare")
    names = computed(items)
    wanted = source.frame.select(*columns(names))
    arrow = (wanted.sample(rows / table_rows, seed) if rows < table_rows else wanted).toArrow()
    if not arrow.num_rows:  # a tiny table may give an empty sample
        arrow = wanted.limit(rows).toArrow()
    width = {name: float(_WIDTH.get(type_.name, 8)) for name, type_ in source.schema.items()}
    return Sample(rows_of(arrow, names), table_rows, source.schema, width), refused
