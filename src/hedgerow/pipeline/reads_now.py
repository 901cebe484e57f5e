"""What each query reads of a table as it is."""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow.core.errors import HedgerowError
from hedgerow.core.workload.queries import Query, Workload
from hedgerow.core.workload.score import Score
from hedgerow.pipeline.open import open_table
from hedgerow.spark.storage.source import Source


def reads_now(source: Source, queries: Sequence[Query]) -> Score:
    """Return the score of the queries in the table as it is."""
    everything = Score.of_everything(queries, len(source.files))
    try:
        # The queries are bound already, so no text is to be read again.
        score = open_table(source.frame.sparkSession, source.origin).score(Workload(tuple(queries)))
    except HedgerowError:  # Hedgerow does not manage it
        return everything
    known = {query.id: query for query in score.queries}
    each = [known.get(query.id, query) for query in everything.queries]
    return Score.mean(each, [query.weight for query in queries], score.blocks)
