"""Write layouts as tables and time queries on them, beside four baselines: the source as it came, Parquet sorted by one
column, Delta's OPTIMIZE ZORDER BY and Delta's liquid clustering.

All tables have about the same number of files; Delta sorts inside of them too. The queries are unseen ones. Each runs
once on every table: this warms the caches and checks that the answers are equal. Then it runs three times, each time in
another order of the tables, and the median counts. The learned table is read in four ways: by `route`, in an attached
session, like any Parquet table, and as a Delta table in an attached session, since the baselines pay for Delta's
planning too.
"""

from __future__ import annotations

import math
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow.dataset as ds

from bench.options import Case, Options, learn_arguments
from bench.record import line, progress
from bench.second_engine import seconds_in_duckdb
from hedgerow.demo.peers import columns_to_cluster_by, write_clustering, write_zorder
from hedgerow.demo.race import answer, rotated
from hedgerow.spark.storage.waves import free_shuffles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hedgerow.pipeline.learned import Learned
    from hedgerow.sql.workload import Workload
    from hedgerow.tables.managed import ManagedTable

TURNS = 3
FILES = {"quick": 20, "full": 40}
LEAST_FILES, LEAST_FILE_BYTES = 8, 2_000_000  # a small table has fewer files: they cost more than their rows
QUANTILES = range(0, 101, 5)  # evenly spaced from 0 to 100, so a line needs to hold only the values
PEERS = ("source", "sorted", "zorder", "clustering")


@dataclass(frozen=True)
class Physical:
    """A table on disk, with queries to learn from and queries to time.

    Queries call the table `name`. `timed` has the template and the text of each timed query. `fields` and `params` are
    added to every line. `files`: how many each written table has, if not as many as the form says. `clustered_by`: the
    columns that an expert would choose for Delta; by default those that most queries filter on. `lookup_share`: see
    `WriteOptions`. `came_sorted`: the source has the order of `sorted_by`, so writing it again would be the sort.
    """

    suite: str
    name: str
    source: Path
    learned: Workload
    timed: Sequence[tuple[str, str]]
    sorted_by: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    files: int | None = None
    clustered_by: Sequence[str] = ()
    lookup_share: float = 0.01
    came_sorted: bool = False


@dataclass(frozen=True)
class Way:
    """A way to run queries: a table, a function from SQL text to a query, and the seconds that writing took."""

    name: str
    table: Callable[[], DataFrame]
    frame: Callable[[str], DataFrame]
    seconds: float = 0.0
    attached: bool = False

    def files(self) -> list[Path]:
        return [Path(unquote(urlparse(name).path)) for name in self.table().inputFiles()]


