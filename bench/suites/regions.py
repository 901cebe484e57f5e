"""Learn many small blocks of lineitem: from few rows, from as few with regions, and from many rows in the driver.

In each way, the rows that queries read are those of a million other rows. Few rows are ten for each block, many are the
most that learning takes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from bench.data.cache import cache_folder
from bench.options import Options
from bench.record import line, progress
from bench.suites import tpch
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.word_search import with_searches
from hedgerow.core.predicates.nodes import Predicate, atoms_of
from hedgerow.core.workload.queries import Query

SCALE = {"quick": 0.2, "full": 10.0}
BLOCK_ROWS = {"quick": 6_000, "full": 20_000}
QUERIES, FEW, MANY, TEST_ROWS, BLOCKS_EACH = 60, 10, 1_000_000, 1_000_000, 100
TABLE = "lineitem"


def run(options: Options) -> Iterator[dict[str, Any]]:
    import hedgerow as hr
    from hedgerow.pipeline.inputs import opened_with_queries
    from hedgerow.pipeline.learn import fit, pose
    from hedgerow.pipeline.learner_names import NamedLearner
    from hedgerow.spark.start.session import local_session

    scale = options.sf or SCALE[options.form]
    path = tpch.lineitem(cache_folder() / "growth", scale, parts=16)
    texts = [tpch.questions(QUERIES, scale, seed) for seed in (options.seed, ~options.seed)]
    spark = local_session("4g", "local[2]")
    try:
        source, *_ = opened_with_queries(spark, path, hr.Workload.from_sql(texts[0]), TABLE)
        learned, unseen = (opened_with_queries(spark, path, hr.Workload.from_sql(t), TABLE)[1] for t in texts)
        block_rows = BLOCK_ROWS[options.form]
        named, blocks = NamedLearner("qdtree"), -(-source.rows // block_rows)
        usual = hr.LearnOptions(block_rows=block_rows, seed=options.seed, exact=False)
        apart = replace(usual, sample_rows=TEST_ROWS, seed=options.seed + 1, recurrence=0.5)
        tests = _tests(pose(source, [*learned, *unseen], named, apart).problem, learned, unseen)
        few, regions = FEW * blocks, max(2, blocks // BLOCKS_EACH)
        for way, rows, in_regions in (("few rows", few, 1), ("regions", few, regions), ("many rows", MANY, 1)):
            progress(f"regions: scale factor {scale:g}, {blocks:,} blocks, {way}")
            posed = pose(source, learned, named, replace(usual, sample_rows=rows, regions=in_regions))
            begun = time.perf_counter()
            layout = fit(posed, named).layout
            seconds = time.perf_counter() - begun
            reads = [test.reads(layout) for test in tests]
            yield line(
                suite="regions",
                learner=named.name,
                params={"form": options.form, "way": way, "regions": in_regions},
                sf=scale,
                rows=source.rows,
                blocks=layout.blocks,
                block_rows=block_rows,
                queries=QUERIES,
                queries_unseen=QUERIES,
                rows_read=round(reads[0], 5),
                rows_read_unseen=round(reads[1], 5),
                fit_seconds=round(seconds, 1),
                details={"sample_rows": len(posed.problem.sample)},
                seed=options.seed,
            )
    finally:
        spark.stop()


def _tests(apart: Problem, *of: Sequence[Query]) -> list[Problem]:
    """Return a problem for the queries of each kind, whose `reads` counts the rows of the sample apart."""
    predicates: list[tuple[Predicate, ...]] = [tuple(query.predicate(TABLE) for query in queries) for queries in of]
    atoms = [atom for each in predicates for p in each for atom in atoms_of(p)]
    sample = replace(apart.sample, rows=with_searches(apart.sample.rows, atoms))
    return [Problem.build(sample, each, apart.block_rows) for each in predicates]
