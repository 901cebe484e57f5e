"""Choose the column to sort rows by inside a block, so that readers skip runs of rows in which no row matches.

Parquet stores bounds for short runs of rows, and Spark uses them to skip inside the files that it opens. The time saved
depends on the columns of the condition: a run of long texts takes more work than a run of dates.
"""

from __future__ import annotations

import numpy as np

from hedgerow.core.arrays import Ints
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.curve import CurveLayout
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.virtual_blocks import VirtualBlocks
from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.nodes import Column, Predicate, Term, columns_of
from hedgerow.core.predicates.sql_text import quote_name, term_text
from hedgerow.core.pruning.block_stats import collect
from hedgerow.core.pruning.value_codes import RankedColumn

RUN_ROWS = 20_000  # rows of a table with bounds of their own: Parquet's default for a page
_MIN_SAMPLED = 20  # rows of the sample in a run: the bounds of fewer rows are much narrower than the run's
_MAX_QUERIES = 300
# In nanoseconds, measured on lineitem: a value of fixed size takes as long as three bytes of a text, whatever its size
# in the file. A text is decompressed and searched byte by byte.
_VALUE, _BYTE_OF_TEXT = 3.0, 1.0
_OF_ANY_LENGTH = (kinds.STRING, kinds.BINARY, kinds.OTHER)


def best_order(layout: Layout, problem: Problem) -> str | None:
    """Return the SQL name of the top-level column that saves the problem's queries most work.

    Return None if no column lets them skip any rows, or if the layout orders rows itself.
    """
    if isinstance(layout, CurveLayout) and layout.key_sql() is not None:
        return None
    rows = problem.sample.rows
    filtered = {c for p in problem.predicates for c in columns_of(p) if len(c.path) == 1}
    columns = sorted(filtered & rows.ranked.keys(), key=term_text)
    if not columns:
        return None
    blocks, length = VirtualBlocks.of(layout, problem.sample), _rows_of_run(problem.sample)
    # Each query, with the expected work per row of each block.
    work_per_row = [(p, weight * work(problem.sample, p) * blocks.chances(p)) for p, weight in some_queries(problem)]

    def total_work(places: np.ndarray) -> float:
        """Return the work of all queries if rows are in this order."""
        run = _runs(blocks.block, places, length)
        runs = _index_of_runs(run, problem.sample)
        block = blocks.block[np.unique(run, return_index=True)[1]]
        return sum(float(per_row[block] @ (runs.blocks.rows * runs.to_open(p))) for p, per_row in work_per_row)

    unsorted_work = total_work(np.zeros(len(rows), np.int64))
    work_by_column = {term_text(c): total_work(rows.ranked[c].places) for c in columns}
    best = min(work_by_column, key=lambda name: work_by_column[name])
    return best if work_by_column[best] < unsorted_work else None


def runs_in(layout: Layout, sample: Sample, order: str | None, files: Ints | None = None) -> BlockIndex:
    """Return the statistics that Parquet stores about the runs of rows in a layout's blocks, and that Spark skips by.

    `order` is the column that the rows of a block are sorted by; with None they are unsorted, or in the layout's order.
    `files`: the file of each row, if that is not its block.
    """
    rows = sample.rows
    column = next((c for c in rows.ranked if term_text(c) == order), None)
    if isinstance(layout, CurveLayout) and layout.key_sql() is not None:
        places: np.ndarray = layout.keys(rows).astype(np.int64)
    elif column is not None:
        places = rows.ranked[column].places
    else:
        places = np.random.default_rng(0).permutation(len(rows))
    block = layout.assign(rows) if files is None else files
    return _index_of_runs(_runs(block, places, _rows_of_run(sample)), sample)


def _index_of_runs(run: Ints, sample: Sample) -> BlockIndex:
    """Return the bounds by which Spark skips; Parquet stores none about conditions and expressions."""
    columns: dict[Term, RankedColumn] = {
        t: values
        for t, values in sample.rows.ranked.items()
        if isinstance(t, Column) and values.type.kind not in kinds.NOT_PUSHED
    }
    return BlockIndex(collect(columns, None, run, int(run.max()) + 1, max_distinct=0))


def _rows_of_run(sample: Sample) -> int:
    return max(_MIN_SAMPLED, round(RUN_ROWS * sample.fraction))


def work(sample: Sample, p: Predicate) -> float:
    """Return the work of reading the columns of a condition in one row."""
    return sum(_work(sample, quote_name(name)) for name in {c.path[0] for c in columns_of(p)})


def _work(sample: Sample, name: str) -> float:
    if name in sample.schema and sample.schema[name].kind not in _OF_ANY_LENGTH:
        return _VALUE
    return _VALUE + _BYTE_OF_TEXT * (sample.unpacked or sample.width).get(name, 0.0)


def some_queries(problem: Problem, limit: int = _MAX_QUERIES) -> list[tuple[Predicate, float]]:
    """Draw predicates by weight, and count how often each is drawn; if they are few, return all with their weights."""
    if len(problem.predicates) <= limit:
        return list(zip(problem.predicates, problem.weights, strict=True))
    share = np.array(problem.weights) / sum(problem.weights)
    drawn = np.random.default_rng(problem.seed).multinomial(limit, share)
    return [(problem.predicates[i], float(drawn[i])) for i in np.flatnonzero(drawn).tolist()]


def _runs(block: np.ndarray, value: np.ndarray, rows: int) -> Ints:
    """Return the run of each row, if the rows of a block are sorted by value and divided into runs of `rows` rows."""
    order = np.lexsort((value, block))
    place = np.arange(len(order)) - np.searchsorted(block[order], block[order])
    run = np.empty(len(order), np.int64)
    run[order] = np.cumsum(place % rows == 0) - 1
    return run
