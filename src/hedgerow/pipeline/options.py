"""What each learner makes of one table: all learn from the same rows and are judged on the same rows, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from hedgerow.core.errors import HedgerowError, LayoutError
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.learning.block_counter import RowCounter
from hedgerow.core.learning.score_layout import score_index
from hedgerow.core.learning.seconds import Estimate, Speed, estimate
from hedgerow.core.learning.word_search import with_searches
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.core.workload.score import Score
from hedgerow.pipeline.estimate_seconds import with_runs
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.learner_names import SECONDS_OF, make_learner
from hedgerow.pipeline.table_problem import TableProblem
from hedgerow.spark.start.progress import step
from hedgerow.tables.items_to_index import MAX_DESCRIBED_ITEMS, items_to_index

# Those that win most often first, then the quick ones. `random` is for tests, and `mto` is a qdtree of one table.
ADVISED = ("qdtree", "range", "zorder", "hilbert", "bottom_up", "sop_zorder", "zorder_learned", "pando", "woodblock")
BUDGET = 120.0
_SEARCH = 0.2  # of the budget, for a learner that searches as long as it may
_NEAR_THE_BOUND = 1.02


@dataclass(frozen=True)
class Candidate:
    """A learner with parameters, by its name for people."""

    name: str
    learner: str
    params: Mapping[str, Any]


@dataclass(frozen=True)
class Option:
    """What a candidate made of the table. `why_not`: why there is no layout."""

    name: str
    learned: Learned | None = None
    score: Score | None = None
    estimate: Estimate | None = None
    why_not: str | None = None

    @property
    def cost(self) -> float:
        """What options are compared by: seconds, or rows where seconds are not known."""
        if self.score is None:
            return float("inf")
        return self.score.rows_read if self.estimate is None else self.estimate.then

    def figures(self) -> tuple[str | None, str | None, str | None]:
        """The share of rows read, the blocks, and the seconds of a query, as text."""
        read = None if self.score is None else f"{self.score.rows_read:.1%}"
        blocks = None if self.score is None else f"{self.score.blocks:,}"
        return read, blocks, None if self.estimate is None else f"{self.estimate.then:.2f}"

    def __str__(self) -> str:
        read, blocks, seconds = self.figures()
        figures = f"{read} of the rows, {blocks} blocks" + ("" if seconds is None else f", {seconds} s a query")
        return f"{self.name}: {self.why_not or figures}"


def candidates(learners: Iterable[str], designs: Iterable[Iterable[str]] = ()) -> list[Candidate]:
    """The user's own designs, each the columns of a sort and of a Z-order, and then learners."""
    found = []
    for columns in map(tuple, designs):
        named = ", ".join(columns)
        found.append(Candidate(f"sorted by {named}", "range", {"columns": columns}))
        if len(columns) > 1:
            found.append(Candidate(f"Z-order of {named}", "zorder", {"columns": columns}))
    found += [Candidate(name, name, {}) for name in learners]
    for candidate in found:
        make_learner(candidate.learner, **candidate.params)  # an unknown name is refused before any work
    return found


def options(
    posed: TableProblem, tried: Iterable[Candidate], speed: Speed | None = None, budget: float = BUDGET
) -> list[Option]:
    """What each candidate makes of a problem in memory, the best first. After `budget` seconds no more are tried.

    LayoutError if none makes a layout."""
    found = list(_options(posed, tried, speed, budget))
    if all(option.learned is None for option in found):
        raise LayoutError(found[0].why_not or "")
    return sorted(found, key=lambda option: option.cost)


def _options(posed: TableProblem, tried: Iterable[Candidate], speed: Speed | None, budget: float) -> Iterator[Option]:
    begun, spark = perf_counter(), posed.source.frame.sparkSession
    weights, least = [query.weight for query in posed.queries], float("inf")
    for i, candidate in enumerate(tried):
        left, params = budget - (perf_counter() - begun), dict(candidate.params)
        if i and left <= 0:
            yield Option(candidate.name, why_not=f"not tried, because the {budget:,.0f} s for learning were used up")
            continue
        if least <= _NEAR_THE_BOUND:
            yield Option(candidate.name, why_not="not tried, because hardly more than the rows that match is read")
            continue
        if candidate.learner in SECONDS_OF:
            params[SECONDS_OF[candidate.learner]] = max(1.0, min(left, _SEARCH * budget))
        try:
            with step(spark, f"learning ({candidate.name})"):
                learned = posed.learned(candidate.learner, params)
                scored = score_in_memory(posed, learned)
        except HedgerowError as error:
            yield Option(candidate.name, why_not=str(error))
            continue
        told = None
        if speed is not None:
            told = estimate(scored, weights, speed, len(posed.source.files), posed.source.size)
        if scored.selectivity:
            least = min(least, scored.rows_read / scored.selectivity)
        yield Option(candidate.name, replace(learned, estimate=told), scored, told)


def best_of_all(posed: TableProblem) -> Learned:
    """The layout of the learner that reads least."""
    best = options(posed, candidates(ADVISED))[0].learned
    assert best is not None
    return best


def score_in_memory(posed: TableProblem, learned: Learned) -> Score:
    """What the queries would read, if the index held what `apply` writes of the rows in memory."""
    layout, name, counter = learned.layout, posed.source.name, posed.counter
    assert isinstance(counter, RowCounter)
    if isinstance(layout, OverlapLayout):
        return score_index(layout.index(posed.drawn.rows), posed.drawn, posed.queries, name)
    rows = with_searches(counter.rows, layout.features)
    columns, truths = {}, {}
    for item in items_to_index(layout, learned.predicates, learned.noted, learned.joined, MAX_DESCRIBED_ITEMS):
        if isinstance(item, Predicate):
            with suppress(LayoutError):
                truths[item] = rows.evaluate(item)
        elif item in rows.columns:
            columns[item] = rows.ranked.get(item, rows.columns[item])
    described = replace(counter, rows=Rows(columns, truths))
    scored = score_index(BlockIndex(described.count(layout)), posed.drawn, posed.queries, name)
    known = {p: bits[: counter.counted] for p, bits in rows.truths.items()}
    drawn = replace(posed.drawn, rows=posed.drawn.rows.with_truths(known))
    return with_runs(scored, layout, learned.sort_by, drawn, posed.queries, name)
