"""A table and its queries, sampled: the problem that any learner may be given, and the layout that one makes of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.effort import Effort, amounts_of
from hedgerow.core.errors import HedgerowError, LayoutError, warn
from hedgerow.core.index.session_safe import is_session_safe
from hedgerow.core.learning.block_counter import RowCounter
from hedgerow.core.learning.complement import fit_complement
from hedgerow.core.learning.held_out import problem_of
from hedgerow.core.learning.problem import GivesReasons, Problem
from hedgerow.core.learning.row_order import best_order
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.synthetic_queries import Recurrence, searched_columns
from hedgerow.core.predicates.nodes import Column, Predicate, Term, atoms_of
from hedgerow.core.predicates.schema import path_of
from hedgerow.core.predicates.sql_text import feature_text, predicate_text
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.core.workload.candidate_cuts import Kind
from hedgerow.core.workload.conditions_to_note import conditions_to_note
from hedgerow.core.workload.queries import Query
from hedgerow.pipeline.inputs import at_least_one
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.learner_names import make_learner
from hedgerow.spark.compute.count_blocks import MAX_COUNTED_ROWS, TableCounter
from hedgerow.spark.compute.evaluate import needed, without_user_functions
from hedgerow.spark.compute.joins import NO_JOINS, Joins
from hedgerow.spark.compute.sample import draw, sample_size, with_rare_rows
from hedgerow.spark.optimizer.rule import steady
from hedgerow.spark.start.progress import step
from hedgerow.spark.storage.source import Source
from hedgerow.tables.managed import ManagedTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_UNCOUNTED = 3  # times as many rows are sampled if cells are counted in nothing else
_FEW_IN_A_BLOCK = 50  # rows of a sample: a condition with fewer may be in other blocks too
_MOST_RARE_ROWS = 300_000
_LEAST_JUDGED, _JUDGED_IN_A_BLOCK = 200_000, 10_000  # rows that layouts are judged on in memory
_BLOCK_BYTES, _LEAST_BLOCK_BYTES, _BLOCKS, _MOST_BLOCKS = 64 << 20, 4 << 20, 16, 1000
_FINER = 4  # times smaller is the next size of blocks that is tried
_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


@dataclass(frozen=True)
class How:
    """How to learn, in the words of `learn`."""

    learner: str = "qdtree"
    params: Mapping[str, Any] = field(default_factory=dict)
    block_rows: int | None = None
    block_bytes: str | None = None
    sample_rows: int | None = None
    seed: int = 0
    cuts: Kind = "atoms"
    recurrence: Recurrence = "auto"
    exact: bool | None = None
    effort: Effort = "normal"

    @staticmethod
    def of(learner: str, given: Mapping[str, Any]) -> How:
        """From the words given to `learn`; those that it does not know are the learner's own."""
        known = {f.name for f in fields(How)}
        params = {name: value for name, value in given.items() if name not in known}
        return How(learner, params, **{name: value for name, value in given.items() if name in known})

    def least_rows(self, source: Source) -> int:
        """The least rows of a block; the largest number, if several may be tried."""
        return self.sizes(source)[0]

    def sizes(self, source: Source) -> list[int]:
        """The least rows of a block: as they were asked for, or else those that may be tried, in falling order."""
        asked = at_least_one("block_rows", self.block_rows)
        if asked is not None:
            return [asked]
        width = _width(source)
        if self.block_bytes is not None:
            return [max(1, round(_bytes_of(self.block_bytes) / width))]
        return [max(1, round(size / width)) for size in _sizes(source.rows * width)]


