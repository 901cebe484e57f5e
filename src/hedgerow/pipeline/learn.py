"""learn: samples a table, evaluates the workload's predicates on the sample, and lets a learner make a layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from hedgerow.core.effort import Effort
from hedgerow.core.errors import LayoutError, advise, warn
from hedgerow.core.learning.seconds import Speed
from hedgerow.core.learning.synthetic_queries import Recurrence
from hedgerow.core.workload.candidate_cuts import Kind
from hedgerow.core.workload.queries import Query, Workload
from hedgerow.core.workload.references import MAX_STEPS
from hedgerow.pipeline.block_sizes import in_best_blocks
from hedgerow.pipeline.estimate_seconds import estimated_seconds, is_small, speed_of
from hedgerow.pipeline.inputs import opened_with_queries
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.learner_names import AUTO, OF_SEVERAL_TABLES, make_learner
from hedgerow.pipeline.open import open_table
from hedgerow.pipeline.options import best_of_all
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
from hedgerow.pipeline.table_problem import How, TableProblem
from hedgerow.spark.compute.joins import NO_JOINS, Joins
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import in_own_session
from hedgerow.spark.storage.source import Source
from hedgerow.tables.managed import ManagedTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_NO_JOINS_HERE = "joins are learned from several tables: pass them by name, or the place where they are"


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
    block_bytes: str | None = None,
    table: str | None = None,
    cuts: Kind = "atoms",
    recurrence: Recurrence = "auto",
    exact: bool | None = None,
    effort: Effort = "normal",
    given: Sequence[str | ManagedTable] = (),
    keys: Keys | None = None,
    steps: int | None = None,
    **params: Any,
) -> Learned | LearnedTables:
    """Sample the table, evaluate the workload's predicates on the sample, and let the learner make a layout.

    Args:
        source: a Parquet directory, a list of files, a catalog table or a DataFrame. Or several tables, each by its
            name in the workload: then the answer is a layout for each. With the learner "mto" it may also be a
            directory with a folder for each table, or a database of the catalog.
        learner: such as "qdtree", "zorder_learned" or "bottom_up"; "auto" tries all, and takes the one that reads
            least of a million rows.
        block_rows: the least rows of a block (half of it where many rows share a value); by default computed from
            `block_bytes` and the size of the source's files.
        block_bytes: such as "128MB"; by default "64MB", or a sixteenth of a table of less than 1 GB, but at least 4 MB;
            and smaller ones, if by the seconds measured here queries gain more than the opening of more files costs.
        sample_rows: 100 for each block by default, but at least 10,000 and at most a million; with `exact=False` three
            times as many.
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
    if keys is not None or steps:
        raise LayoutError(_NO_JOINS_HERE)
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


def learned_layout(
    opened: Source,
    queries: Sequence[Query],
    how: How,
    skipped: Sequence[str] = (),
    given_tables: Sequence[ManagedTable] = (),
    joins: Joins | None = None,
    speed: Speed | None = None,
) -> Learned:
    """A layout for the queries of one table; `joins`: what they join to it, if it is one of several tables; `speed`: of
    the queries, if it is known."""
    if how.learner == "mto" and joins is None:
        raise LayoutError(_NO_JOINS_HERE)
    spark = opened.frame.sparkSession
    if how.learner == AUTO and (how.params or given_tables):
        raise LayoutError("with the learner auto neither parameters nor given= can be said")
    of_all, is_scanned = how.learner == AUTO, joins is None  # the speed of a join is not that of a scan
    columns = () if of_all else make_learner(how.learner, **how.params).columns
    finer = is_scanned and not is_small(opened)
    posed = TableProblem.of(opened, queries, how, columns, joins or NO_JOINS, in_memory=of_all, finer=finer)
    if is_scanned and speed is None:
        with step(spark, "measuring"):
            speed = speed_of(opened, queries)
    posed = in_best_blocks(posed, speed)
    if of_all:
        learned = best_of_all(posed)
    else:
        with step(spark, f"learning ({how.learner})"):
            learned = posed.learned(how.learner, how.params, given_tables)
    warn(f"{len(skipped)} of {len(skipped) + len(queries)} queries are left out", skipped)
    learned = replace(learned, warnings=(*skipped, *learned.warnings))
    if not is_scanned:
        return learned
    with step(spark, "estimating seconds"):
        sample = posed.problem.sample.noting(posed.noted)
        estimate, advice = estimated_seconds(opened, queries, learned.layout, learned.sort_by, sample, speed)
    if advice:
        advise(advice)
    return replace(learned, estimate=estimate)
