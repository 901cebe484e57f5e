"""Reads a managed Parquet table from disk: Parquet files, and `_hedgerow/` with the layout and the index.

    orders/  part-00000-....parquet ...          any engine reads these
             _hedgerow/layout.json
                       copies/...                rows that other blocks have as well
                       replicas/...              full copies in other layouts
                       index-2-<id>.arrow        what each file cannot contain
                       files-2-<id>.arrow        names, sizes, rows
                       manifest-2.json           written last; names all the rest

The manifest is written last, so an unfinished table has none. Files that it does not name were written by others and
are always read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from hedgerow.core.errors import HedgerowError
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.index_file import index_of_bytes
from hedgerow.core.layouts.base import Layout, layout_from_json
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.predicates.types import Type
from hedgerow.spark.compute.joins import Joins
from hedgerow.spark.judged import V1_SOURCES
from hedgerow.spark.optimizer.rule import settings
from hedgerow.spark.start.session import configured, is_remote
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.paths import escape_glob
from hedgerow.spark.storage.source import schema_of
from hedgerow.spark.write.copies import COPIES, COPY
from hedgerow.tables.known_files import SIDE, KnownFiles
from hedgerow.tables.parquet.manifest import Manifest, manifest_numbers, read_manifest
from hedgerow.tables.sealed import read_sealed
from hedgerow.tables.settings_fit import difference, fitting_index
from hedgerow.tables.stored_joins import opened as opened_joins
from hedgerow.tables.stored_joins import schema_of_joins, usable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

LAYOUT = "layout.json"
Opened = TypeVar("Opened", bound="StoredParquet")


@dataclass(frozen=True)
class StoredParquet:
    """A managed Parquet table in the state of one manifest, by default the newest."""

    spark: SparkSession
    path: str
    manifest: Manifest

    @classmethod
    def open(cls: type[Opened], spark: SparkSession, path: str, number: int = 0) -> Opened:
        """Opens the table in the state of its newest manifest, or of the manifest `number`."""
        side = Folder(spark, f"{path}/{SIDE}")
        number = number or newest_manifest(side)
        if not number:
            raise HedgerowError(f"{path} is no table that Hedgerow wrote: {_why_not(spark, path)}")
        return cls(spark, path, read_manifest(side, number, path))

    @property
    def name(self) -> str:
        return self.manifest.name

    @cached_property
    def known(self) -> KnownFiles:
        """The indexed files, in the index's order."""
        return KnownFiles.of_bytes(self._read(self.manifest.files), self.path)

    @cached_property
    def stored_index(self) -> BlockIndex:
        return index_of_bytes(self._read(self.manifest.index), f"the index of {self.path}")

    def _read(self, name: str) -> bytes:
        return read_sealed(self.side, name, self.manifest.seals)

    @property
    def index(self) -> BlockIndex:
        """The part of the index that holds under the session's settings."""
        return self.index_under(settings(self.spark))

    def index_under(self, now: Mapping[str, str]) -> BlockIndex:
        """The part of the index that holds under these settings."""
        differs = difference(self.manifest.settings, now)
        kind = differs and differs[0]
        if kind not in self._indexes:
            seen = {**self.schema, **schema_of_joins(self.manifest.joined)}
            self._indexes[kind] = fitting_index(self.stored_index, seen, kind)
        return self._indexes[kind]

    @cached_property
    def _indexes(self) -> dict[str | None, BlockIndex]:
        return {}

    @cached_property
    def layout(self) -> Layout:
        return layout_from_json(self._read(LAYOUT))

    @cached_property
    def schema(self) -> dict[str, Type]:
        return schema_of(self.spark_schema)

    @cached_property
    def spark_schema(self) -> StructType:
        from pyspark.sql.types import StructType

        return StructType.fromJson(deepcopy(dict(self.manifest.schema)))  # fromJson changes its input

    @cached_property
    def joins(self) -> Joins:
        """The rows of other tables that the layout and the index speak of, as they are now."""
        return opened_joins(self.spark, self.manifest.joined)

    @cached_property
    def usable_joins(self) -> Joins:
        """The same, or none if a table cannot be read any more: the table's own rows can be judged without it."""
        return usable(lambda: self.joins)

    @cached_property
    def side(self) -> Folder:
        return Folder(self.spark, f"{self.path}/{SIDE}")

    def present(self) -> dict[str, int]:
        """The sizes of the data files that exist now, indexed or not; of the hidden files, the indexed ones only."""
        sizes = data_files(self.spark, self.path)
        if not is_remote(self.spark) and not self.known.visible.all():
            hidden = self.hidden_files()
            sizes |= {n: hidden[n] for n in self.known.names if n in hidden}
        return sizes

    def hidden_files(self) -> dict[str, int]:
        """The sizes of the files with copies that exist now."""
        copies = data_files(self.spark, f"{self.path}/{COPIES}")
        return {f"{COPIES}/{name}": size for name, size in copies.items()}

    def frame(self, files: Sequence[str]) -> DataFrame:
        """All rows of these files."""
        return self._files(files, self.spark_schema) if files else self.all_rows().limit(0)

    def with_copies(self, files: Sequence[str]) -> DataFrame:
        """All rows of these files of copies, with one more column: the number of block and cell."""
        from pyspark.sql.types import LongType, StructField, StructType

        return self._files(files, StructType([*self.spark_schema.fields, StructField(COPY, LongType())]))

    def copy_code(self, block: int, cell: int) -> int:
        """The number that copies of a cell carry in a block."""
        assert isinstance(self.layout, OverlapLayout)
        return self.layout.code(block, cell)

    def _files(self, files: Sequence[str], schema: StructType) -> DataFrame:
        # Above a threshold Spark would list the paths in a job, but each path is a file: there is nothing to list.
        reader_settings = {
            "sources__parallelPartitionDiscovery__threshold": len(files) + 32,
            "sources__useV1SourceList": V1_SOURCES,
        }
        with configured(self.spark, **reader_settings):
            return self.spark.read.schema(schema).parquet(*(escape_glob(f"{self.path}/{n}") for n in files))

    def all_rows(self) -> DataFrame:
        return self.spark.read.schema(self.spark_schema).parquet(escape_glob(self.path))


