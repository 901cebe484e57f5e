"""The format of a Parquet table: a folder of Parquet files, which only Hedgerow changes.

    orders/  part-00000-....parquet ...          any engine reads these
             _hedgerow/state-2.json  ...         see `tables/state`
                       copies/...                copies of rows of other blocks
                       replicas/...              full copies in other layouts

Files that the state does not name were written by others; every query reads them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from hedgerow.core.errors import HedgerowError
from hedgerow.spark.judged import V1_SOURCES
from hedgerow.spark.start.session import configured, is_remote
from hedgerow.spark.storage.column_identity import column_identities
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.footers import Footers, footers_of
from hedgerow.spark.storage.paths import escape_glob
from hedgerow.spark.storage.present_files import PresentFiles
from hedgerow.spark.write.copies import COPIES, COPY
from hedgerow.tables.entry import Fields, struct_of
from hedgerow.tables.formats import LacksCapability
from hedgerow.tables.known_files import PARTITION, SIDE
from hedgerow.tables.parquet.runs import partials
from hedgerow.tables.part import Part, parts_of
from hedgerow.tables.state import TableState, newest_state, read_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CLASSIC_ONLY = "over Spark Connect, ask it by SQL or a DataFrame, or open it in a classic session"


@dataclass(frozen=True)
class ParquetFolder:
    """A folder of Parquet files with certain columns. `parts`: the table's parts, which list its hidden files."""

    spark: SparkSession
    path: str
    fields: Fields
    parts: tuple[Part, ...] = ()
    kind: Literal["parquet"] = "parquet"
    is_shared: bool = False

    @cached_property
    def side(self) -> Folder:
        return side_of(self.spark, self.path)

    def snapshot(self, version: int | None = None) -> ParquetSnapshot:
        if version is not None:
            raise LacksCapability("older versions", self.path)
        return ParquetSnapshot(self)

    def rows(self, version: int | None = None) -> DataFrame:
        if version is not None:
            raise LacksCapability("older versions", self.path)
        return self.spark.read.schema(struct_of(self.fields)).parquet(escape_glob(self.path))

    def file_names(self, paths: Sequence[str], version: int | None = None) -> list[str]:
        root = Folder(self.spark, self.path).full_path
        return sorted(path.removeprefix(f"{root}/") for path in paths)

    def frame(self, names: Sequence[str]) -> DataFrame:
        """Return all rows of these files."""
        return self._read(names, struct_of(self.fields)) if names else self.rows().limit(0)

    def with_copies(self, names: Sequence[str]) -> DataFrame:
        """Return all rows of these files of copies; the column `COPY` has a number for the block and the cell."""
        from pyspark.sql.types import LongType, StructField, StructType

        return self._read(names, StructType([*struct_of(self.fields).fields, StructField(COPY, LongType())]))

    def _read(self, names: Sequence[str], schema: Any) -> DataFrame:
        # Above a threshold Spark would start a job to list the paths, but each path is a file.
        reader_settings = {
            "sources__parallelPartitionDiscovery__threshold": len(names) + 32,
            "sources__useV1SourceList": V1_SOURCES,
        }
        with configured(self.spark, **reader_settings):
            return self.spark.read.schema(schema).parquet(*(escape_glob(f"{self.path}/{n}") for n in names))

    def data_files(self) -> dict[str, int]:
        """Return the size of each data file in the folder itself, by name; a managed table has no partition folders."""
        return _data_files(self.spark, self.path)

    def partitions(self) -> list[str]:
        """Return the folders `column=value`, which others made: Spark then reads the files in these only."""
        return [name for name in Folder(self.spark, self.path).folders() if PARTITION.fullmatch(name)]

    def hidden_files(self) -> dict[str, int]:
        """Return the size of each file with copies of rows, by name."""
        return {f"{COPIES}/{name}": size for name, size in _data_files(self.spark, f"{self.path}/{COPIES}").items()}


