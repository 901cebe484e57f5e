"""The layouts that learners propose for one table: all learn from the same rows and are scored on the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from hedgerow.core.errors import HedgerowError, LayoutError
from hedgerow.core.learning.seconds import WORTH_IT, Estimate, Speed
from hedgerow.core.workload.score import Score
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.learner_names import NamedLearner
from hedgerow.pipeline.outlook import with_outlook
from hedgerow.pipeline.query_kinds import QueryKind, why_refused
from hedgerow.pipeline.reads_now import reads_now
from hedgerow.pipeline.simulate_apply import simulate_apply
from hedgerow.pipeline.table_problem import TableProblem
from hedgerow.spark.start.progress import step

# Those that win most often first, then the quick ones. `random` is for tests, and `mto` is a qdtree of one table.
ADVISED = ("qdtree", "range", "zorder", "hilbert", "bottom_up", "sop_zorder", "zorder_learned", "pando", "woodblock")
BUDGET = 120.0
_SEARCH = 0.2  # share of the budget for a learner that searches as long as it may
_NEAR_THE_BOUND = 1.02  # times the rows that queries need: no further learner is tried


@dataclass(frozen=True)
class Proposal:
    """A learner's layout of the table, with its score for queries with literals that the workload does not have.

    The blocks of the score are the files that `apply` would write: of each block one, of each partition its own.

    `why_not`: why there is none, or why it is not to be taken."""

    name: str
    learned: Learned | None = None
    score: Score | None = None
    why_not: str | None = None

    @property
    def cost(self) -> float:
        """The usual seconds of a query, or the share of rows read: measured seconds would rank by chance."""
        if self.score is None:
            return float("inf")
        return self.score.rows_read if self.usual is None else self.usual.then

    @property
    def estimate(self) -> Estimate | None:
        """The measured seconds of a query; None if the table is small or cannot be timed."""
        return None if self.learned is None else self.learned.estimate

    @property
    def usual(self) -> Estimate | None:
        """The seconds of a query at the usual speed of such a place."""
        return None if self.learned is None else self.learned.usual

    @property
    def kinds(self) -> tuple[QueryKind, ...]:
        return () if self.learned is None else self.learned.kinds

    @property
    def slower(self) -> tuple[QueryKind, ...]:
        """The kinds of queries that would be slower than now."""
        return () if self.learned is None else self.learned.slower

    def figures(self) -> tuple[str | None, str | None, str | None]:
        """Return the share of rows read, the files, and the seconds of a query, as text."""
        read = None if self.score is None else f"{self.score.rows_read:.1%}"
        files = None if self.score is None else f"{self.score.blocks:,}"
        return read, files, None if self.estimate is None else f"{self.estimate.then:.2f}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, without the layout."""
        score = self.score
        return {
            "name": self.name,
            "files": None if score is None else score.blocks,
            "rows_read": None if score is None else score.rows_read,
            "files_read": None if score is None else score.blocks_read,
            "bytes_read": None if score is None else score.bytes_read,
            "seconds": None if self.estimate is None else self.estimate.then,
            "fit_seconds": None if self.learned is None else self.learned.fit_seconds,
            "why_not": self.why_not,
            "slower": [kind.text for kind in self.slower],
        }

    def __str__(self) -> str:
        read, files, seconds = self.figures()
        if self.score is None:
            return f"{self.name}: {self.why_not}"
        figures = f"{read} of the rows, {files} files" + ("" if seconds is None else f", {seconds} s a query")
        return f"{self.name}: {figures}" + ("" if self.why_not is None else f"; {self.why_not}")


