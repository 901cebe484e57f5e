"""What a user points at, as a DataFrame with a name and a schema that core understands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hedgerow.core.bind import as_schema
from hedgerow.core.errors import HedgerowError, SchemaError
from hedgerow.core.expr import quote_name
from hedgerow.core.types import Type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Source:
    frame: DataFrame
    name: str
    schema: dict[str, Type]


def open_source(spark: SparkSession, source: str | Sequence[str] | DataFrame, name: str | None = None) -> Source:
    """A Parquet directory, a list of files, a catalog table or a DataFrame."""
    from pyspark.errors import AnalysisException

    try:
        if isinstance(source, str):
            is_path = "/" in source or source.endswith(".parquet")
            frame = spark.read.parquet(source) if is_path else spark.table(source)
            own = (
                source.rstrip("/").rsplit("/", 1)[-1].removesuffix(".parquet") if is_path else source.rsplit(".", 1)[-1]
            )
        elif isinstance(source, Sequence):
            frame, own = spark.read.parquet(*source), ""
        else:
            frame, own = source, ""
    except AnalysisException as error:
        raise HedgerowError(f"the table {source} cannot be read: {str(error).splitlines()[0]}") from error
    return Source(frame, name or own, schema_of(frame))


def schema_of(frame: DataFrame) -> dict[str, Type]:
    """Names and types; fields of structs under dotted names."""
    found: dict[str, Any] = {}

    def add(prefix: str, fields: Any) -> None:
        for field in fields:
            key = prefix + quote_name(field.name)
            found[key] = field.dataType.simpleString()
            if hasattr(field.dataType, "fields"):
                add(key + ".", field.dataType.fields)

    add("", frame.schema.fields)
    if not found:
        raise SchemaError("the table has no columns")
    return as_schema(found)
