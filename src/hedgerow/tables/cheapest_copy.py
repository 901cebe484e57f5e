"""Chooses the copy of a table that is the cheapest to read: the table itself, or one of its replicas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hedgerow.core.index.file_choice import FileChoice
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.workload.columns_read import read_columns
from hedgerow.core.workload.queries import Query
from hedgerow.core.workload.score import Means
from hedgerow.core.workload.wanted_files import means_of
from hedgerow.tables.indexed_files import IndexedFiles
from hedgerow.tables.known_files import KnownFiles
from hedgerow.tables.parquet.folder import ParquetFolder
from hedgerow.tables.parquet.replicas import current_replicas
from hedgerow.tables.stored import StoredTable


@dataclass(frozen=True)
class Opening:
    """The files that a query opens, of the table itself or of one of its replicas. `means`: how they are chosen."""

    table: StoredTable
    indexed: IndexedFiles
    choice: FileChoice
    means: Means = "where"

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the opened files."""
        return tuple(name for name, chosen in zip(self.known.names, self.choice.opened, strict=True) if chosen)

    @property
    def known(self) -> KnownFiles:
        """All files, with rows and bytes."""
        return self.indexed.files

    @property
    def rows_read(self) -> float:
        """The share of the table's rows that is read of the opened files."""
        return float((self.known.rows * self.choice.shares).sum() / max(1, self.known.rows[self.known.visible].sum()))


@dataclass(frozen=True)
class Copies:
    """A table and its current replicas, each with its index under the same settings."""

    tables: Sequence[tuple[StoredTable, IndexedFiles]]

    @staticmethod
    def of(table: StoredTable, now: Mapping[str, str] | None = None) -> Copies:
        """Return a table and its current replicas. `now`: see `StoredTable.indexed`."""
        indexed, replicas = table.indexed(now), dict[str, StoredTable]()
        if isinstance(table.format, ParquetFolder):
            replicas = current_replicas(table, indexed.snapshot.files)
        return Copies([(table, indexed), *((replica, replica.indexed(now)) for replica in replicas.values())])

    def openings(self, p: Predicate) -> list[Opening]:
        """Return the files to open for rows on which `p` is TRUE, in each copy of the table."""
        return [Opening(table, indexed, indexed.choose(p)) for table, indexed in self.tables]

    def opening(self, query: Query, name: str) -> Opening:
        """Return the files that a query opens in an attached session; `name`: the table's name in the query."""
        p, wanted = query.predicate(name), query.wanted(name)
        table, indexed = self.tables[0]
        choice = None if wanted is None else indexed.choose_for(wanted, p)
        if wanted is not None and choice is not None:
            return Opening(table, indexed, choice, means_of(wanted))
        best = self.cheapest(p, query.columns(name))
        return replace(best, means="look-up") if best.indexed.filters_skip(p) else best

    def cheapest(self, p: Predicate, columns: Sequence[str] | None) -> Opening:
        """Return the first opening with the fewest bytes of these columns (None: all), or rows if bytes are unknown."""
        openings = self.openings(p)
        if len(openings) == 1:
            return openings[0]
        read = read_columns(columns, p)
        by_bytes = read is None or all(o.known.columns or not len(o.known) for o in openings)

        def cost(o: Opening) -> int:
            shares = o.choice.shares
            return o.known.bytes_read(read, shares) if by_bytes else int((o.known.rows * shares).sum())

        return min(openings, key=cost)