def learners_to_try(names: Iterable[str], designs: Iterable[Iterable[str]] = ()) -> list[NamedLearner]:
    """Return the user's own designs, each the columns of a sort and of a Z-order, and then the learners."""
    learners = []
    for columns in map(tuple, designs):
        titles = {"range": f"sorted by {', '.join(columns)}", "zorder": f"Z-order of {', '.join(columns)}"}
        kinds = list(titles)[: len(columns)]  # a Z-order has several columns
        learners += [NamedLearner(kind, {"columns": columns}, titles[kind]) for kind in kinds]
    learners += [NamedLearner(name, title=name) for name in names]
    for learner in learners:
        learner.make()  # an unknown name is refused before any work
    return learners


def proposals(
    table_problem: TableProblem,
    learners: Iterable[NamedLearner],
    now: Score,
    speed: Speed | None = None,
    budget: float = BUDGET,
) -> list[Proposal]:
    """Return the proposals of the learners for a problem in memory; LayoutError if none has a layout.

    The best comes first; those that make a kind of query slower than is allowed come after all others. If several
    copies may be stored, the best learner also proposes layouts for so many.

    Args:
        now: the score of `drawn_unseen` in the table as it is.
        budget: after so many seconds no more learners are tried.
    """
    begun, learners = perf_counter(), list(learners)
    tried = list(_proposals(table_problem, learners, now, speed, budget))
    if all(proposal.learned is None for proposal in tried):
        raise LayoutError(tried[0].why_not or "")
    ranked = sorted(tried, key=_rank)
    copies = table_problem.options.storage
    if copies > 1 and table_problem.source.version is None and perf_counter() - begun < budget:
        by_title = {learner.title: learner for learner in learners}
        best = ranked[0]
        several = replace(by_title[best.name], title=f"{best.name}, {copies} copies", trees=copies)
        proposal = _proposal(table_problem, several.limited_to(max(1.0, _SEARCH * budget / copies)), now, speed)
        if best.why_not is None and proposal.why_not is None and proposal.cost > WORTH_IT * best.cost:
            proposal = replace(proposal, why_not="more copies save too little")
        ranked = sorted([*ranked, proposal], key=_rank)
    return ranked


def _rank(proposal: Proposal) -> tuple[bool, float]:
    return proposal.why_not is not None, proposal.cost


def _proposals(
    table_problem: TableProblem, learners: Iterable[NamedLearner], now: Score, speed: Speed | None, budget: float
) -> Iterator[Proposal]:
    begun = perf_counter()
    least = float("inf")
    for i, learner in enumerate(learners):
        left = budget - (perf_counter() - begun)
        if i and left <= 0:
            yield Proposal(learner.title, why_not=f"not tried, because the {budget:,.0f} s for learning were used up")
            continue
        if least <= _NEAR_THE_BOUND:
            yield Proposal(learner.title, why_not="not tried, because hardly more is read than queries need")
            continue
        proposal = _proposal(table_problem, learner.limited_to(max(1.0, min(left, _SEARCH * budget))), now, speed)
        if proposal.why_not is None and proposal.score is not None and proposal.score.selectivity:
            least = min(least, proposal.score.rows_read / proposal.score.selectivity)
        yield proposal


def _proposal(table_problem: TableProblem, learner: NamedLearner, now: Score, speed: Speed | None) -> Proposal:
    """Return the proposal of one learner."""
    try:
        with step(table_problem.source.frame.sparkSession, f"learning ({learner.title})"):
            learned = table_problem.learned(learner)
            scores = simulate_apply(table_problem, learned, now)
    except HedgerowError as error:
        return Proposal(learner.title, why_not=str(error))
    learned = with_outlook(table_problem, learned, scores, speed)
    refused = why_refused(learned.kinds, table_problem.options.allow_slower)
    return Proposal(learner.title, learned, scores.then, refused)


def best_of_all(table_problem: TableProblem, speed: Speed | None) -> Learned:
    """Return the best layout of all learners."""
    now = reads_now(table_problem.source, table_problem.drawn_unseen[0])
    best = proposals(table_problem, learners_to_try(ADVISED), now, speed)[0].learned
    assert best is not None
    return best
