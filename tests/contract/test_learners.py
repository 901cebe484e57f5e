"""What every learner promises, whatever it learns: one suite for all, and for each method as its paper has it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hedgerow.core.errors import HedgerowError, LayoutError
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.layout_json import layout_from_json, layout_to_json
from hedgerow.core.learning.problem import Learner, Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.virtual_blocks import index_of_assignment, virtual_index
from hedgerow.core.predicates.nodes import And, Compare, Expr, In, IsNull, Like, Not, Or, Predicate, Prefix, col, lit
from hedgerow.core.pruning.block_stats import T_BIT
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.pipeline.learner_names import LEARNERS, make_learner
from tests.support.published_forms import PUBLISHED, published_cuts, published_learner

ROWS, BLOCK = 2_000, 100
PARAMETERS: dict[str, dict[str, Any]] = {
    "woodblock": {"max_trees": 16, "budget_seconds": None},
    "zorder_learned": {"iterations": 20},
    "WOODBLOCK": {"max_trees": 16, "budget_seconds": None},
    "learned bits": {"iterations": 20},
}
X, Y, WORD = col("x"), col("y"), col("word")
QUERIES: tuple[Predicate, ...] = (
    *(And((Compare(X, ">=", lit(v)), Compare(X, "<", lit(v + 50)))) for v in range(0, 1000, 150)),
    *(Compare(Y, "=", lit(v)) for v in (1, 3, 5)),
    Or((Compare(X, "<", lit(20)), Compare(Y, "=", lit(7)))),
    In(WORD, (lit("w1"), lit("w8"))),
    Prefix(WORD, "w4"),
)
pytestmark = pytest.mark.parametrize("name", (*LEARNERS, *PUBLISHED))


def learner(name: str) -> Learner:
    limits = PARAMETERS.get(name, {})
    return published_learner(name, **limits) if name in PUBLISHED else make_learner(name, **limits)


def table(rows: int = ROWS) -> pa.Table:
    r = np.random.default_rng(7)
    x, y = r.permutation(rows) * 1000 // max(1, rows), r.integers(0, 8, rows)
    word = pa.array([f"w{v}" for v in r.integers(0, 10, rows)], mask=r.random(rows) < 0.05)
    return pa.table({"x": x, "y": y, "word": word})


def problem(
    name: str, of: pa.Table | None = None, queries: tuple[Predicate, ...] = QUERIES, block_rows: int = BLOCK
) -> Problem:
    sample = Sample.of_table(table() if of is None else of)
    return Problem.build(sample, queries, block_rows, cuts=published_cuts(name))


def complete(rows: Rows, layout: Layout) -> Rows:
    """With a column for what only Spark computes: the hash that the learner `random` sorts by."""
    computed = {f: _hashes(rows) for f in layout.features if isinstance(f, Expr)}
    return Rows({**rows.columns, **computed}, rows.truths)


def _hashes(rows: Rows) -> pa.Array:
    values = zip(*(column.to_pylist() for column in rows.columns.values()), strict=True)
    digests = (hashlib.blake2b(repr(v).encode(), digest_size=8).digest() for v in values)
    return pa.array([int.from_bytes(d, "big", signed=True) for d in digests], pa.int64())


def unseen() -> Rows:
    """Values that no sample had, NULL among them."""
    return Rows.of_table(
        pa.table({"x": [None, -(2**63), 2**63 - 1, 5], "y": [None, -1, 99, 3], "word": [None, "", "x" * 5000, "w1"]})
    )


def printed(names: list[str]) -> list[str]:
    return [layout_to_json(learner(n).fit(problem(n))) for n in names]


@pytest.mark.long
def test_another_process_learns_the_same(name: str) -> None:
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root), str(root / "src"), os.environ.get("PYTHONPATH", "")])
    program = f"import json; from tests.contract.test_learners import printed; print(json.dumps(printed([{name!r}])))"
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            "PYTHONPATH": paths,
            "PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2",
        },
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert json.loads(run.stdout.splitlines()[-1]) == printed([name])


def test_fit_is_pure_and_the_layout_does_its_work(name: str) -> None:
    """Fitting twice is as fitting once; rows go to blocks one by one as all at once; the layout survives JSON."""
    given, made = problem(name), learner(name)
    before = deepcopy(
        (given.cuts, given.weights, given.truth.words.tolist(), [a.tolist() for a in given.clauses.arrays])
    )
    layout = made.fit(given)
    assert layout_to_json(made.fit(given)) == layout_to_json(layout)
    assert (given.cuts, given.weights, given.truth.words.tolist(), [a.tolist() for a in given.clauses.arrays]) == before

    rows = complete(given.sample.rows, layout)
    blocks = layout.assign(rows)
    assert ((blocks >= 0) & (blocks < layout.blocks)).all()
    order = np.random.default_rng(1).permutation(ROWS)
    assert (layout.assign(rows.take(order.astype(np.intp))) == blocks[order]).all()
    halves = [layout.assign(rows.take(np.arange(a, b, dtype=np.intp))) for a, b in ((0, 700), (700, ROWS))]
    assert (np.concatenate(halves) == blocks).all()
    again = layout_from_json(layout_to_json(layout))
    assert (again.assign(rows) == blocks).all() and layout_to_json(again) == layout_to_json(layout)

    assert np.bincount(blocks, minlength=layout.blocks).min() >= BLOCK // 2
    new = layout.assign(complete(unseen(), layout))
    assert ((new >= 0) & (new < layout.blocks)).all()


def test_pruning_never_drops_a_row(name: str) -> None:
    given = problem(name)
    layout = learner(name).fit(given)
    sample = replace(given.sample, rows=complete(given.sample.rows, layout))
    index, blocks = virtual_index(layout, sample), layout.assign(sample.rows)
    for query in QUERIES:
        matching = given.sample.rows.evaluate(query) == T_BIT
        assert set(blocks[matching].tolist()) <= set(np.flatnonzero(index.to_open(query)).tolist())


def test_no_worse_than_rows_dealt_in_turn(name: str) -> None:
    given = problem(name)
    layout = learner(name).fit(given)
    sample = replace(given.sample, rows=complete(given.sample.rows, layout))
    dealt = index_of_assignment(np.arange(ROWS) % layout.blocks, layout.blocks, sample)
    assert rows_read(virtual_index(layout, sample)) <= rows_read(dealt) + 0.02


def rows_read(index: BlockIndex) -> float:
    return float(np.mean([index.blocks.rows[index.to_open(q)].sum() for q in QUERIES])) / ROWS


CORNERS: dict[str, tuple[pa.Table, tuple[Predicate, ...], int]] = {
    "no query": (table(), (), BLOCK),
    "one row": (table(1), QUERIES, 1),
    "a block larger than the table": (table(50), QUERIES, 1_000),
    "one column": (pa.table({"x": list(range(300))}), (Compare(X, "<", lit(9)),), 20),
    "only NULL": (pa.table({"x": pa.nulls(300, pa.int64()), "y": [1] * 300}), (Compare(X, "<", lit(9)),), 20),
    "one value": (pa.table({"x": [7] * 300}), (Compare(X, "=", lit(7)), Compare(X, ">", lit(9))), 20),
    "long strings": (pa.table({"word": ["a" * 3000 + str(i % 9) for i in range(300)]}), (Prefix(WORD, "a" * 3000 + "1"),), 20),
    "NaN": (pa.table({"x": [float("nan"), 1.0, -0.0, 0.0, float("inf")] * 60}), (Compare(X, "<", lit(1.0)),), 20),
    "many equal rows": (pa.table({"x": [1] * 290 + list(range(10))}), (Compare(X, "=", lit(1)), Compare(X, ">", lit(4))), 20),
    "a condition that only Spark knows": (table(300), (Like(X, "%1%"), Compare(X, "<", lit(100))), 20),
}  # fmt: skip


@pytest.mark.parametrize("corner", CORNERS)
def test_corners(name: str, corner: str) -> None:
    """A layout for all rows, or one sentence that says why there is none."""
    rows, queries, block_rows = CORNERS[corner]
    try:
        given = problem(name, rows, queries, block_rows)
        layout = learner(name).fit(given)
    except HedgerowError as error:
        assert "\n" not in str(error) and len(str(error)) < 300
        return
    blocks = layout.assign(complete(given.sample.rows, layout))
    assert len(blocks) == len(rows) and ((blocks >= 0) & (blocks < layout.blocks)).all()


def test_values_without_an_order_do_not_stop_a_learner(name: str) -> None:
    """No learner sorts by an array, although queries filter by it most often."""
    rows = pa.table({"x": list(range(300)), "list": [[i] for i in range(300)]})
    queries = (IsNull(col("list")), Not(IsNull(col("list"))), Compare(X, "<", lit(100)))
    layout = learner(name).fit(problem(name, rows, queries, 20))
    assert layout.blocks


WRONG: dict[str, list[dict[str, Any]]] = {
    "qdtree": [{"criterion": "entropy"}, {"cells": 0}, {"cells": -3}],
    "pando": [{"k": 0}, {"k": "many"}, {"k": True}, {"cells": 0}, {"cost": "blocks"}, {"criterion": "best"}],
    "woodblock": [*({"max_trees": 0}, {"budget_seconds": -1}, {"target": "low"}, {"at_once": 0})],
    "bottom_up": [{"features": 0}, {"features": True}, {"threshold": 2}, {"cost": "magic"}],
    "zorder_learned": [{"search": "luck"}, {"iterations": 0}, {"iterations": 1.5}, {"seconds": 0}],
}


def test_a_wrong_parameter_is_named_in_one_sentence(name: str) -> None:
    for wrong in WRONG.get(name, []):
        with pytest.raises(LayoutError, match=next(iter(wrong))) as error:
            make_learner(name, **wrong).fit(problem(name))
        assert "\n" not in str(error.value)
    with pytest.raises(LayoutError, match="block_rows=0"):
        problem(name, block_rows=0)