@dataclass(frozen=True)
class TableProblem:
    """`drawn`: the rows that were drawn; the problem's sample may hold a part of them. `noted`: conditions that the
    index notes whatever the layout. `left_out`: what nothing is learned from, and why. `seconds`: that making the
    problem took, without Spark. `counter`: of a learner's cells.
    """

    source: Source
    queries: tuple[Query, ...]
    how: How
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
        how: How,
        columns: Sequence[str] = (),
        joins: Joins = NO_JOINS,
        in_memory: bool = False,
        finer: bool = False,
    ) -> TableProblem:
        """Draws a sample with what the queries ask and these columns.

        `in_memory`: of all the rows that Spark would later be asked to count, so that it is not asked again. `finer`:
        enough of them for the smallest blocks that may be tried.
        """
        spark, amounts = source.frame.sparkSession, amounts_of(how.effort)
        with step(spark, "looking at the table"):
            least = how.sizes(source)[-1] if finer else how.least_rows(source)
            each = amounts.rows * (_UNCOUNTED if how.exact is False else 1)
            wanted = at_least_one("sample_rows", how.sample_rows) or sample_size(source.rows, least, each)
        predicates = tuple(q.predicate(source.name) for q in queries)
        with step(spark, "sampling"):
            named: list[Term] = [Column(path_of(name)) for name in columns]
            named += searched_columns(predicates) if how.recurrence != 1 else []
            judged = min(max(_LEAST_JUDGED, _JUDGED_IN_A_BLOCK * -(-source.rows // least)), MAX_COUNTED_ROWS)
            rows = max(wanted, judged) if in_memory else wanted
            drawn, refused = draw(source, predicates, rows, how.seed, named, joins)
            drawn, unsteady = _steady(drawn, joins.widened(source.frame, [*drawn.rows.columns, *drawn.rows.truths]))
        warn(f"{len(refused)} conditions cannot be evaluated", refused)
        changing = "expressions whose meaning may change, such as that of functions of your own"
        warn(f"nothing is learned from {len(unsteady)} {changing}", unsteady)
        noted = conditions_to_note(predicates, drawn.rows.distinct)
        counter: TableCounter | RowCounter
        if in_memory:
            with step(spark, "sampling"):
                asked = {*predicates, *noted, *(atom for p in predicates for atom in atoms_of(p))}
                few = _FEW_IN_A_BLOCK * -(-source.rows // least)
                known = with_rare_rows(source, drawn, asked, few, _MOST_RARE_ROWS, joins)
                known = replace(drawn, rows=known).noting(noted).rows
            counter = RowCounter(known, 1 / drawn.fraction, len(drawn))
            drawn = replace(drawn, rows=known.take(np.arange(len(drawn))))
            sample = drawn.part(wanted, how.seed)
        else:
            most = None if how.exact else MAX_COUNTED_ROWS
            sample = drawn
            counter = TableCounter(source, (*needed(predicates), *noted), most, how.seed, joins=joins)
        begun = perf_counter()
        weights = [q.weight for q in queries]
        largest = how.least_rows(source)
        problem = problem_of(sample, predicates, weights, largest, how.recurrence, how.cuts, how.seed, amounts)
        trial = None if how.exact else problem.trial  # single leaves have the minimum size on the sample only
        problem = replace(problem, counter=None if how.exact is False else counter, trial=trial)
        left_out = (*refused, *unsteady)
        seconds = perf_counter() - begun
        return TableProblem(source, tuple(queries), how, problem, drawn, noted, joins, counter, left_out, seconds)

    def with_block_rows(self, block_rows: int) -> TableProblem:
        return replace(self, problem=self.problem.with_block_rows(block_rows))

    def learned(self, learner_name: str, params: Mapping[str, Any], given: Sequence[ManagedTable] = ()) -> Learned:
        """The layout that a learner makes, with the facts of its making."""
        how, learner = self.how, make_learner(learner_name, **params)
        predicates = tuple(q.predicate(self.source.name) for q in self.queries)
        begun, counting = perf_counter(), self._seconds_of_spark()
        paired = fit_complement(learner, self.problem, best_of(given, self.problem.predicates)) if given else None
        layout = learner.fit(self.problem) if paired is None else paired.layout
        order = best_order(layout, self.problem)
        seconds = self.seconds + perf_counter() - begun - (self._seconds_of_spark() - counting)
        provenance: dict[str, Any] = {
            "source": self.source.origin,
            "learner": learner_name,
            "parameters": {name: list(v) if isinstance(v, tuple) else v for name, v in params.items()},
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
                "alone": paired.before,
                "together": paired.after,
            }
        return Learned(
            layout,
            self.source.name,
            predicates,
            provenance,
            self.left_out,
            self.noted,
            order,
            self.joins.joined,
            round(seconds, 2),
        )

    def _seconds_of_spark(self) -> float:
        return self.counter.seconds if isinstance(self.counter, TableCounter) else 0.0


def _steady(sample: Sample, frame: DataFrame) -> tuple[Sample, list[str]]:
    """The sample without items that call a user's function, the clock or the session, and a sentence for each of them.

    No query uses what an index holds of such items: a function's name may be rebound, and 'today' is another day
    tomorrow. So dividing rows by them saves nothing."""
    columns_, truths = sample.rows.columns, sample.rows.truths
    items = without_user_functions([*columns_, *truths])
    safe = list(filter(is_session_safe, items))
    kept = {*safe, *steady(frame, [item for item in items if not is_session_safe(item)])}
    if not kept:
        raise HedgerowError(
            "the queries filter only by what may change, such as functions of your own, so nothing is learned"
        )
    rows = Rows({t: c for t, c in columns_.items() if t in kept}, {p: b for p, b in truths.items() if p in kept})
    left_out = [f"{feature_text(x)} may change its meaning" for x in (*columns_, *truths) if x not in kept]
    return replace(sample, rows=rows), left_out


def best_of(given: Sequence[ManagedTable], predicates: Sequence[Predicate]) -> list[float]:
    """For each predicate, the share of rows that it reads in the given table that serves it best."""
    return [min(reads) for reads in zip(*(t.rows_read(predicates) for t in given), strict=True)]


def _width(source: Source) -> float:
    """The bytes of a row."""
    return max(1.0, sum(source.widths.values()))


def _sizes(table: float) -> list[float]:
    """The bytes of a block that may be tried for a table of so many bytes.

    The first is 64 MB, or less where so few blocks would be made; smaller ones are neither many nor slow to read.

    >>> [[round(size / 2**20, 1) for size in _sizes(mb * 2**20)] for mb in (30, 800, 2_400, 20_000, 100_000)]
    [[4.0], [50.0, 12.5, 4.0], [64.0, 16.0, 4.0], [64.0, 20.0], [64.0]]
    """
    sizes = [min(_BLOCK_BYTES, max(_LEAST_BLOCK_BYTES, table / _BLOCKS))]
    least = max(_LEAST_BLOCK_BYTES, table / _MOST_BLOCKS)
    while sizes[-1] > least:
        sizes.append(max(sizes[-1] / _FINER, least))
    return sizes


def _bytes_of(size: str) -> float:
    """
    >>> _bytes_of("1.5KB")
    1536.0
    """
    number, unit = size.upper().rstrip("BKMG"), size.upper().lstrip("0123456789. ")
    if unit not in _UNITS or not number.strip().replace(".", "", 1).isdigit():
        raise LayoutError(f"a block size is written like 64MB, not {size!r}")
    return float(number) * _UNITS[unit]