def newest_manifest(side: Folder) -> int:
    """The number of the newest manifest, 0 if there is none."""
    return max(manifest_numbers(side), default=0)


def partial_place(path: str) -> tuple[str, str]:
    """The folder around a table, and the temporary name in it under which the table is written."""
    parent, _, last = path.rstrip("/").rpartition("/")
    return parent or ("/" if path.startswith("/") else "."), f".{last}.hedgerow-partial"


def old_place(last: str) -> str:
    """The temporary name, in the folder around a table, of what another table replaces."""
    return f".{last}.hedgerow-old"


def bring_back(spark: SparkSession, path: str) -> bool:
    """Gives a table its name again if a run was killed while it replaced it; whether that was so."""
    parent, _, last = Folder(spark, path).resolved().rpartition("/")
    around, old = Folder(spark, parent), old_place(last)
    if not last or around.exists(last) or not around.exists(old):
        return False
    around.move(old, last)
    return True


def is_half_done(spark: SparkSession, path: str) -> bool:
    """Whether a write began here and never ended: the layout is written first, and the manifest last."""
    side = Folder(spark, f"{path}/{SIDE}")
    return side.exists(LAYOUT) and not newest_manifest(side)


def _why_not(spark: SparkSession, path: str) -> str:
    if is_remote(spark):
        return "there is no _hedgerow folder with a manifest in it"
    around, partial = partial_place(path)
    if Folder(spark, around).exists(partial) or is_half_done(spark, path):
        return "a run that wrote it was killed or failed before the end, so apply again"
    if not Folder(spark, path).exists():
        return "there is nothing at that path"
    tables = [name for name in Folder(spark, path).folders() if Folder(spark, f"{path}/{name}").exists("_hedgerow")]
    return f"name one of the tables in it, {', '.join(tables)}" if tables else "there is no layout of Hedgerow in it"


def data_files(spark: SparkSession, path: str) -> dict[str, int]:
    """The sizes of the files that Spark reads as the table's; it ignores folders, as there are no partitions."""
    return {n: size for n, size in Folder(spark, path).sizes().items() if size >= 0 and not n.startswith(("_", "."))}
