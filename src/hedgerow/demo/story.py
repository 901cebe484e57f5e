"""demo: makes or copies tables, writes the large one in several layouts, and times queries over each."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hedgerow
from hedgerow.core.byte_text import byte_text
from hedgerow.demo import peers
from hedgerow.demo.case import Case, of_shop, of_user
from hedgerow.demo.race import TURNS, Run, Way, race
from hedgerow.picture.show import Shown
from hedgerow.spark.start.progress import step
from hedgerow.spark.storage.delta_log import has_delta

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hedgerow.tables.managed import ManagedTable

AS_IT_CAME, BY_ZORDER, BY_CLUSTERING, BY_HEDGEROW = "as it came", "ZORDER", "liquid", "Hedgerow"
Say = Callable[[str, str], None]


@dataclass(frozen=True)
class KindResult:
    """The queries of one kind: their seconds and opened files, in sum, over each layout."""

    kind: str
    queries: int
    runs: Mapping[str, Run]

    @property
    def times_faster(self) -> float:
        """How many times faster they are with Hedgerow than over the best of the other layouts."""
        others = [run.seconds for name, run in self.runs.items() if name != BY_HEDGEROW]
        return min(others) / self.runs[BY_HEDGEROW].seconds


@dataclass(frozen=True)
class DemoResult:
    """The measurements of the demo.

    Args:
        files: of the large table in each layout.
        writing: the seconds that it took to write each layout; Hedgerow's with learning.
    """

    machine: str
    rows: int
    files: Mapping[str, int]
    writing: Mapping[str, float]
    kinds: Sequence[KindResult]

    def to_dict(self) -> dict[str, Any]:
        kinds = [{**asdict(kind), "times_faster": round(kind.times_faster, 2)} for kind in self.kinds]
        return {**asdict(self), "kinds": kinds, "turns": TURNS}


def demo(
    spark: SparkSession, say: Say, rows: int, table: str | None = None, queries: Path | None = None
) -> tuple[DemoResult, Shown]:
    """Run the demo in a temporary folder; return its measurements, and the picture of the table that Hedgerow wrote.

    Args:
        say: receives the name and the result of each step.
        rows: the number of events to make, or the most rows that are copied of a user's table.
        table, queries: the place of a user's table, which is only read, and a file of queries on it.
    """
    folder = tempfile.mkdtemp(prefix="hedgerow-demo-")
    try:
        say("machine", machine(spark))
        begun = time.perf_counter()
        with step(spark, "making tables" if table is None else "copying a sample"):
            if table is None or queries is None:
                case = of_shop(spark, f"{folder}/source", rows)
            else:
                case = of_user(spark, f"{folder}/source", table, queries, rows)
        say("made" if table is None else "copied", f"{_described(case)}, in {time.perf_counter() - begun:.0f} s")
        return _compared(spark, say, case, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def machine(spark: SparkSession) -> str:
    """Return what seconds depend on: cores, memory and versions."""
    memory = spark.conf.get("spark.driver.memory", "?")
    return (
        f"{spark.sparkContext.defaultParallelism} of {os.cpu_count()} cores, {memory} for Spark {spark.version}, "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    )


def _described(case: Case) -> str:
    files = case.files()
    size = byte_text(sum(file.stat().st_size for file in files))
    folders = f" in folders by {', '.join(case.partitioned_by)}" if case.partitioned_by else ""
    return f"{case.rows:,} rows of {case.table}, {size} in {len(files)} files{folders}"


def _compared(spark: SparkSession, say: Say, case: Case, folder: str) -> tuple[DemoResult, Shown]:
    files = case.files()
    file_bytes = sum(file.stat().st_size for file in files) // len(files)
    ways, writing = [_way(case, AS_IT_CAME, "parquet", case.source)], {}
    others = {
        BY_ZORDER: ("Delta's ZORDER BY", peers.write_zorder, case.zorder_by),
        BY_CLUSTERING: ("Delta's liquid clustering by", peers.write_clustering, case.cluster_by),
    }
    for name, (title, write, columns) in others.items() if has_delta(spark) else ():
        place, begun = f"{folder}/{name}", time.perf_counter()
        with step(spark, f"Delta's {name}"):
            write(spark, spark.read.parquet(case.source), place, columns, file_bytes)
        writing[name] = time.perf_counter() - begun
        say("beside", f"{title} {', '.join(columns)}, in {writing[name]:.0f} s")
        ways.append(_way(case, name, "delta", place))
    begun = time.perf_counter()
    tables = _by_hedgerow(spark, say, case, f"{folder}/{BY_HEDGEROW}", case.rows // len(files))
    writing[BY_HEDGEROW] = time.perf_counter() - begun
    own = tables[case.table]
    ways.append(Way(BY_HEDGEROW, {name: ("parquet", table.path) for name, table in tables.items()}, is_attached=True))
    begun = time.perf_counter()
    runs = race(spark, ways, [question.text for question in case.timed])
    times = f"{len(runs)} queries over {len(ways)} layouts, {TURNS} times each"
    say("timed", f"{times}, in {time.perf_counter() - begun:.0f} s; all answers are equal")
    result = DemoResult(machine(spark), case.rows, _files(spark, case, ways), writing, _by_kind(case, runs))
    return result, hedgerow.show(spark, own.path, hedgerow.Workload.from_sql([q.text for q in case.timed]))


def _by_hedgerow(spark: SparkSession, say: Say, case: Case, place: str, block_rows: int) -> dict[str, ManagedTable]:
    """Learn layouts, and write all tables in them."""
    workload = hedgerow.Workload.from_sql(case.learned)
    options = hedgerow.LearnOptions(block_rows=max(1, block_rows))
    begun = time.perf_counter()
    layouts = hedgerow.learn_tables(spark, case.places, workload, options=options)
    say("learned", f"from {len(workload)} queries, in {time.perf_counter() - begun:.0f} s; {case.note}")
    begun = time.perf_counter()
    tables = hedgerow.apply_tables(spark, case.places, layouts, place)
    say("rewrote", f"the tables, and proved them equal by checksums, in {time.perf_counter() - begun:.0f} s")
    return tables


def _way(case: Case, name: str, form: str, place: str) -> Way:
    """Return a layout of the large table beside the small tables as they came."""
    tables = {other: ("parquet", own) for other, own in case.places.items()}
    return Way(name, {**tables, case.table: (form, place)})


def _files(spark: SparkSession, case: Case, ways: Sequence[Way]) -> dict[str, int]:
    """Return the number of files of the large table in each layout."""
    places = {way.name: way.tables[case.table] for way in ways}
    return {name: len(spark.read.format(form).load(place).inputFiles()) for name, (form, place) in places.items()}


def _by_kind(case: Case, runs: Sequence[Mapping[str, Run]]) -> list[KindResult]:
    of_kinds: dict[str, list[Mapping[str, Run]]] = {}
    for question, own in zip(case.timed, runs, strict=True):
        of_kinds.setdefault(question.kind, []).append(own)
    return [
        KindResult(kind, len(several), {name: _sum([own[name] for own in several]) for name in several[0]})
        for kind, several in of_kinds.items()
    ]


def _sum(runs: Sequence[Run]) -> Run:
    return Run(sum(run.seconds for run in runs), sum(run.files for run in runs))
