"""The least that any qd-tree of some cuts can read: a tree tells rows apart only by the outcomes of these cuts.

A leaf has at least `b` rows. So a tree uses only cuts that are TRUE on `b` rows or more, and not TRUE on as many. Rows
on which all these cuts agree are in one leaf of every tree; they are a class:

    usable cuts    x < 5     1 1 1 1 0 0 0 0
                   y = 2     0 0 1 1 1 1 0 0
    classes                  a a b b c c d d      a query that cannot skip b by itself reads b in every tree

So a query reads at least the classes that it cannot skip, and, if there are any, at least `b` rows.
"""

from __future__ import annotations

import numpy as np

from hedgerow.core.arrays import Floats, Ints
from hedgerow.core.layouts.base import Layout
from hedgerow.core.learning.problem import Problem

AT_ONCE = 5_000  # groups of rows whose outcomes are held at a time


def least_read(problem: Problem) -> float:
    """Return a share of the sample's rows that queries read at least, on average, in any tree of the problem's cuts."""
    rows, least = problem.truth.rows, problem.sample_block_rows
    read = rows_read(problem, classes_of(problem))
    read = np.where(read > 0, np.maximum(read, min(least, rows)), 0)
    return float(problem.clauses.weights @ read) / (sum(problem.weights) * rows)


def share_read(problem: Problem, layout: Layout) -> float:
    """Return the share of the sample's rows that queries read, on average, if each block knows all cuts' outcomes."""
    rows = problem.truth.rows
    skipped = rows - rows_read(problem, layout.assign(problem.sample.rows).astype(np.int64))
    return 1 - float(problem.clauses.weights @ skipped) / (sum(problem.weights) * rows)


def classes_of(problem: Problem) -> Ints:
    """Return the class of each sample row: two rows of a class are in the same leaf of every tree."""
    true = problem.truth.counts
    least, rows = problem.sample_block_rows, problem.truth.rows
    usable = np.packbits(problem.truth[np.flatnonzero((true >= least) & (rows - true >= least))], axis=0).T
    if not usable.shape[1]:
        return np.zeros(rows, np.int64)
    as_one = np.ascontiguousarray(usable).view(np.dtype((np.void, usable.shape[1]))).reshape(-1)
    return np.unique(as_one, return_inverse=True)[1].reshape(-1).astype(np.int64)


def rows_read(problem: Problem, group: Ints) -> Floats:
    """Return the sample rows that each query reads, if it reads all groups that it cannot skip."""
    rows, every_mask = np.bincount(group), problem.truth[:]
    order, ends = np.argsort(group, kind="stable"), np.cumsum(rows)
    read = np.zeros(len(problem.clauses.needs))
    with_rows = np.flatnonzero(rows)
    for some_groups in np.array_split(with_rows, -(-len(with_rows) // AT_ONCE)):
        own, start = rows[some_groups], ends[some_groups] - rows[some_groups]
        truth = every_mask[:, order[start[0] : ends[some_groups[-1]]]]
        true = np.add.reduceat(truth, start - start[0], axis=1, dtype=np.int64).T
        read += own @ problem.clauses.may(true > 0, true < own[:, None])
    return read
