"""The protocol of a table's format: it lists the files of a table and reads them.

`parquet/append` and `delta/rewrite` commit changes; everything else is the same for both formats (`tables/managed`). A
call that needs a capability that its format lacks raises `LacksCapability`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from hedgerow.core.errors import HedgerowError
from hedgerow.core.predicates.nodes import Feature
from hedgerow.core.predicates.sql_text import feature_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import TermStats
from hedgerow.core.pruning.words import searched_for_words
from hedgerow.spark.compute.collect_stats import Entries, RowGroups
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.footers import Footers
from hedgerow.spark.storage.present_files import PresentFiles
from hedgerow.tables.entry import schema_of_fields
from hedgerow.tables.known_files import file_names
from hedgerow.tables.state import Kind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Capability = Literal["rollback", "rewrite of a part", "replicas", "overlap", "older versions"]

_INSTEAD: dict[Capability, str] = {
    "rollback": "a Parquet table keeps no replaced files, so {path} cannot be rolled back: apply the old layout again",
    "rewrite of a part": "a Parquet table is always written as a whole, so no part of {path} is rewritten alone",
    "replicas": "a Delta table cannot have replicas, so {path} gets none: only a Parquet table can",
    "overlap": "a Delta table cannot keep a row in several files, so {path} is left as it is: learn without overlap, "
    "or write a Parquet directory with to=",
    "older versions": "a Parquet table has no older versions, so {path} can be read as it is now only",
}


class LacksCapability(HedgerowError):
    """The table's format cannot do this."""

    def __init__(self, capability: Capability, path: str) -> None:
        super().__init__(_INSTEAD[capability].format(path=path))


class Snapshot(Protocol):
    """The files of a table at one moment. `version`: None if the format has no versions."""

    @property
    def version(self) -> int | None: ...

    @property
    def files(self) -> PresentFiles: ...

    @property
    def fields(self) -> Mapping[str, Any]:
        """The columns by name, each as Spark's JSON."""

    @property
    def columns(self) -> Mapping[str, str]:
        """The identity of each column."""

    def frame(self, names: Sequence[str] | None = None) -> DataFrame:
        """Return all rows of these files (None: of all files)."""

    def full_path(self, name: str) -> str:
        """Return the full path of a file."""

    def footers(
        self,
        sizes: Mapping[str, int],
        sets_of: Collection[str] = (),
        words_of: Collection[str] = (),
        by_group: bool = False,
    ) -> Footers:
        """Return the footers of files with these sizes, with the table's names of columns; see `footers_of`."""


class Format(Protocol):
    """A table as its format lists and reads it. `is_shared`: True if others may change its files, in its log."""

    @property
    def kind(self) -> Kind: ...

    @property
    def is_shared(self) -> bool: ...

    @property
    def spark(self) -> SparkSession: ...

    @property
    def path(self) -> str: ...

    @property
    def side(self) -> Folder:
        """The folder with the table's state."""

    def snapshot(self, version: int | None = None) -> Snapshot:
        """Return the table as it is, or an older version of it."""

    def rows(self, version: int | None = None) -> DataFrame:
        """Return all rows, as a query would read them."""

    def file_names(self, paths: Sequence[str], version: int | None = None) -> list[str]:
        """Return the names of a version's files, from the paths that Spark lists."""


def schema_at(snapshot: Snapshot) -> dict[str, Type]:
    return schema_of_fields(tuple(snapshot.fields.values()))


def check_names(columns: Sequence[str]) -> None:
    """Raise HedgerowError if two columns of new rows have names that differ only in letter case.

    >>> check_names(["id", "v", "V"])
    Traceback (most recent call last):
    hedgerow.core.errors.HedgerowError: the new rows have two columns v and V, which a table cannot tell apart
    """
    first: dict[str, str] = {}
    for name in columns:
        if name.lower() in first:
            both = f"{first[name.lower()]} and {name}"
            raise HedgerowError(f"the new rows have two columns {both}, which a table cannot tell apart")
        first[name.lower()] = name


def footers_and_terms(
    snapshot: Snapshot, sizes: Mapping[str, int], items: Sequence[Feature], by_group: bool = False
) -> tuple[Footers, Entries, dict[str, TermStats]]:
    """Return the footers of files, what an index describes, and its statistics of the items that all footers state.

    `by_group`: the index also describes the row groups of the files, if some have several."""
    wanted = set(map(feature_text, items))
    footers = snapshot.footers(sizes, wanted, searched_for_words(items), by_group=by_group)
    groups = RowGroups.of_footers(footers) if by_group else None
    of_files = footers.of_whole_files(len(sizes)) if by_group else footers
    terms = (of_files if groups is None else footers).known_terms(schema_at(snapshot))
    return of_files, Entries(file_names(sizes), groups), terms
