"""A table and its queries, sampled: the problem that any learner may be given, and the layout that one makes of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from hedgerow.core.effort import Effort, amounts_of
from hedgerow.core.errors import HedgerowError, LayoutError, advise, warn
from hedgerow.core.layouts.base import sql_of
from hedgerow.core.learning.complement import fit_beside
from hedgerow.core.learning.conditions_to_note import conditions_to_note
from hedgerow.core.learning.held_out import problem_of
from hedgerow.core.learning.problem import GivesReasons, Problem
from hedgerow.core.learning.row_order import best_order
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.synthetic_queries import Recurrence, searched
from hedgerow.core.predicates.nodes import Column, Predicate, Term
from hedgerow.core.predicates.schema import path_of
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.core.workload.candidate_cuts import Kind
from hedgerow.core.workload.queries import Query
from hedgerow.pipeline.estimate_seconds import estimated_seconds
from hedgerow.pipeline.inputs import at_least_one
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.learner_names import make_learner
from hedgerow.spark.compute.count_blocks import MAX_COUNTED_ROWS, TableCounter
from hedgerow.spark.compute.evaluate import needed, without_user_functions
from hedgerow.spark.compute.joins import NO_JOINS, Joins
from hedgerow.spark.compute.sample import draw, sample_size
from hedgerow.spark.start.progress import step
from hedgerow.spark.storage.source import Source
from hedgerow.tables.base import Table

_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


@dataclass(frozen=True)
class How:
    """How to learn, in the words of `learn`."""

    learner: str
    params: Mapping[str, Any]
    block_rows: int | None
    block_bytes: str
    sample_rows: int | None
    seed: int
    cuts: Kind
    recurrence: Recurrence
    exact: bool | None
    effort: Effort

    def least_rows(self, source: Source) -> int:
        """The least rows of a block."""
        return at_least_one("block_rows", self.block_rows) or _rows_of_bytes(source, self.block_bytes)


@dataclass(frozen=True)
class TableProblem:
    """`noted`: conditions that an index should note; `counter`: counts a learner's cells, in passes over the table.

    `refused`, `user_items`: a sentence for each thing from which nothing is learned.
    """

    source: Source
    queries: tuple[Query, ...]
    how: How
    problem: Problem
    noted: tuple[Predicate, ...]
    joins: Joins
    counter: TableCounter
    refused: tuple[str, ...]
    user_items: tuple[str, ...]

    @staticmethod
    def of(source: Source, queries: Sequence[Query], how: How, columns: Sequence[str], joins: Joins) -> TableProblem:
        """Draws a sample with these columns and what the queries ask."""
        spark, amounts = source.frame.sparkSession, amounts_of(how.effort)
        with step(spark, "looking at the table"):
            least = how.least_rows(source)
            wanted = at_least_one("sample_rows", how.sample_rows) or sample_size(source.rows, least, amounts.rows)
        predicates = tuple(q.predicate(source.name) for q in queries)
        with step(spark, "sampling"):
            named: list[Term] = [Column(path_of(name)) for name in columns]
            named += searched(predicates) if how.recurrence != 1 else []
            sample, refused = draw(source, predicates, wanted, how.seed, named, joins)
            sample, user_items = _without_user_functions(sample)
        noted = conditions_to_note(predicates, sample.rows.distinct)
        most = None if how.exact else MAX_COUNTED_ROWS
        counter = TableCounter(source, (*needed(predicates), *noted), most, how.seed, joins=joins)
        weights = [q.weight for q in queries]
        problem = problem_of(sample, predicates, weights, least, how.recurrence, how.cuts, how.seed, amounts)
        trial = None if how.exact else problem.trial  # single leaves have the minimum size on the sample only
        problem = replace(problem, counter=None if how.exact is False else counter, trial=trial)
        return TableProblem(
            source, tuple(queries), how, problem, noted, joins, counter, tuple(refused), tuple(user_items)
        )

    def learned(
        self, name: str, params: Mapping[str, Any], skipped: Sequence[str] = (), given: Sequence[Table] = ()
    ) -> Learned:
        """The layout that a learner makes, with the facts of its making."""
        how, learner = self.how, make_learner(name, **params)
        predicates = tuple(q.predicate(self.source.name) for q in self.queries)
        started, counted = perf_counter(), self.counter.seconds
        paired = fit_beside(learner, self.problem, best_of(given, self.problem.predicates)) if given else None
        layout = learner.fit(self.problem) if paired is None else paired.layout
        order = best_order(layout, self.problem)
        seconds = perf_counter() - started - (self.counter.seconds - counted)
        provenance: dict[str, Any] = {
            "source": self.source.origin,
            "learner": name,
            "parameters": {key: list(v) if isinstance(v, tuple) else v for key, v in params.items()},
            "cuts": how.cuts,
            "recurrence": how.recurrence,
            "exact": how.exact,
            "effort": how.effort,
            "block_rows": self.problem.block_rows,
            "sample_rows": len(self.problem.sample),
            "seed": how.seed,
            "workload": hashlib.sha256("\n".join(map(predicate_text, predicates)).encode()).hexdigest()[:16],
        }
        if isinstance(learner, GivesReasons):
            provenance["reasons"] = learner.reasons(self.problem, layout)
        if paired is not None:
            provenance["given"] = {
                "tables": [t.path for t in given],
                "alone": paired.given,
                "together": paired.together,
            }
        warnings = (*skipped, *self.refused, *self.user_items)
        return Learned(
            layout,
            self.source.name,
            predicates,
            provenance,
            warnings,
            self.noted,
            order,
            self.joins.joined,
            round(seconds, 2),
        )


def learned_layout(
    opened: Source,
    queries: Sequence[Query],
    how: How,
    skipped: Sequence[str] = (),
    given_tables: Sequence[Table] = (),
    joins: Joins | None = None,
) -> Learned:
    """A layout for the queries of one table; `joins`: what they join to it, if it is one of several tables."""
    spark, columns = opened.frame.sparkSession, make_learner(how.learner, **how.params).columns
    posed = TableProblem.of(opened, queries, how, columns, joins or NO_JOINS)
    with step(spark, f"learning ({how.learner})"):
        learned = posed.learned(how.learner, how.params, skipped, given_tables)
    advice = None
    if joins is None:  # the speed of a join is not that of a scan
        with step(spark, "estimating seconds"):
            noted = posed.problem.sample.noting(posed.noted)
            estimate, advice = estimated_seconds(opened, queries, learned, noted)
            learned = replace(learned, estimate=estimate)
    warn(f"{len(skipped)} of {len(skipped) + len(queries)} queries are left out", skipped)
    warn(f"{len(posed.refused)} conditions cannot be evaluated", posed.refused)
    warn(
        f"nothing is learned from {len(posed.user_items)} expressions that call functions of your own", posed.user_items
    )
    if advice:
        advise(advice)
    return learned


def _without_user_functions(sample: Sample) -> tuple[Sample, list[str]]:
    """The sample without items that call a user's function, and a sentence for each of them.

    No index holds such items, because the function's name may be rebound, so dividing rows by them saves nothing."""
    columns_, truths = sample.rows.columns, sample.rows.truths
    kept = set(without_user_functions([*columns_, *truths]))
    if not kept:
        raise HedgerowError("the queries filter only by functions of your own, which may change, so nothing is learned")
    rows = Rows({t: c for t, c in columns_.items() if t in kept}, {p: b for p, b in truths.items() if p in kept})
    left_out = [f"{sql_of(x)} may change its meaning" for x in (*columns_, *truths) if x not in kept]
    return replace(sample, rows=rows), left_out


def best_of(given: Sequence[Table], predicates: Sequence[Predicate]) -> list[float]:
    """For each predicate, the share of rows that it reads in the given table that serves it best."""
    return [min(reads) for reads in zip(*(t.rows_read(predicates) for t in given), strict=True)]


def _rows_of_bytes(source: Source, size: str) -> int:
    """The number of rows in a block of this size, such as 64MB."""
    number, unit = size.upper().rstrip("BKMG"), size.upper().lstrip("0123456789. ")
    if unit not in _UNITS or not number.strip().replace(".", "", 1).isdigit():
        raise LayoutError(f"a block size is written like 64MB, not {size!r}")
    return max(1, round(float(number) * _UNITS[unit] / max(1.0, sum(source.widths.values()))))
