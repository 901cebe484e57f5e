"""Scores a layout on the files that `apply` would write of the rows in memory: in partitions, if the table has some."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from hedgerow.core.errors import LayoutError
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.learning.block_counter import RowCounter
from hedgerow.core.learning.score_layout import score_index
from hedgerow.core.learning.word_search import with_searches
from hedgerow.core.predicates.nodes import Column, Predicate
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.pruning.block_stats import Stats
from hedgerow.core.pruning.distinct_sets import UNKNOWN_SET
from hedgerow.core.pruning.evaluator import must_match
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.core.workload.score import Score
from hedgerow.pipeline.estimate_seconds import files_of_rows, with_runs
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.means import answered
from hedgerow.pipeline.table_problem import TableProblem
from hedgerow.tables.items_to_index import MAX_DESCRIBED_ITEMS, items_to_index
from hedgerow.tables.lookups import files_let_pass, pays_to_filter


def simulate_apply(table_problem: TableProblem, learned: Learned) -> tuple[Score, frozenset[Column]]:
    """Return the score of the queries if the index held what `apply` writes about the rows in memory.

    Return also the columns that would get filters of look-ups."""
    layout, drawn, counter = learned.layout, table_problem.drawn, table_problem.counter
    queries, name = table_problem.queries, table_problem.source.name
    assert isinstance(counter, RowCounter)
    if isinstance(layout, OverlapLayout):
        return score_index(layout.index(drawn.rows), drawn, queries, name), frozenset()
    rows = with_searches(counter.rows, layout.features)
    partitions = [Column((column,)) for column in table_problem.source.partitions]
    columns, truths = {}, {}
    items = items_to_index(layout, learned.predicates, learned.noted, learned.joined, MAX_DESCRIBED_ITEMS)
    for item in (*items, *partitions):
        if isinstance(item, Predicate):
            with suppress(LayoutError):
                truths[item] = rows.evaluate(item)
        elif item in rows.columns:
            columns[item] = rows.ranked.get(item, rows.columns[item])
    searched, block_rows = replace(counter, rows=rows), table_problem.problem.block_rows
    files = files_of_rows(layout, searched, table_problem.source.partitions, block_rows)
    described = replace(counter, rows=Rows(columns, truths))
    index = BlockIndex(described.stats(files, int(files.max(initial=0)) + 1))
    score = _with_answers(score_index(index, drawn, queries, name), index, table_problem)
    outcomes = {p: bits[: counter.counted] for p, bits in rows.truths.items()}
    drawn = replace(drawn, rows=drawn.rows.with_truths(outcomes))
    score = with_runs(score, layout, learned.sort_by, drawn, queries, name, files[: counter.counted])
    passed = files_let_pass(learned.predicates, index.blocks, table_problem.source.schema)
    return score, frozenset(c for c, n in passed.items() if pays_to_filter(n) and _has_many_values(c, index.blocks))


def _has_many_values(column: Column, stats: Stats) -> bool:
    """True if the sets of values do not decide already which files hold a value."""
    sets = stats.terms[term_text(column)].sets
    return sets is None or bool((sets.set_of == UNKNOWN_SET).any())


def _with_answers(score: Score, index: BlockIndex, table_problem: TableProblem) -> Score:
    """Return the score without the files from which a query needs nothing but what the index knows."""
    source, stats = table_problem.source, index.blocks
    total, each = max(1, int(stats.rows.sum())), list(score.queries)
    for i, is_answered in enumerate(answered(source, table_problem.asked)):
        if is_answered:
            p, before = table_problem.queries[i].predicate(source.name), each[i]
            opened = index.to_open(p) & ~must_match(p, stats)
            rows, files = float(stats.rows[opened].sum() / total), float(opened.sum() / max(1, score.blocks))
            size = before.bytes_read * rows / before.rows_read if before.rows_read else 0.0
            each[i] = replace(before, rows_read=rows, blocks_read=files, bytes_read=size)
    return Score.mean(each, [query.weight for query in table_problem.queries], score.blocks)
