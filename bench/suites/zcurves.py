"""Rows that queries scan in the order of a curve: Table 1 of the Z-order paper, on tables with the shapes of its four.

The suite runs in memory and without Spark. A layout is learned from a sample and a set of queries, and scored on all
rows with these queries and with as many unseen ones. The table has as many blocks as the paper's would have of 4 MB, so
a block has fewer rows here. `default` is the order in which the rows come.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.data.zcurves_tables import SHAPES, queries, table_of, write
from bench.matching import matching
from bench.memory import AS_IT_CAME, InMemory, bound, measured
from bench.options import EQUAL_BITS, LEARNED_BITS, Case, Options, by_bounds
from bench.record import progress
from bench.report.quality import sound
from hedgerow.sql.workload import Workload

BLOCK_BYTES = 4 << 20
ROWS = {"quick": 40_000, "full": 1_000_000}
MOST_BLOCKS = {"quick": 200, "full": 1_000}  # fewer than the paper had, because the sample has too few rows for more
QUERIES = {"quick": 100, "full": 500}
TIMED = {"quick": 6, "full": 30}  # queries, where tables are written
CASES: dict[str, tuple[Case, ...]] = {
    "quick": (
        *((name, {}) for name in (AS_IT_CAME, "range", "zorder", "hilbert")),
        ("zorder_learned", {"iterations": 300}),
    ),
    "full": (
        *((name, {}) for name in (AS_IT_CAME, "range", "zorder", "hilbert")),
        *(by_bounds(EQUAL_BITS), EQUAL_BITS, by_bounds(LEARNED_BITS), LEARNED_BITS),
        ("zorder_learned", {}),
    ),
}


def run(options: Options) -> Iterator[dict[str, Any]]:
    for name in SHAPES:
        data = load(name, options)
        lines = []
        for case in options.cases(CASES[options.form]):
            lines.append(measured(data, case, options.form, options.seed))
            yield lines[-1]
        check(lines)


def physical(options: Options) -> Iterator[dict[str, Any]]:
    """Time queries on written tables, beside peers."""
    from bench.physical import Physical, run

    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        for name, shape in SHAPES.items():
            table = table_of(name, ROWS[options.form], options.seed)
            source = Path(folder, name)
            write(table, source)
            learned = Workload.from_sql(queries(name, table, QUERIES[options.form], options.seed))
            timed = [("all", sql) for sql in queries(name, table, TIMED[options.form], ~options.seed)]
            by, params = shape.queried[0].column, {"shape": name}
            data = Physical("zcurves-physical", name, source, learned, timed, by, params=params)
            yield from run(data, [("zorder_learned", {})], options)


def load(name: str, options: Options) -> InMemory:
    rows, n = ROWS[options.form], QUERIES[options.form]
    progress(f"zcurves: {name}, {rows:,} rows, seed {options.seed}")
    table = table_of(name, rows, options.seed)
    # Seeds of learned queries are 0 or more, so ~seed, which is negative, is never one of them.
    texts = [queries(name, table, n, seed) for seed in (options.seed, ~options.seed)]
    learned, unseen = (bound(own, table) for own in texts)
    matched, matched_unseen = (fmean(matching(table, [sql.partition(" WHERE ")[2] for sql in own])) for own in texts)
    blocks = SHAPES[name].paper_mrows * 1e6 * (table.nbytes / rows) / BLOCK_BYTES
    block_rows = max(1, round(rows / min(blocks, MOST_BLOCKS[options.form])))
    return InMemory("zcurves", table, learned, unseen, (matched, matched_unseen), block_rows, params={"shape": name})


def check(lines: Sequence[dict[str, Any]]) -> None:
    """Assert that the lines are sound, and that the learned order reads at most 2 % more than the best other."""
    sound(lines)
    peers = [line["rows_read"] for line in lines if line["learner"] != "zorder_learned"]
    for line in lines:
        if peers and line["learner"] == "zorder_learned" and line["params"].get("search") != "bayes":
            assert line["rows_read"] <= 1.02 * min(peers), f"{line['rows_read']} read, others {min(peers)}"
