"""A table and its queries, sampled: the problem that any learner can solve, and the layout that one makes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.errors import HedgerowError, warn
from hedgerow.core.index.session_safe import is_session_safe
from hedgerow.core.index.sums import summable
from hedgerow.core.layouts.base import Layout
from hedgerow.core.learning.block_counter import RowCounter
from hedgerow.core.learning.complement import fit_complement
from hedgerow.core.learning.held_out import problem_of
from hedgerow.core.learning.look_ups import without_served
from hedgerow.core.learning.problem import GivesReasons, Learner, Problem
from hedgerow.core.learning.replicas import fit_replicas
from hedgerow.core.learning.row_order import best_order
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.synthetic_queries import searched_columns, with_unseen_literals
from hedgerow.core.learning.top_rows import ordered_by, with_thresholds
from hedgerow.core.predicates.nodes import Column, Predicate, Term, atoms_of
from hedgerow.core.predicates.schema import path_of
from hedgerow.core.predicates.sql_text import feature_text, predicate_text
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.core.workload.conditions_to_note import conditions_to_note
from hedgerow.core.workload.queries import Query, Scan, in_rounds, joined_columns, summed_columns
from hedgerow.pipeline.inputs import at_least_one
from hedgerow.pipeline.learn_options import LearnOptions
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.learner_names import NamedLearner
from hedgerow.pipeline.regions import learn_in_regions, usual_regions
from hedgerow.spark.compute.count_blocks import MAX_COUNTED_ROWS, TableCounter
from hedgerow.spark.compute.evaluate import needed, without_user_functions
from hedgerow.spark.compute.joins import NO_JOINS, Joins
from hedgerow.spark.compute.sample import UNCOUNTED, draw, sample_size, with_rare_rows
from hedgerow.spark.optimizer.jvm_facts import steady
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.stable_functions import stable_functions
from hedgerow.spark.storage.source import Source
from hedgerow.tables.items_to_index import known_columns
from hedgerow.tables.managed import ManagedTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RARE_IN_A_BLOCK = 50  # a condition with fewer rows of a sample may be TRUE in further blocks too
_MAX_RARE_ROWS = 300_000
_LEAST_UNSEEN = 400  # queries with new literals that stand for the next ones: fewer would err by chance
_MIN_SCORED_ROWS, _SCORED_ROWS_PER_BLOCK = 200_000, 10_000  # rows on which layouts are scored in memory


@dataclass(frozen=True)
class TableProblem:
    """A table and its queries, sampled, as a problem for any learner.

    Args:
        queries: those of `asked`, with a condition in place of an ORDER BY with LIMIT.
        drawn: the rows that were drawn; the problem's sample may hold a part of them.
        noted: the conditions that the index notes, whatever the layout.
        counter: counts the rows of cells.
        left_out: a sentence for each expression from which nothing is learned.
        seconds: the time that making the problem took, without Spark's.
    """

    source: Source
    asked: tuple[Query, ...]
    queries: tuple[Query, ...]
    options: LearnOptions
    problem: Problem
    drawn: Sample
    noted: tuple[Predicate, ...]
    joins: Joins
    counter: TableCounter | RowCounter
    left_out: tuple[str, ...]
    seconds: float

    @staticmethod
    def of(
        source: Source,
        queries: Sequence[Query],
        options: LearnOptions,
        columns: Sequence[str] = (),
        joins: Joins = NO_JOINS,
        in_memory: bool = False,
        finer: bool = False,
    ) -> TableProblem:
        """Draw a sample with the terms of the queries and these columns.

        Args:
            in_memory: draw all the rows that Spark would count later, so that it does not read the table again.
            finer: draw enough rows for the smallest blocks that may be tried.
        """
        spark, amounts = source.frame.sparkSession, options.amounts
        with step(spark, "looking at the table"):
            block_rows = options.sizes(source)[-1 if finer else 0]
            per_block = amounts.rows * (UNCOUNTED if options.exact is False else 1)
            sample_rows = at_least_one("sample_rows", options.sample_rows)
            sample_rows = sample_rows or sample_size(source.rows, block_rows, per_block)
        predicates = tuple(q.predicate(source.name) for q in queries)
        with step(spark, "sampling"):
            terms: list[Term] = [Column(path_of(name)) for name in columns]
            terms += searched_columns(predicates) if options.recurrence != 1 else []
            terms += ordered_by(queries, source.name)
            terms += [Column((name,)) for name in source.partitions]
            terms += summable(summed_columns(queries, source.name), source.schema)
            scored_rows = max(_MIN_SCORED_ROWS, _SCORED_ROWS_PER_BLOCK * -(-source.rows // block_rows))
            rows = max(sample_rows, min(scored_rows, MAX_COUNTED_ROWS)) if in_memory else sample_rows
            drawn, refused = draw(source, predicates, rows, options.seed, terms, joins)
            drawn, unsteady = _steady(drawn, joins.widened(source.frame, [*drawn.rows.columns, *drawn.rows.truths]))
        asked, queries = tuple(queries), with_thresholds(queries, source.name, drawn, block_rows)
        predicates = tuple(q.predicate(source.name) for q in queries)
        warn(f"{len(refused)} conditions cannot be evaluated", refused)
        changing = "expressions whose meaning may change (functions of your own may be declared by hedgerow.stable)"
        warn(f"nothing is learned from {len(unsteady)} {changing}", unsteady)
        noted = conditions_to_note(predicates, drawn.rows.distinct)
        counter: TableCounter | RowCounter
        if in_memory:
            with step(spark, "sampling"):
                counter = _row_counter(source, drawn, predicates, noted, block_rows, joins)
            drawn = replace(drawn, rows=counter.rows.take(np.arange(len(drawn))))
            sample = drawn.part(sample_rows, options.seed)
        else:
            most = None if options.exact else MAX_COUNTED_ROWS
            counter = TableCounter(source, (*needed(predicates), *noted), most, options.seed, joins=joins)
            sample = drawn
        begun = perf_counter()
        weights = without_served(predicates, [q.weight for q in queries], sample, block_rows, options.lookup_share)
        problem = _problem(sample, predicates, weights, options, options.least_rows(source))
        problem = replace(problem, counter=None if options.exact is False else counter)
        seconds, left_out = perf_counter() - begun, (*refused, *unsteady)
        return TableProblem(source, asked, queries, options, problem, drawn, noted, joins, counter, left_out, seconds)

    def with_block_rows(self, block_rows: int) -> TableProblem:
        return replace(self, problem=self.problem.with_block_rows(block_rows))

    def learned(self, learner: NamedLearner, given: Sequence[ManagedTable] = ()) -> Learned:
        """Return the layouts that a learner makes, with the facts of their making.

        `given`: tables with the same rows, beside which the layout is to serve."""
        model, problem, facts = learner.make(), self.problem, dict[str, Any]()
        begun, counting = perf_counter(), self._seconds_of_spark()
        if learner.trees > 1:
            made = fit_replicas(model, problem, learner.trees)
            layouts, facts["together"] = made.layouts, {"alone": made.alone, "together": made.together}
        elif given:
            paired = fit_complement(model, problem, _best_reads(given, problem.predicates))
            layouts, tables = (paired.layout,), [table.path for table in given]
            facts["given"] = {"tables": tables, "alone": paired.before, "together": paired.after}
        else:
            regions = self._regions(learner)
            layouts = (self._fit(model, regions),)
            facts |= {"regions": regions} if regions > 1 else {}
        orders = [best_order(layout, problem) for layout in layouts]
        seconds = self.seconds + perf_counter() - begun - (self._seconds_of_spark() - counting)
        first, *others = (self._learned(learner, model, *made) for made in zip(layouts, orders, strict=True))
        facts = {**first.provenance, **facts}
        return replace(first, provenance=facts, replicas=tuple(others), fit_seconds=round(seconds, 2))

    def _regions(self, learner: NamedLearner) -> int:
        """Return the number of regions that are learned before the blocks; 1 for none."""
        asked, blocks = self.options.regions, -(-self.source.rows // self.problem.block_rows)
        if asked:
            return min(asked, blocks)
        if self.options.sample_rows or not learner.makes_a_tree:  # who asks for few rows wants to wait less
            return 1
        return usual_regions(blocks)

    def _fit(self, model: Learner, regions: int) -> Layout:
        if regions == 1:
            return model.fit(self.problem)
        items = [*self.drawn.rows.columns, *self.drawn.rows.truths]
        return learn_in_regions(self.source, self.problem, items, self.joins, model, regions)

    def _learned(self, named: NamedLearner, model: Learner, layout: Layout, order: str | None) -> Learned:
        """Return a layout that a learner made, with the facts of its making; `order`: the column to sort by."""
        problem, options = self.problem, self.options
        predicates = tuple(q.predicate(self.source.name) for q in self.queries)
        provenance: dict[str, Any] = {
            "source": self.source.origin,
            "learner": named.name,
            "parameters": {name: list(v) if isinstance(v, tuple) else v for name, v in named.params.items()},
            "cuts": options.cuts,
            "advanced_cuts": options.advanced_cuts,
            "recurrence": options.recurrence,
            "exact": options.exact,
            "effort": options.effort,
            "block_rows": problem.block_rows,
            "sample_rows": len(problem.sample),
            "seed": options.seed,
            "workload": hashlib.sha256("\n".join(map(predicate_text, predicates)).encode()).hexdigest()[:16],
        }
        if isinstance(model, GivesReasons):
            provenance["reasons"] = model.reasons(problem, layout)
        return Learned(
            layout,
            self.source.name,
            predicates,
            provenance,
            self.left_out,
            self.noted,
            order,
            self.joins.joined,
            summable(summed_columns(self.queries, self.source.name), self.source.schema),
            known_columns(joined_columns(self.queries, self.source.name), self.source.schema),
        )

    @cached_property
    def drawn_unseen(self) -> tuple[tuple[Query, ...], Sample]:
        """The result of `unseen` for the drawn rows."""
        return self.unseen(self.drawn)

    def unseen(self, sample: Sample) -> tuple[tuple[Query, ...], Sample]:
        """Return the asked queries with literals that none of them has, and the sample with outcomes of new searches.

        Few queries come in rounds, each with other literals. With `recurrence=1`, the next queries have the same
        literals, so nothing is changed."""
        name = self.source.name
        if self.options.recurrence == 1:
            return self.asked, sample
        predicates = [query.predicate(name) for query in self.asked]
        rounds = -(-_LEAST_UNSEEN // len(predicates))
        others, sample = with_unseen_literals(predicates, sample, self.options.seed, rounds)
        asked = in_rounds(self.asked, rounds)
        scans = (Scan(name, p, q.columns(name), wanted=q.wanted(name)) for p, q in zip(others, asked, strict=True))
        return tuple(replace(q, scans=(scan,)) for q, scan in zip(asked, scans, strict=True)), sample

    def _seconds_of_spark(self) -> float:
        return self.counter.seconds if isinstance(self.counter, TableCounter) else 0.0


def _row_counter(
    source: Source,
    drawn: Sample,
    predicates: Sequence[Predicate],
    noted: Sequence[Predicate],
    block_rows: int,
    joins: Joins,
) -> RowCounter:
    """Return a counter of the drawn rows, which reads further rows of the table for rare conditions."""
    conditions = {*predicates, *noted, *(atom for p in predicates for atom in atoms_of(p))}
    few = _RARE_IN_A_BLOCK * -(-source.rows // block_rows)
    rows = with_rare_rows(source, drawn, conditions, few, _MAX_RARE_ROWS, joins)
    return RowCounter(replace(drawn, rows=rows).noting(noted).rows, 1 / drawn.fraction, len(drawn))


def _problem(
    sample: Sample, predicates: Sequence[Predicate], weights: Sequence[float], options: LearnOptions, block_rows: int
) -> Problem:
    recurrence, cuts, seed = options.recurrence, options.cuts, options.seed
    problem = problem_of(sample, predicates, weights, block_rows, recurrence, cuts, seed, options.amounts)
    # Single leaves have the minimum size on the sample only, so with `exact` there is no trial of them.
    return replace(problem, trial=None) if options.exact else problem


def _steady(sample: Sample, frame: DataFrame) -> tuple[Sample, list[str]]:
    """Return the sample without items that change their meaning; a sentence for each.

    These call the clock, the session, or a user's function that is not declared stable. No query uses statistics of
    such items: a function's name may be rebound, and 'today' is another day tomorrow. So dividing rows by them saves
    nothing."""
    columns_, truths = sample.rows.columns, sample.rows.truths
    items = without_user_functions([*columns_, *truths], stable_functions(frame.sparkSession))
    safe = list(filter(is_session_safe, items))
    used = {*safe, *steady(frame, [item for item in items if not is_session_safe(item)])}
    if not used:
        raise HedgerowError(
            "the queries filter only by what may change, so nothing is learned: declare functions of your own by "
            "hedgerow.stable"
        )
    rows = Rows({t: c for t, c in columns_.items() if t in used}, {p: b for p, b in truths.items() if p in used})
    left_out = [f"{feature_text(x)} may change its meaning" for x in (*columns_, *truths) if x not in used]
    return replace(sample, rows=rows), left_out


def _best_reads(given: Sequence[ManagedTable], predicates: Sequence[Predicate]) -> list[float]:
    """Return for each predicate the share of rows that it reads in the given table that serves it best."""
    return [min(reads) for reads in zip(*(t.rows_read(predicates) for t in given), strict=True)]
