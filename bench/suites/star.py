"""TPC-DS with nothing but its fact tables managed: the keys of the dimensions choose files while the queries run.

All queries of the specification run, in its own order, on tables of the same rows: the facts as Spark writes them in
their order, a sort by day, Delta's ZORDER and liquid clustering by day and item, and ours. Ours is read plainly,
attached, and attached without the keys of running joins. The dimensions are the same plain Parquet files for all. The
layouts are learned from other literals of about half of the templates.

Each query runs once on all tables, which warms the caches and compares the answers, and then once more for its time.
One that took longer with these keys than without is timed five times more, in turn, and its medians are compared.
Where that takes too long, `--param runs=1` times the first run, `--param ways=zorder,attached` leaves out other ways,
and `--param every=3` runs every third query.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import sqlglot

from bench.data.duck import texts
from bench.data.tpcds_tables import tables, values_of
from bench.data.tpcds_texts import queries
from bench.options import Options
from bench.physical import Physical, peers_of
from bench.record import line, progress
from bench.several import schemas_of
from hedgerow.demo.race import comparable, rotated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hedgerow.sql.workload import Workload

FACTS = {  # with the keys of day and item
    "store_sales": ("ss_sold_date_sk", "ss_item_sk"),
    "store_returns": ("sr_returned_date_sk", "sr_item_sk"),
    "catalog_sales": ("cs_sold_date_sk", "cs_item_sk"),
    "catalog_returns": ("cr_returned_date_sk", "cr_item_sk"),
    "web_sales": ("ws_sold_date_sk", "ws_item_sk"),
    "web_returns": ("wr_returned_date_sk", "wr_item_sk"),
    "inventory": ("inv_date_sk", "inv_item_sk"),
}
SCALE = {"quick": 0.05, "full": 1.0}
QUERIES = {"quick": 12, "full": 99}
PER_TEMPLATE = {"quick": 1, "full": 2}  # to learn from
ROWS_OF_A_FILE = {"quick": 5_000, "full": 100_000}
PEERS = ("plain", "sorted", "zorder", "clustering")
ATTACHED = {"attached": "true", "without run time": "false"}
SLOWER = 1.05
AGAIN = {"quick": 1, "full": 5}  # runs of a query that was slower
Places = dict[str, dict[str, tuple[str, str]]]  # by way and fact table: format and place


@dataclass
class Measured:
    """Seconds, and rows and megabytes of fact tables, by way and query. `refused`: queries that Spark cannot run."""

    seconds: dict[str, dict[int, float]]
    rows: dict[str, dict[int, int]]
    megabytes: dict[str, dict[int, float]]
    again: dict[int, dict[str, float]] = field(default_factory=dict)  # medians, of queries that were slower
    refused: list[int] = field(default_factory=list)

    def slower(self) -> dict[int, float]:
        """Return the queries that took longer with keys at run time than without, and how many times as long."""
        seconds = self.seconds
        compared = {n: {way: seconds[way][n] for way in ATTACHED} for n in seconds.get("without run time", {})}
        times = {n: of["attached"] / of["without run time"] for n, of in (compared | self.again).items()}
        return {n: round(of, 2) for n, of in times.items() if of > SLOWER}


def run(options: Options) -> Iterator[dict[str, Any]]:
    import hedgerow
    from hedgerow.sql.workload import Workload

    scale = options.sf or SCALE[options.form]
    source = tables(scale)
    learned_from = Workload.from_sql(
        queries(values_of(source), options.seed, PER_TEMPLATE[options.form]), schemas_of(source), "duckdb"
    )
    spark = hedgerow.session("6g", "local[2]")
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-bench-"))
    try:
        for dimension in sorted(set(schemas_of(source)) - set(FACTS)):
            spark.read.parquet(str(source / dimension)).createOrReplaceTempView(dimension)
        begun = time.perf_counter()
        places = _written(spark, source, learned_from, folder, options, max(1.0, scale))
        progress(f"star: all tables are written after {time.perf_counter() - begun:.0f} s")
        yield _line(_measured(spark, source, places, options), source, scale, len(learned_from), options)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _written(
    spark: SparkSession, source: Path, workload: Workload, folder: Path, options: Options, factor: float
) -> Places:
    import hedgerow

    ways = _ways(options)
    places: Places = {way: {} for way in ways}
    for name, keys in FACTS.items():
        rows = ds.dataset(source / name).count_rows()
        files = max(1, round(rows / (ROWS_OF_A_FILE[options.form] * factor)))
        progress(f"star: {name} in {files} files")
        here = folder / name
        data = Physical("star", name, source / name, workload, (), keys[0], clustered_by=keys)
        list(peers_of(spark, data, files, here, ways))
        if "plain" in ways:
            in_its_order = spark.read.parquet(str(source / name)).write.option("maxRecordsPerFile", -(-rows // files))
            in_its_order.parquet(str(here / "plain"))
        learned = hedgerow.learn(
            spark,
            str(source / name),
            workload,
            options=hedgerow.LearnOptions(block_rows=rows // files, seed=options.seed),
            table=name,
        )
        hedgerow.apply(spark, str(source / name), learned, str(here / "ours"))
        for way in places:
            kind = "delta" if way in ("zorder", "clustering") else "parquet"
            places[way][name] = kind, str(here / (way if way in PEERS else "ours"))
    return places


def _ways(options: Options) -> list[str]:
    """Return the ways that are asked for, and always the attached one and one without us."""
    every = (*PEERS, "ours", *ATTACHED)
    named = str(options.params.get("ways", ",".join(every))).split(",")
    named += ["attached"] if set(PEERS) & set(named) else ["attached", "plain"]
    return [way for way in every if way in named]


def _measured(spark: SparkSession, source: Path, places: Places, options: Options) -> Measured:
    import hedgerow
    from hedgerow.spark.optimizer.query_notes import QueryListener
    from hedgerow.spark.start.session import spark_errors

    sessions, listeners = {way: spark.newSession() for way in places}, {}
    for way, session in sessions.items():
        for name in schemas_of(source):
            kind, place = places[way].get(name, ("parquet", str(source / name)))
            session.read.format(kind).load(place).createOrReplaceTempView(name)
        if way in ATTACHED:
            session.conf.set("hedgerow.runtime", ATTACHED[way])
            if options.form == "quick":
                session.conf.set("hedgerow.runtimeBytes", "0")  # whatever that costs, for the answers
            hedgerow.attach(session)
        listeners[way] = QueryListener(session)
        listeners[way].start([f"file:{place}" for _, place in places[way].values()])
    found = Measured({way: {} for way in sessions}, {way: {} for way in sessions}, {way: {} for way in sessions})
    in_spark = {n: sqlglot.transpile(text, read="duckdb", write="spark")[0] for n, text in texts("tpcds").items()}
    for number, sql in islice(in_spark.items(), 0, QUERIES[options.form], int(options.params.get("every", 1))):
        answers: dict[str, list[str]] = {}
        for way, session in rotated(list(sessions.items()), number):
            begun = time.perf_counter()
            try:
                rows = session.sql(sql).collect()
            except spark_errors() as error:  # a function or a spelling that Spark does not have
                if answers or not _is_refused(next(iter(sessions.values())), sql):
                    raise
                progress(f"star: query {number} is left out: {str(error).splitlines()[0][:100]}")
                found.refused.append(number)
                break
            found.seconds[way][number] = time.perf_counter() - begun
            answers[way] = sorted(map(comparable, rows))
            different = answers[way] != next(iter(answers.values()))
            assert not different, f"{way} and {next(iter(answers))} give different answers to query {number}"
            listeners[way].wait()
            scans = [scan for note in listeners[way].taken()[0] for scan in note.scans]
            found.rows[way][number] = sum(scan.rows for scan in scans)
            found.megabytes[way][number] = sum(scan.bytes for scan in scans) / 1e6
        else:
            for way in rotated(list(sessions), number) if options.params.get("runs") != 1 else ():
                found.seconds[way][number] = _seconds(sessions[way], sql)
            progress(f"star: query {number}: {_shown({way: of[number] for way, of in found.seconds.items()})}")
    for number in found.slower():
        found.again[number] = _timed_again(sessions, in_spark[number], AGAIN[options.form])
        progress(f"star: query {number} again: {_shown(found.again[number])}")
    for listener in listeners.values():
        listener.stop()
    return found


def _seconds(session: SparkSession, sql: str) -> float:
    begun = time.perf_counter()
    session.sql(sql)._jdf.queryExecution().toRdd().count()
    return time.perf_counter() - begun


def _timed_again(sessions: Mapping[str, SparkSession], sql: str, turns: int) -> dict[str, float]:
    """Return the median seconds of a query, with keys at run time and without, in turn."""
    seconds: dict[str, list[float]] = {way: [] for way in ATTACHED}
    for turn in range(turns):
        for way in rotated(list(ATTACHED), turn):
            seconds[way].append(_seconds(sessions[way], sql))
    return {way: statistics.median(of) for way, of in seconds.items()}


def _is_refused(session: SparkSession, sql: str) -> bool:
    """True if Spark cannot run the query without us either."""
    from hedgerow.spark.start.session import spark_errors

    try:
        session.sql(sql).collect()
    except spark_errors():
        return True
    return False


def _shown(seconds: Mapping[str, float]) -> str:
    return ", ".join(f"{way} {of:.2f} s" for way, of in seconds.items())


def _line(found: Measured, source: Path, scale: float, learned: int, options: Options) -> dict[str, Any]:
    total = {way: sum(of.values()) for way, of in found.seconds.items()}
    rows = {way: sum(of.values()) for way, of in found.rows.items()}
    without = rows.get("without run time")
    return line(
        suite="star",
        learner="qdtree",
        params={"form": options.form, **options.params},
        sf=scale,
        rows=sum(ds.dataset(source / name).count_rows() for name in FACTS),
        queries=learned,
        queries_unseen=len(found.seconds["attached"]),
        ratio=round(total["attached"] / min(total[way] for way in total if way in PEERS), 3),
        details={
            "seconds": {way: round(of, 2) for way, of in total.items()},
            "million_rows": {way: round(of / 1e6, 2) for way, of in rows.items()},
            "megabytes": {way: round(sum(of.values())) for way, of in found.megabytes.items()},
            **({"rows_with_and_without_run_time": round(rows["attached"] / without, 3)} if without else {}),
            "slower_than_without_run_time": found.slower(),
            "timed_again": {n: {way: round(s, 3) for way, s in of.items()} for n, of in found.again.items()},
            "refused": found.refused,
            "query_ms": {
                n: {way: round(1000 * of[n]) for way, of in found.seconds.items()} for n in found.seconds["attached"]
            },
        },
        seed=options.seed,
    )
