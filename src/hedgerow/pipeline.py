"""learn, score, apply, table: the one place where Spark, SQL, learners and core meet."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hedgerow.core import cost
from hedgerow.core.codec import encode
from hedgerow.core.errors import HedgerowError, LayoutError, WorkloadError
from hedgerow.core.expr import Predicate, term_text, terms, text
from hedgerow.core.layout import Layout
from hedgerow.core.problem import Learner, Problem
from hedgerow.core.workload import Query, Workload
from hedgerow.spark.evaluate import needed
from hedgerow.spark.sample import draw, sample_size
from hedgerow.spark.session import meaning
from hedgerow.spark.source import Source, open_source
from hedgerow.tables.parquet import ParquetTable, create

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LEARNERS = {
    "range": "hedgerow.learners.range:Range",
    "zorder": "hedgerow.learners.zorder:ZOrder",
    "hilbert": "hedgerow.learners.hilbert:Hilbert",
    "qdtree": "hedgerow.learners.qdtree:QdTree",
}
MANY_FEATURES = 200


@dataclass(frozen=True)
class Learned:
    """A layout with what `apply` needs to know of its making."""

    layout: Layout
    table: str
    predicates: tuple[Predicate, ...]
    provenance: dict[str, Any]
    warnings: tuple[str, ...] = ()


def make_learner(name: str, **params: Any) -> Learner:
    if name not in LEARNERS:
        raise LayoutError(f"there is no learner {name!r}; there are {', '.join(LEARNERS)}")
    module, _, cls = LEARNERS[name].partition(":")
    try:
        found: Learner = getattr(import_module(module), cls)(**params)
    except TypeError as error:
        raise LayoutError(f"the learner {name} does not take these parameters: {error}") from error
    return found


def learn(
    spark: SparkSession,
    source: str | Sequence[str] | DataFrame,
    workload: Workload,
    learner: str = "qdtree",
    block_rows: int | None = None,
    block_bytes: str = "64MB",
    sample_rows: int | None = None,
    seed: int = 0,
    table: str | None = None,
    **params: Any,
) -> Learned:
    """Sample the table, evaluate the workload's predicates on the sample, and let the learner make a layout."""
    fitted = make_learner(learner, **params)
    opened, queries, skipped = _fitting(spark, source, workload, table)
    rows = opened.frame.count()
    least = block_rows or _rows_of_bytes(opened, block_bytes)
    predicates = tuple(q.predicate(opened.name) for q in queries)
    wanted = sample_rows or sample_size(rows, least)
    sample, refused = draw(opened, predicates, wanted, rows, seed)
    problem = Problem.build(sample, predicates, least, tuple(q.weight for q in queries), seed=seed)
    layout = fitted.fit(problem)
    provenance = {
        "learner": learner,
        "parameters": params,
        "block_rows": least,
        "sample_rows": len(sample),
        "seed": seed,
        "workload": hashlib.sha256("\n".join(map(text, predicates)).encode()).hexdigest()[:16],
    }
    return Learned(layout, opened.name, predicates, provenance, (*skipped, *refused))


def score(
    spark: SparkSession,
    source: str | Sequence[str] | DataFrame,
    workload: Workload,
    layout: Layout | Learned,
    sample_rows: int | None = None,
    seed: int = 1,
    exact: bool = False,
    table: str | None = None,
) -> cost.Score:
    """What the workload would read under the layout: on a fresh sample, or on all rows if `exact`."""
    plain = layout.layout if isinstance(layout, Learned) else layout
    opened, queries, _ = _fitting(spark, source, workload, table)
    rows = opened.frame.count()
    predicates = [q.predicate(opened.name) for q in queries]
    feature_terms = [x for x in plain.features if not isinstance(x, Predicate)]
    predicates += [x for x in plain.features if isinstance(x, Predicate)]
    wanted = rows if exact else sample_rows or sample_size(rows, max(1, rows // max(1, plain.blocks)))
    sample, _ = draw(opened, predicates, wanted, rows, seed, feature_terms)
    return cost.score(plain, sample, queries, opened.name)


def apply(
    spark: SparkSession,
    source: str | Sequence[str] | DataFrame,
    layout: Learned,
    to: str,
    *,
    overwrite: bool = False,
    max_block_rows: int | None = None,
    sort_by: Sequence[str] | None = None,
    options: dict[str, str] | None = None,
    table: str | None = None,
) -> ParquetTable:
    """Rewrite the table into a new directory, one file per block, with the index over it."""
    opened = open_source(spark, source, table or layout.table)
    features = [x for x in layout.layout.features if isinstance(x, Predicate)]
    items = needed([*layout.predicates, *features[:MANY_FEATURES]])
    if sort_by is None:
        sort_by = _most_filtered(layout.predicates, opened)[:1]
    return create(
        spark,
        opened.frame,
        layout.layout,
        to,
        name=opened.name,
        schema=opened.schema,
        statistics=[encode(item) for item in items],
        provenance=layout.provenance,
        writing={"max_block_rows": max_block_rows, "sort_by": list(sort_by), "options": options or {}},
        overwrite=overwrite,
    )


def open_table(spark: SparkSession, path: str) -> ParquetTable:
    """Open a table that `apply` wrote."""
    return ParquetTable.open(spark, path)


def _fitting(
    spark: SparkSession, source: str | Sequence[str] | DataFrame, workload: Workload, table: str | None
) -> tuple[Source, tuple[Query, ...], tuple[str, ...]]:
    """The source under the workload's name for it, and the queries that fit it."""
    if not len(workload):
        raise WorkloadError("the workload has no query, so there is nothing to learn from")
    opened = open_source(spark, source, table)
    tables = workload.tables()
    if len(tables) == 1 and table is None:
        opened = Source(opened.frame, tables[0], opened.schema)
    bound = workload.on(opened.name).bind({opened.name: opened.schema}, meaning(spark))
    if not len(bound):
        raise HedgerowError(f"no query of the workload fits the table {opened.name}: {bound.skipped[0]}")
    return opened, bound.queries, bound.skipped


def _rows_of_bytes(source: Source, size: str) -> int:
    """How many rows make a block of that many bytes, by the size of the source's files."""
    units = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "B": 1}
    number, unit = size.upper().rstrip("BKMG"), size.upper().lstrip("0123456789. ")
    if unit not in units or not number.strip().replace(".", "", 1).isdigit():
        raise LayoutError(f"a block size is written like 64MB, not {size!r}")
    plan = source.frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()
    width = int(str(plan)) / max(1, source.frame.count())
    return max(1, round(float(number) * units[unit] / max(1.0, width)))


def _most_filtered(predicates: Sequence[Predicate], source: Source) -> list[str]:
    counts: dict[str, int] = {}
    for p in predicates:
        for name in (term_text(t) for t in terms(p)):
            if name in source.schema and "." not in name:
                counts[name] = counts.get(name, 0) + 1
    return sorted(counts, key=lambda n: (-counts[n], n))
