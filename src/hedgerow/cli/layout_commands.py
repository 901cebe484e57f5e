"""The sub-commands that lay tables out: `learn`, `advise`, `score` and `apply`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import hedgerow
from hedgerow.cli.app import JsonOption, SourceArgument, WorkloadArgument, is_log, name_tables, other_tables, spark_of
from hedgerow.cli.flags import (
    AdviseFlags,
    AtOnceOption,
    LearnerOption,
    LearnFlags,
    NewLayoutFlags,
    TableOption,
    WriteFlags,
    learner_params,
)
from hedgerow.cli.output import Output, copies_share, paired_share, seconds_shown, share, summary
from hedgerow.cli.show_advice import show_advice, show_each
from hedgerow.core.errors import HedgerowError, counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hedgerow.pipeline.learned import Learned
    from hedgerow.pipeline.learned_partitions import LearnedPartitions
    from hedgerow.pipeline.learned_tables import LearnedTables


def learn(
    ctx: typer.Context,
    source: SourceArgument,
    workload: WorkloadArgument,
    out: Annotated[Path, typer.Option(help="Where the layout is written.")],
    flags: LearnFlags,
    learner: LearnerOption = "qdtree",
    each_partition: Annotated[
        bool, typer.Option("--each-partition", help="Of a Delta table: a layout for each partition.")
    ] = False,
    partition: Annotated[
        list[str] | None, typer.Option(metavar="CONDITION", help="The same for these only, as in SQL; repeatable.")
    ] = None,
    at_once: AtOnceOption = 2,
    as_json: JsonOption = False,
) -> None:
    """Learn from WORKLOAD how to group the rows of SOURCE.

    With --learner mto, SOURCE is a directory with a folder for each table, or a database: queries may join them.
    """
    of_partitions = each_partition or bool(partition)
    params = learner_params(learner, flags.param or ())
    queries = None if is_log(workload) else hedgerow.Workload.from_file(workload)
    if not out.absolute().parent.is_dir():  # not after an hour of learning
        raise HedgerowError(f"the layout cannot be written to {out}: there is no such directory")
    if out.is_dir():
        raise HedgerowError(f"the layout cannot be written to {out}: that is a directory")
    options, keys, others = flags.options(), flags.keys(), other_tables(flags.other or ())
    is_several = learner == "mto" or bool(keys or flags.steps or flags.both_directions)
    if is_several and (flags.table or flags.given or flags.trees):
        raise HedgerowError(
            "--table, --given and --trees are for one table, but --learner mto, --key, --steps and --both-directions "
            "for several"
        )
    if of_partitions and (is_several or flags.given or flags.trees or (each_partition and partition)):
        raise HedgerowError(
            "--each-partition or --partition makes a layout for each partition of one table, without replicas"
        )
    output = Output(as_json)
    with spark_of(ctx) as spark:
        name_tables(spark, others)
        queries = _logged(spark, source, is_several, flags.table) if queries is None else queries
        if is_several:
            layouts = hedgerow.learn_tables(
                spark,
                source,
                queries,
                learner,
                options,
                keys=keys,
                steps=flags.steps,
                both_directions=flags.both_directions,
                **params,
            )
        elif of_partitions:
            by_partition = hedgerow.learn_partitions(
                *(spark, source, queries, learner, options),
                partitions=partition or None,
                at_once=at_once,
                table=flags.table,
                **params,
            )
        else:
            learned = hedgerow.learn(
                spark,
                source,
                queries,
                learner,
                options,
                table=flags.table,
                given=flags.given or (),
                trees=flags.trees,
                **params,
            )
    if is_several:
        layouts.save(out)
        _answer_several(layouts, out, output)
    elif of_partitions:
        by_partition.save(out)
        _answer_several(by_partition, out, output)
    else:
        learned.save(out)
        _answer_learned(learned, out, output)


def _logged(spark: SparkSession, source: str, is_several: bool, table: str | None = None) -> hedgerow.Workload:
    """Return the queries in the log of a table, or in those of several."""
    return hedgerow.logged_tables(spark, source) if is_several else hedgerow.logged(spark, source, table)


def _answer_learned(learned: Learned, out: Path, output: Output) -> None:
    """Print the facts of one table's layout."""
    origin, kind, count = learned.provenance, learned.layout.kind, len(learned.predicates)
    document = {"layout": str(out), "kind": kind, "table": learned.table, "blocks": learned.blocks, "queries": count}
    document |= {"sort_by": learned.sort_by, **learned.seconds(), "kinds": [kind.to_dict() for kind in learned.kinds]}
    output.answer(
        {**document, **origin, "warnings": list(learned.warnings)},
        {
            "layout": str(out),
            "table": learned.table,
            "kind": f"{kind}, by {origin['learner']}",
            "blocks": f"{learned.blocks:,}, meant to have {origin['block_rows']:,} rows or more",
            "sorted by": learned.sort_by,
            "learned from": f"{count:,} queries, {origin['sample_rows']:,} rows",
            "reasons": "\n".join(origin.get("reasons", ())) or None,
            "rows read": paired_share(origin.get("given")),
            "copies": copies_share(len(learned.copies), origin.get("together")),
            "seconds": None if learned.estimate is None else str(learned.estimate),
            "slower": "\n".join(map(str, learned.slower)) or None,
        },
    )


