"""Opens a user's table, a path, files, a catalog name or a DataFrame, as rows with a name and a schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import HedgerowError, SchemaError
from hedgerow.core.predicates.schema import as_schema
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.core.predicates.types import Type
from hedgerow.spark.start.session import check_grammar, first_line, needs_jvm, spark_errors
from hedgerow.spark.storage.column_identity import CHAR
from hedgerow.spark.storage.delta_log import Snapshot, delta_log, is_delta
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.footers import Footers, footers_of
from hedgerow.spark.storage.paths import escape_glob, has_pattern, input_files, input_roots, path_in_backticks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# Assumed bytes of a value if no footer states them.
_WIDTH = {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "float": 4, "date": 4, "string": 16, "binary": 32}
_MAX_FOOTERS = 64  # the number of footers that are read to estimate widths


@dataclass(frozen=True)
class Source:
    """The rows that a user's table holds.

    Args:
        origin: the table as the user named it.
        is_files: the rows are read from plain Parquet files.
        sizes: these files and their bytes, if they are known already.
        version: the mark of the version of a Delta table.
        partitions: the partition columns of a Delta table; a rewrite in place keeps them.
        physical: the names of columns by those in the files, if Delta maps them.
        snapshot: the version of a Delta table that is read.
    """

    frame: DataFrame
    name: str
    schema: dict[str, Type]
    origin: str
    is_files: bool
    sizes: Mapping[str, int] | None = None
    version: str | None = None
    partitions: tuple[str, ...] = ()
    physical: Mapping[str, str] = field(default_factory=dict)
    snapshot: Snapshot | None = None

    @cached_property
    def rows(self) -> int:
        return self.frame.count()

    @cached_property
    def widths(self) -> dict[str, float]:
        """The mean bytes of a stored value of each top-level column: from footers, else by type."""
        return self._by_column(self._footers.mean_widths())

    @cached_property
    def unpacked_widths(self) -> dict[str, float]:
        """The same as `widths` after decompression."""
        return self._by_column(self._footers.mean_widths(unpacked=True))

    def _by_column(self, measured: Mapping[str, float]) -> dict[str, float]:
        names = [quote_name(field.name) for field in self.frame.schema.fields]
        if measured:
            return {name: measured.get(name, 0.0) for name in names}
        return {name: float(_WIDTH.get(self.schema[name].name, 8)) for name in names}

    @property
    def size(self) -> float:
        """The bytes of all rows."""
        return self.rows * sum(self.widths.values())

    @cached_property
    def files(self) -> list[str]:
        """The full paths of the files, if the rows are read from plain files."""
        if not self.is_files:
            return []
        return input_files(self.frame) if self.sizes is None else list(self.sizes)

    @cached_property
    def roots(self) -> list[str]:
        """The folders and files that the rows are read from, as far as Spark's plan names them."""
        return input_roots(self.frame)

    def part(self, names: list[str]) -> Source:
        """Return the rows of some files of a Delta table."""
        assert self.snapshot is not None
        sizes = self.snapshot.files.sizes_of(names)
        paths = {self.snapshot.full_path(name): size for name, size in sizes.items()}
        return replace(self, frame=self.snapshot.frame(names), sizes=paths)

    @cached_property
    def _footers(self) -> Footers:
        """The footers of at most `_MAX_FOOTERS` files, from all over the table."""
        folder = Folder(self.frame.sparkSession, "")
        chosen = self.files[:: -(-len(self.files) // _MAX_FOOTERS)] if self.files else []
        footers = footers_of(folder, {f: self.sizes[f] if self.sizes else folder.size(f) for f in chosen})
        names = {quote_name(in_file): quote_name(name) for in_file, name in self.physical.items()}
        return footers.renamed(names) if names else footers


def open_source(
    spark: SparkSession, source: str | Sequence[str] | DataFrame, name: str | None = None, version: int | None = None
) -> Source:
    """Open a Parquet directory, a list of files, a catalog table or a DataFrame; `version`: of a Delta table."""
    needs_jvm(spark, "learn, score or apply")
    check_grammar(spark)
    origin = source if isinstance(source, str) else ", ".join(source) if isinstance(source, Sequence) else "a DataFrame"
    last_part, is_files = "", True
    try:
        if isinstance(source, str):
            if is_delta(spark, source):
                return _delta_source(spark, source, name, version)
            is_path = "/" in source or source.endswith(".parquet") or not spark.catalog.tableExists(source)
            frame = spark.read.parquet(_to_read(spark, source)) if is_path else spark.table(source)
            last_part = own_name(source, is_path)
        elif isinstance(source, Sequence):
            frame = spark.read.parquet(*(_to_read(spark, path) for path in source))
        else:
            frame, is_files = source, False
    except spark_errors() as error:
        raise HedgerowError(f"the table {origin} cannot be read: {_why_not(spark, source, error)}") from error
    return Source(frame, name or last_part, schema_of(frame.schema), origin, is_files)


def _to_read(spark: SparkSession, path: str) -> str:
    """Return the path for Spark's reader; a path that does not exist may be a pattern."""
    return escape_glob(path) if has_pattern(path) and Folder(spark, path).exists() else path


def _why_not(spark: SparkSession, source: Any, error: Exception) -> str:
    if "PATH_NOT_FOUND" in str(error) and isinstance(source, str) and "/" not in source:
        return "no table of the catalog and no folder has this name"
    if "UNABLE_TO_INFER_SCHEMA" not in str(error) or not isinstance(source, str):
        return first_line(error)
    names = Folder(spark, source.rstrip("/")).folders()
    inside = f"; if these are tables, name one, or learn with learner='mto': {', '.join(names)}" if names else ""
    return f"there are no Parquet files in it{inside}"


def own_name(source: str, is_path: bool) -> str:
    """Return the last part of a path, or of a name in the catalog."""
    if is_path:
        return (path_in_backticks(source, "delta") or source).rstrip("/").rsplit("/", 1)[-1].removesuffix(".parquet")
    return source.rsplit(".", 1)[-1].strip("`")


def _delta_source(spark: SparkSession, source: str, name: str | None, version: int | None) -> Source:
    snapshot = delta_log(spark, source).snapshot(version)
    frame, files = snapshot.frame(), snapshot.files
    sizes = {snapshot.full_path(n): size for n, size in zip(files.names, files.sizes.tolist(), strict=True)}
    name = name or own_name(source, "/" in source)
    physical = snapshot.physical if snapshot.is_mapped else {}
    facts = sizes, snapshot.mark, tuple(snapshot.partition_columns), physical, snapshot
    return Source(frame, name, schema_of(frame.schema), source, True, *facts)


def schema_of(struct: StructType) -> dict[str, Type]:
    """Return the names and types of columns; the fields of structs have dotted names."""
    types: dict[str, Any] = {}
    lower_names: set[str] = set()

    def add(prefix: str, fields: Any) -> None:
        for inner in fields:
            key = prefix + quote_name(inner.name)
            if key.lower() in lower_names:
                raise SchemaError(
                    f"two columns are called {inner.name}: names that differ in case only are not supported"
                )
            lower_names.add(key.lower())
            # Spark's type of CHAR(n) is string, but it is compared with padding.
            types[key] = (inner.metadata or {}).get(CHAR) or inner.dataType.simpleString()
            if hasattr(inner.dataType, "fields"):
                add(key + ".", inner.dataType.fields)

    add("", struct.fields)
    if not types:
        raise SchemaError("the table has no columns")
    return as_schema(types)
