"""Reads Delta's log through Py4J: snapshots, their files, and the rows of some files.

A file's name is the path in its log action: relative to the table and URL-encoded, or absolute.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from os.path import realpath
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.errors import HedgerowError
from hedgerow.core.predicates.schema import path_of
from hedgerow.core.predicates.sql_text import in_backticks, quote_name, quote_string
from hedgerow.spark.helper_columns import helper_name
from hedgerow.spark.start.delta_jars import NO_DELTA, loaded
from hedgerow.spark.start.jar import gateway
from hedgerow.spark.start.machine_lock import machine_lock
from hedgerow.spark.start.session import first_line, needs_jvm, spark_errors
from hedgerow.spark.storage.column_identity import PHYSICAL_NAME, column_identities
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.footers import Footers, footers_of
from hedgerow.spark.storage.paths import added_path, path_in_backticks, plain_path
from hedgerow.spark.storage.present_files import PresentFiles

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

# The features that the rewrite was tested with. Another one may require of writers something that Hedgerow does not do.
FEATURES = frozenset(
    """
    appendOnly invariants checkConstraints changeDataFeed generatedColumns columnMapping identityColumns timestampNtz
    deletionVectors rowTracking domainMetadata v2Checkpoint allowColumnDefaults inCommitTimestamp vacuumProtocolCheck
    clustering checkpointProtection typeWidening typeWidening-preview variantType variantType-preview
    """.split()  # noqa: SIM905
)
_STATS_COLUMNS, _STATS_COUNT = "delta.dataSkippingStatsColumns", "delta.dataSkippingNumIndexedCols"
# Delta keeps minimum and maximum of these types only.
_MEASURED = re.compile(r"(tinyint|smallint|int|bigint|float|double|decimal\(.*\)|date|timestamp|timestamp_ntz|string)$")
_LISTED = re.compile(r"(?:`[^`]*`|[^,`])+")  # a name between commas; a name in backticks may have commas itself
_WINNER = re.compile(
    r"[Aa] concurrent (.+?) (?:added|modified|deleted|removed|updated)|\"operation\"\s*:\s*\"([^\"]+)\""
)
_MAX_CACHED_SNAPSHOTS = 4
_WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")
_PATH_COLUMN = helper_name("path")


class Conflict(HedgerowError):
    """Another transaction changed data that a rewrite had read; the rewrite changed nothing."""


@dataclass(frozen=True)
class DeltaLog:
    """A Delta table's log; open it with `delta_log`. `catalog`: the table in Spark's catalog, as a Scala option."""

    spark: SparkSession
    path: str
    java: Any
    catalog: Any

    def snapshot(self, version: int | None = None) -> Snapshot:
        """Return the newest snapshot, or that of a version."""
        none = self.jvm.scala.Option.empty()
        try:
            if version is None:
                java = self.java.update(False, none, self.catalog)
            else:
                java = self.java.getSnapshotAt(version, none, self.catalog, False)
        except spark_errors() as error:
            raise HedgerowError(f"version {version} of {self.path} cannot be read: {first_line(error)}") from error
        key = (int(java.version()), str(java.metadata().id()))  # a recreated table starts at version 0 again
        if key not in self._snapshots:
            if len(self._snapshots) >= _MAX_CACHED_SNAPSHOTS:
                self._snapshots.clear()
            self._snapshots[key] = Snapshot(self, java)
        return self._snapshots[key]

    def committing(self) -> AbstractContextManager[None]:
        """Lock commits on this machine; on a local disk, Delta lets two processes write the same version."""
        return machine_lock(realpath(self.path)) if self.path.startswith("/") else nullcontext()

    @cached_property
    def _snapshots(self) -> dict[tuple[int, str], Snapshot]:
        return {}

    @property
    def jvm(self) -> Any:
        return self.spark._jvm

    @property
    def sql_name(self) -> str:
        return "delta." + in_backticks(self.path)

    def full_path(self, name: str) -> str:
        """Return the full path of a file; those of a shallow clone lie outside of the table."""
        return added_path(name, self.path)

    def history(self) -> DataFrame:
        return self.spark.sql(f"DESCRIBE HISTORY {self.sql_name}")


@dataclass(frozen=True)
class Snapshot:
    """One version of a table."""

    log: DeltaLog
    java: Any

    @cached_property
    def version(self) -> int:
        return int(self.java.version())

    @cached_property
    def mark(self) -> str:
        """Return a text that no other version of any table has; the optimizer rule computes the same text.

        A copy or a restored backup of the table may have a version of the same number; its commit has another time."""
        return str(gateway(self.log.spark).deltaVersion(self.java))

    def _as_java(self, collection: Any) -> Any:
        return self.log.jvm.scala.jdk.javaapi.CollectionConverters.asJava(collection)

    @cached_property
    def properties(self) -> dict[str, str]:
        return dict(self._as_java(self.java.metadata().configuration()))

    @cached_property
    def partition_columns(self) -> list[str]:
        return [c for c in self.java.metadata().partitionColumns().mkString("\n").split("\n") if c]

    @cached_property
    def fields(self) -> dict[str, Any]:
        """Top-level columns by name, each as Delta's own JSON."""
        return {field["name"]: field for field in json.loads(self.java.metadata().schemaString())["fields"]}

    @cached_property
    def physical(self) -> dict[str, str]:
        """The names that users see of top-level columns, by their names in the data files."""
        return {f["metadata"].get(PHYSICAL_NAME, name): name for name, f in self.fields.items()}

    @property
    def is_mapped(self) -> bool:
        """True if columns have other names in the data files."""
        return any(physical != name for physical, name in self.physical.items())

    @cached_property
    def columns(self) -> dict[str, str]:
        return column_identities(list(self.fields.values()))

    @cached_property
    def features(self) -> set[str]:
        protocol = self.java.protocol()
        named = {str(name) for name in self._as_java(protocol.readerAndWriterFeatureNames())}
        return named | {f.name() for f in self._as_java(protocol.implicitlyAndExplicitlySupportedFeatures())}

    @cached_property
    def files(self) -> PresentFiles:
        rows = "coalesce(CAST(get_json_object(stats, '$.numRecords') AS BIGINT), -1) AS rows"
        deleted = "coalesce(deletionVector.cardinality, 0) AS deleted"
        frame = _as_frame(self.log.spark, self.java.allFiles().toDF())
        listed = frame.selectExpr("path", "size", rows, deleted).toArrow()
        records, deleted_rows = listed["rows"].to_numpy(), listed["deleted"].to_numpy()
        rows_left = np.where(records < 0, -1, records - deleted_rows)
        return PresentFiles(tuple(listed["path"].to_pylist()), listed["size"].to_numpy(), rows_left, deleted_rows)

    def stated(self, columns: Sequence[Sequence[str]]) -> pa.Table:
        """Return for each file its `path`, its `rows` (-1 if unknown), and the facts that the log states of columns.

        These are `low_2`, `high_2` and `nulls_2` for columns[2], if that is a partition column or Delta measures it.

        Args:
            columns: paths of names, as of a field of a struct.
        """
        named = {i: field for i, path in enumerate(columns) if (field := self._stored(path)) is not None}
        parted = {i for i in named if len(columns[i]) == 1 and columns[i][0] in self.partition_columns}
        measured = {i: field for i, field in named.items() if i not in parted and _MEASURED.match(field[1])}
        read = "numRecords BIGINT"
        if measured:
            bounds, nulls = _struct(measured.values()), _struct((path, "BIGINT") for path, _ in measured.values())
            read += f", minValues {bounds}, maxValues {bounds}, nullCount {nulls}"
        rows = "coalesce(s.numRecords - coalesce(deletionVector.cardinality, 0), -1)"
        values = ["path", f"{rows} AS rows"]
        for i in parted:
            (in_file,), kind = named[i]
            value = f"CAST(partitionValues[{quote_string(in_file)}] AS {kind})"
            values += [f"{value} AS low_{i}", f"{value} AS high_{i}", f"IF({value} IS NULL, {rows}, 0L) AS nulls_{i}"]
        for i, (path, _) in measured.items():
            name = ".".join(map(quote_name, path))
            values += [f"s.minValues.{name} AS low_{i}", f"s.maxValues.{name} AS high_{i}"]
            values.append(f"s.nullCount.{name} AS nulls_{i}")
        frame = _as_frame(self.log.spark, self.java.allFiles().toDF())
        return frame.selectExpr("*", f"from_json(stats, {quote_string(read)}) AS s").selectExpr(*values).toArrow()

    def _stored(self, path: Sequence[str]) -> tuple[tuple[str, ...], str] | None:
        """Return the path of a field in the data files, and its type; None if the table has no such field."""
        fields, names, kind = self.fields, [], ""
        for name in path:
            if name not in fields:
                return None
            field = fields[name]
            names.append(field["metadata"].get(PHYSICAL_NAME, name))
            kind, fields = type_text(field), {inner["name"]: inner for inner in _inner_fields(field) or ()}
        return tuple(names), kind

    def frame(self, names: Sequence[str] | None = None, why: str = "batch") -> DataFrame:
        """Return all rows of these files (None: of all files), with this version's schema."""
        return self.frame_of(self.log.jvm.org.apache.spark.api.python.PythonUtils.toSeq(self.adds(names)), why)

    def footers(
        self,
        sizes: Mapping[str, int],
        sets_of: Collection[str] = (),
        words_of: Collection[str] = (),
        by_group: bool = False,
    ) -> Footers:
        """Return the footers of files, with the table's own names of columns; see `footers_of`."""
        names = {quote_name(p): quote_name(name) for p, name in self.physical.items()}
        of_sets, of_words = ({p for p, name in names.items() if name in wanted} for wanted in (sets_of, words_of))
        paths = {self.log.full_path(n): size for n, size in sizes.items()}
        footers = footers_of(Folder(self.log.spark, ""), paths, of_sets, of_words, by_group=by_group)
        return footers.renamed(names)

    def full_path(self, name: str) -> str:
        return self.log.full_path(name)

    def frame_of(self, adds: Any, why: str) -> DataFrame:
        """Return all rows of the files of these log actions, a Scala sequence."""
        reason = self.log.jvm.scala.Option.apply(why)
        return _as_frame(self.log.spark, self.log.java.createDataFrame(self.java, adds, False, reason))

    def adds(self, names: Sequence[str] | None) -> Any:
        """Return the log's actions for these files (None: for all), as a Java list."""
        if names is None or set(names) == set(self.files.names):
            return self.java.allFiles().collectAsList()
        others = set(self.files.names) - set(names)
        listed, word = (names, "IN") if len(names) <= len(others) else (others, "NOT IN")
        condition = f"path {word} ({', '.join(map(quote_string, listed))})" if listed else "false"
        return self.java.allFiles().filter(condition).collectAsList()

    def partitions(self) -> list[str]:
        """Return a condition for each partition, such as `year = 2026 AND country = 'de'`."""
        columns = self.partition_columns
        if not columns:
            raise HedgerowError(f"{self.log.path} has no partitions")
        in_log = {name: physical for physical, name in self.physical.items()}
        values = [f"partitionValues[{quote_string(in_log[name])}]" for name in columns]
        rows = _as_frame(self.log.spark, self.java.allFiles().toDF()).selectExpr(*values).distinct().collect()
        return [" AND ".join(map(self._equals, columns, row)) for row in sorted(map(tuple, rows), key=str)]

    def _equals(self, column: str, value: str | None) -> str:
        """Return the condition that a partition column has the value in Delta's log."""
        kind = type_text(self.fields[column])
        if value is None:
            return f"{quote_name(column)} IS NULL"
        literal = value if kind in _WHOLE_NUMBERS else quote_string(value)
        return f"{quote_name(column)} = " + (
            literal if kind in (*_WHOLE_NUMBERS, "string") else f"CAST({literal} AS {kind})"
        )

    def names_where(self, where: str) -> list[str]:
        """Return the names of the files in the partitions that match a condition."""
        if not self.partition_columns:
            raise HedgerowError(f"{self.log.path} has no partitions, so where= has to be a list of files")
        casts = [
            f"CAST(partitionValues[{quote_string(physical)}] AS {type_text(self.fields[name])}) AS {quote_name(name)}"
            for physical, name in self.physical.items()
            if name in self.partition_columns
        ]
        try:
            frame = _as_frame(self.log.spark, self.java.allFiles().toDF()).selectExpr(f"path AS {_PATH_COLUMN}", *casts)
            return [row[0] for row in frame.where(where).select(_PATH_COLUMN).collect()]
        except spark_errors() as error:
            columns = ", ".join(self.partition_columns)
            raise HedgerowError(f"where= picks whole partitions, only by {columns}: {first_line(error)}") from error

    def refuse(self) -> None:
        """Raise HedgerowError if the table has a feature that a rewrite could harm."""
        unknown = sorted(self.features - FEATURES)
        if unknown:
            raise HedgerowError(f"{self.log.path} has the Delta feature {unknown[0]}, which Hedgerow does not know")

    # --- statistics that every reader uses ---

    def cover(self, columns: Sequence[str]) -> None:
        """Set the table's properties so that Delta keeps minimum and maximum of these columns too, in new files.

        By default Delta keeps them for the first 32 columns. The property is set only if it has to change, because a
        change of properties makes concurrent writes fail.
        """
        measured = self._measured_columns()
        prefixes = {path_of(c.lower()) for c in measured}
        leaves = dict(self._leaves())
        missing = [
            c
            for c in dict.fromkeys(columns)
            if c in leaves
            and _MEASURED.match(type_text(leaves[c]))
            and not any(path_of(c.lower())[:n] in prefixes for n in range(1, 9))
        ]
        if not missing:
            return
        value = ",".join([*measured, *missing]).replace("'", "''")
        change = f"ALTER TABLE {self.log.sql_name} SET TBLPROPERTIES ('{_STATS_COLUMNS}' = '{value}')"
        try:
            self.log.spark.sql(change)
        except spark_errors() as error:
            raise conflict_of(error, self.log.path) or HedgerowError(
                f"{self.log.path} cannot be told to keep statistics of {missing[0]}: {first_line(error)}"
            ) from error

    def _measured_columns(self) -> list[str]:
        """Return the columns whose minimum and maximum Delta keeps now."""
        listed = self.properties.get(_STATS_COLUMNS)
        if listed is not None:
            return [c.strip() for c in _LISTED.findall(listed) if c.strip()]
        limit = int(self.properties.get(_STATS_COUNT, "32"))
        leaves = self._leaves()
        covered = leaves if limit < 0 else leaves[:limit]
        return [path for path, leaf in covered if _MEASURED.match(type_text(leaf))]

    def _leaves(self) -> list[tuple[str, Any]]:
        """Return the paths of all columns that are no partition columns and no structs, with their JSON."""
        names = [name for name in self.fields if name not in self.partition_columns]
        return [leaf for name in names for leaf in _leaves(quote_name(name), self.fields[name])]

    def with_row_ids(self, frame: DataFrame) -> DataFrame:
        """Add the columns that keep row ids in a rewrite, if the table tracks rows."""
        tracking = self.log.jvm.org.apache.spark.sql.delta.RowTracking
        return _as_frame(self.log.spark, tracking.preserveRowTrackingColumns(frame._jdf, self.java))