def _answer_several(layouts: LearnedTables | LearnedPartitions, out: Path, output: Output) -> None:
    """Print the facts of the layouts of several tables, or of several partitions."""
    from hedgerow.pipeline.learned_tables import LearnedTables

    facts = {
        name: {
            "kind": learned.layout.kind,
            "blocks": learned.blocks,
            "queries": len(learned.predicates),
            "kinds": [kind.to_dict() for kind in learned.kinds],
        }
        for name, learned in layouts.items()
    }
    slower = [f"{name}: {kind}" for name, learned in layouts.items() for kind in learned.slower]
    blocks = {name: counted(learned.blocks, "block") for name, learned in layouts.items()}
    shown = {"layout": str(out), **blocks, "slower": "\n".join(slower) or None}
    if isinstance(layouts, LearnedTables):
        keys = list(map(str, layouts.references))
        output.answer({"layout": str(out), "tables": facts, "keys": keys}, {**shown, "keys": "\n".join(keys) or None})
    else:
        output.answer({"layout": str(out), "partitions": facts}, shown)


def advise(
    ctx: typer.Context,
    source: SourceArgument,
    flags: AdviseFlags,
    workload: WorkloadArgument = Path("log"),
    table: TableOption = None,
    save: Annotated[Path | None, typer.Option(help="Write the best layout here, for apply.")] = None,
    each: Annotated[
        bool, typer.Option("--each", help="SOURCE is a directory of tables, or a database: advise on each.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Tell what each learner would make of SOURCE for WORKLOAD, and whether a rewrite pays. Nothing is rewritten."""
    queries = None if is_log(workload) else hedgerow.Workload.from_file(workload)
    learners, options, output = flags.learner or None, flags.options(), Output(as_json)
    others = other_tables(flags.other or ())
    if each:
        if queries is None or flags.columns or table or save:
            raise HedgerowError("--each takes a file of queries, but not --columns, --table or --save")
        with spark_of(ctx) as spark:
            name_tables(spark, others)
            show_each(
                hedgerow.advise_each(spark, source, queries, learners, options=options, budget=flags.budget), output
            )
        return
    with spark_of(ctx) as spark:
        name_tables(spark, others)
        queries = hedgerow.logged(spark, source, table) if queries is None else queries
        advice = hedgerow.advise(
            spark, source, queries, learners, flags.designs(), options, budget=flags.budget, table=table
        )
    show_advice(advice, output)
    if save is not None:
        advice.save(save)
        Output.line("note", f"the plan of {advice.proposals[0].name} is in {save}")


def score(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A table that apply wrote; with --layout any.")],
    workload: WorkloadArgument,
    layout: Annotated[Path | None, typer.Option(help="What if SOURCE had this layout? Nothing is written.")] = None,
    exact: Annotated[bool, typer.Option("--exact", help="With --layout: from all rows, not from a sample.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Tell what WORKLOAD reads of a table, or would read of one.

    Without --layout the answer is exact, and comes from the index alone.
    """
    queries = None if is_log(workload) else hedgerow.Workload.from_file(workload)
    from hedgerow.pipeline.learned_partitions import LearnedPartitions
    from hedgerow.pipeline.learned_tables import LearnedTables
    from hedgerow.pipeline.load_layouts import load_layouts

    layouts = None if layout is None else load_layouts(layout)
    if isinstance(layouts, LearnedPartitions):
        raise HedgerowError(f"{layout} has the layouts of several partitions: score the table that apply wrote")
    with spark_of(ctx) as spark:
        queries = _logged(spark, source, isinstance(layouts, LearnedTables)) if queries is None else queries
        if isinstance(layouts, LearnedTables):
            scores = hedgerow.score_tables(spark, source, queries, layouts, exact=exact)
            facts = {
                name: f"{share(score.rows_read)} of rows read, {len(score.queries):,} queries"
                for name, score in scores.items()
            }
            Output(as_json).answer({name: json.loads(score.to_json()) for name, score in scores.items()}, facts)
            return
        if layouts is None:
            result = hedgerow.table(spark, source).score(queries)
        else:
            result = hedgerow.score(spark, source, queries, layouts, exact=exact)
    Output(as_json).answer(
        json.loads(result.to_json()),
        {
            "rows read": share(result.rows_read),
            "files read" if layouts is None else "blocks read": f"{share(result.blocks_read)} of {result.blocks:,}",
            "bytes read": share(result.bytes_read),
            "rows needed": None if result.selectivity is None else share(result.selectivity),
            "seconds a query": seconds_shown(result.seconds, result.seconds_now),
            "queries": f"{len(result.queries):>6,}" + (f", by {result.by_means}" if result.by_means else ""),
        },
    )


def apply(
    ctx: typer.Context,
    source: SourceArgument,
    learning: NewLayoutFlags,
    writing: WriteFlags,
    layout: Annotated[Path | None, typer.Argument(help="What learn or advise wrote; else it is learned.")] = None,
    to: Annotated[
        str | None, typer.Option(help="The directory to write to; without it SOURCE is a Delta table.")
    ] = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Write also a learned layout that gains little.")] = False,
    at_once: AtOnceOption = 2,
    as_json: JsonOption = False,
) -> None:
    """Write SOURCE in a layout to a new directory, or a Delta table in place, with an index.

    A block is a file; the index describes what each file cannot contain.
    """
    from hedgerow.pipeline.learned import Learned
    from hedgerow.pipeline.learned_partitions import LearnedPartitions
    from hedgerow.pipeline.learned_tables import LearnedTables
    from hedgerow.pipeline.load_layouts import load_layouts
    from hedgerow.spark.storage.delta_log import is_delta

    layouts = None if layout is None else load_layouts(layout)
    learner_params(learning.learner, ())  # an unknown name is refused before Spark starts
    queries = None
    if layouts is None and not is_log(learning.workload):
        queries = hedgerow.Workload.from_file(learning.workload)
    output, options = Output(as_json), writing.options()
    with spark_of(ctx) as spark:
        if layouts is None:
            is_several = learning.learner == "mto"
            queries = _logged(spark, source, is_several) if queries is None else queries
            learn_layouts = hedgerow.learn_tables if is_several else hedgerow.learn
            learn_options = hedgerow.LearnOptions(block_bytes=learning.block_bytes)
            layouts = learn_layouts(spark, source, queries, learning.learner, learn_options)
            if isinstance(layouts, Learned) and layouts.usual and not layouts.usual.pays and not anyway:
                little = f"nothing is written: at usual speeds, {layouts.usual}"
                raise HedgerowError(f"{little}; --anyway writes it all the same")
        if isinstance(layouts, LearnedTables):
            if writing.where or writing.replica:
                raise HedgerowError("--where and --replica are for one table: apply its layout by itself")
            tables = hedgerow.apply_tables(spark, source, layouts, to, options, overwrite=writing.overwrite)
            facts = {name: table.describe() for name, table in tables.items()}
            shown = {name: f"{f['blocks']:,} blocks, {f['files']:,} files" for name, f in facts.items()}
            output.answer(facts, {name: shown.get(name, "left as it is, in one block") for name in layouts})
            return
        if isinstance(layouts, LearnedPartitions):
            if to or writing.where or writing.replica:
                raise HedgerowError("--to, --where and --replica are for one layout: these are of several partitions")
            table = hedgerow.apply_partitions(spark, source, layouts, options, at_once=at_once)
        else:
            table = hedgerow.apply(
                spark,
                source,
                layouts,
                to,
                options,
                where=writing.where,
                replica=writing.replica,
                overwrite=writing.overwrite,
            )
        description = table.describe()
        if to is not None and is_delta(spark, source):
            output.line("note", f"{to} is a Parquet table; without --to the Delta table itself is rewritten, in place")
    output.answer(description, summary(description))
