"""The log of a table's queries, `_hedgerow/log/` in the table: one entry for each query, with its scans of the table.

The log of a Delta table is a Delta table, any other log is a folder of Parquet files. Entries are first written to a
file on this machine, and later appended to the log. A process that is killed loses only entries that are in no file.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4, uuid5
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from hedgerow.core.errors import HedgerowError
from hedgerow.spark.start.session import first_line, in_own_session, needs_jvm, spark_errors
from hedgerow.spark.storage.delta_log import delta_log, is_delta
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.paths import escape_glob
from hedgerow.tables.known_files import LOG

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Entry = Mapping[str, Any]
SCHEMA = pa.schema(
    [
        ("query", pa.string()),  # an id: the same for the same query, noted by a session or imported
        ("at", pa.timestamp("us", "UTC")),  # when the query started
        ("source", pa.string()),  # session, or the file that the query was imported from
        ("conditions", pa.list_(pa.string())),  # the condition of each scan of the table, as SQL
        ("keys", pa.list_(pa.string())),  # what the keys of its joins were, as a condition for each scan, or empty
        ("joins", pa.list_(pa.string())),  # the joins of each scan with other logged tables, see `log`; or empty
        ("columns", pa.list_(pa.string())),
        ("kinds", pa.list_(pa.string())),  # what the query wants of each scan, see `ScanNote`
        ("means", pa.list_(pa.string())),  # how each scan skipped files; empty if it did not
        ("files", pa.int64()),
        ("files_listed", pa.int64()),  # the files without skipping
        ("bytes", pa.int64()),
        ("rows", pa.int64()),  # the output rows of the scans
        ("rows_kept", pa.int64()),  # the output rows of the filters above the scans
        ("seconds", pa.float64()),  # the time of the whole query
        ("redacted", pa.bool_()),
    ]
)
_NAMES = UUID("0b8f4f0e-6d0b-4a3c-9f43-1f5d8a6f0f52")  # the namespace of the ids of queries


def query_id(*facts: Any) -> str:
    """Return an id for the query with these facts; a query of Spark has its application, number and start."""
    return str(uuid5(_NAMES, json.dumps(facts)))


@dataclass(frozen=True)
class QueryLog:
    """The log of the table whose files are in `root`."""

    spark: SparkSession
    root: str
    is_delta: bool

    @staticmethod
    def of(spark: SparkSession, table: str) -> QueryLog:
        """Return the log of a Parquet or Delta table, by the table's path or its name in the catalog."""
        needs_jvm(spark, "log queries")
        if is_delta(spark, table):
            return QueryLog(spark, _root(spark, delta_log(spark, table).path, is_path=True), True)
        is_path = "/" in table or table.endswith(".parquet") or not spark.catalog.tableExists(table)
        return QueryLog(spark, _root(spark, table, is_path), False)

    @property
    def folder(self) -> str:
        return f"{self.root}/{LOG}"

    @in_own_session
    def append(self, entries: Sequence[Entry]) -> None:
        """Write all entries, or none if that fails."""
        failures: tuple[type[Exception], ...] = (OSError, *spark_errors())  # PySpark writes rows to a file first
        rows = pa.Table.from_pylist(list(entries), SCHEMA)
        try:
            if self.is_delta:
                frame = self.spark.createDataFrame(rows).coalesce(1)
                frame.write.format("delta").mode("append").save(self.folder)
            else:
                file = BytesIO()
                pq.write_table(rows, file)
                Folder(self.spark, self.folder).write(f"{uuid4().hex}.parquet", file.getvalue())
        except failures as error:
            raise HedgerowError(f"the log {self.folder} cannot be written: {first_line(error)}") from error

    def partitions(self, table: str, files: Sequence[str]) -> list[str]:
        """Return the table's partition columns; of a Parquet table, from the folders in a file's path."""
        if self.is_delta:
            return delta_log(self.spark, table).snapshot().partition_columns
        folders = files[0].split("/")[:-1] if files else []
        return [folder.partition("=")[0] for folder in folders if "=" in folder]

    def ids(self) -> set[str]:
        """Return the ids of all entries."""
        return {row.query for row in self.frame().select("query").collect()} if self.exists() else set()

    def exists(self) -> bool:
        return Folder(self.spark, self.folder).exists()

    def frame(self, since: str | None = None) -> DataFrame:
        """Return the entries since a time, each once; a repeated append may have written some twice."""
        from pyspark.sql import functions as f

        frame = self._entries()
        recent = frame if since is None else frame.where(f.col("at") >= f.lit(since).cast("timestamp"))
        return recent.dropDuplicates(["query"])

    def last(self) -> int | None:
        """Return the time of the last entry in microseconds, at most the present time; None without an entry.

        A clock that goes wrong may have logged a time to come."""
        from pyspark.sql import functions as f

        now = f.unix_micros(f.current_timestamp())
        row = self._entries().agg(f.least(f.max(f.unix_micros("at")), now)).first()
        return None if row is None or row[0] is None else int(row[0])

    def _entries(self) -> DataFrame:
        if not self.exists():
            raise HedgerowError(
                f"no queries of {self.root} were logged: start with hedgerow.log, or name a file of queries"
            )
        try:
            if self.is_delta:
                return self.spark.read.format("delta").load(self.folder)
            names = ", ".join(f"`{f.name}` {_spark_type(f.type)}" for f in SCHEMA)
            reader = self.spark.read.schema(names).option("pathGlobFilter", "*.parquet")
            return reader.option("ignoreCorruptFiles", True).parquet(escape_glob(self.folder))
        except spark_errors() as error:
            raise HedgerowError(f"the log {self.folder} cannot be read: {first_line(error)}") from error


