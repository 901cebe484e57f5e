"""Learn from a table in memory and score what would be written: what `hedgerow.learn`, `apply` and `score` do, without
Spark.

As there, a learner sees a sample, what it cuts off is counted on all rows, and the index knows what a written table's
would: bounds and few values of each column, and the outcomes of the conditions learned from that only Spark could
evaluate, LIKE among them. LIKE is evaluated here, once for each distinct value.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.options import Case
from bench.record import line, progress
from hedgerow.core import cost
from hedgerow.core.expr import Expr, Opaque, Predicate, atoms, text
from hedgerow.core.layout import BlockIds, Layout
from hedgerow.core.overlap import OverlapLayout
from hedgerow.core.problem import Problem, unanswered
from hedgerow.core.redraw import redrawn
from hedgerow.core.rows import Rows
from hedgerow.core.sample import Sample
from hedgerow.core.stats import BIT, Bits, Ints, Stats, collect
from hedgerow.core.views import BlockIndex, View
from hedgerow.pipeline import make_learner
from hedgerow.spark.sample import sample_size
from hedgerow.sql.workload import Workload

MOST_FEATURES = 200  # of a tree's cuts, as many as `apply` notes
AT_ONCE = 250_000
_LIKE = re.compile(r"(?P<column>\w+) LIKE '(?P<pattern>[^'\\]*)'")
NOT_ITS_OWN = ("recurrence", "exact", "cuts", "index")  # all other parameters are the learner's


@dataclass(frozen=True)
class InMemory:
    """The columns of a table that queries ask about, and two workloads, with the mean share of rows that match."""

    suite: str
    table: pa.Table
    learned: Workload
    unseen: Workload
    bound: float
    bound_unseen: float
    block_rows: int

    @staticmethod
    def of(
        suite: str, table: pa.Table, texts: Sequence[Sequence[str]], bounds: Sequence[float], block: int
    ) -> InMemory:
        """`texts` and `bounds` are of the queries learned from, and of unseen ones."""
        learned, unseen = (_bound(t, table) for t in texts)
        bound, bound_unseen = bounds
        return InMemory(suite, table, learned, unseen, bound, bound_unseen, block)

    @cached_property
    def predicates(self) -> tuple[Predicate, ...]:
        return _predicates(self.learned)

    @cached_property
    def all_rows(self) -> Sample:
        """Every row, with the outcomes of the LIKEs learned from."""
        found = Sample.of_table(self.table)
        columns = found.rows.ranked
        return replace(found, rows=Rows(columns, likes(self.predicates, found.rows)))

    @cached_property
    def noted(self) -> dict[Predicate, Bits]:
        """The outcomes that an index notes besides, whatever the layout."""
        rows = self.all_rows.rows
        return {p: rows.evaluate(p) for p in unanswered(self.predicates, self.all_rows)}

    def sample(self, seed: int) -> Sample:
        n = len(self.all_rows)
        picked = np.sort(np.random.default_rng(seed).choice(n, sample_size(n, self.block_rows), replace=False))
        return replace(self.all_rows, rows=self.all_rows.rows.take(picked))


def _bound(texts: Sequence[str], table: pa.Table) -> Workload:
    found = Workload.from_sql(texts)
    (name,) = found.tables()
    found = found.bind({name: table.schema})
    assert not found.skipped, found.skipped
    return found


def _predicates(workload: Workload) -> tuple[Predicate, ...]:
    (name,) = workload.tables()
    return tuple(q.predicate(name) for q in workload)


def predicates_of(texts: Sequence[str], table: pa.Table) -> tuple[Predicate, ...]:
    """What the queries ask of their only table."""
    return _predicates(_bound(texts, table))


def likes(predicates: Iterable[Predicate], rows: Rows) -> dict[Predicate, Bits]:
    """What each LIKE of the predicates says of each row."""
    found: dict[Predicate, Bits] = {}
    for atom in sorted({a for p in predicates for a in atoms(p) if isinstance(a, Opaque)}, key=text):
        parts = _LIKE.fullmatch(atom.sql)
        assert parts is not None, f"only Spark knows what {atom.sql} says"
        column = rows.ranks(atom.columns[0])
        holds = [*pc.match_like(pa.array(column.values, pa.string()), parts["pattern"]).to_pylist(), None]
        found[atom] = np.array([BIT[h] for h in holds], np.uint8)[column.places]  # NULL is place -1, the last
    return found


def measured(data: InMemory, case: Case, form: str, seed: int) -> dict[str, Any]:
    learner, params = case
    shown = ", ".join(f"{name}={value}" for name, value in params.items())
    progress(f"{data.suite}: seed {seed}, {learner}({shown})")
    _ = data.noted  # reading the table is not learning
    start = time.perf_counter()
    layout = learned_layout(data, case, seed)
    seconds = time.perf_counter() - start
    index = bounds_of(layout, data) if params.get("index") == "bounds" else index_of(layout, data)
    reads, unseen = (_reads(index, workload) for workload in (data.learned, data.unseen))
    blocks = index.blocks.rows[index.own & (index.blocks.rows > 0)]
    return line(
        suite=data.suite,
        learner=learner,
        params={"form": form, **params},
        rows=len(data.all_rows),
        blocks=len(blocks),
        block_rows=data.block_rows,
        least_block=int(blocks.min()),
        queries=len(data.learned),
        queries_unseen=len(data.unseen),
        bound=_rounded(data.bound),
        bound_unseen=_rounded(data.bound_unseen),
        rows_read=_rounded(reads[0]),
        rows_read_unseen=_rounded(unseen[0]),
        blocks_read=_rounded(reads[1]),
        blocks_read_unseen=_rounded(unseen[1]),
        learn_seconds=round(seconds, 1),
        seed=seed,
    )


def learned_layout(data: InMemory, case: Case, seed: int) -> Layout:
    """What a learner makes of a sample of the table and the queries to learn from."""
    learner, params = case
    weights = [q.weight for q in data.learned]
    recurrence, kind = params.get("recurrence", "auto"), params.get("cuts", "atoms")
    asked, shares, sample, seen = redrawn(data.predicates, weights, data.sample(seed), recurrence, seed)
    problem = Problem.build(sample, asked, data.block_rows, shares, kind, seed)

    def measure(layout: Layout) -> Stats:
        return _noted(layout, data).stats(_assigned(layout, data.all_rows.rows), layout.blocks)

    problem = replace(problem, seen=seen, measure=measure if params.get("exact", True) else None)
    own = {name: value for name, value in params.items() if name not in NOT_ITS_OWN}
    return make_learner(learner, **own).fit(problem)


def index_of(layout: Layout, data: InMemory) -> BlockIndex:
    """The index of the table, written in a layout."""
    noted = replace(data.all_rows, rows=_noted(layout, data))
    if isinstance(layout, OverlapLayout):
        return cost.virtual_index(layout, noted)
    return cost.index_of_assignment(_assigned(layout, data.all_rows.rows), layout.blocks, noted)


def bounds_of(layout: Layout, data: InMemory) -> BlockIndex:
    """The index that any Parquet reader has: each column's least and greatest value in a block."""
    rows = data.all_rows.rows
    found = collect(rows.ranked, None, _assigned(layout, rows), layout.blocks, max_distinct=0)
    return BlockIndex((View(found),))


