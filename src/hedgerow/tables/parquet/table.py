"""A managed Parquet table as `hedgerow.table` opens it: a directory of Parquet files with an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.errors import HedgerowError, warn
from hedgerow.core.index.reasons import untold
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.predicates.sql_text import quote_string
from hedgerow.core.workload.columns_read import read_columns
from hedgerow.core.workload.queries import Workload
from hedgerow.core.workload.score import QueryScore, Score
from hedgerow.spark.optimizer.attach import routed
from hedgerow.spark.optimizer.rule import settings
from hedgerow.spark.start.session import in_own_session, is_remote, meaning, needs_jvm
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.paths import input_files
from hedgerow.sql.plain import plain_condition
from hedgerow.tables.base import LacksCapability, facts_as_html
from hedgerow.tables.explained import UNKNOWN, Explained, Group, explained
from hedgerow.tables.items_to_index import MAX_DESCRIBED_ITEMS
from hedgerow.tables.known_files import is_hidden
from hedgerow.tables.parquet.drafts import drafts
from hedgerow.tables.parquet.manifest import manifest_numbers, read_manifest
from hedgerow.tables.parquet.repair import relearned, repaired
from hedgerow.tables.parquet.replicas import (
    Opening,
    catch_up,
    cheapest,
    describe_replicas,
    is_current,
    opening,
    opening_in,
    replicas_of,
)
from hedgerow.tables.parquet.stored import StoredParquet
from hedgerow.tables.parquet.verify import verified
from hedgerow.tables.parquet.write import add_rows, commit_append, fitting_rows
from hedgerow.tables.stored_joins import bound_with_joins, stale

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class ParquetTable(StoredParquet):
    """A managed Parquet table; open it with `hedgerow.table`. `manifest`: the newest `_hedgerow/manifest-<n>.json`."""

    @property
    def written_under(self) -> Mapping[str, str]:
        return self.manifest.settings

    def stale_joins(self) -> set[str]:
        """The joined rows of which the index tells nothing, because other tables have changed."""
        return stale(self.manifest.joined, self.usable_joins)

    @property
    def replicas(self) -> dict[str, StoredParquet]:
        """Full copies in other layouts, by name, as they are now."""
        return replicas_of(self)

    def files(self, where: str | None = None) -> list[str]:
        """The names of the files that a query with this condition opens, unindexed files included."""
        if is_remote(self.spark):
            return sorted(self.present().keys() - self.skipped_remotely(where))
        root = Folder(self.spark, self.path).full_path
        return sorted(path.removeprefix(f"{root}/") for path in input_files(self.read(where)))

    def opening(
        self, p: Predicate, columns: Sequence[str] | None = None, under: Mapping[str, str] | None = None
    ) -> Opening:
        """The files to open for rows on which `p` is TRUE; `under`: the query's settings, by default the session's."""
        return opening(self, p, columns, under)

    def explained(self, p: Predicate, columns: Sequence[str] | None = None) -> Explained:
        """Why a query for the rows on which `p` is TRUE opens or skips each file, of the table or of a replica."""
        best = self.opening(p, columns)
        table, known = best.table, best.table.known
        index = table.index_under(settings(self.spark))
        now = self.present() if table is self else known.sizes_by_name
        same = np.array([now.get(name) == size for name, size in known.sizes_by_name.items()], bool)
        groups = explained(index, p, known.names, known.rows, best.opened, same)
        others = sorted(name for name, size in now.items() if known.sizes_by_name.get(name) != size)
        groups += [Group(True, UNKNOWN, tuple(others), None)] if others else []
        return Explained.of(groups, untold(index, p), None if table is self else table.path.rpartition("/")[2])

    def rows_opened(self, found: Explained) -> DataFrame:
        """All rows of the files that are opened."""
        read = self if found.replica is None else self.replicas[found.replica]
        return read.frame(found.opened)

    def read(self, where: str | None = None, columns: Sequence[str] | None = None) -> DataFrame:
        """The matching rows, from just the files that may hold some."""
        frame = self.all_rows()
        if is_remote(self.spark):
            skipped = ", ".join(map(quote_string, sorted(self.skipped_remotely(where))))
            frame = frame.where(f"_metadata.file_name NOT IN ({skipped})") if skipped else frame
        if where is not None:
            frame = frame.where(where)
        selected = frame.select(*columns) if columns is not None else frame
        return selected if is_remote(self.spark) else routed(self.spark, selected)

    def skipped_remotely(self, where: str | None) -> set[str]:
        """The files to leave out of a query over Spark Connect, where only plain conditions can be evaluated."""
        hides_metadata = any(name.lower() == "_metadata" for name in self.schema)  # hides Spark's own `_metadata`
        p = None if where is None or hides_metadata else plain_condition(where, self.schema)
        if p is None:
            return set()
        opened = self.index.choose_files(p, copies=False).opened
        sizes = self.present()
        return {
            name
            for (name, size), is_open in zip(self.known.sizes_by_name.items(), opened, strict=True)
            if not is_open and sizes.get(name) == size and not is_hidden(name)
        }

    def score(self, workload: Workload) -> Score:
        """The workload's exact cost, from the index alone; the share of matching rows would need a scan."""
        scores, weights = [], []
        bound = self.bound(workload)
        copies, under = self._copies(), settings(self.spark)
        for query in bound:
            p = query.predicate(self.name)
            read = read_columns(query.columns(self.name), p)
            best = cheapest([opening_in(table, p, table.known.sizes_by_name, under) for table in copies], read)
            known = best.table.known
            row_share = float(known.rows[best.opened].sum() / max(1, known.rows[known.visible].sum()))
            # The share is of this table's bytes, whichever copy is read.
            byte_share = known.bytes_read(read, best.opened) / max(1, self.known.total(read))
            scores.append(QueryScore(query.id, row_share, float(best.opened.mean()), byte_share, None))
            weights.append(query.weight)
        return Score.mean(scores, weights, len(self.known))

    def rows_read(self, predicates: Sequence[Predicate]) -> list[float]:
        """For each predicate, the share of the rows that it reads, in the replica that serves it best."""
        copies = [(t.index, t.known.rows, max(1, t.known.rows[t.known.visible].sum())) for t in self._copies()]
        return [min(float(rows[i.to_open(p)].sum() / n) for i, rows, n in copies) for p in predicates]

    def _copies(self) -> list[StoredParquet]:
        """The table itself and its current replicas."""
        now = self.present() if self.replicas else {}
        return [self, *(r for r in self.replicas.values() if is_current(self, r, now))]

    def describe(self) -> dict[str, Any]:
        """The table's facts and the origin of its layout, as plain values."""
        present, sizes = self.present(), self.known.sizes_by_name
        known = self.known.take(np.flatnonzero(self.known.visible).tolist())
        blocks = np.bincount(known.blocks[known.blocks >= 0], known.rows[known.blocks >= 0])
        rows = np.sort(blocks[blocks > 0]).astype(int).tolist() or [0]
        shown = ("source", "learner", "parameters", "block_rows", "seed", "workload", "created", "versions")
        return {
            "path": self.path,
            "table": self.name,
            **{key: self.manifest.origin[key] for key in shown if key in self.manifest.origin},
            "layout": self.layout.kind,
            "blocks": len(rows),
            "rows": int(known.rows.sum()),
            "copied_rows": int(self.known.rows.sum() - known.rows.sum()),
            "rows_per_block": {"least": rows[0], "median": rows[len(rows) // 2], "most": rows[-1]},
            "files": len(present),
            "bytes": sum(present.values()),
            "unknown_files": sorted(n for n, size in present.items() if sizes.get(n) != size),
            "missing_files": sorted(set(sizes) - set(present)),
            "statistics": sorted(self.stored_index.blocks.terms),
            "features": len(self.stored_index.blocks.conditions),
            "steady_only": settings(self.spark) != self.manifest.settings,
            "replicas": describe_replicas(self, present),
            "drafts": drafts(self),
        }

    @in_own_session
    def verify(self, seed: int = 0) -> dict[str, Any]:
        """Checks that the table is as it was written: files, all rows and columns, and the statistics of some files.

        Returns a report of what was checked; HedgerowError names the first difference.
        """
        needs_jvm(self.spark, "verify")
        return verified(self, seed)

    @in_own_session
    def append(self, frame: DataFrame) -> ParquetTable:
        """Writes new rows through the same layout into new files and extends the index; old files stay as they are."""
        needs_jvm(self.spark, "append")
        add_rows(self, fitting_rows(self, frame), partial(commit_append, self))
        try:
            grown = ParquetTable.open(self.spark, self.path)
        except HedgerowError as error:
            raise HedgerowError(f"rows were appended to {self.path}, but it cannot be opened again: {error}") from error
        warn(f"{self.path} has grown, but not all of its replicas", catch_up(grown))
        return grown

    @in_own_session
    def refresh_replicas(self) -> ParquetTable:
        """Brings stale replicas up to the newest state of the table; HedgerowError if one cannot be."""
        needs_jvm(self.spark, "refresh replicas")
        table = ParquetTable.open(self.spark, self.path)
        failed = catch_up(table)
        if failed:
            raise HedgerowError(failed[0])
        return table

    @in_own_session
    def repair(self) -> ParquetTable:
        """Collect again what the index says of other tables' rows, after these tables changed."""
        needs_jvm(self.spark, "repair")
        return self._of_state(repaired(self))

    @in_own_session
    def relearn(self, workload: Workload, statistics: int = MAX_DESCRIBED_ITEMS) -> ParquetTable:
        """Let the index describe what other queries ask for; no row moves."""
        needs_jvm(self.spark, "relearn")
        predicates = [query.predicate(self.name) for query in self.bound(workload)]
        return self._of_state(relearned(self, predicates, statistics))

    def _of_state(self, state: StoredParquet) -> ParquetTable:
        table = ParquetTable.open(self.spark, state.path)
        warn(f"the index of {self.path} is new, but not all of its replicas follow", catch_up(table))
        return table

    def bound(self, workload: Workload) -> Workload:
        """The queries with the table's types; those that cannot be bound are left out with a warning."""
        joined = self.manifest.joined
        bound = bound_with_joins(workload, self.name, self.schema, joined, self.usable_joins, meaning(self.spark))
        warn(f"{len(bound.skipped)} of {len(workload)} queries are left out", bound.skipped)
        return bound

    def _repr_html_(self) -> str:
        return facts_as_html(self)

    def history(self) -> list[dict[str, Any]]:
        """Hedgerow's writes to the table, the newest first, as long as their manifests are kept."""
        states = [read_manifest(self.side, number, self.path) for number in manifest_numbers(self.side)]
        return [
            {
                "operation": state.operation or ("apply" if state.number == 1 else "append"),
                "version": state.number,
                "time": state.written or state.origin.get("created"),
                "rows": state.checksum.rows,
                **({"learner": state.origin["learner"]} if state.number == 1 and "learner" in state.origin else {}),
            }
            for state in states
        ]

    def rollback(self) -> ParquetTable:
        """LacksCapability: a Parquet table keeps no replaced files."""
        raise LacksCapability("rollback", self.path)
