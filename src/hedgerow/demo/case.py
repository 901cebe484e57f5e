"""A case of the demo: tables, queries to learn from, queries to time, and the columns that peers group rows by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import hedgerow
from hedgerow.core.errors import WorkloadError, counted
from hedgerow.core.workload.queries import Query
from hedgerow.demo.peers import columns_to_cluster_by
from hedgerow.demo.questions import Question, to_learn_from, to_time
from hedgerow.demo.race import Way
from hedgerow.demo.shop import ROWS_OF_A_FILE, make_shop
from hedgerow.pipeline.inputs import bound_to
from hedgerow.spark.start.session import temporary_settings
from hedgerow.spark.storage.paths import input_files
from hedgerow.spark.storage.source import Source, open_source
from hedgerow.sql.query_outline import outline_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_TIMED, _MOST_FOLDERS = 12, 200


@dataclass(frozen=True)
class Case:
    """Tables as they came, in Parquet, and their queries.

    Args:
        table: the large table, of which there are other layouts too; `places` has the tables that it is joined with.
        partitioned_by: the columns of its folders.
        note: how the queries that are learned from differ from those that are timed.
    """

    table: str
    places: Mapping[str, str]
    rows: int
    learned: Sequence[str]
    timed: Sequence[Question]
    zorder_by: Sequence[str]
    cluster_by: Sequence[str]
    partitioned_by: Sequence[str]
    note: str

    @property
    def source(self) -> str:
        return self.places[self.table]

    def files(self) -> list[Path]:
        return sorted(Path(self.source).rglob("*.parquet"))


def of_shop(spark: SparkSession, folder: str, rows: int) -> Case:
    """Make the tables of the shop."""
    made = make_shop(spark, folder, rows)
    return Case(
        table="events",
        places={name: f"{folder}/{name}" for name in ("events", "orders", "customers")},
        rows=made,
        learned=[question.text for question in to_learn_from(made)],
        timed=to_time(made),
        # The columns of conditions that bounds answer, in most queries.
        zorder_by=("day", "country"),
        cluster_by=("day", "country", "status"),
        partitioned_by=("day",),
        note="their days, ids and amounts are others than those of the timed queries",
    )


def of_user(spark: SparkSession, folder: str, place: str, queries: Path, rows: int) -> Case:
    """Copy a sample of a user's table, with at most about so many rows; the table itself is only read."""
    workload = hedgerow.Workload.from_file(queries)
    if not len(workload):
        why = f": {workload.skipped[-1]}" if workload.skipped else ""
        raise WorkloadError(f"{queries} has no query that reads a table{why}")
    name = workload.only_table()
    if name is None or not name.isidentifier():
        names = ", ".join(workload.tables())
        raise WorkloadError(f"the queries have to read one table, by a name without dots, and not {names}")
    source = open_source(spark, place, name)
    bound = bound_to({name: source}, workload)
    columns = columns_to_cluster_by(source.frame, bound, name)
    if not columns:
        raise WorkloadError("no query has a condition on a column that Delta can cluster by")
    folders, copy = _folders(source), f"{folder}/{name}"
    sample = source.frame.sample(rows / source.rows, seed=0) if source.rows > rows else source.frame
    files = -(-min(rows, source.rows) // ROWS_OF_A_FILE)
    with temporary_settings(spark, {"spark.sql.files.maxRecordsPerFile": str(ROWS_OF_A_FILE)}):
        sample.coalesce(max(1, files)).write.partitionBy(*folders).parquet(copy)
    copied = open_source(spark, copy, name)
    learned, timed = _divided(name, bound.queries)
    session = Way(name, {name: ("parquet", copy)}).session(spark)
    for query in timed:
        session.sql(query.text)  # raises for what Spark cannot run, before anything is written
    return Case(
        table=name,
        places={name: copy},
        rows=copied.rows,
        learned=[query.text for query in learned],
        timed=[Question(outline_of(query, name).text, query.text) for query in timed],
        zorder_by=columns[:2],
        cluster_by=columns[:3],
        partitioned_by=folders,
        note=f"{counted(sum(query in learned for query in timed), 'timed query', 'timed queries')} among them",
    )


def _folders(source: Source) -> Sequence[str]:
    """Return the columns of a table's folders; none if these are so many that a sample's files would be tiny."""
    folders = {file.rpartition("/")[0] for file in source.sizes or input_files(source.frame)}
    if len(folders) > _MOST_FOLDERS:
        return ()
    if source.partitions:
        return source.partitions
    names = [part.partition("=")[0] for part in next(iter(folders), "").split("/") if "=" in part]
    return [name for name in names if name in source.frame.columns]


def _divided(table: str, queries: Sequence[Query]) -> tuple[list[Query], list[Query]]:
    """Return the queries to learn from, and those to time: the last one of each kind, of the most frequent kinds.

    A kind with one query has no other to learn from.
    """
    kinds: dict[str, list[Query]] = {}
    for query in queries:
        kinds.setdefault(outline_of(query, table).kind, []).append(query)
    timed = [own[-1] for own in sorted(kinds.values(), key=len, reverse=True)[:_MOST_TIMED]]
    single = {own[0].id for own in kinds.values() if len(own) == 1}
    held = {query.id for query in timed} - single
    return [query for query in queries if query.id not in held], timed