def run(data: Physical, cases: Sequence[Case], options: Options) -> Iterator[dict[str, Any]]:
    import hedgerow

    spark = hedgerow.session("4g", "local[2]")
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-bench-"))
    try:
        peers = list(peers_of(spark, data, files_of(data, options), folder))
        for case in options.cases(tuple(cases)):
            yield measured(spark, data, case, options, folder, peers)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def files_of(data: Physical, options: Options) -> int:
    size = sum(file.stat().st_size for file in data.source.glob("*.parquet"))
    return data.files or min(FILES[options.form], max(LEAST_FILES, size // LEAST_FILE_BYTES))


def peers_of(
    spark: SparkSession, data: Physical, files: int, folder: Path, named: Collection[str] = PEERS, sorts: int = 1
) -> Iterator[Way]:
    """Write the named peers. Those of Delta get files as large as the sort's, so it is written for them too.

    `sorts`: how many jobs write the sort, each a range of values, where the disk has no room for the shuffle of all."""
    from pyspark.sql.functions import col

    def parquet(path: str) -> Callable[[], DataFrame]:
        return lambda: spark.read.parquet(path)

    def delta(path: str) -> Callable[[], DataFrame]:
        return lambda: spark.read.format("delta").load(path)

    source = spark.read.parquet(str(data.source))
    yield Way("source", parquet(str(data.source)), spark.sql)
    if not {*PEERS[1:]} & {*named}:
        return
    progress(f"{data.suite}: sorted by {data.sorted_by}")
    path, begun = str(folder / "sorted"), time.perf_counter()
    for rows in _ranges(source, data.sorted_by, sorts):
        in_order = rows.repartitionByRange(files // sorts, col(data.sorted_by)).sortWithinPartitions(data.sorted_by)
        in_order.write.mode("append").parquet(path)
        free_shuffles(spark)
    yield Way("sorted", parquet(path), spark.sql, time.perf_counter() - begun)
    columns = data.clustered_by or columns_to_cluster_by(source, data.learned, data.name)[:3]
    size = max(1, sum(f.stat().st_size for f in Path(path).glob("*.parquet")) // files)
    for name, write in (("zorder", write_zorder), ("clustering", write_clustering)):
        if name not in named:
            continue
        progress(f"{data.suite}: Delta's {name} by {', '.join(columns)}")
        path, begun = str(folder / name), time.perf_counter()
        write(spark, source, path, columns, size)
        yield Way(name, delta(path), spark.sql, time.perf_counter() - begun)


def _ranges(source: DataFrame, column: str, n: int) -> Iterator[DataFrame]:
    """Divide rows into n ranges of about as many rows; the first one has those without a value, too."""
    from pyspark.sql.functions import coalesce, col, lit, percentile_approx

    if n == 1:
        yield source
        return
    [edges] = source.select(percentile_approx(column, [i / n for i in range(1, n)])).collect()[0]
    place = lit(0)
    for edge in edges:
        place += coalesce(col(column) >= edge, lit(False)).cast("int")
    for i in range(n):
        yield source.where(place == i)


@dataclass(frozen=True)
class Written:
    """The learned layout, written as Parquet and as Delta, and the seconds of each step."""

    layout: Learned
    table: ManagedTable
    messages: Sequence[str]
    block_rows: int
    learn_seconds: float
    apply_seconds: float
    ways: Sequence[Way]

    @property
    def seconds(self) -> float:
        return self.learn_seconds + self.apply_seconds


def written(spark: SparkSession, data: Physical, case: Case, options: Options, rows: int, folder: Path) -> Written:
    """Learn a layout and write it in both formats."""
    import hedgerow

    block_rows = max(1, rows // files_of(data, options))
    arguments = learn_arguments(case, block_rows=block_rows, seed=options.seed)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        layout = hedgerow.learn(spark, str(data.source), data.learned, table=data.name, **arguments)
    messages = [str(warning.message) for warning in caught]
    for message in messages:
        progress(message)
    learned_at = time.perf_counter()
    path, on_delta = str(folder / "learned"), str(folder / "learned_delta")
    table = hedgerow.apply(spark, str(data.source), layout, path, overwrite=True)
    apply_seconds = time.perf_counter() - learned_at
    spark.read.parquet(str(data.source)).write.format("delta").mode("overwrite").save(on_delta)
    delta_at = time.perf_counter()
    hedgerow.apply(spark, on_delta, layout)
    delta_seconds = time.perf_counter() - delta_at

    def opened() -> DataFrame:
        return spark.read.parquet(path)

    ways = (
        Way("unrouted", opened, spark.sql),
        Way("routed", opened, lambda sql: hedgerow.route(spark, sql)),
        Way("attached", opened, spark.sql, apply_seconds, attached=True),
        Way("attached, Delta", lambda: spark.read.format("delta").load(on_delta), spark.sql, delta_seconds, True),
    )
    return Written(layout, table, messages, block_rows, learned_at - start, apply_seconds, ways)


def measured(
    spark: SparkSession, data: Physical, case: Case, options: Options, folder: Path, peers: Sequence[Way]
) -> dict[str, Any]:
    """Write the learned layout, time the queries in every way, and return the line."""
    learner, params = case
    progress(f"{data.suite}: {learner} {dict(params)}")
    rows = ds.dataset(data.source).count_rows()
    own = written(spark, data, case, options, rows, folder)
    ways = [*peers, *own.ways]
    files = {way.name: way.files() for way in ways}
    times = timed(spark, data, ways)
    middle = times.medians
    total = {name: sum(of) for name, of in middle.items()}
    estimate = own.layout.estimate
    return line(
        suite=data.suite,
        learner=learner,
        params={"form": options.form, **data.params, **params},
        **data.fields,
        rows=rows,
        blocks=len(own.table.files()),
        block_rows=own.block_rows,
        queries=len(data.learned),
        queries_unseen=len(data.timed),
        ratio=round(total["attached"] / min(total[name] for name in PEERS), 3),
        learn_seconds=round(own.learn_seconds, 1),
        apply_seconds=round(own.apply_seconds, 1),
        details={
            **_sizes(files),
            "written_seconds": {way.name: round(way.seconds, 1) for way in ways if way.seconds},
            "seconds": {name: round(of, 2) for name, of in total.items()},
            "duckdb_seconds": _in_duckdb(data, files, own.table),
            # After so many queries, learning and rewriting have paid off; None: never.
            "break_even": _break_even(own.seconds, total["source"] - total["attached"], len(data.timed)),
            "estimated": None if estimate is None else [estimate.now, estimate.then],
            "advised_against": any("little is to be gained" in message for message in own.messages),
            "faster_than_source": {
                name: _digits(np.percentile(np.divide(middle["source"], of), QUANTILES)) for name, of in middle.items()
            },
            "decisions_ms": _digits(1000 * np.percentile(times.deciding, QUANTILES)),
            "template_ms": _by_template(data, middle),
        },
        seed=options.seed,
    )


def _sizes(files: Mapping[str, Sequence[Path]]) -> dict[str, dict[str, int]]:
    """Return the number of files and the megabytes of each way's table."""
    megabytes = {name: round(sum(file.stat().st_size for file in own) / 1e6) for name, own in files.items()}
    return {"files": {name: len(own) for name, own in files.items()}, "megabytes": megabytes}


def _in_duckdb(data: Physical, files: Mapping[str, Sequence[Path]], table: ManagedTable) -> dict[str, float]:
    """Return the seconds of the queries over the same files in DuckDB; routed: over those chosen for each query."""
    progress(f"{data.suite}: the same files in DuckDB")
    names = {name: [str(file) for file in files[name]] for name in (*PEERS, "attached")}
    texts = [text for _, text in data.timed]
    seconds = seconds_in_duckdb(data.name, texts, names, TURNS, {"routed": table.duckdb})
    return {name: round(of, 2) for name, of in seconds.items()}


def _by_template(data: Physical, seconds: Mapping[str, Sequence[float]]) -> dict[str, dict[str, int]]:
    """Return for each template the median milliseconds of its queries, by way."""
    queries: dict[str, list[int]] = {}
    for i, (template, _) in enumerate(data.timed):
        queries.setdefault(template, []).append(i)
    return {
        template: {name: round(1000 * median(of[i] for i in own)) for name, of in seconds.items()}
        for template, own in queries.items()
    }


@dataclass(frozen=True)
class Times:
    """The seconds of each turn by way and query, and what an attached session says: its decisions' seconds, and how
    many files each query opens."""

    took: Mapping[str, list[list[float]]]
    deciding: list[float] = field(default_factory=list)
    opened: dict[int, int] = field(default_factory=dict)

    @property
    def medians(self) -> dict[str, list[float]]:
        """Without the first turn, which is slower, because it compares the answers."""
        return {way: [median(own[1:]) for own in of] for way, of in self.took.items()}


def timed(
    spark: SparkSession,
    data: Physical,
    ways: Sequence[Way],
    before: Callable[[], object] = lambda: None,
    turns: int = TURNS,
) -> Times:
    """Time the queries by each way; `before` is called ahead of each query, for caches that are to be cold."""
    import hedgerow

    times = Times({way.name: [[] for _ in data.timed] for way in ways})
    answers: dict[int, list[str]] = {}
    for turn in range(turns + 1):
        progress(f"{data.suite}: {len(data.timed)} queries, turn {turn} of {turns}")
        for way in rotated(ways, turn):
            way.table().createOrReplaceTempView(data.name)
            if way.attached:
                hedgerow.attach(spark)
            for q, (_, sql) in enumerate(data.timed):
                if not turn:
                    own = answer(way.frame(sql).collect(), sql)
                    assert answers.setdefault(q, own) == own, f"{way.name} gives another answer: {sql}"
                before()
                start = time.perf_counter()
                way.frame(sql)._jdf.queryExecution().toRdd().count()
                times.took[way.name][q].append(time.perf_counter() - start)
                if way.attached and turn:
                    scans = hedgerow.last_query(spark)
                    times.deciding.extend(scan.seconds for scan in scans)
                    times.opened[q] = sum(scan.files_opened for scan in scans)
            if way.attached:
                hedgerow.detach(spark)
    return times


def _break_even(spent: float, saved: float, queries: int) -> int | None:
    return math.ceil(spent * queries / saved) if saved > 0 else None


def _digits(values: Iterable[float]) -> list[float]:
    """Round each to three significant digits."""
    return [float(f"{v:.3g}") for v in values]