# --- finding tables ---


def has_delta(spark: SparkSession) -> bool:
    """True if the session can read Delta tables."""
    configured = str(spark.conf.get("spark.sql.extensions", "") or "")
    return "DeltaSparkSessionExtension" in configured and loaded(spark._jvm)


def is_delta(spark: SparkSession, target: str) -> bool:
    """True if a path or a catalog name belongs to a Delta table."""
    path = _path_of(spark, target)
    if path is not None:
        return Folder(spark, path).exists("_delta_log")
    provider = _catalog_table(spark, target).provider()
    return bool(provider.isDefined() and str(provider.get()).lower() == "delta")


def delta_log(spark: SparkSession, target: str) -> DeltaLog:
    """Open the Delta table at a path or of a catalog name."""
    needs_jvm(spark, "work on a Delta table")
    if not has_delta(spark):
        raise HedgerowError(NO_DELTA)
    jvm: Any = spark._jvm
    delta, session = jvm.org.apache.spark.sql.delta.DeltaLog, spark._jsparkSession
    path = _path_of(spark, target)
    try:
        if path is not None:
            java, catalog = delta.forTable(session, path), jvm.scala.Option.empty()
        else:
            table = _catalog_table(spark, target)
            java, catalog = delta.forTable(session, table), jvm.scala.Option.apply(table)
        if not java.tableExists():
            raise HedgerowError(f"{target} is no Delta table")
        return DeltaLog(spark, plain_path(java.dataPath().toString()), java, catalog)
    except spark_errors() as error:
        raise HedgerowError(f"the Delta table {target} cannot be read: {first_line(error)}") from error


