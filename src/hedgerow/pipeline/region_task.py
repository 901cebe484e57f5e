"""Learns the layout of a region, in a task. It imports core and a learner only: executors may have no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from hedgerow.core.layouts.layout_json import layout_to_json
from hedgerow.core.learning.problem import Learner, Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.word_search import with_searches
from hedgerow.core.predicates.nodes import Feature, atoms_of
from hedgerow.spark.compute.evaluate import rows_of

ANSWER = "region int, layout string"


@dataclass(frozen=True)
class RegionTask:
    """Learns the layout of a region from a sample of its rows.

    Args:
        problem: of the whole table, without rows.
        names: the columns of the sample, and what each holds.
        share: of the table's rows that are sampled.
    """

    model: Learner
    problem: Problem
    names: Mapping[str, Feature]
    share: float

    def layout_of(self, key: tuple[pa.Scalar, ...], sample: pa.Table) -> pa.Table:
        atoms = (atom for p in self.problem.predicates for atom in atoms_of(p))
        rows = with_searches(rows_of(sample, self.names), atoms)
        whole = self.problem.sample
        part = Sample(rows, round(len(rows) / self.share), whole.schema, whole.width, whole.unpacked)
        layout = self.model.fit(self.problem.of_part(part))
        return pa.table({"region": pa.array([key[0].as_py()], pa.int32()), "layout": [layout_to_json(layout)]})
