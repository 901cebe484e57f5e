"""Rows that queries scan when a curve orders them: Table 1 of the Z-order paper, on tables with the shapes of its four.

In memory and without Spark. A layout is learned from a sample and a first set of queries, and asked all rows of the
table with these and with as many others. A block is to the table what 4 MB were to the paper's: as many of them as
its rows would fill, so a block has fewer rows here. `default` is the order in which the rows come.
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
from bench.options import LEARNED_BITS, Case, Options
from bench.record import progress
from bench.report.quality import sound
from hedgerow.sql.workload import Workload

BLOCK_BYTES = 4 << 20
ROWS = {"quick": 40_000, "full": 1_000_000}
MOST_BLOCKS = {"quick": 200, "full": 1_000}  # fewer than the paper had where the sample has no rows for more
QUERIES = {"quick": 100, "full": 500}
TIMED = {"quick": 6, "full": 30}  # queries, where tables are written
CASES: dict[str, tuple[Case, ...]] = {
    "quick": (
        *((name, {}) for name in (AS_IT_CAME, "range", "zorder", "hilbert")),
        ("zorder_learned", {"iterations": 300}),
    ),
    "full": (
        *((name, {}) for name in (AS_IT_CAME, "range", "zorder", "hilbert")),
        LEARNED_BITS,
        ("zorder_learned", {}),
    ),
}


def run(options: Options) -> Iterator[dict[str, Any]]:
    for name in SHAPES:
        data = load(name, options)
        found = []
        for case in options.cases(CASES[options.form]):
            found.append(measured(data, case, options.form, options.seed))
            yield found[-1]
        check(found)


def physical(options: Options) -> Iterator[dict[str, Any]]:
    """What queries take on tables that are written, beside peers."""
    from bench.physical import Physical, run

    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        for name, shape in SHAPES.items():
            table = table_of(name, ROWS[options.form], options.seed)
            source = Path(folder, name)
            write(table, source)
            learned = Workload.from_sql(queries(name, table, QUERIES[options.form], options.seed))
            asked = [("all", sql) for sql in queries(name, table, TIMED[options.form], ~options.seed)]
            by, params = shape.asked[0].column, {"shape": name}
            data = Physical("zcurves-physical", name, source, learned, asked, by, params=params)
            yield from run(data, [("zorder_learned", {})], options)


def load(name: str, options: Options) -> InMemory:
    rows, n = ROWS[options.form], QUERIES[options.form]
    progress(f"zcurves: {name}, {rows:,} rows, seed {options.seed}")
    table = table_of(name, rows, options.seed)
    # Learned seeds are 0 and more, so these are never among them.
    texts = [queries(name, table, n, seed) for seed in (options.seed, ~options.seed)]
    learned, unseen = (bound(own, table) for own in texts)
    matched, matched_unseen = (fmean(matching(table, [sql.partition(" WHERE ")[2] for sql in own])) for own in texts)
    blocks = SHAPES[name].paper_mrows * 1e6 * (table.nbytes / rows) / BLOCK_BYTES
    block_rows = max(1, round(rows / min(blocks, MOST_BLOCKS[options.form])))
    return InMemory("zcurves", table, learned, unseen, (matched, matched_unseen), block_rows, params={"shape": name})


def check(lines: Sequence[dict[str, Any]]) -> None:
    """Sound, and the learned order reads no more than the best of the others, but for what a sample may err."""
    sound(lines)
    others = [found["rows_read"] for found in lines if found["learner"] != "zorder_learned"]
    for found in lines:
        if others and found["learner"] == "zorder_learned" and found["params"].get("starts", True):
            assert found["rows_read"] <= 1.02 * min(others), f"{found['rows_read']} read, others {min(others)}"