def _path_of(spark: SparkSession, target: str) -> str | None:
    """Return the path in a table's name; None for a name of the catalog."""
    path = path_in_backticks(target, "delta") or (target if "/" in target else None)
    if path is not None:
        return path.rstrip("/") or "/"
    try:
        _catalog_table(spark, target)
    except spark_errors():
        return target
    return None


def _catalog_table(spark: SparkSession, name: str) -> Any:
    state = spark._jsparkSession.sessionState()
    parts = state.sqlParser().parseMultipartIdentifier(name)
    if parts.size() == 3 and parts.head() == "spark_catalog":
        parts = parts.tail()
    return state.catalog().getTableMetadata(
        state.sqlParser().parseTableIdentifier(".".join(f"`{parts.apply(i)}`" for i in range(parts.size())))
    )


def _as_frame(spark: SparkSession, java: Any) -> DataFrame:
    from pyspark.sql.classic.dataframe import DataFrame as Classic

    return Classic(java, spark)


def conflict_of(error: BaseException, path: str) -> Conflict | None:
    """Return the error as a Conflict if Delta reports a concurrent transaction, else None."""
    java = getattr(error, "java_exception", None)
    while java is not None and not str(java.getClass().getName()).startswith("io.delta.exceptions."):
        java = java.getCause()
    if java is None:
        return None
    match = _WINNER.search(str(java.getMessage()))
    operation = (match[1] or match[2]).upper() if match else "transaction"
    return Conflict(f"{path} was not changed: meanwhile another {operation} changed it; try again")


