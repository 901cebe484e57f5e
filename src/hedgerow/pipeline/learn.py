"""learn: samples a table, evaluates the workload's predicates on the sample, and lets a learner make a layout."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, overload

from hedgerow.core.effort import Effort, amounts_of
from hedgerow.core.errors import HedgerowError, LayoutError, advise, warn
from hedgerow.core.layouts.base import sql_of
from hedgerow.core.learning.complement import fit_beside
from hedgerow.core.learning.conditions_to_note import conditions_to_note
from hedgerow.core.learning.held_out import problem_of
from hedgerow.core.learning.problem import GivesReasons
from hedgerow.core.learning.row_order import best_order
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.synthetic_queries import Recurrence, searched
from hedgerow.core.predicates.nodes import Column, Predicate, Term
from hedgerow.core.predicates.schema import path_of
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.core.workload.candidate_cuts import Kind
from hedgerow.core.workload.queries import Query, Workload
from hedgerow.core.workload.references import MAX_STEPS
from hedgerow.pipeline.estimate_seconds import estimated_seconds
from hedgerow.pipeline.inputs import at_least_one, opened_with_queries
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.learner_names import OF_SEVERAL_TABLES, make_learner
from hedgerow.pipeline.open import open_table
from hedgerow.pipeline.several_tables import (
    Keys,
    LearnedTables,
    bound_to,
    checked_keys,
    found_keys,
    is_asked_whole,
    joined_queries,
    key_of,
    opened_tables,
    tables_in,
    whole,
)
from hedgerow.spark.compute.count_blocks import MAX_COUNTED_ROWS, TableCounter
from hedgerow.spark.compute.evaluate import needed, without_user_functions
from hedgerow.spark.compute.joins import NO_JOINS, Joins
from hedgerow.spark.compute.sample import draw, sample_size
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import in_own_session
from hedgerow.spark.storage.source import Source
from hedgerow.tables.base import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


@overload
def learn(spark: SparkSession, source: Mapping[str, Any], *args: Any, **params: Any) -> LearnedTables: ...
@overload
def learn(spark: SparkSession, source: str | Sequence[str] | DataFrame, *args: Any, **params: Any) -> Learned: ...
@in_own_session
def learn(
    spark: SparkSession,
    source: str | Sequence[str] | DataFrame | Mapping[str, Any],
    workload: Workload,
    learner: str = "qdtree",
    block_rows: int | None = None,
    sample_rows: int | None = None,
    seed: int = 0,
    *,
    block_bytes: str = "64MB",
    table: str | None = None,
    cuts: Kind = "atoms",
    recurrence: Recurrence = "auto",
    exact: bool | None = None,
    effort: Effort = "normal",
    given: Sequence[str | Table] = (),
    keys: Keys | None = None,
    steps: int | None = None,
    **params: Any,
) -> Learned | LearnedTables:
    """Sample the table, evaluate the workload's predicates on the sample, and let the learner make a layout.

    Args:
        source: a Parquet directory, a list of files, a catalog table or a DataFrame. Or several tables, each by its
            name in the workload: then the answer is a layout for each. With the learner "mto" it may also be a
            directory with a folder for each table, or a database of the catalog.
        block_rows: the least rows of a block (half of it where many rows share a value); by default computed from
            `block_bytes` and the size of the source's files.
        sample_rows: 100 for each block by default, but at least 10,000 and at most a million.
        table: the source's name in the workload; by default the last part of its path or name.
        cuts: the conditions that may divide rows: atoms of the queries, or sub-trees of them too ("atoms+subtrees").
        recurrence: how likely the next query repeats literals of an earlier one, 0 to 1. With 1, only the queries of
            the workload count; below, similar queries count too. By default it is estimated from repeated literals.
        exact: where a learner's cells are counted: in all rows (True), or in the sample that it learns from (False).
            By default in a second sample of up to a million rows, which is all rows of a smaller table. With True a
            qd-tree always joins cells, so that all blocks have `block_rows`.
        effort: "quick" learns in about half the time, from fewer synthetic queries and sample rows; "thorough" takes
            two to three times as long.
        given: existing tables with the same rows, which become replicas of the new one. Each query reads the table
            that serves it best, so the layout is learned for the queries that the given tables serve badly.
        keys: of several tables, the foreign keys, such as `[("lineitem.l_orderkey", "orders.o_orderkey")]`; by default
            they are found in the queries and in the data.
        steps: how many foreign keys a condition is carried over, from the table that is filtered to one that refers to
            it. By default 4 with the learner "mto" or with `keys`, else 0: then each table is learned by itself.
        params: the learner's own parameters.
    """
    how = How(learner, params, block_rows, block_bytes, sample_rows, seed, cuts, recurrence, exact, effort)
    if isinstance(source, str) and (keys is not None or steps or learner == "mto"):
        source = tables_in(spark, source)
    if isinstance(source, Mapping):
        if given or table is not None:
            raise LayoutError("of several tables neither table= nor given= can be said")
        if params.get("overlap") and (learner in OF_SEVERAL_TABLES or steps):
            raise LayoutError("rows in several blocks cannot be chosen by joined tables: learn without overlap")
        if steps is None:
            steps = MAX_STEPS if learner in OF_SEVERAL_TABLES or keys is not None else 0
        if not isinstance(steps, int) or steps < 0:
            raise LayoutError(f"steps has to be a number of at least 0, not {steps!r}")
        return _learned_tables(spark, source, workload, how, keys, steps)
    if keys is not None or steps or learner == "mto":
        raise LayoutError("joins are learned from several tables: pass them by name, or the place where they are")
    given_tables = [open_table(spark, t) if isinstance(t, str) else t for t in given]
    with step(spark, "looking at the table"):
        opened, queries, skipped = opened_with_queries(spark, source, workload, table)
    return learned_layout(opened, queries, how, skipped, given_tables)


def _learned_tables(
    spark: SparkSession, sources: Mapping[str, Any], workload: Workload, how: How, keys: Keys | None, steps: int
) -> LearnedTables:
    """A layout for each table, some of whose conditions come from the tables that queries join to it."""
    with step(spark, "looking at the tables"):
        tables = opened_tables(spark, sources)
        bound = bound_to(tables, workload)
    with step(spark, "looking at keys"):
        found = () if not steps else found_keys(tables, bound) if keys is None else checked_keys(tables, keys)
    layouts = {}
    for name, source in tables.items():
        queries, joins = joined_queries(bound, name, tables, found, steps)
        if source.rows < 2 * how.least_rows(source):
            layouts[name] = whole(name, [query.predicate(name) for query in queries])
        elif is_asked_whole(queries, name):
            by_key = replace(how, learner="range", params={"columns": key_of(source, found)})
            layouts[name] = learned_layout(source, queries, by_key)
        else:
            layouts[name] = learned_layout(source, queries, how, joins=joins)
    return LearnedTables(layouts, found)


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


def learned_layout(
    opened: Source,
    queries: Sequence[Query],
    how: How,
    skipped: Sequence[str] = (),
    given_tables: Sequence[Table] = (),
    joins: Joins | None = None,
) -> Learned:
    """A layout for the queries of one table; `joins`: what they join to it, if it is one of several tables."""
    spark, seed, recurrence = opened.frame.sparkSession, how.seed, how.recurrence
    alone, joins = joins is None, joins or NO_JOINS
    made_learner = make_learner(how.learner, **how.params)
    amounts = amounts_of(how.effort)
    with step(spark, "looking at the table"):
        least = how.least_rows(opened)
        wanted = at_least_one("sample_rows", how.sample_rows) or sample_size(opened.rows, least, amounts.rows)
    predicates = tuple(q.predicate(opened.name) for q in queries)
    with step(spark, "sampling"):
        named: list[Term] = [Column(path_of(name)) for name in made_learner.columns]
        named += searched(predicates) if recurrence != 1 else []
        sample, refused = draw(opened, predicates, wanted, seed, named, joins)
        sample, user_items = _without_user_functions(sample)
    noted = conditions_to_note(predicates, sample.rows.distinct)
    with step(spark, f"learning ({how.learner})"):
        started = perf_counter()
        described = (*needed(predicates), *noted)
        counter = TableCounter(opened, described, None if how.exact else MAX_COUNTED_ROWS, seed, joins=joins)
        observed = [q.weight for q in queries]
        problem = problem_of(sample, predicates, observed, least, recurrence, how.cuts, seed, amounts)
        trial = None if how.exact else problem.trial  # single leaves have the minimum size on the sample only
        problem = replace(problem, counter=None if how.exact is False else counter, trial=trial)
        paired = fit_beside(made_learner, problem, best_of(given_tables, problem.predicates)) if given_tables else None
        layout = made_learner.fit(problem) if paired is None else paired.layout
        order = best_order(layout, problem)
        seconds = perf_counter() - started - counter.seconds
    with step(spark, "estimating seconds"):
        estimate, advice = None, None
        if alone:  # the speed of a join is not that of a scan
            estimate, advice = estimated_seconds(opened, queries, layout, order, problem.sample.noting(noted))
    provenance: dict[str, Any] = {
        "source": opened.origin,
        "learner": how.learner,
        "parameters": {name: list(v) if isinstance(v, tuple) else v for name, v in how.params.items()},
        "cuts": how.cuts,
        "recurrence": recurrence,
        "exact": how.exact,
        "effort": how.effort,
        "block_rows": least,
        "sample_rows": len(sample),
        "seed": seed,
        "workload": hashlib.sha256("\n".join(map(predicate_text, predicates)).encode()).hexdigest()[:16],
    }
    if isinstance(made_learner, GivesReasons):
        provenance["reasons"] = made_learner.reasons(problem, layout)
    if paired is not None:
        provenance["given"] = {
            "tables": [t.path for t in given_tables],
            "alone": paired.given,
            "together": paired.together,
        }
    warn(f"{len(skipped)} of {len(skipped) + len(queries)} queries are left out", skipped)
    warn(f"{len(refused)} conditions cannot be evaluated", refused)
    warn(f"nothing is learned from {len(user_items)} expressions that call functions of your own", user_items)
    if advice:
        advise(advice)
    warnings = (*skipped, *refused, *user_items)
    return Learned(
        layout,
        opened.name,
        predicates,
        provenance,
        warnings,
        noted,
        order,
        joins.joined,
        round(seconds, 2),
        estimate,
    )


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
