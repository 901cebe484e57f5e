"""Scores a layout on the files that `apply` would write of the rows in memory: in partitions, if the table has some."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from hedgerow.core.arrays import Ints
from hedgerow.core.errors import LayoutError
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.learning.block_counter import RowCounter
from hedgerow.core.learning.score_layout import score_index
from hedgerow.core.learning.word_search import with_searches
from hedgerow.core.predicates.nodes import Column, Predicate, Term
from hedgerow.core.pruning.block_stats import collect
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.core.pruning.value_codes import RankedColumn
from hedgerow.core.workload.score import Score
from hedgerow.pipeline.estimate_seconds import files_of_rows, with_runs
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.query_kinds import Scores
from hedgerow.pipeline.simulate_lookups import expected_filters
from hedgerow.pipeline.table_problem import TableProblem
from hedgerow.tables.items_to_index import MAX_DESCRIBED_ITEMS, items_to_index
from hedgerow.tables.lookups import files_let_pass


def simulate_apply(table_problem: TableProblem, learned: Learned, now: Score) -> Scores:
    """Return the scores of the queries if the index held what `apply` writes about the rows in memory.

    `now`: the score of `drawn_unseen` in the table as it is."""
    copies = [_one_copy(table_problem, copy, now) for copy in learned.copies]
    seen = [copy.seen for copy in copies if copy.seen is not None]
    then = Score.of_copies([copy.then for copy in copies], [query.weight for query in table_problem.drawn_unseen[0]])
    seen_of_all = Score.of_copies(seen, [query.weight for query in table_problem.asked])
    return replace(copies[0], then=then, seen=seen_of_all)  # not attached, Spark reads the first


def _one_copy(table_problem: TableProblem, learned: Learned, now: Score) -> Scores:
    """Return the scores of the queries if all read the table in this layout."""
    layout, name = learned.layout, table_problem.source.name
    (unseen, drawn), counter = table_problem.drawn_unseen, table_problem.counter
    assert isinstance(counter, RowCounter)
    if isinstance(layout, OverlapLayout):
        index = layout.index(drawn.rows)
        then, seen = (score_index(index, drawn, queries, name) for queries in (unseen, table_problem.asked))
        return Scores(now, then, seen)
    counter = replace(counter, rows=with_searches(counter.rows, layout.features))
    files = files_of_rows(layout, counter, table_problem.source.partitions, table_problem.problem.block_rows)
    index = _index(table_problem, learned, counter, files)
    seen = score_index(index, drawn, table_problem.asked, name, summed=learned.summed)
    then = score_index(index, drawn, unseen, name, summed=learned.summed)
    detached = score_index(_bounds(counter, files), drawn, unseen, name, summed=None)
    outcomes = {p: bits[: counter.counted] for p, bits in counter.rows.truths.items()}
    drawn = replace(drawn, rows=drawn.rows.with_truths({**drawn.rows.truths, **outcomes}))
    then = with_runs(then, layout, learned.sort_by, drawn, unseen, name, files[: counter.counted])
    return Scores(now, then, seen, detached)


def _index(table_problem: TableProblem, learned: Learned, counter: RowCounter, files: Ints) -> BlockIndex:
    """Return what the index of the files would hold; `files`: the file of each row in memory."""
    source, rows = table_problem.source, counter.rows
    partitions = [Column((column,)) for column in source.partitions]
    columns, truths = {}, {}
    items = items_to_index(
        learned.layout,
        learned.predicates,
        learned.noted,
        learned.joined,
        MAX_DESCRIBED_ITEMS,
        learned.summed,
        learned.described,
    )
    for item in (*items, *partitions):
        if isinstance(item, Predicate):
            with suppress(LayoutError):
                truths[item] = rows.evaluate(item)
        elif item in rows.columns:
            columns[item] = rows.ranked.get(item, rows.columns[item])
    stats = replace(counter, rows=Rows(columns, truths)).stats(files, int(files.max(initial=0)) + 1)
    passed = files_let_pass(learned.predicates, stats, source.schema)
    most = table_problem.options.lookup_share * source.size
    filters = expected_filters(passed, table_problem.drawn, rows, files, stats, most)
    return BlockIndex(replace(stats, filters=filters))


def _bounds(counter: RowCounter, files: Ints) -> BlockIndex:
    """Return the bounds of the files, by which other engines skip: they are in Delta's log or in Parquet's footers."""
    columns: dict[Term, RankedColumn] = {
        c: ranked for c, ranked in counter.rows.ranked.items() if isinstance(c, Column)
    }
    count = int(files.max(initial=0)) + 1
    rows = np.round(np.bincount(files[: counter.counted], minlength=count) * counter.weight).astype(np.int64)
    return BlockIndex(replace(collect(columns, None, files, count, max_distinct=0), rows=rows))
