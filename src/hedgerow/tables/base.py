"""The protocol of managed tables, which `ParquetTable` and `DeltaTable` meet.

One suite of tests runs on both formats (`tests/contract/test_tables.py`). If a format lacks a capability, the call
raises `LacksCapability`, in one sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from hedgerow.core.errors import HedgerowError
from hedgerow.core.html import html_table
from hedgerow.core.layouts.base import Layout
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.workload.queries import Workload
from hedgerow.core.workload.score import Score
from hedgerow.tables.explained import Explained
from hedgerow.tables.known_files import KnownFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Capability = Literal["rollback", "rewrite of a part", "replicas", "overlap"]

_INSTEAD: dict[Capability, str] = {
    "rollback": "a Parquet table keeps no replaced files, so {path} cannot be rolled back: apply the old layout again",
    "rewrite of a part": "a Parquet table is always written as a whole: leave out where=",
    "replicas": "a Delta table cannot have replicas, so {path} gets none: only a Parquet table can",
    "overlap": "a Delta table cannot keep a row in several files, so {path} is left as it is: learn without overlap, "
    "or write a Parquet directory with to=",
}


def plain_facts(table: Table) -> list[tuple[str, str | int]]:
    """What `describe` tells in single words and numbers."""
    return [(name, fact) for name, fact in table.describe().items() if isinstance(fact, str) or type(fact) is int]


def facts_as_html(table: Table) -> str:
    """The plain facts of a table, for notebooks."""
    return html_table(plain_facts(table))


class LacksCapability(HedgerowError):
    """The table's format cannot do this."""

    def __init__(self, capability: Capability, path: str) -> None:
        super().__init__(_INSTEAD[capability].format(path=path))


class Table(Protocol):
    """A table that `apply` wrote; open it with `hedgerow.table`."""

    @property
    def spark(self) -> SparkSession: ...

    @property
    def path(self) -> str: ...

    @property
    def name(self) -> str:
        """The table's name in the workload that it was learned from."""

    @property
    def layout(self) -> Layout: ...

    @property
    def written_under(self) -> Mapping[str, str]:
        """The settings of the session that wrote the table."""

    def stale_joins(self) -> set[str]:
        """The joined rows of which the index tells nothing, because other tables have changed."""

    @property
    def known(self) -> KnownFiles:
        """The indexed files that still exist."""

    def files(self, where: str | None = None) -> list[str]:
        """The names of the files that a query with this condition opens."""

    def read(self, where: str | None = None, columns: Sequence[str] | None = None) -> DataFrame:
        """The rows that match, read from as few files as possible."""

    def explained(self, p: Predicate, columns: Sequence[str] | None = None) -> Explained:
        """Why a query for these columns of the rows on which `p` is TRUE opens or skips each file."""

    def rows_opened(self, found: Explained) -> DataFrame:
        """All rows of the files that are opened."""

    def append(self, frame: DataFrame) -> Table:
        """Write new rows through the table's layout and extend the index."""

    def verify(self, seed: int = 0) -> dict[str, Any]:
        """Compare the rows and the statistics with what was written; HedgerowError names a difference."""

    def bound(self, workload: Workload) -> Workload:
        """The queries with the table's types; those that cannot be bound are left out with a warning."""

    def score(self, workload: Workload) -> Score:
        """The share of rows, files and bytes that the workload reads, from the index alone."""

    def rows_read(self, predicates: Sequence[Predicate]) -> list[float]:
        """For each predicate, the share of the rows that it reads."""

    def describe(self) -> dict[str, Any]:
        """The table's facts and the origin of its layout, as plain values."""

    def _repr_html_(self) -> str: ...

    def history(self) -> list[dict[str, Any]]:
        """Hedgerow's writes to the table, the newest first."""

    def repair(self) -> Table:
        """Collect again what the index says of other tables' rows, after these tables changed."""

    def relearn(self, workload: Workload, statistics: int = ...) -> Table:
        """Let the index describe what other queries ask for; no row moves."""

    def rollback(self) -> Table:
        """Undo the last rewrite; LacksCapability where the format keeps no replaced files."""
