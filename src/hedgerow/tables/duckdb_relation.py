"""Reads the files of a table that a condition opens as a relation of DuckDB, with the table's columns and types."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from hedgerow.core.errors import HedgerowError, SchemaError
from hedgerow.tables.entry import struct_of
from hedgerow.tables.plain_files import plain_files
from hedgerow.tables.stored import StoredTable

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation
    from pyspark.sql.types import DataType

_PATTERN = re.compile(r"[*?\[]")
_TYPES = {
    "boolean": "BOOLEAN", "byte": "TINYINT", "short": "SMALLINT", "integer": "INTEGER", "long": "BIGINT",
    "float": "FLOAT", "double": "DOUBLE", "string": "VARCHAR", "binary": "BLOB", "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE", "timestamp_ntz": "TIMESTAMP",
}  # fmt: skip
_UTC = _TYPES["timestamp"]
# The types that DuckDB converts to a type without a change of value.
_NARROWER = {
    "SMALLINT": ("TINYINT",),
    "INTEGER": ("TINYINT", "SMALLINT"),
    "BIGINT": ("TINYINT", "SMALLINT", "INTEGER"),
    "DOUBLE": ("TINYINT", "SMALLINT", "INTEGER", "FLOAT"),
    "TIMESTAMP": ("DATE",),
}


def duckdb_relation(
    table: StoredTable, connection: DuckDBPyConnection, where: str | None = None, version: int | None = None
) -> DuckDBPyRelation:
    """Return all rows of the files that may hold rows on which Spark finds `where` TRUE; see `plain_files`."""
    casts = (f"CAST(NULL AS {kind}) AS {_quoted(name)}" for name, kind in _duckdb_columns(table, version).items())
    nothing = connection.sql(f"SELECT {', '.join(casts)} WHERE false")
    columns = dict(zip(nothing.columns, map(str, nothing.types), strict=True))  # as DuckDB writes its types
    opened = plain_files(table, where, version)
    if not opened:
        return nothing
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}  # the files of others by their own types; () has ours
    for file in opened:
        key = () if file.is_ours else tuple(_types_in(_rows_of(connection, [file.path])).items())
        groups.setdefault(key, []).append(file.path)
    relations = [
        _in_types(_rows_of(connection, paths), columns, paths[0] if key else None) for key, paths in groups.items()
    ]
    return reduce(lambda some, more: some.union(more), relations)


def _rows_of(connection: DuckDBPyConnection, paths: Sequence[str]) -> DuckDBPyRelation:
    # Files may lack columns that the table got later. DuckDB would add a column for a folder column=value above them.
    return connection.read_parquet([_escaped(path) for path in paths], union_by_name=True, hive_partitioning=False)


def _types_in(files: DuckDBPyRelation) -> dict[str, str]:
    """Return the types of the columns, by lower-case name."""
    return {name.lower(): str(kind) for name, kind in zip(files.columns, files.types, strict=True)}


def _in_types(files: DuckDBPyRelation, columns: Mapping[str, str], others: str | None) -> DuckDBPyRelation:
    """Return the rows of files with the table's columns and types.

    `others`: a file that others wrote; HedgerowError if DuckDB reads its types in another way than Spark."""
    types, values = _types_in(files), list[str]()
    for name, kind in columns.items():
        own = types.get(name.lower())
        value = "NULL" if own is None else _quoted(name)
        if others is not None and own not in (None, kind, *_NARROWER.get(kind, ())):
            if (own, kind) != ("TIMESTAMP", _UTC):
                raise HedgerowError(f"others wrote {others} with the column {name} as {own} to DuckDB, not as {kind}")
            value = f"timezone('UTC', {value})"  # INT96, which is in UTC but does not say so
        values.append(f"CAST({value} AS {kind}) AS {_quoted(name)}")
    return files.project(", ".join(values))


def _duckdb_columns(table: StoredTable, version: int | None) -> dict[str, str]:
    """Return DuckDB's type of each column; HedgerowError if it has none, or if it mixes up two names."""
    fields = struct_of(tuple(table.format.snapshot(version).fields.values())).fields
    first: dict[str, str] = {}
    for name in (field.name for field in fields):
        if name.lower() in first:
            raise HedgerowError(f"{table.path} has the columns {first[name.lower()]} and {name}, equal in DuckDB")
        first[name.lower()] = name
    return {field.name: _duckdb_type(field.name, field.dataType) for field in fields}


def _duckdb_type(column: str, kind: DataType) -> str:
    """Return DuckDB's name of a type; SchemaError if it has none for the same values."""
    from pyspark.sql import types as t

    match kind:
        case t.StructType():
            fields = (f"{_quoted(f.name)} {_duckdb_type(column, f.dataType)}" for f in kind.fields)
            return f"STRUCT({', '.join(fields)})"
        case t.ArrayType():
            return f"{_duckdb_type(column, kind.elementType)}[]"
        case t.MapType():
            return f"MAP({_duckdb_type(column, kind.keyType)}, {_duckdb_type(column, kind.valueType)})"
        case t.DecimalType():
            return f"DECIMAL({kind.precision}, {kind.scale})"
    if kind.typeName() not in _TYPES:
        raise SchemaError(f"the column {column} cannot be read by DuckDB: it has the type {kind.simpleString()}")
    return _TYPES[kind.typeName()]


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _escaped(path: str) -> str:
    """Return a pattern of DuckDB's that only this path matches."""
    return _PATTERN.sub(r"[\g<0>]", path)