def _spark_type(kind: pa.DataType) -> str:
    names = {pa.string(): "STRING", pa.int64(): "BIGINT", pa.float64(): "DOUBLE", pa.bool_(): "BOOLEAN"}
    if pa.types.is_list(kind):
        return f"ARRAY<{_spark_type(kind.value_type)}>"
    return names.get(kind, "TIMESTAMP")


def _root(spark: SparkSession, table: str, is_path: bool) -> str:
    """Return the folder of a table's files, as Spark writes it."""
    jvm: Any = spark._jvm
    try:
        session = spark._jsparkSession.sessionState()
        if is_path:
            path = jvm.org.apache.hadoop.fs.Path(table)
        else:
            name = session.sqlParser().parseTableIdentifier(table)
            path = jvm.org.apache.hadoop.fs.Path(session.catalog().getTableMetadata(name).location())
        conf = session.newHadoopConf()
        root = path.getFileSystem(conf).makeQualified(path)
        if not root.getFileSystem(conf).getFileStatus(root).isDirectory():
            raise HedgerowError(f"{table} is a single file, so its queries cannot be logged: name a folder or a table")
    except spark_errors() as error:
        raise HedgerowError(f"the table {table} cannot be read: {first_line(error)}") from error
    return str(root.toString())


class Waiting:
    """The entries of one log that wait on this machine, in a file that only this process writes."""

    def __init__(self, log: QueryLog, folder: Path | None = None) -> None:
        try:
            self._folder = folder or _own_folder() / f"{crc32(log.root.encode()):08x}"
            self._folder.mkdir(parents=True, exist_ok=True)
            self._path = self._folder / f"{uuid4().hex}.jsonl"
            self._file = self._path.open("a", encoding="utf-8")
        except OSError as error:
            raise HedgerowError(f"queries cannot be kept on this machine: {error}") from error
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def add(self, entries: Sequence[Entry]) -> None:
        """Write entries to the file; without space on the disk, they stay in memory until the next call."""
        if entries:
            try:
                self._file.write("".join(json.dumps(entry) + "\n" for entry in entries))
                self._file.flush()
            except OSError as error:
                raise HedgerowError(f"queries cannot be kept on this machine: {error}") from error

    def append_to(self, log: QueryLog) -> int:
        """Move all waiting entries to the log, also those of ended processes; return their number."""
        with self._abandoned() as abandoned:
            entries = _read(self._path) + [entry for path in abandoned for entry in _read(path)]
            if entries:
                log.append([{**entry, "at": entry["at"] * 1000} for entry in entries])
            self._file.truncate(0)
            for path in abandoned:
                path.unlink()
        return len(entries)

    @contextmanager
    def _abandoned(self) -> Iterator[list[Path]]:
        """Yield the files of ended processes, whose locks are free; lock these files while the body runs."""
        paths = []
        with ExitStack() as files:
            for path in sorted(self._folder.glob("*.jsonl")):
                if path != self._path:
                    with suppress(OSError):
                        file = files.enter_context(path.open(encoding="utf-8"))
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        paths.append(path)
            yield paths

    def close(self) -> None:
        """Close the file, and delete it unless entries still wait in it."""
        with suppress(OSError):  # there is no space for the entries in memory
            self._file.close()
        with suppress(OSError):
            if not self._path.stat().st_size:
                self._path.unlink()


def _own_folder() -> Path:
    """Return a folder that only this user can read, because literals of queries may be secret."""
    folder = Path(gettempdir()) / f"hedgerow-log-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    facts = folder.lstat()
    if facts.st_uid != os.getuid() or not stat.S_ISDIR(facts.st_mode):
        raise HedgerowError(f"queries cannot be kept in {folder}: it belongs to another user")
    return folder


def _read(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a file; incomplete lines, and lines that Hedgerow did not write, are left out."""
    entries = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        with suppress(ValueError, TypeError, KeyError, pa.ArrowException):
            entry = json.loads(line)
            pa.Table.from_pylist([{**entry, "at": entry["at"] * 1000}], SCHEMA)
            if set(entry) == set(SCHEMA.names):
                entries.append(entry)
    return entries
