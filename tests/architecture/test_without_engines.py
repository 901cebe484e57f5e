"""Core and learners work where PySpark, sqlglot, JAX and the rest are not installed."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from importlib import import_module
from pathlib import Path

class Absent:
    names = {"pyspark", "py4j", "delta", "sqlglot", "jax", "optax", "bayes_opt", "pandas", "duckdb", "rich", "typer", "scipy"}
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import hedgerow
root = Path(hedgerow.__file__).parent
for part in ("core", "learners"):
    for file in sorted((root / part).rglob("*.py")):
        import_module(".".join(("hedgerow", *file.relative_to(root).with_suffix("").parts)))

import pyarrow as pa
from hedgerow.core.learning.score_layout import score_layout
from hedgerow.core.predicates.nodes import Compare, col, lit
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.workload.queries import Workload
from hedgerow.core.errors import LayoutError
from hedgerow.learners.curves.range import Range
from hedgerow.learners.woodblock.woodblock import Woodblock

sample = Sample.of_table(pa.table({"x": list(range(1000))}))
asked = tuple(Compare(col("x"), "=", lit(v)) for v in range(0, 1000, 50))
layout = Range().fit(Problem.build(sample, asked, 100))
found = score_layout(layout, sample, Workload.of("t", asked).queries, "t")
assert (layout.blocks, round(found.rows_read, 6)) == (10, 0.1), found
try:
    Woodblock().fit(Problem.build(sample, asked, 100))
except LayoutError as error:
    print(error)
try:
    hedgerow.session()
except hedgerow.HedgerowError as error:
    print(error)
try:
    hedgerow.Workload
except ModuleNotFoundError as error:
    print(error.name)
"""


def test_core_and_learners_alone() -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    needed, without_spark, absent = run.stdout.splitlines()
    assert needed == "woodblock needs JAX and optax: pip install 'hedgerow[rl]'"
    assert without_spark == "PySpark is not installed: run pip install 'hedgerow[spark]'"
    assert absent == "sqlglot"  # and only SQL text needs sqlglot
