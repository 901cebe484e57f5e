"""advise: compares the layouts that learners propose for a table, before anything is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import HedgerowError, LayoutError
from hedgerow.core.learning.seconds import Speed
from hedgerow.core.workload.queries import Workload
from hedgerow.pipeline.advice import Advice
from hedgerow.pipeline.block_sizes import in_best_blocks
from hedgerow.pipeline.calibrated_cost import (
    ASSUMED_SCANS,
    ASSUMED_SPREAD,
    TIMED_SPREAD,
    assumed_cost,
    calibrated_cost,
    count_items,
)
from hedgerow.pipeline.estimate_seconds import speed_of
from hedgerow.pipeline.inputs import MOST_QUERIES, check_columns, opened_with_queries, tables_in
from hedgerow.pipeline.learn_options import LearnOptions
from hedgerow.pipeline.learner_names import DEFAULT, NamedLearner
from hedgerow.pipeline.proposals import ADVISED, BUDGET, Proposal, learners_to_try, proposals
from hedgerow.pipeline.reads_now import reads_now
from hedgerow.pipeline.table_problem import TableProblem
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import first_line, in_own_session, needs_jvm, spark_errors
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.source import Source
from hedgerow.tables.query_log import QueryLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MUCH_LESS = 2.0  # times fewer rows
_BY_RECURRENCE = "with --recurrence 1, in Python LearnOptions(recurrence=1), a layout is learned for them"


@in_own_session
def advise(
    spark: SparkSession,
    source: str | Sequence[str] | DataFrame,
    workload: Workload,
    learners: Sequence[str] | None = None,
    designs: Sequence[Sequence[str]] = (),
    options: LearnOptions = LearnOptions(),
    *,
    budget: float = BUDGET,
    table: str | None = None,
) -> Advice:
    """Compare the layouts that learners propose for the table and these queries, on one sample; nothing is written.

    Args:
        learners: by default all but `random`, and but "woodblock" where JAX and Optax are not installed.
        designs: your own, each the columns of a sort and of a Z-order, such as `[("day", "city")]`.
        options: as for `learn`.
        budget: seconds for learning; learners whose turn would come later are left out, which the advice says.
        table: the source's name in the workload; by default the last part of its path or name.
    """
    needs_jvm(spark, "advise")
    if not budget > 0:
        raise LayoutError(f"budget has to be a number of seconds above 0, not {budget!r}")
    tried = learners_to_try(_installed() if learners is None else learners, designs)
    if not tried:
        raise LayoutError("name a learner or a design")
    with step(spark, "looking at the table"):
        opened, fitting, skipped = opened_with_queries(spark, source, workload, table)
    workload.warn_of_left_out(skipped)
    queries = replace(workload, queries=fitting).sampled(MOST_QUERIES).queries
    columns = sorted({column for design in designs for column in design})
    check_columns(opened, columns)
    with step(spark, "measuring"):
        speed = speed_of(opened, queries)
    table_problem = TableProblem.of(opened, queries, options, columns, in_memory=True, finer=speed is not None)
    table_problem = in_best_blocks(table_problem, NamedLearner(DEFAULT), speed)
    with step(spark, "looking at the files"):
        now = reads_now(opened, table_problem.drawn_unseen[0])
    ranked = proposals(table_problem, tried, now, speed, budget)
    best = ranked[0]
    rewrite, cost_basis = _rewrite_seconds(spark, source, opened, best, speed)
    return Advice(
        opened.name,
        opened.rows,
        round(opened.size),
        now.rows_read,
        now.blocks_read,
        None if best.estimate is None else best.estimate.now,
        None if best.score is None else best.score.selectivity,
        tuple(ranked),
        rewrite,
        tuple(_basis(table_problem, len(fitting), None if speed is None else cost_basis, best)),
    )


def _basis(table_problem: TableProblem, fitting: int, cost_basis: str | None, best: Proposal) -> Iterator[str]:
    """Yield sentences about what the figures are computed from.

    `fitting`: the number of queries that fit the table. `cost_basis`: None if no seconds were measured."""
    yield f"rows: {len(table_problem.drawn):,} of {table_problem.source.rows:,}, drawn at random"
    yield "as it is: without what an index, partitions, Delta's log and Parquet's footers skip"
    if table_problem.options.recurrence != 1:
        yield "figures: for literals that no query has"
        if any(kind.figures()[-1] for kind in best.kinds):
            yield "seen: for those of the queries, which an index may know"
        if (seen := _rows_seen(best)) is not None:
            yield f"if just these queries come again: {seen:.1%} of the rows in {best.name}, and {_BY_RECURRENCE}"
    yield "not attached: the rows in files that plain Spark, Delta and DuckDB do not skip by their bounds"
    queries = table_problem.queries
    if len(queries) < fitting:
        yield f"queries: {len(queries):,} of {fitting:,}, drawn by weight"
    if table_problem.options.storage > 1 and table_problem.source.version is not None:
        yield "copies: one, for a Delta table cannot have replicas"
    if cost_basis is not None:
        yield "seconds: some of the queries, timed on some files"
        yield "order: by the seconds at the usual speed of such a place, so that the same queries get the same advice"
        yield f"the rewrite: {cost_basis}"
    keyed = sum(bool(query.keyed) for query in queries)
    if keyed:
        yield f"joins: {keyed} queries with the keys that other tables have today, by which only attached sessions skip"
    own_name = table_problem.source.name.lower()
    scans = [[scan for scan in q.scans if scan.table.lower() == own_name] for q in queries]
    joining = sum(any(scan.joins for scan in own) for own in scans)
    if joining:
        others = sorted({scan.table for query in queries for scan in query.scans if scan.table.lower() != own_name})
        told = f"nothing is known of the keys that {joining} queries have in {', '.join(others)}"
        yield f"joins: {told}: name such a table as --other NAME=PLACE, or make it a view of the session"
    if keyed or joining:
        yield "not compared: layouts by conditions on joined tables, which learn_tables (learn --learner mto) makes"


def _rows_seen(proposal: Proposal) -> float | None:
    """Return the share of rows that the workload's own queries read; None if others read less than twice as much."""
    queries = sum(kind.queries for kind in proposal.kinds)
    then = sum(kind.queries * kind.rows_then for kind in proposal.kinds)
    seen = sum(kind.queries * (kind.rows_then if kind.rows_seen is None else kind.rows_seen) for kind in proposal.kinds)
    return seen / queries if queries and then >= _MUCH_LESS * seen else None


