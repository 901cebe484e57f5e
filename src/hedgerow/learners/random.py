"""Rows assigned to equal blocks at random: the baseline that every layout has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hedgerow.core.layouts.curve import Axis, CurveLayout
from hedgerow.core.learning.problem import Problem
from hedgerow.core.predicates.nodes import Column, Expr
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.types import OTHER


@dataclass(frozen=True)
class Random:
    """A learner that sorts rows by a hash, so that equal rows always go to the same block, later rows too."""

    columns: ClassVar[tuple[str, ...]] = ()

    def fit(self, problem: Problem) -> CurveLayout:
        sample = problem.sample
        blocks = max(1, sample.table_rows // problem.block_rows)
        names = [name for name, type_ in sample.schema.items() if type_.kind != OTHER and "." not in name]
        columns = [Column((name.strip("`").replace("``", "`"),)) for name in names]
        if blocks == 1 or not columns:
            return CurveLayout((), (), ())
        hashed = Expr(f"xxhash64({', '.join(map(term_text, columns))}, {problem.seed})", tuple(columns))
        edges = tuple(-(1 << 63) + (i << 64) // blocks for i in range(1, blocks))
        axis = Axis(hashed, "int", edges)
        return CurveLayout((axis,), (0,) * axis.bits, tuple(range(1, blocks)))
