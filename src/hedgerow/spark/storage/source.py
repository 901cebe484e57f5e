"""What a user points at, as a DataFrame with a name and a schema that core understands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from hedgerow.core.errors import HedgerowError, SchemaError
from hedgerow.core.predicates.schema import as_schema
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.core.predicates.types import Type
from hedgerow.spark.start.session import first_line, needs_jvm, same_grammar, spark_errors
from hedgerow.spark.storage.delta_log import delta_log, is_delta
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.footers import footers_of, mean_widths

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# Bytes of a value where no file tells.
_WIDTH = {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "float": 4, "date": 4, "string": 16, "binary": 32}
_FOOTERS = 64
_CHAR = "__CHAR_VARCHAR_TYPE_STRING"


@dataclass(frozen=True)
class Source:
    """`origin` says where the rows come from, in the user's words; `is_files`: they are Parquet files as they lie.

    `sizes`: these files and their bytes, where somebody knows them.
    """

    frame: DataFrame
    name: str
    schema: dict[str, Type]
    origin: str
    is_files: bool
    sizes: Mapping[str, int] | None = None

    @cached_property
    def rows(self) -> int:
        return self.frame.count()

    @cached_property
    def widths(self) -> dict[str, float]:
        """Mean bytes of a value, by top-level column: from footers, else by type."""
        measured = self._measured()
        names = [quote_name(field.name) for field in self.frame.schema.fields]
        if measured:
            return {name: measured.get(name, 0.0) for name in names}
        return {name: float(_WIDTH.get(self.schema[name].name, 8)) for name in names}

    def _measured(self) -> dict[str, float]:
        if not self.is_files:
            return {}
        folder = Folder(self.frame.sparkSession, "")
        files = [unquote(f) for f in self.frame.inputFiles()] if self.sizes is None else list(self.sizes)
        some = files[:: -(-len(files) // _FOOTERS)] if files else []
        return mean_widths(footers_of(folder, {f: self.sizes[f] if self.sizes else folder.size(f) for f in some}))


def open_source(spark: SparkSession, source: str | Sequence[str] | DataFrame, name: str | None = None) -> Source:
    """A Parquet directory, a list of files, a catalog table or a DataFrame."""
    needs_jvm(spark, "learn, score or apply")
    if not same_grammar(spark):
        raise HedgerowError(
            "under spark.sql.parser.escapedStringLiterals or spark.sql.ansi.doubleQuotedIdentifiers texts mean other "
            "things than Hedgerow reads in them: unset both to learn and to write"
        )
    origin = source if isinstance(source, str) else ", ".join(source) if isinstance(source, Sequence) else "a DataFrame"
    own, is_files = "", True
    try:
        if isinstance(source, str):
            if is_delta(spark, source):
                return _delta(spark, source, name)
            is_path = "/" in source or source.endswith(".parquet") or not spark.catalog.tableExists(source)
            frame = spark.read.parquet(source) if is_path else spark.table(source)
            own = _own_name(source, is_path)
        elif isinstance(source, Sequence):
            frame = spark.read.parquet(*source)
        else:
            frame, is_files = source, False
    except spark_errors() as error:
        raise HedgerowError(f"the table {origin} cannot be read: {first_line(error)}") from error
    return Source(frame, name or own, schema_of(frame.schema), origin, is_files)


def _own_name(source: str, is_path: bool) -> str:
    """The last part of a path or name."""
    if is_path:
        return source.rstrip("/`").rsplit("/", 1)[-1].removesuffix(".parquet")
    return source.rsplit(".", 1)[-1].strip("`")


def _delta(spark: SparkSession, source: str, name: str | None) -> Source:
    snapshot = delta_log(spark, source).snapshot()
    frame, is_mapped = snapshot.frame(), any(physical != own for physical, own in snapshot.physical.items())
    sizes = {
        snapshot.log.place_of(n): int(size) for n, size in zip(snapshot.files.names, snapshot.files.sizes, strict=True)
    }
    own = name or _own_name(source, "/" in source)
    return Source(frame, own, schema_of(frame.schema), source, not is_mapped, sizes)


def schema_of(struct: StructType) -> dict[str, Type]:
    """Names and types; fields of structs under dotted names."""
    found: dict[str, Any] = {}
    known: set[str] = set()

    def add(prefix: str, fields: Any) -> None:
        for field in fields:
            key = prefix + quote_name(field.name)
            if key.lower() in known:
                raise SchemaError(
                    f"two columns are called {field.name}: names that differ in case only are not supported"
                )
            known.add(key.lower())
            # CHAR(n) is a string to Spark's types, but compares padded
            found[key] = (field.metadata or {}).get(_CHAR) or field.dataType.simpleString()
            if hasattr(field.dataType, "fields"):
                add(key + ".", field.dataType.fields)

    add("", struct.fields)
    if not found:
        raise SchemaError("the table has no columns")
    return as_schema(found)
