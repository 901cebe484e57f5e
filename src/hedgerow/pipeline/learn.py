"""learn: samples a table, evaluates the workload's predicates on the sample, and lets a learner make a layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import LayoutError, advise, warn
from hedgerow.core.learning.seconds import Speed
from hedgerow.core.workload.queries import Query, Workload
from hedgerow.core.workload.score import Score
from hedgerow.pipeline.block_sizes import in_best_blocks
from hedgerow.pipeline.estimate_seconds import SMALL_TABLE_BYTES, is_small, sampled_score, speed_of
from hedgerow.pipeline.inputs import check_columns, opened_with_queries
from hedgerow.pipeline.learn_options import LearnOptions
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.learner_names import AUTO, DEFAULT, NamedLearner, wrong_params
from hedgerow.pipeline.open import open_table
from hedgerow.pipeline.outlook import with_outlook
from hedgerow.pipeline.present_layout import PresentLayout
from hedgerow.pipeline.proposals import best_of_all
from hedgerow.pipeline.query_kinds import Scores
from hedgerow.pipeline.reads_now import reads_now
from hedgerow.pipeline.table_problem import TableProblem
from hedgerow.spark.compute.joins import NO_JOINS, Joins
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import in_own_session
from hedgerow.spark.storage.source import Source
from hedgerow.tables.managed import ManagedTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@in_own_session
def learn(
    spark: SparkSession,
    source: str | Sequence[str] | DataFrame,
    workload: Workload,
    learner: str = DEFAULT,
    options: LearnOptions = LearnOptions(),
    *,
    table: str | None = None,
    given: Sequence[str | ManagedTable] = (),
    trees: int | None = None,
    **params: Any,
) -> Learned:
    """Sample the table, evaluate the workload's predicates on the sample, and let the learner make a layout.

    Args:
        source: a Parquet directory, a list of files, a catalog table or a DataFrame.
        learner: such as "qdtree", "zorder_learned" or "bottom_up"; "auto" tries all, and takes the one that reads
            least of a million rows.
        options: the size of blocks and the sample, among others; see `LearnOptions`.
        table: the source's name in the workload; by default the last part of its path or name.
        given: existing tables with the same rows, which become replicas of the new one. Each query reads the table
            that serves it best, so the layout is learned for the queries that the given tables serve badly.
        trees: the number of layouts, each for a full copy of the table; by default `options.storage`. `apply` writes
            the first, and the others as its replicas.
        params: the learner's own parameters.
    """
    options = options if trees is None else replace(options, storage=trees)
    named = NamedLearner(learner, params, trees=options.storage)
    opened, queries, skipped = opened_for(named, spark, source, workload, table)
    given_tables = [open_table(spark, t) if isinstance(t, str) else t for t in given]
    learned = learn_layout(opened, queries, named, options, given_tables)
    return replace(learned, warnings=(*skipped, *learned.warnings))


def opened_for(
    learner: NamedLearner,
    spark: SparkSession,
    source: str | Sequence[str] | DataFrame,
    workload: Workload,
    table: str | None,
) -> tuple[Source, Sequence[Query], tuple[str, ...]]:
    """Open a table for a learner, whose name and parameters are checked first; see `opened_with_queries`."""
    check_one_table(learner.name)
    columns = learner.make().columns if learner.name != AUTO else ()
    with step(spark, "looking at the table"):
        opened, queries, skipped = opened_with_queries(spark, source, workload, table)
    workload.warn_of_left_out(skipped)
    check_columns(opened, columns)
    return opened, queries, skipped


def learn_layout(
    source: Source,
    queries: Sequence[Query],
    learner: NamedLearner,
    options: LearnOptions,
    given: Sequence[ManagedTable] = (),
    speed: Speed | None = None,
    present: PresentLayout | None = None,
    joins: Joins = NO_JOINS,
) -> Learned:
    """Return a layout for the queries of one table, with an estimate of their seconds.

    Args:
        speed: of the queries; by default it is measured.
        present: the layout of the table's files, if they all have one.
        joins: the rows of other tables on which the queries have conditions.
    """
    check_one_table(learner.name)
    if learner.name == AUTO and given:
        raise LayoutError("given= needs a learner by name, not auto")
    if learner.trees > 1 and given:
        raise LayoutError("several trees are learned together, so trees= and given= exclude each other")
    if options.regions not in (None, 1) and (given or learner.trees > 1):
        raise LayoutError("the layout of one copy beside others is not learned in regions")
    spark = source.frame.sparkSession
    table_problem = pose(source, queries, learner, options, joins, finer=not is_small(source))
    if speed is None:
        with step(spark, "measuring"):
            speed = speed_of(source, queries)
    table_problem = in_best_blocks(table_problem, learner, speed)
    learned = fit(table_problem, learner, given, speed)
    if speed is None and is_small(source):
        mb = SMALL_TABLE_BYTES >> 20
        advise(f"little is to be gained: {source.name} has less than {mb} MB, which Spark reads in no time")
        return learned
    learned = with_sampled_outlook(table_problem, learned, speed, present)
    if learned.usual is not None and not learned.usual.pays:
        advise(f"little is to be gained: at usual speeds, {learned.usual}")
    if not given:  # else slower queries read another copy
        warn_of_slower(learned)
    return learned


def with_sampled_outlook(
    table_problem: TableProblem, learned: Learned, speed: Speed | None, present: PresentLayout | None = None
) -> Learned:
    """Return the layout with the estimated seconds and kinds of queries, by the sample.

    A layout of "auto" has them already, because all layouts were compared by them."""
    if learned.kinds:
        return learned
    source = table_problem.source
    with step(source.frame.sparkSession, "estimating what queries gain"):
        unseen, sample = table_problem.unseen(table_problem.problem.sample.noting(table_problem.noted))
        block_rows = table_problem.problem.block_rows
        scores = []
        for copy in learned.copies:
            score = sampled_score(source, unseen, copy.layout, copy.sort_by, sample, block_rows, copy.summed)
            if score is None:
                return learned
            scores.append(score)
        then = Score.of_copies(scores, [query.weight for query in unseen])
        now = reads_now(source, unseen)
        if present is not None:
            now = present.lower(now, source, unseen, sample, block_rows)
        return with_outlook(table_problem, learned, Scores(now, then), speed)


def warn_of_slower(learned: Learned) -> None:
    """Warn of the kinds of queries that would be slower than now."""
    slower = f"this layout of {learned.table} makes some kinds of queries slower (advise compares it with others)"
    warn(slower, list(map(str, learned.slower)))


def pose(
    source: Source,
    queries: Sequence[Query],
    learner: NamedLearner,
    options: LearnOptions,
    joins: Joins = NO_JOINS,
    finer: bool = False,
) -> TableProblem:
    """Return the problem that the learner is to solve; LayoutError for a learner or parameters that do not exist."""
    is_auto = learner.name == AUTO
    if is_auto and learner.params:
        raise wrong_params(AUTO, learner.params, "it takes none")
    if options.regions not in (None, 1) and not learner.makes_a_tree:
        raise LayoutError(f"only trees are learned in regions, as by qdtree, and not what {learner.name} makes")
    columns = () if is_auto else learner.make().columns
    return TableProblem.of(source, queries, options, columns, joins, in_memory=is_auto, finer=finer)


def fit(
    table_problem: TableProblem,
    learner: NamedLearner,
    given: Sequence[ManagedTable] = (),
    speed: Speed | None = None,
) -> Learned:
    """Return the layout of a learner, or the best of all learners with its outlook."""
    if learner.name == AUTO:
        return best_of_all(table_problem, speed)
    with step(table_problem.source.frame.sparkSession, f"learning ({learner.name})"):
        return table_problem.learned(learner, given)


def check_one_table(learner: str) -> None:
    """LayoutError for a learner that needs several tables."""
    if learner == "mto":
        raise LayoutError("mto learns from several tables: call learn_tables with their names and places")