def _noted(layout: Layout, data: InMemory) -> Rows:
    """All rows, with the outcomes that the index would note."""
    rows = _with_likes(layout.features[:MOST_FEATURES], data.all_rows.rows)
    return Rows(rows.columns, {**rows.truths, **data.noted})


def _with_likes(features: Iterable[Any], rows: Rows) -> Rows:
    """The rows with the outcomes of the LIKEs among a layout's features."""
    return Rows(rows.columns, {**likes((f for f in features if isinstance(f, Predicate)), rows), **rows.truths})


def _assigned(layout: Layout, rows: Rows) -> BlockIds:
    """The block of each row, some rows after the others: a tree has many cuts, each with a truth of each row."""
    r = np.random.default_rng(0)
    rows = _with_likes(layout.features, rows)
    found = []
    for start in range(0, len(rows), AT_ONCE):
        some = rows.take(np.arange(start, min(len(rows), start + AT_ONCE)))
        # Of expressions there is only a hash of the row, and any even draw is as good.
        columns = dict(some.columns)
        columns |= {f: pa.array(_evenly(r, len(some))) for f in layout.features if isinstance(f, Expr)}
        found.append(layout.assign(Rows(columns, some.truths)))
    return np.concatenate(found)


def _evenly(r: np.random.Generator, n: int) -> Ints:
    return r.integers(-(1 << 63), (1 << 63) - 1, n, np.int64, endpoint=True)


def _reads(index: BlockIndex, workload: Workload) -> tuple[float, float]:
    """The shares of rows and of blocks that the queries open, on average."""
    rows = index.blocks.rows
    opened = np.array([index.to_open(p) for p in _predicates(workload)])
    return float((opened @ rows).mean() / rows[index.own].sum()), float(opened.mean(0).sum() / (rows > 0).sum())


def _rounded(share: float) -> float:
    """Three digits that count: these shares may be tiny."""
    return float(f"{share:.3g}")
