"""Compare the promises of `advise` for each kind of query with measurements of queries that have other literals.

The advice is made twice, to see whether it is the same. Then its best layout is applied, and queries that were never
learned from run: before on the table as it is, after in an attached session. Each runs once, for users come with new
literals, after others have warmed Java up. Rows and files are those of more such queries, as the index lets them pass:
they differ so much from query to query that a few would err by chance. A line's `ratio` is the rows that a query then
reads, divided by the rows that the advice promised, as the median over the kinds.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from bench.data import errorlog_data, errorlog_queries, web_log, zcurves_tables
from bench.data.cache import cache_folder
from bench.options import Options
from bench.record import line, progress
from bench.suites import tpch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hedgerow.core.workload.queries import Workload
    from hedgerow.core.workload.score import QueryScore
    from hedgerow.pipeline.advice import Advice
    from hedgerow.pipeline.query_kinds import QueryKind

LEARNED, WARMING, TIMED, SCORED = 180, 24, 96, 1_000
LEAST = 3  # queries of a kind that is compared: the median of fewer errs by chance
LEARNERS = "qdtree", "range", "zorder"
_FULL = 1_000_000  # rows of the smallest table
Texts = Callable[[int, int], Sequence[str]]  # from a number of queries and a seed


@dataclass(frozen=True)
class Case:
    """A table to advise on: the name that queries call it, the files that were made for it, and its queries.

    `kind`: the format. `partition`: a column that divides it into folders.
    """

    name: str
    make: Callable[[int], tuple[Path, Texts]]
    millions: int
    kind: str = "parquet"
    partition: str = ""


def _log(rows: int) -> tuple[Path, Texts]:
    return web_log.web_log(rows), lambda n, seed: [text for _, text in web_log.questions(n, rows, seed)]


def _lineitem(rows: int) -> tuple[Path, Texts]:
    scale = rows / 6_000_000
    return Path(tpch.lineitem(cache_folder() / "growth", scale, parts=16)), lambda n, seed: tpch.questions(
        n, scale, seed
    )


def _errors(shape: errorlog_data.Shape) -> Callable[[int], tuple[Path, Texts]]:
    def made(rows: int) -> tuple[Path, Texts]:
        return errorlog_data.table(shape, rows), lambda n, seed: errorlog_queries.queries(shape, seed, n)

    return made


def _flights(rows: int) -> tuple[Path, Texts]:
    folder, table = cache_folder() / f"flights-{rows}", zcurves_tables.table_of("flights", rows)
    if not folder.exists():
        zcurves_tables.write(table, folder)
    return folder, lambda n, seed: zcurves_tables.queries("flights", table, n, seed)


CASES = (
    Case("log", _log, 1),
    Case("log", _log, 6, "delta"),
    Case("log", _log, 6, "delta", "country"),
    Case("log", _log, 2, "parquet", "status"),
    Case("lineitem", _lineitem, 6),
    Case("lineitem", _lineitem, 60),
    Case("lineitem", _lineitem, 6, "delta", "l_returnflag"),
    Case("errors", _errors(errorlog_data.INTERNAL), 1),
    Case("errors", _errors(errorlog_data.EXTERNAL), 2, "delta"),
    Case("flights", _flights, 2),
)
_QUICK = (CASES[0], CASES[2])


def run(options: Options) -> Iterator[dict[str, Any]]:
    import hedgerow as hr

    spark = hr.session("4g", "local[2]")
    is_quick = options.form == "quick"
    try:
        for case in _QUICK if is_quick else CASES:
            folder = Path(tempfile.mkdtemp(prefix="hedgerow-bench-"))
            rows = _FULL // 10 if is_quick else _FULL * case.millions
            progress(f"promises: {case.name}, {rows:,} rows, {case.kind} {case.partition}")
            try:
                yield _measured(spark, case, rows, folder, options)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    finally:
        spark.stop()


def _measured(spark: SparkSession, case: Case, rows: int, folder: Path, options: Options) -> dict[str, Any]:
    import hedgerow as hr

    files, texts = case.make(rows)
    source = str(folder / "source")
    writer = spark.read.parquet(str(files)).write.format(case.kind)
    (writer.partitionBy(case.partition) if case.partition else writer).save(source)
    # Seeds of learned queries are 0 or more, so ~seed, which is negative, is never one of them.
    learned = hr.Workload.from_sql(texts(LEARNED, options.seed))
    numbers = enumerate((WARMING, TIMED, SCORED))
    warming, unseen, scored = (hr.Workload.from_sql(texts(n, ~options.seed - at)) for at, n in numbers)
    options_ = hr.LearnOptions(seed=options.seed)
    advices = [hr.advise(spark, source, learned, LEARNERS, options=options_, table=case.name) for _ in range(2)]
    advice = advices[0]
    kinds = _kinds_by_outline(spark, advice, source, learned)
    before = _seconds(spark, case, source, warming, unseen)
    facts: dict[str, Any] = {
        "advice": advice.sentence,
        "same_twice": len({(a.proposals[0].name, a.proposals[0].figures()[:2]) for a in advices}) == 1,
    }
    first = advice.proposals[0].learned
    assert first is not None
    begun = time.perf_counter()
    place = source if case.kind == "delta" else str(folder / "ours")
    table = hr.apply(spark, source, first, *(() if case.kind == "delta" else (place,)))
    facts |= {"rewrite_seconds": round(time.perf_counter() - begun, 1), "rewrite_promised": advice.rewrite_seconds}
    hr.attach(spark)
    after = _seconds(spark, case, place, warming, unseen)
    hr.detach(spark)
    ids, scored_ids = (_ids_by_kind(spark, source, workload, case.name) for workload in (unseen, scored))
    score = table.score(scored)
    queries = {query.id: query for query in score.queries}
    measured = {
        kind.text: _promised_and_measured(
            kind, [queries[id_] for id_ in scored_ids[name]], score.blocks, ids[name], before, after
        )
        for name, kind in kinds.items()
        if len(ids[name]) >= LEAST and scored_ids[name]
    }
    ratios = [then[1] / then[0] for of in measured.values() if (then := of["rows"])[0]]
    return line(
        suite="promises",
        learner=advice.proposals[0].name,
        params={"form": options.form, "table": case.name, "format": case.kind, "partition": case.partition or "none"},
        rows=rows,
        blocks=len(table.known),
        queries=len(learned),
        queries_unseen=len(scored),
        ratio=round(median(ratios), 3) if ratios else 1.0,
        details={**facts, "kinds": measured},
        seed=options.seed,
    )


def _outlined(spark: SparkSession, source: str, workload: Workload, name: str) -> dict[str, tuple[str, str]]:
    """Return the outline of each query that fits the table, by its id: its kind and its text."""
    from hedgerow.pipeline.inputs import opened_with_queries
    from hedgerow.sql.query_outline import outline_of

    _, queries, _ = opened_with_queries(spark, source, workload, name)
    outlines = {query.id: outline_of(query, name) for query in queries}
    return {id_: (outline.kind, outline.text) for id_, outline in outlines.items()}


def _ids_by_kind(spark: SparkSession, source: str, workload: Workload, name: str) -> dict[str, list[str]]:
    ids: dict[str, list[str]] = defaultdict(list)
    for id_, (kind, _) in _outlined(spark, source, workload, name).items():
        ids[kind].append(id_)
    return ids


def _kinds_by_outline(spark: SparkSession, advice: Advice, source: str, learned: Workload) -> dict[str, QueryKind]:
    kind_of = {text: kind for kind, text in _outlined(spark, source, learned, advice.table).values()}
    return {kind_of[kind.text]: kind for kind in advice.kinds if kind.text in kind_of}


def _seconds(spark: SparkSession, case: Case, place: str, warming: Workload, unseen: Workload) -> dict[str, float]:
    """Warm Java up, and return the seconds of each unseen query."""
    spark.read.format(case.kind).load(place).createOrReplaceTempView(case.name)
    took = {}
    for query in (*warming, *unseen):  # an unseen query has the id of an earlier one, which it replaces
        begun = time.perf_counter()
        # Delta prepares no query for the sink "noop", so nothing would be skipped.
        spark.sql(query.text or "")._jdf.queryExecution().toRdd().count()
        took[query.id] = time.perf_counter() - begun
    return took


def _promised_and_measured(
    kind: QueryKind,
    scored: Sequence[QueryScore],
    blocks: int,
    timed: Sequence[str],
    before: Mapping[str, float],
    after: Mapping[str, float],
) -> dict[str, Any]:
    """Return the promised and the measured rows, files and seconds of a query of a kind, and its seconds before."""
    return {
        "rows": [round(kind.rows_then, 4), round(fmean(q.rows_read for q in scored), 4)],
        "files": [kind.files_then, round(fmean(q.blocks_read for q in scored) * blocks, 1)],
        "seconds": [_rounded(kind.seconds_then), round(median(after[id_] for id_ in timed), 3)],
        "seconds_before": [_rounded(kind.seconds_now), round(median(before[id_] for id_ in timed), 3)],
        "promised": kind.change,
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
