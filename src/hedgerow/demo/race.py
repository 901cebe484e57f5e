"""Times queries over several layouts of the same rows, the layouts in turn, and compares their answers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

from sqlglot import exp

import hedgerow
from hedgerow.core.errors import HedgerowError
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import temporary_settings
from hedgerow.spark.storage.paths import files_by_folder
from hedgerow.sql.parse import parse_one

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

TURNS = 3
T = TypeVar("T")


@dataclass(frozen=True)
class Way:
    """A layout: the format and the place of each table by its name, and whether the session is attached.

    Of a Delta table, only those files are read that Delta chooses for a query, and as plain Parquet. So all layouts are
    read alike, and the time in which Delta chooses files does not count.
    """

    name: str
    tables: Mapping[str, tuple[str, str]]
    is_attached: bool = False

    def session(self, spark: SparkSession) -> SparkSession:
        """Return a session of its own, which knows the tables by their names."""
        own = spark.newSession()
        for name, (form, place) in self.tables.items():
            own.read.format(form).load(place).createOrReplaceTempView(name)
        if self.is_attached:
            hedgerow.attach(own)
        return own


@dataclass(frozen=True)
class Run:
    """The median seconds of a query over a layout, and the number of files that it opened."""

    seconds: float
    files: int


def race(spark: SparkSession, ways: Sequence[Way], queries: Sequence[str], turns: int = TURNS) -> list[dict[str, Run]]:
    """Return for each query its run by the name of each way; raise HedgerowError unless all answers are equal.

    In each turn the ways are in another order, because the first one fills the caches for the others.
    """
    sessions = {way.name: way.session(spark) for way in ways}
    chosen = [{way.name: _chosen_by_delta(sessions[way.name], way, query) for way in ways} for query in queries]
    seconds: list[dict[str, list[float]]] = [{way.name: [] for way in ways} for _ in queries]
    files: list[dict[str, int]] = [{} for _ in queries]
    for turn in range(turns):
        with step(spark, f"queries, turn {turn + 1} of {turns}"):
            for q, query in enumerate(queries):
                answers: dict[str, list[Row]] = {}
                for way in rotated(ways, turn + q):
                    session = sessions[way.name]
                    for name, frame in chosen[q][way.name].items():
                        frame.createOrReplaceTempView(name)
                    begun = time.perf_counter()
                    frame = session.sql(query)
                    rows = frame.collect()
                    seconds[q][way.name].append(time.perf_counter() - begun)
                    answers[way.name] = rows
                    files[q][way.name] = _files_opened(session, frame, way.is_attached)
                _check_equal(query, answers)
    return [
        {name: Run(median(own), files[q][name]) for name, own in of_query.items()} for q, of_query in enumerate(seconds)
    ]


def _chosen_by_delta(session: SparkSession, way: Way, query: str) -> dict[str, DataFrame]:
    """Return each Delta table of a layout as plain Parquet: the files that Delta chooses for the query."""
    places = {name: place for name, (form, place) in way.tables.items() if form == "delta"}
    if not places:
        return {}
    by_folder = files_by_folder(session.sql(query))
    return {name: _read_plainly(session, place, by_folder) for name, place in places.items()}


def _read_plainly(session: SparkSession, place: str, by_folder: Mapping[str, Sequence[str]]) -> DataFrame:
    whole = session.read.format("delta").load(place)
    chosen = [files for folder, files in by_folder.items() if folder.endswith(place)]
    if not chosen:
        return whole  # Delta answers the query from its log
    files = [file for own in chosen for file in own]
    # Otherwise Spark starts a job to look at many files.
    with temporary_settings(session, {"spark.sql.sources.parallelPartitionDiscovery.threshold": str(len(files))}):
        return session.read.schema(whole.schema).parquet(*files) if files else whole.limit(0)


def _check_equal(query: str, answers: Mapping[str, list[Row]]) -> None:
    (first, expected), *others = answers.items()
    wanted = answer(expected, query)
    for name, rows in others:
        given = answer(rows, query)
        if given != wanted:
            raise HedgerowError(f"the answers differ: {first} has {wanted[:1]}, {name} has {given[:1]}: {query}")


def _files_opened(session: SparkSession, frame: DataFrame, is_attached: bool) -> int:
    if not is_attached:
        return _files_of_scans(frame._jdf.queryExecution().executedPlan())
    # The plan has not what Hedgerow opens ahead of the query.
    scans = hedgerow.last_query(session)
    return sum(scan.files_opened if scan.files_read is None else scan.files_read for scan in scans)


def _files_of_scans(plan: Any) -> int:
    """Return the number of files that the scans of a plan opened, which has run."""
    kind = plan.getClass().getSimpleName()
    if kind == "AdaptiveSparkPlanExec":
        return _files_of_scans(plan.executedPlan())
    if kind.endswith("QueryStageExec"):
        return _files_of_scans(plan.plan())
    if kind == "FileSourceScanExec":
        return int(plan.metrics().apply("numFiles").value())
    children = plan.children()
    return sum(_files_of_scans(children.apply(i)) for i in range(children.size()))


def answer(rows: Sequence[Row], query: str) -> list[str]:
    """Return what must be equal, in an order that does not depend on that of the rows.

    These are the rows; but of those that tie with the last one that LIMIT took, only the values of ORDER BY.
    """
    tree = parse_one(query)
    if tree.args.get("limit") is None or not rows:
        return sorted(map(comparable, rows))
    order = tree.args.get("order")
    terms = [] if order is None else [term.this for term in order.expressions]
    shown = takewhile(lambda term: isinstance(term, exp.Column) and term.name in rows[0].__fields__, terms)
    names = [term.name for term in shown]
    ranks = [comparable(row[name] for name in names) for row in rows]
    cut = {ranks[-1]} if tree.args.get("offset") is None else {ranks[0], ranks[-1]}
    return sorted(rank if rank in cut else comparable(row) for row, rank in zip(rows, ranks, strict=True))


def comparable(row: Iterable[Any]) -> str:
    """Return a row as text, its floats rounded: sums of floating-point numbers depend on the order of the rows."""
    return repr([float(f"{v:.9g}") if isinstance(v, float) else v for v in row])


def rotated(items: Sequence[T], turn: int) -> list[T]:
    """Rotate the items, so that each turn starts with another one: the first fills the caches for the others.

    >>> rotated("abc", 4)
    ['b', 'c', 'a']
    """
    at = turn % len(items)
    return [*items[at:], *items[:at]]
