"""Small leaves in several blocks: who is beside whom, and every row that matches is read exactly once."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.suites import fig4
from hedgerow.core.errors import LayoutError
from hedgerow.core.index.block_index import BlockIndex, concat_indexes
from hedgerow.core.index.index_file import index_bytes, index_of_bytes
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.score_layout import score_layout
from hedgerow.core.learning.virtual_blocks import virtual_index
from hedgerow.core.predicates.nodes import TRUE, And, Compare, In, IsNull, Like, Predicate, col, lit
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.pruning.block_stats import T_BIT
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.core.workload.queries import Workload
from hedgerow.learners.qdtree.overlap import _boxes, neighbours, overlapped
from hedgerow.learners.qdtree.qdtree import QdTree
from tests.support.random_cases import Table as Some
from tests.support.random_cases import a_predicate, a_table, an_overlap, bits, related, some_rows
from tests.support.tree_problems import a_problem

x, y = col("x"), col("y")


def sample_of(table: Some) -> Sample:
    return Sample(Rows(table.columns, {p: bits(p, table) for p in table.opaque}), len(table), {})


def stored(layout: OverlapLayout, sample: Sample) -> dict[tuple[int, int], list[int]]:
    """Row by row: what lies at each place, by cell. The same rows that a table would have in its files."""
    cells = layout.tree.assign(sample.rows).tolist()
    found: dict[tuple[int, int], list[int]] = {}
    for row, cell in enumerate(cells):
        for place in (layout.home[cell], *(~b for b in layout.copies[cell])):
            found.setdefault((place, cell), []).append(row)
    return found


def read(layout: OverlapLayout, sample: Sample, index: BlockIndex, p: Predicate, copies: bool = True) -> Counter[int]:
    """The rows that a read of the opened files gives: of copies only what is taken from there."""
    found = index.choose_files(p, copies=copies)
    got: Counter[int] = Counter()
    for (place, cell), rows in stored(layout, sample).items():
        file = place if place >= 0 else layout.blocks + ~place
        if found.opened[file] and (place >= 0 or found.copied_cells is None or (~place, cell) in found.copied_cells):
            got.update(rows)
    return got


@given(random=st.integers(0, 2**32).map(Random))
def test_every_row_that_matches_is_read_exactly_once(random: Random) -> None:
    table = a_table(random)
    layout, sample = an_overlap(random, table), sample_of(table)
    index = layout.index(sample.rows)
    cut = random.choice(layout.tree.cuts)
    for p in (a_predicate(random, table), normalise(related(random, table, cut)), TRUE):
        matching = set(np.flatnonzero(bits(p, table) & T_BIT).tolist())
        for copies in (True, False):
            got = read(layout, sample, index, p, copies)
            assert {row: got[row] for row in matching} == dict.fromkeys(matching, 1)
    assert set(read(layout, sample, index, TRUE).values()) <= {1}
    assert index.blocks.rows[index.home_blocks].sum() == len(table)


@given(random=st.integers(0, 2**32).map(Random))
def test_after_an_append_and_through_a_file(random: Random) -> None:
    """Two lots of rows, in files of their own; the index is the one over both."""
    table = a_table(random)
    more = some_rows(random, table)
    layout = an_overlap(random, table)
    lots = [sample_of(table), sample_of(more)]
    whole = index_of_bytes(index_bytes(concat_indexes([layout.index(lot.rows) for lot in lots])))
    p = a_predicate(random, table)
    found = whole.choose_files(p)
    for n, (rows, sample) in enumerate(zip((table, more), lots, strict=True)):
        got: Counter[int] = Counter()
        for (place, cell), own in stored(layout, sample).items():
            file = 2 * layout.blocks * n + (place if place >= 0 else layout.blocks + ~place)
            if found.opened[file] and (
                place >= 0 or found.copied_cells is None or (~place, cell) in found.copied_cells
            ):
                got.update(own)
        matching = np.flatnonzero(bits(p, rows) & T_BIT).tolist()
        assert {row: got[row] for row in matching} == dict.fromkeys(matching, 1)


@given(random=st.integers(0, 2**32).map(Random))
def test_a_copy_that_lacks_a_row_is_never_read(random: Random) -> None:
    table = a_table(random)
    layout, sample = an_overlap(random, table), sample_of(table)
    index = layout.index(sample.rows)
    assert index.cells is not None
    parts = index.cells.parts
    damaged = [i for i in range(len(parts.cell)) if parts.place[i] < 0 and random.random() < 0.5]
    index.cells.stats.rows[damaged] -= 1
    bad = {(int(parts.cell[i]), int(parts.place[i])) for i in damaged}
    found = index.choose_files(a_predicate(random, table))
    for block, cell in found.copied_cells or ():
        assert (cell, ~block) not in bad
    assert all(not (places & {p for c, p in bad if c == cell}) for cell, places in index.cells.whole_places.items())


# --- learned ---------------------------------------------------------------------------------------


@given(random=st.integers(0, 2**32).map(Random))
def test_learned_overlaps(random: Random) -> None:
    _, problem = a_problem(random, 80)
    layout = QdTree(overlap=True).fit(problem)
    assert layout == QdTree(overlap=True).fit(problem)
    sizes = np.bincount(layout.assign(problem.sample.rows), minlength=layout.blocks)
    assert sizes.min() >= min(problem.sample_block_rows, len(problem.sample))
    if isinstance(layout, OverlapLayout):
        boxes = _boxes(layout.tree)
        cells = np.bincount(layout.tree.assign(problem.sample.rows), minlength=layout.tree.blocks)
        large = {h: c for c, h in enumerate(layout.home) if cells[c] >= problem.sample_block_rows}
        for cell, block in layout.pairs:
            assert cells[cell] < problem.sample_block_rows
            assert neighbours(boxes[cell], boxes[large[block]])
            assert block != layout.home[cell]
        index = virtual_index(layout, problem.sample)
        for p in problem.predicates:
            matching = np.flatnonzero(problem.sample.rows.evaluate(p) == T_BIT).tolist()
            got = read(layout, problem.sample, index, p)
            assert {row: got[row] for row in matching} == dict.fromkeys(matching, 1)


def touching(a: tuple[int, int, int, int], b: tuple[int, int, int, int]) -> bool:
    """Of rectangles on a grid, half open: a side in common, point by point."""

    def points(r: tuple[int, int, int, int]) -> set[tuple[int, int]]:
        return {(i, j) for i in range(r[0], r[1]) for j in range(r[2], r[3])}

    return any((i + dx, j + dy) in points(b) for i, j in points(a) for dx, dy in ((0, 1), (1, 0), (0, -1), (-1, 0)))


@given(random=st.integers(0, 2**32).map(Random))
def test_neighbours_share_a_side(random: Random) -> None:
    """Leaves as rectangles between 0 and 8, against neighbouring points."""
    cuts = tuple(Compare(c, "<", lit(v)) for c in (x, y) for v in range(1, 8))
    rectangles = [(0, 8, 0, 8)]
    nodes: list[list[int]] = []
    holes: list[tuple[int, int] | None] = [None]  # where each leaf hangs
    for _ in range(random.randint(1, 6)):
        leaf = random.randrange(len(rectangles))
        a, b, c, d = rectangles[leaf]
        axis = random.choice([k for k, size in enumerate((b - a, d - c)) if size > 1] or [-1])
        if axis < 0:
            continue
        v = random.randrange((a, c)[axis] + 1, (b, d)[axis])
        parts = ((a, v, c, d), (v, b, c, d)) if axis == 0 else ((a, b, c, v), (a, b, v, d))
        hole = holes[leaf]
        if hole:
            nodes[hole[0]][hole[1]] = len(nodes)
        nodes.append([axis * 7 + v - 1, ~leaf, ~len(rectangles)])
        holes[leaf], rectangles[leaf] = (len(nodes) - 1, 1), parts[0]
        holes.append((len(nodes) - 1, 2))
        rectangles.append(parts[1])
    boxes = _boxes(TreeLayout(cuts, tuple((c, a, b) for c, a, b in nodes)))
    for a, b in combinations(range(len(rectangles)), 2):
        assert neighbours(boxes[a], boxes[b]) == touching(rectangles[a], rectangles[b])


def test_neighbours_without_an_order() -> None:
    like = Like(col("s"), "%a%")
    tree = TreeLayout((like, IsNull(x), In(x, (lit(3), lit(7)))), ((0, 1, ~3), (1, ~0, 2), (2, ~1, ~2)))
    boxes = _boxes(tree)
    assert neighbours(boxes[0], boxes[1])  # NULL and values
    assert neighbours(boxes[1], boxes[2])  # 3, 7 and the others
    assert neighbours(boxes[1], boxes[3])  # what is like it and what is not


# --- Fig. 4 ----------------------------------------------------------------------------------------


def test_fig4() -> None:
    n = 1000
    sample = Sample.of_table(fig4.data(n, 1))
    problem = Problem.build(sample, fig4.queries(), n)

    def rows(learner: QdTree) -> list[int]:
        found = score_layout(learner.fit(problem), sample, Workload.of("t", problem.predicates).queries, "t")
        return [round(q.rows_read * len(sample)) for q in found.queries]

    assert sum(rows(QdTree("skip", cells=1))) == 4 * (n + 1) + 3 * n
    assert rows(QdTree(overlap=True)) == [n + 1] * 4
    layout = QdTree(overlap=True).fit(problem)
    assert isinstance(layout, OverlapLayout)
    assert (layout.blocks, len(layout.pairs)) == (4, 3)
    index = virtual_index(layout, sample)
    middle = And(
        (Compare(x, ">=", lit(4.0)), Compare(x, "<", lit(6.0)), Compare(y, ">=", lit(4.0)), Compare(y, "<", lit(6.0)))
    )
    assert index.blocks.rows[index.to_open(middle)].sum() == 1
    everything = index.choose_files(TRUE)
    assert everything.opened.tolist() == [True] * 4 + [False] * 4


def test_what_is_refused() -> None:
    problem = Problem.build(Sample.of_table(fig4.data(10, 1)), fig4.queries(), 10)
    with pytest.raises(LayoutError, match="cells must be a whole number"):
        QdTree(overlap=True, cells=0).fit(problem)
    tree = QdTree("skip", cells=1).fit(problem)
    assert isinstance(tree, TreeLayout)
    assert overlapped(tree, problem) == tree
