"""Computes the shares of a table that its queries read as it is, by the index or by the facts that Spark skips by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hedgerow.core.errors import HedgerowError
from hedgerow.core.predicates.nodes import TRUE, columns_of
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.pruning.evaluator import may_match
from hedgerow.core.workload.queries import Query, Workload
from hedgerow.core.workload.score import QueryScore, Score
from hedgerow.core.workload.wanted_rows import Aggregates
from hedgerow.pipeline.open import open_table
from hedgerow.spark.storage.source import Source
from hedgerow.spark.storage.stated_files import stated_files

_ALL_ROWS = Aggregates((("count", None),))


def reads_now(source: Source, queries: Sequence[Query]) -> Score:
    """Return the score of the queries in the table as it is, in an attached session if Hedgerow manages the table."""
    try:
        table = open_table(source.frame.sparkSession, source.origin)
        if not table.indexed().is_known.any():  # as after a rollback
            return by_stated_facts(source, queries)
        # The queries are bound already, so no text is to be read again. Several may have one id.
        numbered = (replace(query, id=str(i)) for i, query in enumerate(queries))
        joined = {column.path[0] for q in queries for column in columns_of(q.predicate(source.name))}
        unknown = joined - {*source.frame.columns, *(stored.name for stored in table.newest.entry.joined)}
        score = table.score(Workload(tuple(query.without(source.name, unknown) for query in numbered)))
    except HedgerowError:  # Hedgerow does not manage it
        return by_stated_facts(source, queries)
    if source.sizes is not None and len(source.sizes) < score.blocks:  # the source is some files of the table
        return by_stated_facts(source, queries)
    scores = {query.id: query for query in score.queries}
    everything = Score.of_everything(queries, score.blocks).queries
    each = [replace(scores.get(str(i), query), id=query.id) for i, query in enumerate(everything)]
    return Score.mean(each, [query.weight for query in queries], score.blocks)


def by_stated_facts(source: Source, queries: Sequence[Query]) -> Score:
    """Return the score of the queries in a session that is not attached."""
    predicates = [query.written(source.name) for query in queries]
    top_level = set(source.frame.columns)
    columns = {c for p in predicates for c in columns_of(p) if c.path[0] in top_level}
    stated = stated_files(source, sorted(columns, key=term_text))
    if stated is None or not len(stated.reading):
        return Score.of_everything(queries, len(source.files))
    share = stated.reading.rows / max(1, stated.reading.rows.sum())
    scores = []
    for query, p in zip(queries, predicates, strict=True):
        opened, read = may_match(p, stated.opening), may_match(p, stated.reading)
        if source.version is not None and query.wanted(source.name) == _ALL_ROWS and p == TRUE:
            opened = np.zeros_like(opened)  # Delta counts the rows of its log
        rows = float(share[opened & read].sum())
        scores.append(QueryScore(query.id, rows, float(np.mean(opened)), rows, None))
    return Score.mean(scores, [query.weight for query in queries], stated.files)
