"""learn: samples a table, evaluates the workload's predicates on the sample, and lets a learner make a layout."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from hedgerow.core.effort import Effort, amounts_of
from hedgerow.core.errors import HedgerowError, LayoutError, advise, warn
from hedgerow.core.layouts.base import sql_of
from hedgerow.core.learning.complement import fit_beside
from hedgerow.core.learning.conditions_to_note import conditions_to_note
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.row_order import best_order
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.synthetic_queries import Recurrence, redrawn, searched
from hedgerow.core.predicates.nodes import Column, Predicate, Term
from hedgerow.core.predicates.schema import path_of
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.core.workload.candidate_cuts import Kind
from hedgerow.core.workload.queries import Workload
from hedgerow.pipeline.estimate_seconds import estimated_seconds
from hedgerow.pipeline.inputs import at_least_one, opened_with_queries
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.learner_names import make_learner
from hedgerow.pipeline.open import open_table
from hedgerow.spark.compute.count_blocks import MAX_COUNTED_ROWS, TableCounter
from hedgerow.spark.compute.evaluate import needed, without_user_functions
from hedgerow.spark.compute.sample import draw, sample_size
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import in_own_session
from hedgerow.spark.storage.source import Source
from hedgerow.tables.base import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


@in_own_session
def learn(
    spark: SparkSession,
    source: str | Sequence[str] | DataFrame,
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
    **params: Any,
) -> Learned:
    """Sample the table, evaluate the workload's predicates on the sample, and let the learner make a layout.

    Args:
        source: a Parquet directory, a list of files, a catalog table or a DataFrame.
        block_rows: the least rows of a block (half of it where many rows share a value); by default computed from
            `block_bytes` and the size of the source's files.
        sample_rows: 100 for each block by default, but at least 10,000 and at most a million.
        table: the source's name in the workload; by default the last part of its path or name.
        cuts: the conditions that may divide rows: atoms of the queries, or sub-trees of them too ("atoms+subtrees").
        recurrence: how likely the next query repeats literals of an earlier one, 0 to 1. With 1, only the queries of
            the workload count; below, similar queries count too. By default it is estimated from repeated literals.
        exact: where a learner's cells are counted: in all rows (True), or in the sample that it learns from (False).
            By default in a second sample of up to a million rows, which is all rows of a smaller table.
        effort: "quick" learns in about half the time, from fewer synthetic queries and sample rows; "thorough" takes
            two to three times as long.
        given: existing tables with the same rows, which become replicas of the new one. Each query reads the table
            that serves it best, so the layout is learned for the queries that the given tables serve badly.
        params: the learner's own parameters.
    """
    given_tables = [open_table(spark, t) if isinstance(t, str) else t for t in given]
    made_learner = make_learner(learner, **params)
    amounts = amounts_of(effort)
    with step(spark, "looking at the table"):
        opened, queries, skipped = opened_with_queries(spark, source, workload, table)
        least = at_least_one("block_rows", block_rows) or _rows_of_bytes(opened, block_bytes)
        wanted = at_least_one("sample_rows", sample_rows) or sample_size(opened.rows, least, amounts.rows)
    predicates = tuple(q.predicate(opened.name) for q in queries)
    with step(spark, "sampling"):
        named: list[Term] = [Column(path_of(name)) for name in made_learner.columns]
        named += searched(predicates) if recurrence != 1 else []
        sample, refused = draw(opened, predicates, wanted, seed, named)
        sample, user_items = _without_user_functions(sample)
    noted = conditions_to_note(predicates, sample)
    with step(spark, f"learning ({learner})"):
        started = perf_counter()
        counter = TableCounter(opened, (*needed(predicates), *noted), None if exact else MAX_COUNTED_ROWS, seed)
        observed = [q.weight for q in queries]
        to_learn, weights, sample, seen = redrawn(predicates, observed, sample, recurrence, seed, amounts.draws)
        problem = Problem.build(sample, to_learn, least, weights, cuts, seed, amounts.cuts)
        problem = replace(problem, observed_share=seen, counter=None if exact is False else counter)
        paired = fit_beside(made_learner, problem, best_of(given_tables, to_learn)) if given_tables else None
        layout = made_learner.fit(problem) if paired is None else paired.layout
        order = best_order(layout, problem)
        seconds = perf_counter() - started - counter.seconds
    with step(spark, "estimating seconds"):
        estimate, advice = estimated_seconds(opened, queries, layout, sample.noting(noted))
    provenance = {
        "source": opened.origin,
        "learner": learner,
        "parameters": {name: list(v) if isinstance(v, tuple) else v for name, v in params.items()},
        "cuts": cuts,
        "recurrence": recurrence,
        "exact": exact,
        "effort": effort,
        "block_rows": least,
        "sample_rows": len(sample),
        "seed": seed,
        "workload": hashlib.sha256("\n".join(map(predicate_text, predicates)).encode()).hexdigest()[:16],
    }
    if paired is not None:
        provenance["given"] = {
            "tables": [t.path for t in given_tables],
            "alone": paired.given,
            "together": paired.together,
        }
    warn(f"{len(skipped)} of {len(workload)} queries are left out", skipped)
    warn(f"{len(refused)} conditions cannot be evaluated", refused)
    warn(f"nothing is learned from {len(user_items)} expressions that call functions of your own", user_items)
    if advice:
        advise(advice)
    warnings = (*skipped, *refused, *user_items)
    return Learned(layout, opened.name, predicates, provenance, warnings, noted, order, round(seconds, 2), estimate)


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
