"""A managed Parquet table as `hedgerow.table` opens it: a directory of Parquet files with an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np

from hedgerow.core.errors import HedgerowError, warn
from hedgerow.core.learning.score import QueryScore, Score
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.predicates.sql_text import quote_string
from hedgerow.core.workload.queries import Workload
from hedgerow.spark.optimizer.attach import routed
from hedgerow.spark.optimizer.rule import settings
from hedgerow.spark.start.session import is_remote, meaning, needs_jvm
from hedgerow.sql.plain import plain_condition
from hedgerow.tables.base import LacksCapability
from hedgerow.tables.known_files import is_hidden
from hedgerow.tables.parquet.replicas import (
    Opening,
    catch_up,
    cheapest,
    described,
    opening,
    own_opening,
    read_columns,
    replicas_of,
    stands,
)
from hedgerow.tables.parquet.stored import StoredParquet, manifests
from hedgerow.tables.parquet.verify import verified
from hedgerow.tables.parquet.write import add_rows, commit_more, fitting_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class ParquetTable(StoredParquet):
    """Open with `hedgerow.table`; `manifest` is what the newest `_hedgerow/manifest-<n>.json` says."""

    @property
    def replicas(self) -> dict[str, StoredParquet]:
        """Full copies in other layouts, by name, as they are now."""
        return replicas_of(self)

    def files(self, where: str | None = None) -> list[str]:
        """The names of the files that a query with this condition opens, those unknown to the index included."""
        inside = self.path.rstrip("/") + "/"
        paths = (unquote(path).removeprefix("file://").removeprefix("file:") for path in self._opened(where))
        return sorted(path.rpartition(inside)[2] for path in paths)

    def _opened(self, where: str | None) -> list[str]:
        if is_remote(self.spark):
            skipped = self.skipped_remotely(where)
            return [f"{self.path}/{name}" for name in self.present() if name not in skipped]
        return self.read(where).inputFiles()

    def opening(
        self, p: Predicate, columns: Sequence[str] | None = None, under: Mapping[str, str] | None = None
    ) -> Opening:
        """The files to open for rows on which `p` is TRUE; `under`: the settings, by default the session's."""
        return opening(self, p, columns, under)

    def read(self, where: str | None = None, columns: Sequence[str] | None = None) -> DataFrame:
        """The matching rows, from just the files that may hold some."""
        frame = self.all_rows()
        if is_remote(self.spark):
            skipped = ", ".join(map(quote_string, sorted(self.skipped_remotely(where))))
            frame = frame.where(f"_metadata.file_name NOT IN ({skipped})") if skipped else frame
        if where is not None:
            frame = frame.where(where)
        found = frame.select(*columns) if columns is not None else frame
        return found if is_remote(self.spark) else routed(self.spark, found)

    def skipped_remotely(self, where: str | None) -> set[str]:
        """Over Spark Connect there is no plan to look at, so only conditions of the plainest kind skip files."""
        hides = any(name.lower() == "_metadata" for name in self.schema)  # which would stand for the file's name
        p = None if where is None or hides else plain_condition(where, self.schema)
        if p is None:
            return set()
        opened = self.index.cover(p, copies=False).opened
        sizes = self.present()
        return {
            name
            for (name, size), is_open in zip(self.known.by_name.items(), opened, strict=True)
            if not is_open and sizes.get(name) == size and not is_hidden(name)
        }

    def score(self, workload: Workload) -> Score:
        """What the workload opens, exactly, from the index alone; how much matches is not known without a scan."""
        found, weights = [], []
        bound = workload.on(self.name).bind({self.name: self.schema}, meaning(self.spark))
        copies, under = self._copies(), settings(self.spark)
        for query in bound:
            p = query.predicate(self.name)
            reads = query.columns(self.name)
            read = None if reads is None else read_columns(reads, p)
            best = cheapest([own_opening(table, p, table.known.by_name, under) for table in copies], read)
            known = best.table.known
            share = float(known.rows[best.known].sum() / max(1, known.rows[known.own].sum()))
            # Bytes are told as a share of this table's, whichever copy is read.
            part = known.bytes_read(read, best.known) / max(1, self.known.total(read))
            found.append(QueryScore(query.id, share, float(best.known.mean()), part, None))
            weights.append(query.weight)
        warn(f"{len(bound.skipped)} of {len(workload)} queries are left out", bound.skipped)
        return Score.mean(found, weights, len(self.known))

    def rows_read(self, predicates: Sequence[Predicate]) -> list[float]:
        """The share of the rows that each predicate reads, of the copy that serves it best."""
        copies = [(t.index, t.known.rows, max(1, t.known.rows[t.known.own].sum())) for t in self._copies()]
        return [min(float(rows[i.to_open(p)].sum() / n) for i, rows, n in copies) for p in predicates]

    def _copies(self) -> list[StoredParquet]:
        now = self.present() if self.replicas else {}
        return [self, *(r for r in self.replicas.values() if stands(self, r, now))]

    def describe(self) -> dict[str, Any]:
        """What the table is and where it came from, as plain values."""
        present, sizes = self.present(), self.known.by_name
        known = self.known.take(np.flatnonzero(self.known.own).tolist())
        blocks = np.bincount(known.blocks[known.blocks >= 0], known.rows[known.blocks >= 0])
        rows = np.sort(blocks[blocks > 0]).astype(int).tolist() or [0]
        told = ("source", "learner", "parameters", "block_rows", "seed", "workload", "created", "versions")
        return {
            "path": self.path,
            "table": self.name,
            **{key: self.manifest[key] for key in told if key in self.manifest},
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
            "features": len(self.stored_index.blocks.features),
            "steady_only": settings(self.spark) != self.manifest["settings"],
            "replicas": described(self, present),
        }

    def verify(self, seed: int = 0) -> dict[str, Any]:
        """Prove that the table is what was written: its files, all rows and columns, and what the index says of them.

        HedgerowError names what is not; the result says what was checked.
        """
        needs_jvm(self.spark, "verify")
        return verified(self, seed)

    def append(self, frame: DataFrame) -> ParquetTable:
        """New rows through the same layout into new files; the index grows, nothing old is touched."""
        needs_jvm(self.spark, "append")
        add_rows(self, fitting_rows(self, frame), partial(commit_more, self))
        grown = ParquetTable.open(self.spark, self.path)
        warn(f"{self.path} has grown, but not all of its replicas", catch_up(grown))
        return grown

    def refresh_replicas(self) -> ParquetTable:
        """Bring replicas that fell behind up to the newest state of the table; HedgerowError where that cannot be."""
        needs_jvm(self.spark, "refresh replicas")
        table = ParquetTable.open(self.spark, self.path)
        failed = catch_up(table)
        if failed:
            raise HedgerowError(failed[0])
        return table

    def history(self) -> list[dict[str, Any]]:
        """Hedgerow's writes to the table, the newest first, as far back as manifests are kept."""
        return [
            {
                "operation": "apply" if number == 1 else "append",
                "version": number,
                "time": stored.get("written") or stored.get("created"),
                "rows": stored["checksum"]["rows"],
                **({"learner": stored["learner"]} if number == 1 and "learner" in stored else {}),
            }
            for number, stored in manifests(self.spark, self.path)
        ]

    def rollback(self) -> ParquetTable:
        """LacksCapability: a Parquet table keeps no replaced files."""
        raise LacksCapability("rollback", self.path)
