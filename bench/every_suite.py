"""The suites: the function that runs each, a title, and how long its full form takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.data import tpcds_tables, tpch_tables
from bench.data.errorlog_data import EXTERNAL, INTERNAL
from bench.options import Options
from bench.suites import (
    advise,
    appends,
    apply,
    attach,
    best_tree,
    correlated_like,
    draws,
    errorlog,
    errorlog_seconds,
    estimates,
    features,
    fig3,
    fig4,
    fig8,
    file_sizes,
    files,
    forecast,
    frontier,
    growth,
    kinds,
    late_keys,
    lineitem,
    lookups,
    merge,
    object_store,
    promises,
    prune,
    regions,
    replay,
    replay_physical,
    route_rows,
    selective,
    several_trees,
    star,
    tpch_month,
    two_trees,
    workloads,
    zcurves,
    zcurves_appends,
)


@dataclass(frozen=True, slots=True)
class Suite:
    """A benchmark: the function that runs it, and how the page of results shows its lines.

    `minutes` estimates how long the full form takes. `figure` is the field of a line that the page compares.
    """

    run: Callable[[Options], Iterator[dict[str, Any]]]
    title: str
    minutes: float
    figure: str = "rows_read"
    options: str = ""  # of the full form's command
    figure_name: str = ""  # where the page names the figure otherwise than in other suites
    is_study: bool = False  # True: one table in many sizes, left out of the page's first table


BESIDE_PEERS = "seconds on a cold disk, of those of the best peer"
ESTIMATED_SHARE = "estimated, of what was measured"
SUITES: dict[str, Suite] = {
    "fig3": Suite(fig3.run, "An OR that no single cut helps", 1),
    "fig4": Suite(fig4.run, "Four queries that share one row, without overlap and with it", 1),
    "fig8": Suite(fig8.run, "How a learner by trial gets better, tree by tree", 15),
    "tpch-month": Suite(tpch_month.run, "TPC-H in one wide table, the lines of one month", 20),
    "draws": Suite(draws.run, "TPC-H's month, with literals drawn in four ways", 4),
    "errorlog-int": Suite(partial(errorlog.run, INTERNAL), "Crash reports of many branches with builds every day", 25),
    "errorlog-ext": Suite(
        partial(errorlog.run, EXTERNAL), "Crash reports of thousands of applications on few releases", 45
    ),
    "errorlog-int-seconds": Suite(
        partial(errorlog_seconds.run, INTERNAL),
        "The first log at the paper's size, in seconds, cold and warm",
        120,
        "ratio",
        figure_name=BESIDE_PEERS,
    ),
    "errorlog-ext-seconds": Suite(
        partial(errorlog_seconds.run, EXTERNAL),
        "The second log at the paper's size, in seconds, cold and warm",
        120,
        "ratio",
        figure_name=BESIDE_PEERS,
    ),
    "best-tree": Suite(best_tree.run, "How near trees come to the best tree of the same cuts", 30, is_study=True),
    "zcurves": Suite(zcurves.run, "Four tables of the shapes that Z-orders were tried on", 60),
    "zcurves-appends": Suite(
        zcurves_appends.run,
        "Ten appends to these tables: keep the order of the bits, or learn again",
        45,
        is_study=True,
    ),
    "correlated-like": Suite(correlated_like.run, "Searches by LIKE in columns that mostly say the same", 1),
    "several-trees": Suite(several_trees.run, "Several trees, by data, queries, blocks and samples", 40, is_study=True),
    "frontier": Suite(frontier.run, "Ways to read less: copies, second layouts, more trees, finer statistics", 15),
    "two-trees": Suite(two_trees.run, "Two full copies, each in a tree of its own, beside one", 60),
    "kinds": Suite(kinds.run, "Each kind of condition by itself, by each learner", 3),
    "tpch": Suite(tpch_tables.measure, "TPC-H's eight tables, which queries join", 10),
    "tpcds": Suite(tpcds_tables.measure, "TPC-DS's tables, which queries join", 10),
    "star": Suite(star.run, "TPC-DS: keys of dimensions choose files of the facts while queries run", 60, "ratio"),
    "lineitem": Suite(lineitem.run, "TPC-H's lineitem, sixty million rows, and six kinds of queries", 3),
    "engines": Suite(lineitem.engines, "lineitem under Spark and under Comet: seconds on written tables", 40, "ratio"),
    "selective": Suite(
        selective.run, "A web log and what dashboards ask: top-k, counts, sums, look-ups by id", 90, "ratio"
    ),
    "selective-lineitem": Suite(selective.run_lineitem, "lineitem and the queries of dashboards", 45, "ratio"),
    "forecast": Suite(
        forecast.run,
        "Layouts learned from a log, with the autopilot's forecast of queries and without it",
        1,
        "ratio",
        figure_name="rows that the next day's queries read, of those without the forecast",
    ),
    "replay": Suite(replay.run, "Days of inserts and scans", 30, "ratio"),
    "merge": Suite(merge.run, "How long bottom-up grouping merges vectors, by their number", 3, "learn_seconds"),
    "lookups": Suite(lookups.run, "Filters of look-ups: bytes, false positives and seconds", 5, "p99_ms"),
    "prune": Suite(prune.run, "How long it takes to decide which blocks a query opens", 1, "p99_ms"),
    "files": Suite(files.run, "An invented table of up to a million files: opening it, and answering", 10, "p99_ms"),
    "file-sizes": Suite(
        file_sizes.run,
        "One layout in files of other sizes, on disk and in a store",
        60,
        "ratio",
        figure_name="seconds with files of 128 MB, of those with a file for each block",
    ),
    "appends": Suite(
        appends.run,
        "An invented table of many appends: bytes of its index",
        3,
        "ratio",
        figure_name="bytes written by appends, of their own index and list",
    ),
    "regions": Suite(regions.run, "Three thousand blocks, learned from few rows, in regions, and from many", 7),
    "apply": Suite(apply.run, "Rewriting a table, beside a plain sort and write by Spark", 20, "ratio"),
    "growth": Suite(growth.run, "Time and memory of each verb as the table grows, beside Spark alone", 18, "ratio"),
    "object-store": Suite(object_store.run, "lineitem in an object store with 30 ms a request", 5, "ratio"),
    "advise": Suite(
        advise.run,
        "What advise says of each learner, beside what its layout then reads",
        8,
        "ratio",
        figure_name=ESTIMATED_SHARE,
    ),
    "promises": Suite(
        promises.run,
        "What advise promises for each kind of query, beside what later queries then read",
        70,
        "ratio",
        figure_name="measured, of what was promised",
    ),
    "estimates": Suite(
        estimates.run,
        "Estimated seconds of rewrites and queries, beside measured ones",
        18,
        "ratio",
        figure_name=ESTIMATED_SHARE,
    ),
    "features": Suite(
        features.run,
        "Skipped volume and seconds of rewrites, by their numbers of features",
        20,
        "ratio",
        figure_name="estimated skipped volume, of what was measured",
    ),
    "workloads": Suite(
        workloads.run,
        "The benches' queries by themselves: how they are distributed",
        3,
        "ratio",
        figure_name="filtering queries with more than columns compared with literals",
    ),
    "route-rows": Suite(route_rows.run, "Millions of rows a second that Spark finds blocks for", 5, "mrows_per_s"),
    "attach": Suite(attach.run, "Queries with `attach`, beside the same without", 6, "ratio"),
    "late-keys": Suite(
        late_keys.run, "Joins whose keys are in every file, with joins at run time and without", 5, "ratio"
    ),
}

PHYSICAL = "-physical"
# The suites that `--physical` runs; `quick` does not run them.
WRITTEN: dict[str, Suite] = {
    f"{name}{PHYSICAL}": Suite(
        run,
        f"{SUITES[name].title}: seconds on written tables, caches warmed for all alike",
        minutes,
        "ratio",
        "--physical",
    )
    for name, run, minutes in (
        ("tpch-month", tpch_month.physical, 12),
        ("errorlog-int", partial(errorlog.physical, INTERNAL), 8),
        ("errorlog-ext", partial(errorlog.physical, EXTERNAL), 8),
        ("zcurves", zcurves.physical, 20),
        ("correlated-like", correlated_like.physical, 20),
        ("lineitem", lineitem.physical, 60),
        ("selective", selective.physical, 30),
        ("replay", replay_physical.run, 135),
        ("tpch", tpch_tables.physical, 45),
    )
}
EVERY = {**SUITES, **WRITTEN}
SUITES_OF = {  # of each paper
    "qdtree": (
        *("fig3", "fig4", "fig8", "tpch-month", "errorlog-int", "errorlog-ext", "frontier", "prune", "route-rows"),
        *("tpch-month-physical", "errorlog-int-physical", "errorlog-ext-physical"),
        *("errorlog-int-seconds", "errorlog-ext-seconds"),
    ),
    "thesis": ("workloads", "features", "estimates", "merge", "replay", "replay-physical"),
    "pando": ("correlated-like", "tpch", "tpcds", "several-trees", "correlated-like-physical", "tpch-physical"),
    "zorder": ("zcurves", "zcurves-appends", "zcurves-physical"),
}
