"""Queries of dashboards and support people on a web log and on lineitem: seconds and files beside other layouts.

Questions are learned from, and one other of each kind is timed. `--physical` puts the tables of the log into an object
store.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.data.web_log import KINDS, questions, web_log
from bench.options import Options
from bench.physical import Physical
from bench.suites import lineitem, tpch
from bench.written import run as run_on_disk
from bench.written import run_in_store

ROWS_PER_SF = 6_000_000  # as lineitem's
SCALE = {"quick": 0.05, "full": 10.0}
LEARNED = 120
FILE_BYTES, BYTES_PER_ROW = 8_000_000, 42
MIN_FILES = 20
LOOKUP_SHARE = 0.04  # the usual 0.01 of this narrow table would leave 3 bits for an id
SORTED_BY, CLUSTERED_BY = "ts", ("ts", "user_id")


def run(options: Options) -> Iterator[dict[str, Any]]:
    yield from run_on_disk(_log(options, "selective"), options)


def run_lineitem(options: Options) -> Iterator[dict[str, Any]]:
    scale = options.sf or SCALE[options.form]
    learned = [text for _, text in tpch.dashboard(LEARNED, scale, options.seed)]
    timed = tpch.dashboard(len(tpch.DASHBOARD), scale, ~options.seed)
    yield from run_on_disk(lineitem.described(options, "selective-lineitem", learned, timed), options)


def physical(options: Options) -> Iterator[dict[str, Any]]:
    """Time the queries in an object store."""
    yield from run_in_store(_log(options, "selective-physical"), options)


def _log(options: Options, suite: str) -> Physical:
    import hedgerow as hr

    rows = round((options.sf or SCALE[options.form]) * ROWS_PER_SF)
    learned = questions(LEARNED, rows, options.seed)
    # Seeds of learned queries are 0 or more, so ~seed, which is negative, is never one of them.
    timed = questions(len(KINDS), rows, ~options.seed)
    return Physical(
        *(suite, "log", web_log(rows), hr.Workload.from_sql([text for _, text in learned]), timed, SORTED_BY),
        fields={"sf": rows / ROWS_PER_SF},
        files=max(MIN_FILES, rows * BYTES_PER_ROW // FILE_BYTES),
        clustered_by=CLUSTERED_BY,
        lookup_share=LOOKUP_SHARE,
        came_sorted=True,
    )
