"""Compare the share of rows that `advise` estimates for each learner on lineitem with the share then read."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.data.cache import cache_folder
from bench.options import Options
from bench.record import line, progress
from bench.suites import tpch

SCALE = {"quick": 0.1, "full": 1.0}
QUERIES = 50


def run(options: Options) -> Iterator[dict[str, Any]]:
    import hedgerow as hr
    from hedgerow.spark.start.session import local_session

    scale = options.sf or SCALE[options.form]
    source = tpch.lineitem(cache_folder() / "growth", scale)
    workload = hr.Workload.from_sql(tpch.questions(QUERIES, scale, options.seed))
    spark = local_session("4g", "local[2]")
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-bench-"))
    try:
        progress(f"advise: lineitem, scale factor {scale:g}")
        begun = time.perf_counter()
        advice = hr.advise(spark, source, workload, options.learners or None)
        seconds = round(time.perf_counter() - begun, 1)
        for proposal in advice.proposals:
            if proposal.learned is None or proposal.score is None:
                progress(f"advise: {proposal}")
                continue
            progress(f"advise: writing {proposal.name}")
            table = hr.apply(spark, source, proposal.learned, str(folder / "table"), overwrite=True)
            rows_read = table.score(workload).rows_read
            yield line(
                suite="advise",
                learner=proposal.name,
                params={"form": options.form},
                sf=scale,
                blocks=len(table.known),
                queries=QUERIES,
                rows_read=round(rows_read, 4),
                ratio=round(proposal.score.rows_read / rows_read, 3),
                learn_seconds=round(proposal.learned.fit_seconds or 0.0, 1),
                details={"estimated": round(proposal.score.rows_read, 4), "advise_seconds": seconds},
                seed=options.seed,
            )
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