def advise_each(
    spark: SparkSession,
    sources: str | Mapping[str, Any],
    workload: Workload,
    learners: Sequence[str] | None = None,
    designs: Sequence[Sequence[str]] = (),
    options: LearnOptions = LearnOptions(),
    *,
    budget: float = BUDGET,
) -> dict[str, Advice | str]:
    """Return the advice of `advise` for each of several tables, or the reason why there is none.

    Args:
        sources: the place of each table, by its name in the workload; or a directory with a folder for each table, or a
            database of the catalog.
    """
    needs_jvm(spark, "advise")
    tables = tables_in(spark, sources) if isinstance(sources, str) else sources
    if not tables:
        raise HedgerowError(
            f"{sources} holds no tables: it has to be a directory with a folder for each, or a database"
        )
    advices: dict[str, Advice | str] = {}
    for name, source in tables.items():
        queries = replace(workload, queries=tuple(query for query in workload if query.reads(name)))
        if not len(queries):
            advices[name] = "no query reads it"
            continue
        try:
            advices[name] = advise(spark, source, queries, learners, designs, options, budget=budget, table=name)
        except HedgerowError as error:
            advices[name] = str(error)
        except spark_errors() as error:
            advices[name] = first_line(error)
    return advices


def _installed() -> list[str]:
    """Return the learners that can run here: one needs packages of its own."""
    return [name for name in ADVISED if name != "woodblock" or (find_spec("jax") and find_spec("optax"))]


def _rewrite_seconds(
    spark: SparkSession, source: Any, opened: Source, proposal: Proposal, speed: Speed | None
) -> tuple[tuple[float, float] | None, str]:
    """Return the least and the most seconds of a rewrite, and a phrase for their origin."""
    if speed is None or proposal.learned is None:
        return None, ""
    cost = calibrated_cost(Folder(spark, QueryLog.of(spark, source).root)) if isinstance(source, str) else None
    basis, spread = "the small rewrites that calibrate timed", TIMED_SPREAD
    if cost is None:
        cost, spread = assumed_cost(speed.byte, ASSUMED_SCANS), ASSUMED_SPREAD
        basis = f"assumed to take as long as {ASSUMED_SCANS / spread:.0f} to {ASSUMED_SCANS * spread:.0f} scans"
    seconds = sum(cost.seconds(opened.size, count_items(copy)) for copy in proposal.learned.copies)
    return (seconds / spread, seconds * spread), basis