@dataclass(frozen=True)
class ParquetSnapshot:
    """The files of a Parquet table, as they were when `files` was first read."""

    folder: ParquetFolder
    version: None = None

    @cached_property
    def files(self) -> PresentFiles:
        """All data files, indexed or not, and the hidden files that are indexed."""
        sizes = dict(sorted(self.folder.data_files().items()))
        indexed = [part.known for part in self.folder.parts]
        if not is_remote(self.folder.spark) and not all(files.visible.all() for files in indexed):
            names = {name for files in indexed for name in files.names}
            sizes |= {n: size for n, size in sorted(self.folder.hidden_files().items()) if n in names}
        return PresentFiles.of_sizes(sizes)

    @cached_property
    def fields(self) -> dict[str, Any]:
        return {field["name"]: field for field in self.folder.fields}

    @cached_property
    def columns(self) -> dict[str, str]:
        return column_identities(self.folder.fields)

    def frame(self, names: Sequence[str] | None = None) -> DataFrame:
        return self.folder.rows() if names is None else self.folder.frame(names)

    def full_path(self, name: str) -> str:
        return f"{self.folder.path}/{name}"

    def footers(
        self,
        sizes: Mapping[str, int],
        sets_of: Collection[str] = (),
        words_of: Collection[str] = (),
        by_group: bool = False,
    ) -> Footers:
        return footers_of(Folder(self.folder.spark, self.folder.path), sizes, sets_of, words_of, by_group=by_group)


def side_of(spark: SparkSession, path: str) -> Folder:
    return Folder(spark, f"{path}/{SIDE}")


def open_folder(spark: SparkSession, path: str) -> tuple[ParquetFolder, TableState]:
    """Open a table in its newest state."""
    side = side_of(spark, path)
    number = newest_state(side)
    if not number:
        raise HedgerowError(f"{path} is no table that Hedgerow wrote: {_why_not(spark, path)}")
    state = read_state(side, number)
    if state.kind == "delta" and is_remote(spark):
        raise HedgerowError(f"{path} is a Delta table: {_CLASSIC_ONLY}")
    if state.kind != "parquet" or not state.parts:
        raise HedgerowError(f"{path} is not a Parquet table that Hedgerow wrote")
    return folder_of(spark, path, state), state


def folder_of(spark: SparkSession, path: str, state: TableState) -> ParquetFolder:
    """Return the folder of a table in this state."""
    return ParquetFolder(spark, path, state.parts[-1].fields, parts_of(side_of(spark, path), state.parts))


def old_place(last: str) -> str:
    """Return the temporary name of an old table while a new one replaces it; both are in the same folder."""
    return f".{last}.hedgerow-old"


def bring_back(spark: SparkSession, path: str) -> bool:
    """Move the old table back if a run was killed while it replaced the table; return True if one was moved."""
    parent, _, last = Folder(spark, path).resolved().rpartition("/")
    around, old = Folder(spark, parent), old_place(last)
    if not last or around.exists(last) or not around.exists(old):
        return False
    around.move(old, last)
    return True


def is_half_done(spark: SparkSession, path: str) -> bool:
    """True if a write began here and did not end: the claim, waves and the layout come first, and the state last."""
    names = side_of(spark, path).sizes()
    has_begun = any(name.startswith(("run-", "wave-", "layout-")) for name in names)
    return has_begun and not any(name.startswith("state-") for name in names)


def _why_not(spark: SparkSession, path: str) -> str:
    if is_remote(spark):
        return f"there is no _hedgerow folder with a state in it; if it is a Delta table or a name: {_CLASSIC_ONLY}"
    if partials(spark, path) or is_half_done(spark, path):
        return "a run that wrote it was killed or failed before the end, so apply again"
    if not Folder(spark, path).exists():
        return "there is nothing at that path"
    tables = [name for name in Folder(spark, path).folders() if Folder(spark, f"{path}/{name}").exists(SIDE)]
    return f"name one of the tables in it, {', '.join(tables)}" if tables else "there is no layout of Hedgerow in it"


def _data_files(spark: SparkSession, path: str) -> dict[str, int]:
    return {n: size for n, size in Folder(spark, path).sizes().items() if size >= 0 and not n.startswith(("_", "."))}