def _leaves(path: str, field: Any) -> list[tuple[str, Any]]:
    fields = _inner_fields(field)
    if fields is None:
        return [(path, field)]
    return [leaf for inner in fields for leaf in _leaves(f"{path}.{quote_name(inner['name'])}", inner)]


def _inner_fields(field: Any) -> list[Any] | None:
    """Return the fields of a struct, as Delta's JSON; None for any other type."""
    kind = field["type"]
    return kind["fields"] if isinstance(kind, dict) and kind.get("type") == "struct" else None


def _struct(fields: Iterable[tuple[Sequence[str], str]]) -> str:
    """Return the SQL name of a struct's type, from the paths and types of its fields.

    >>> _struct([(("a",), "int"), (("b", "c"), "date"), (("b", "d"), "int")])
    'STRUCT<`a`: int, `b`: STRUCT<`c`: date, `d`: int>>'
    """
    kinds: dict[str, str] = {}
    inside: dict[str, list[tuple[Sequence[str], str]]] = {}
    for (first, *rest), kind in fields:
        kinds[first] = kind
        if rest:
            inside.setdefault(first, []).append((rest, kind))
    kinds |= {name: _struct(of) for name, of in inside.items()}
    return f"STRUCT<{', '.join(f'{in_backticks(name)}: {kind}' for name, kind in kinds.items())}>"


def type_text(field: Any) -> str:
    """Return the SQL name of a column's type, from Delta's JSON."""
    names = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
    kind = field["type"]
    return names.get(kind, kind) if isinstance(kind, str) else "nested"
