"""learn_tables: learns a layout for each of several tables.

A layout may divide the rows of a table by columns of the tables to which its foreign keys lead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import LayoutError, warn
from hedgerow.core.predicates.nodes import TRUE
from hedgerow.core.workload.queries import Query, Workload
from hedgerow.core.workload.references import MAX_STEPS, Joined, Reference, joined_scans
from hedgerow.core.workload.summaries import choose_summaries
from hedgerow.pipeline.estimate_seconds import is_small
from hedgerow.pipeline.foreign_keys import Keys, check_keys, find_keys, referred_column
from hedgerow.pipeline.inputs import bound_to, opened_tables
from hedgerow.pipeline.learn import fit, learn_layout, pose, warn_of_slower, with_sampled_outlook
from hedgerow.pipeline.learn_options import LearnOptions
from hedgerow.pipeline.learned_tables import LearnedTables, in_one_block
from hedgerow.pipeline.learner_names import OF_SEVERAL_TABLES, NamedLearner
from hedgerow.spark.compute.joins import Joins
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import in_own_session
from hedgerow.spark.storage.source import Source
from hedgerow.sql.joined_conditions import with_joined

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_LEAST_QUERIES = 2  # a condition of a single query hardly comes again


@in_own_session
def learn_tables(
    spark: SparkSession,
    sources: str | Mapping[str, Any],
    workload: Workload,
    learner: str = "mto",
    options: LearnOptions = LearnOptions(),
    *,
    keys: Keys | None = None,
    steps: int | None = None,
    both_directions: bool = False,
    **params: Any,
) -> LearnedTables:
    """Learn a layout for each of several tables, by conditions on the tables that queries join to it too.

    Args:
        sources: the place of each table, by its name in the workload; or a directory with a folder for each table, or a
            database of the catalog.
        learner, options, params: as for `learn`.
        keys: the foreign keys, such as `[("lineitem.l_orderkey", "orders.o_orderkey")]`; by default they are found in
            the queries and in the data.
        steps: the maximum of foreign keys over which a condition is carried, from the table that is filtered to one
            that refers to it. By default 4 with the learners "mto" and "pando" or with `keys`, else 0: then each table
            is learned by itself.
        both_directions: carry conditions also from the table that has a foreign key to the one that it leads to. It is
            for tables that hardly change: after a change these conditions skip fewer files, or none, until `repair`.
    """
    if steps is None:
        steps = MAX_STEPS if learner in OF_SEVERAL_TABLES or keys is not None or both_directions else 0
    if not isinstance(steps, int) or steps < 0:
        raise LayoutError(f"steps has to be a number of at least 0, not {steps!r}")
    if both_directions and not steps:
        raise LayoutError("both directions of keys need steps=1 or more")
    if params.get("overlap") and steps:
        raise LayoutError("rows in several blocks cannot be chosen by joined tables: learn without overlap")
    if options.storage > 1:
        raise LayoutError("layouts for several copies are learned for one table at a time: call learn")
    named_learner = NamedLearner(learner, params)
    with step(spark, "looking at the tables"):
        tables = opened_tables(spark, sources)
        bound = bound_to(tables, workload)
    with step(spark, "looking at keys"):
        references = () if not steps else find_keys(tables, bound) if keys is None else check_keys(tables, keys)
    layouts = {}
    for name, source in tables.items():
        own_keys = [*references]
        if both_directions:
            own_keys += _backwards(bound, name, tables, references, 1 if options.recurrence == 1 else _LEAST_QUERIES)
        queries, joins = joined_queries(bound, name, tables, own_keys, steps)
        if source.rows < 2 * options.least_rows(source):
            layouts[name] = in_one_block(name, [query.predicate(name) for query in queries])
        elif all(query.predicate(name) == TRUE for query in queries):
            by_key = NamedLearner("range", {"columns": referred_column(source, references)})
            layouts[name] = learn_layout(source, queries, by_key, options)
        else:
            table_problem = pose(source, queries, named_learner, options, joins)
            learned = fit(table_problem, named_learner)
            if not is_small(source):
                learned = with_sampled_outlook(table_problem, learned, None)
                warn_of_slower(learned)
            layouts[name] = learned
    return LearnedTables(layouts, references)


def _backwards(
    workload: Workload, table: str, tables: Mapping[str, Source], keys: Sequence[Reference], least_queries: int
) -> list[Reference]:
    """Return the keys that lead to the table, read backwards, with the summaries that the queries need.

    A warning says if a key has more conditions than the summaries may have."""
    found: list[Reference] = []
    left_out: list[str] = []
    for key in (key for key in keys if key.other == table != key.table):
        asked = [
            (other_scan.predicate, query.weight)
            for query in workload
            for scan in query.scans
            if scan.table.lower() == table.lower()
            for _, other_scan in joined_scans(query, scan, [key.backwards()], steps=1)
        ]
        summaries, more = choose_summaries(asked, tables[key.table].schema, key.columns, least_queries)
        if summaries:
            found.append(key.backwards(summaries))
        left_out += [f"{more} of {key.table}, over {key}"] if more else []
    warn("some conditions are not carried to the other side of their key", left_out)
    return found


def joined_queries(
    workload: Workload, table: str, tables: Mapping[str, Source], keys: Sequence[Reference], steps: int = MAX_STEPS
) -> tuple[list[Query], Joins]:
    """Return the queries of one table with the conditions on the tables that they join to it, and the joined rows.

    Such a condition says more than the keys that a logged join happened to have."""
    by_name: dict[str, Joined] = {}
    queries = []
    schemas = {name.lower(): source.schema for name, source in tables.items()}
    for query in workload:
        if query.reads(table):
            if query.keyed:
                query = query.without_keys(table, _followed(query, table, keys, steps))
            own, joined = with_joined(query, table, keys, steps, schemas=schemas)
            queries.append(own)
            by_name |= joined
    others = {step.other.lower() for joined in by_name.values() for step in joined.steps}
    sources = {name.lower(): source for name, source in tables.items() if name.lower() in others}
    return queries, Joins(tuple(by_name[name] for name in sorted(by_name)), sources)


def _followed(query: Query, table: str, keys: Sequence[Reference], steps: int) -> set[str]:
    """Return the columns of the table's foreign keys that the query follows."""
    own = (scan for scan in query.scans if scan.table.lower() == table.lower())
    return {
        name for scan in own for joined, _ in joined_scans(query, scan, keys, steps) for name in joined.steps[0].columns
    }
