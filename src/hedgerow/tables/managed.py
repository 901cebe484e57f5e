"""A managed table as `hedgerow.table` opens it, with all verbs, for Parquet and Delta tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import HedgerowError, warn
from hedgerow.core.html import html_table
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.workload.columns_read import read_columns
from hedgerow.core.workload.queries import Query, Workload, joined_columns, summed_columns
from hedgerow.core.workload.score import QueryScore, Score
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import in_own_session, is_remote, needs_jvm
from hedgerow.spark.storage.delta_log import is_delta
from hedgerow.spark.storage.paths import input_files, paths_over
from hedgerow.tables.attach import routed
from hedgerow.tables.cheapest_copy import Copies
from hedgerow.tables.connect_pruning import files_remotely, read_remotely
from hedgerow.tables.delta import rewrite as delta
from hedgerow.tables.delta.files import DeltaFiles, in_newest_state, open_delta
from hedgerow.tables.describe import facts_of
from hedgerow.tables.duckdb_relation import duckdb_relation
from hedgerow.tables.explained import ELSEWHERE, SKIPPED_BY, Explained
from hedgerow.tables.formats import LacksCapability, Snapshot
from hedgerow.tables.items_to_index import MAX_DESCRIBED_ITEMS
from hedgerow.tables.parquet.append import append, drafts, finish_appends
from hedgerow.tables.parquet.folder import ParquetFolder, bring_back, open_folder
from hedgerow.tables.parquet.replicas import catch_up, describe_replicas, is_current, replicas_of
from hedgerow.tables.plain_files import plain_files
from hedgerow.tables.relearn import relearn, repair
from hedgerow.tables.stored import StoredTable
from hedgerow.tables.stored_joins import bound_with_joins
from hedgerow.tables.verify import report, same_rows_as, verify_files

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, repr=False)
class ManagedTable(StoredTable):
    """A table that `apply` wrote; open it with `hedgerow.table`."""

    format: ParquetFolder | DeltaFiles

    def __repr__(self) -> str:
        return f"ManagedTable({self.path!r}, {self.format.kind})"

    @staticmethod
    def open(spark: SparkSession, target: str) -> ManagedTable:
        """Open a table in its newest state: a directory, or a Delta table by its path or name."""
        if not is_remote(spark) and is_delta(spark, target):
            return ManagedTable(*open_delta(spark, target))
        path = target.rstrip("/")
        try:
            return ManagedTable(*open_folder(spark, path))
        except HedgerowError:
            if is_remote(spark) or not bring_back(spark, path):
                raise
            return ManagedTable(*open_folder(spark, path))

    def finish(self) -> None:
        """Finish appends whose runs were killed."""
        if isinstance(self.format, ParquetFolder) and not is_remote(self.spark):
            finish_appends(self.format)

    def _again(self) -> ManagedTable:
        """Return the table in its newest state."""
        if isinstance(self.format, ParquetFolder):
            return ManagedTable(*open_folder(self.spark, self.path))
        return ManagedTable(*in_newest_state(self.format))

    @property
    def written_under(self) -> Mapping[str, str]:
        """The settings of the session that wrote the table."""
        return self.newest.entry.settings

    def stale_joins(self) -> set[str]:
        """Return the names of joined rows whose tables have changed since the newest part was indexed."""
        return self.stale(self.newest)

    def snapshot(self, version: int | None = None) -> Snapshot:
        """Return the files of the table as it is, or of an older version of a Delta table."""
        return self.format.snapshot(version)

    # --- reading ---

    def files(self, where: str | None = None, version: int | None = None) -> list[str]:
        """Return the names of the files that a query with this condition opens, unindexed files included."""
        if is_remote(self.spark):
            return files_remotely(self, where, version)
        return self.format.file_names(input_files(self.read(where, version=version)), version)

    def plain_files(self, where: str | None = None, version: int | None = None) -> list[str]:
        """Return the full paths of the files to open, for an engine that reads Parquet files as they are.

        HedgerowError if such an engine would see other rows than Spark, for example deleted ones."""
        return [file.path for file in plain_files(self, where, version)]

    def duckdb(
        self, connection: DuckDBPyConnection, where: str | None = None, version: int | None = None
    ) -> DuckDBPyRelation:
        """Return the rows of the files to open as a relation of DuckDB, in which DuckDB's query filters them again."""
        return duckdb_relation(self, connection, where, version)

    def read(
        self, where: str | None = None, columns: Sequence[str] | None = None, version: int | None = None
    ) -> DataFrame:
        """Return the matching rows, read only from files that may have some; `version`: an older version to read."""
        if is_remote(self.spark):
            return read_remotely(self, where, columns, version)
        frame = self.format.rows(version)
        if where is not None:
            frame = frame.where(where)
        return routed(self.spark, frame.select(*columns) if columns is not None else frame)

    def explained(self, query: Query) -> Explained:
        """Return why a query opens or skips the files of the table."""
        best, p = Copies.of(self).opening(query, self.name), query.predicate(self.name)
        replica = None if best.table is self else best.table.path.rpartition("/")[2]
        groups = best.indexed.groups(p, best.choice.opened, SKIPPED_BY.get(best.means, ELSEWHERE))
        undecided = tuple(best.indexed.undecided_atoms(p))
        size = best.known.bytes_read(read_columns(query.columns(self.name), p), best.choice.shares)
        return Explained((), undecided, replica, best.means, best.rows_read, size).regrouped(groups)

    def rows_opened(self, explained: Explained) -> DataFrame:
        """Return all rows of the opened files."""
        table = self if explained.replica is None else self.replicas[explained.replica]
        return table.format.snapshot().frame(explained.opened)

    # --- measuring ---

    def bound(self, workload: Workload, lost: Collection[str] | None = None) -> Workload:
        """Return the queries with the table's types; a query that cannot be bound is left out with a warning.

        `lost`: the joined rows that the index cannot describe any more; by default those that have changed."""
        joined = self.newest.entry.joined
        paths = [] if is_remote(self.spark) else paths_over(workload.tables(), self.format.rows)
        lost = self.stale_joins() if lost is None else lost
        bound = bound_with_joins(workload, self.name, paths, self.schema, joined, self.joins, self.spark, lost)
        workload.warn_of_left_out(bound.skipped)
        return bound

    def score(self, workload: Workload) -> Score:
        """Return the workload's exact cost from the index, without the share of matching rows, which needs a scan.

        A query may open fewer files than its WHERE lets pass, as in an attached session; its score names the means."""
        copies, scores, weights = Copies.of(self), [], []
        own_files = copies.tables[0][1].files
        for query in self.bound(workload):
            best = copies.opening(query, self.name)
            read = read_columns(query.columns(self.name), query.predicate(self.name))
            # The bytes of any copy are divided by this table's bytes.
            byte_share = best.known.bytes_read(read, best.choice.shares) / max(1, own_files.total(read))
            files = float(best.choice.opened.mean())
            scores.append(QueryScore(query.id, best.rows_read, files, byte_share, None, means=best.means))
            weights.append(query.weight)
        return Score.mean(scores, weights, len(own_files))

    def rows_read(self, predicates: Sequence[Predicate]) -> list[float]:
        """Return for each predicate the share of the rows that it reads, in the copy where it reads least."""
        copies = Copies.of(self)
        return [min(opening.rows_read for opening in copies.openings(p)) for p in predicates]

    def describe(self) -> dict[str, Any]:
        """Return the table's facts and the origin of its layout, as plain values."""
        facts = facts_of(self)
        if isinstance(self.format, ParquetFolder):
            replicas = describe_replicas(self, self.format.snapshot().files)
            return {**facts, "replicas": replicas, "drafts": drafts(self.format)}
        return facts

    def plain_facts(self) -> list[tuple[str, str | int]]:
        """Return the facts of `describe` that are single texts or numbers."""
        return [(name, fact) for name, fact in self.describe().items() if isinstance(fact, str) or type(fact) is int]

    def _repr_html_(self) -> str:
        return html_table(self.plain_facts())

    @in_own_session
    def verify(self, seed: int = 0) -> dict[str, Any]:
        """Check the rows of every write whose files are all unchanged, and the statistics of some files.

        Returns a report of what was checked; HedgerowError names a difference.
        """
        needs_jvm(self.spark, "verify")
        checked = report(verify_files(self, seed), facts_of(self))
        if isinstance(self.format, ParquetFolder):
            checked["replicas"] = {name: self._verified_replica(name, r, seed) for name, r in self.replicas.items()}
        return checked

    def _verified_replica(self, name: str, replica: StoredTable, seed: int) -> str:
        if not is_current(self, replica, self.snapshot().files):
            return "not up to date, so not read"
        verify_files(replica, seed)
        if not same_rows_as(self, replica):
            raise HedgerowError(f"the replica {name} of {self.path} has other rows than the table")
        return "as the table"

    def history(self) -> list[dict[str, Any]]:
        """Return Hedgerow's operations on the table, the newest first, each with the table's version.

        The version is None if the run was killed right after its commit.
        """
        done = self.state.newest_operations(self.format.side)
        return [{"version": None, **o} for o in done if "version" in o or self.was_committed(o.get("part", ""))]

    # --- writing ---

    @in_own_session
    def append(self, frame: DataFrame) -> ManagedTable:
        """Write new rows in the newest layout into new files and index them; old files stay as they are."""
        needs_jvm(self.spark, "append")
        if isinstance(self.format, ParquetFolder):
            append(self.format, self.newest, frame)
        else:
            delta.append(self.format, self.newest, frame)
        try:
            grown = self._again()
        except HedgerowError as error:
            raise HedgerowError(f"rows were appended to {self.path}, but it cannot be opened again: {error}") from error
        warn(f"{self.path} has grown, but not all of its replicas", grown.catch_up())
        return grown

    @in_own_session
    def repair(self, other_tables: Mapping[str, str] | None = None) -> ManagedTable:
        """Collect the statistics of joined rows again, after other tables changed.

        `other_tables`: the places of tables that have been moved, by name."""
        needs_jvm(self.spark, "repair")
        repair(self, {name.lower(): place for name, place in (other_tables or {}).items()})
        return self._again()

    @in_own_session
    def relearn(self, workload: Workload, statistics: int = MAX_DESCRIBED_ITEMS) -> ManagedTable:
        """Let the index describe the expressions, conditions, sums and joins of other queries; no row moves."""
        needs_jvm(self.spark, "relearn")
        queries = list(self.bound(workload))
        predicates, name = [q.predicate(self.name) for q in queries], self.name
        relearn(self, predicates, statistics, summed_columns(queries, name), joined_columns(queries, name))
        return self._again()

    @in_own_session
    def lay_out(self, names: Sequence[str]) -> ManagedTable:
        """Rewrite some files in the newest layout, such as files that others appended."""
        if isinstance(self.format, ParquetFolder):
            raise LacksCapability("rewrite of a part", self.path)
        delta.lay_out(self.format, self.newest, self.name, names)
        return self._again()

    @in_own_session
    def rollback(self) -> ManagedTable:
        """Put back the files that the last rewrite replaced; rows appended since then stay."""
        if isinstance(self.format, ParquetFolder):
            raise LacksCapability("rollback", self.path)
        with step(self.spark, "putting files back"):
            delta.roll_back(self.format, self.state, self.parts)
        return self._again()

    # --- replicas ---

    @property
    def replicas(self) -> dict[str, StoredTable]:
        """The full copies in other layouts, by name, in their newest states; only a Parquet table has any."""
        return replicas_of(self.spark, self.path) if isinstance(self.format, ParquetFolder) else {}

    @in_own_session
    def refresh_replicas(self) -> ManagedTable:
        """Bring stale replicas up to the newest state of the table; HedgerowError if that fails for one."""
        needs_jvm(self.spark, "refresh replicas")
        if not isinstance(self.format, ParquetFolder):
            raise LacksCapability("replicas", self.path)
        table = self._again()
        failed = table.catch_up()
        if failed:
            raise HedgerowError(failed[0])
        return table

    def catch_up(self) -> list[str]:
        """Append the table's new rows to each replica; return a sentence for each replica where that failed."""
        return catch_up(self.format, self.state) if isinstance(self.format, ParquetFolder) else []
