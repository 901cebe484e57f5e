"""Ten appends to a table in the order of a learned curve: keep the order, or learn again (Gao et al., Next Steps).

The tables are those of `zcurves`, but their rows come in the order of the first column that queries filter on, a time.
Half of the rows are laid out at first; ten appends bring the others. After each append new queries ask for the rows so
far.

    kept                 new rows follow the first layout, as `append` does it
    same bits            new rows get axes of their own, and the numbers and the order of the bits remain
    learned for the new  a layout is learned for the new rows alone, from queries asked since the last append
    learned for all      the same for all rows, which are all written again

Each append has blocks of its own, of the usual number of rows. A line has the share of the rows that the queries read,
as a mean over the appends, and in its details the share after each of them and the rows written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bench.data.zcurves_tables import SHAPES, queries, table_of
from bench.memory import InMemory, bound, counted, fitted, indexed, problem_of, reads_of
from bench.options import LEARNED_BITS, Case, Options, by_bounds
from bench.read_by_trees import TreeIndex
from bench.record import line, progress
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.layouts.curve import Axis, CurveLayout
from hedgerow.core.learning.curve_order import Axes, axis_of, bounds_of, curve_layout
from hedgerow.core.learning.problem import Problem
from hedgerow.learners.curves.zorder_learned import shortened, without_idle
from hedgerow.sql.workload import Workload

ROWS = {"quick": 20_000, "full": 500_000}
BLOCKS = {"quick": 100, "full": 1_000}
QUERIES = {"quick": 50, "full": 200}  # to learn from, and as many unseen
APPENDS, FIRST = 10, 0.5
WAYS = ("kept", "same bits", "learned for the new", "learned for all")
FEW = {"iterations": 60}  # of Bayesian optimisation, because there are twenty-one searches for a table
CASES: dict[str, tuple[Case, ...]] = {
    "quick": (("zorder_learned", {"iterations": 100, "recurrence": 1}),),
    "full": (
        by_bounds(("zorder", {"axes": "values", "recurrence": 1})),
        by_bounds((LEARNED_BITS[0], {**LEARNED_BITS[1], **FEW})),
        ("zorder_learned", {}),
    ),
}
Index = BlockIndex | TreeIndex


@dataclass(frozen=True)
class Step:
    """An append, or the first rows: the new rows and all rows so far, and queries that ask for all of these."""

    new: InMemory
    every: InMemory


def run(options: Options) -> Iterator[dict[str, Any]]:
    for name in SHAPES:
        steps = steps_of(name, options)
        for case in options.cases(CASES[options.form]):
            first, layout = _problem(steps[0].new, case, options), None
            layout, _ = fitted(counted(steps[0].new, first, case[1]), case)
            assert isinstance(layout, CurveLayout)
            for way in WAYS:
                progress(f"zcurves-appends: {name}, seed {options.seed}, {case[0]}({dict(case[1])}), {way}")
                yield _measured(steps, case, way, layout, options)


def steps_of(name: str, options: Options) -> list[Step]:
    rows, n = ROWS[options.form], QUERIES[options.form]
    table = table_of(name, rows, options.seed)
    table = table.take(pc.sort_indices(table[SHAPES[name].queried[0].column]))
    block_rows = rows // BLOCKS[options.form]
    ends = [round(rows * (FIRST + (1 - FIRST) * i / APPENDS)) for i in range(APPENDS + 1)]
    steps = []
    for number, end in enumerate(ends):
        so_far, seed = table.slice(0, end), options.seed * (APPENDS + 1) + number
        # Seeds of learned queries are 0 or more, so ~seed, which is negative, is never one of them.
        learned, unseen = (bound(queries(name, so_far, n, s), so_far) for s in (seed, ~seed))
        new = so_far.slice(ends[number - 1] if number else 0)
        steps.append(Step(*(_in_memory(name, some, learned, unseen, block_rows) for some in (new, so_far))))
    return steps


def _in_memory(name: str, rows: pa.Table, learned: Workload, unseen: Workload, block_rows: int) -> InMemory:
    return InMemory("zcurves-appends", rows, learned, unseen, (0.0, 0.0), block_rows, params={"shape": name})


def _problem(data: InMemory, case: Case, options: Options) -> Problem:
    return problem_of(data, case[1].get("recurrence", "auto"), seed=options.seed)


def _measured(steps: Sequence[Step], case: Case, way: str, first: CurveLayout, options: Options) -> dict[str, Any]:
    parts = [_index(steps[0].new, case, first, options)]
    read, written = [], len(steps[0].new.table)
    for step in steps[1:]:
        if way == "learned for all":
            parts = []
        data = step.every if way == "learned for all" else step.new
        parts.append(_index(data, case, _layout(data, case, way, first, options), options))
        written += len(data.table)
        read.append(share_read(parts, step.every.unseen))
    return line(
        suite="zcurves-appends",
        learner=case[0],
        params={"form": options.form, "shape": steps[0].new.params["shape"], "way": way, **case[1]},
        rows=len(steps[-1].every.table),
        blocks=sum(int((index.blocks.rows > 0).sum()) for index in parts),
        block_rows=steps[0].new.block_rows,
        queries=len(steps[0].new.learned),
        rows_read=float(f"{fmean(read):.3g}"),
        details={"after_each_append": [float(f"{share:.3g}") for share in read], "rows_written": written},
        seed=options.seed,
    )


def _layout(data: InMemory, case: Case, way: str, first: CurveLayout, options: Options) -> CurveLayout:
    problem = _problem(data, case, options)
    if way == "kept":
        keys = first.keys(problem.sample.rows)
        return replace(first, bounds=bounds_of(keys, problem.sample_block_rows))
    if way == "same bits":
        return with_own_axes(first, problem, case[1].get("axes", "ranks"))
    layout, _ = fitted(counted(data, problem, case[1]), case)
    assert isinstance(layout, CurveLayout)
    return layout


def with_own_axes(layout: CurveLayout, problem: Problem, axes: Axes) -> CurveLayout:
    """Return the curve with the same numbers and order of bits, and with edges drawn from the problem's sample."""
    terms = [axis for axis in layout.axes if isinstance(axis, Axis)]
    own = [axis_of(problem, axis.term, axis.bits, axes) for axis in terms]
    if layout.curve == "hilbert":  # each axis counts as having the bits of the widest
        return curve_layout(problem, own, [*range(len(own))] * max(axis.bits for axis in own), layout.curve)
    pattern = without_idle(layout.pattern, [axis.bits for axis in own])
    return curve_layout(problem, *shortened(own, pattern), layout.curve)


def _index(data: InMemory, case: Case, layout: CurveLayout, options: Options) -> Index:
    return indexed(layout, data, _problem(data, case, options), case)


def share_read(parts: Sequence[Index], queries: Workload) -> float:
    """Return the share of the rows of all parts that the queries read, on average."""
    rows = [int(index.blocks.rows.sum()) for index in parts]
    return sum(reads_of(index, queries)[0] * n for index, n in zip(parts, rows, strict=True)) / sum(rows)
