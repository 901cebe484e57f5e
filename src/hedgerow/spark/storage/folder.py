"""Reads and writes small files beside a table, on any file system that Spark reaches."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import uuid4

from hedgerow.core.errors import HedgerowError, StorageError
from hedgerow.spark.start.session import first_line, is_remote, needs_jvm, spark_errors
from hedgerow.spark.storage.paths import escape_glob

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_IN_EACH_STATUS = "FileStatus{path=", "; isDirectory="
F = TypeVar("F", bound=Callable[..., Any])
_STATUS = re.compile(r"FileStatus\{path=(.*?); isDirectory=(true|false)(?:; length=(\d+))?")
_TIME = re.compile(r"FileStatus\{path=(.*?); isDirectory=(?:true|false);[^}]*?modification_time=(\d+)")
# An answer of the JVM above 8 kB (in base64) comes in two parts. The second is 40 ms late, because it waits for a
# delayed TCP acknowledgement. So small files are read in pieces that fit one part.
_PIECE_BYTES, _MAX_PIECES = 6000, 50
_FILES_PER_PIECE = 25  # entries of a listing that fit one part
_IF_NEW = "fs.option.create.conditional.overwrite"  # the option of object stores that writes a file only if none exists
PARTIAL = r"\.[0-9a-f]{8}\.partial"  # the end of the name of a file that is not complete yet
_LENGTH = "fs.option.openfile.length"


def is_within(place: str, folder: str) -> bool:
    """True if the place is the folder or inside of it; both are paths from `Folder.resolved`."""
    return place == folder or place.startswith(f"{folder.rstrip('/')}/")


def sizes_of_statuses(listed: Any) -> list[tuple[str, int]]:
    """Return the path and the size of each file in a Java list of Hadoop's `FileStatus`; -1 for a folder."""
    entries = _parsed(listed, _STATUS)
    if entries is None:
        entries = [(s.getPath().toString(), str(s.isDirectory()).lower(), s.getLen()) for s in listed]
    return [(path, -1 if is_dir == "true" else int(size)) for path, is_dir, size in entries]


def _parsed(listed: Any, pattern: re.Pattern[str]) -> list[Any] | None:
    """Parse the text of each `FileStatus`; None if the text is not clear, for a file's name may look like a status."""
    # One text for many entries: each call into the JVM costs a tenth of a millisecond.
    n = len(listed)
    step = _FILES_PER_PIECE if n <= _MAX_PIECES * _FILES_PER_PIECE else n
    texts = [str(listed.subList(i, min(i + step, n)).toString()) for i in range(0, n, step)]
    entries = [status for text in texts for status in pattern.findall(text)]
    is_clear = len(entries) == n and all(sum(text.count(word) for text in texts) == n for word in _IN_EACH_STATUS)
    return entries if is_clear else None


def _in_store(path: Any, fs: Any) -> bool:
    return bool(fs.hasPathCapability(path, _IF_NEW))


def _is_java(error: Any, *names: str) -> bool:
    """True if the JVM raised an exception of one of these classes."""
    return str(error.java_exception.getClass().getSimpleName()) in names


def _reports(done: str) -> Callable[[F], F]:
    """Return a decorator for methods of `Folder` whose first argument is a name: a failure raises StorageError.

    `done`: the participle in its sentence, such as `orders/a.json cannot be read`."""

    def decorated(method: F) -> F:
        @wraps(method)
        def run(folder: Folder, *args: Any, **named: Any) -> Any:
            try:
                return method(folder, *args, **named)
            except StorageError:
                raise
            except spark_errors() as error:
                place = "/".join(str(part) for part in (folder.root, *args[:1]) if part)
                raise StorageError(f"{place} cannot be {done}: {first_line(error)}") from error

        return cast(F, run)

    return decorated


@dataclass(frozen=True)
class Folder:
    """Paths below `root` through Hadoop's file system API; over Spark Connect only reading works, as queries."""

    spark: SparkSession
    root: str

    @cached_property
    def _conf(self) -> Any:
        needs_jvm(self.spark, "write")
        return self.spark._jsparkSession.sessionState().newHadoopConf()

    def _path(self, name: str) -> tuple[Any, Any]:
        conf, jvm = self._conf, self.spark._jvm
        whole = "/".join(p for p in (self.root, name) if p)
        try:
            path = jvm.org.apache.hadoop.fs.Path(whole)  # type: ignore[union-attr]
        except spark_errors() as error:
            raise HedgerowError(f"{whole!r} is no path that Spark can read: {first_line(error)}") from error
        return path, path.getFileSystem(conf)

    @cached_property
    def full_path(self) -> str:
        """The folder with its file system, as Spark writes it."""
        path, fs = self._path("")
        return str(fs.makeQualified(path).toString())

    @cached_property
    def is_store(self) -> bool:
        """True if this is an object store: a file appears when it is complete, and a move copies file by file."""
        return _in_store(*self._path(""))

    def resolved(self) -> str:
        """Return the one spelling of this place: absolute, with its file system; local links are followed."""
        path, fs = self._path("")
        full = path.makeQualified(fs.getUri(), fs.getWorkingDirectory())
        if fs.getScheme() != "file":
            return str(full.toString())
        return f"file://{os.path.realpath(full.toUri().getPath())}"

    def links(self, name: str = "") -> set[str]:
        """Return the names of symbolic links directly in the folder, broken ones included; a store has none."""
        path, fs = self._path(name)
        if fs.getScheme() != "file":
            return set()
        local = path.makeQualified(fs.getUri(), fs.getWorkingDirectory()).toUri().getPath()
        if not os.path.isdir(local):
            return set()
        with os.scandir(local) as entries:
            return {entry.name for entry in entries if entry.is_symlink()}

    def occupied_by(self) -> str | None:
        """Return the reason why no table can be written to this place; None if one can."""
        path, fs = self._path("")
        full = path.makeQualified(fs.getUri(), fs.getWorkingDirectory())
        is_local = fs.getScheme() == "file"
        if full.isRoot() or (is_local and os.path.ismount(full.toUri().getPath())):
            return "the root of a file system"
        folders = {"the working directory": fs.getWorkingDirectory(), "your home folder": fs.getHomeDirectory()}
        places = [(name, Folder(self.spark, str(path_.toString())).resolved()) for name, path_ in folders.items()]
        if is_local:  # Python's own, which may differ from the JVM's
            places.append(("the working directory", f"file://{os.getcwd()}"))
        own = self.resolved()
        for name, place in places:
            if is_within(place, own):
                return name if place == own else f"a folder around {name}"
        is_file = fs.exists(path) and not fs.getFileStatus(path).isDirectory()
        return "a file" if is_file else None

    @_reports("looked up")
    def exists(self, name: str = "") -> bool:
        if is_remote(self.spark):
            return bool(self.sizes(name))
        path, fs = self._path(name)
        return bool(fs.exists(path))

    def folders(self) -> list[str]:
        """Return the names of the visible folders directly in it."""
        return sorted(n for n, size in self.sizes().items() if size < 0 and not n.startswith(("_", ".")))

    @_reports("listed")
    def sizes(self, name: str = "") -> dict[str, int]:
        """Return the entries directly in the folder: files with their lengths, folders with -1."""
        if is_remote(self.spark):
            return self._remote_sizes(name)
        return {path.rsplit("/", 1)[-1]: size for path, size in sizes_of_statuses(self._listed(name))}

    @_reports("listed")
    def write_times(self) -> dict[str, float]:
        """Return when each entry directly in the folder was written, in seconds since 1970; folders of a store: now."""
        listed = self._listed("")
        times = _parsed(listed, _TIME)
        if times is None:
            times = [(s.getPath().toString(), s.getModificationTime()) for s in listed]
        return {path.rsplit("/", 1)[-1]: int(time) / 1000 for path, time in times}

    def _listed(self, name: str) -> Any:
        """Return the entries directly in the folder, as a Java list of Hadoop's `FileStatus`."""
        from py4j.protocol import Py4JJavaError

        path, fs = self._path(name)
        jvm: Any = self.spark._jvm
        try:
            return jvm.org.apache.hadoop.util.functional.RemoteIterators.toList(fs.listStatusIterator(path))
        except Py4JJavaError as error:
            if _is_java(error, "FileNotFoundException"):
                return jvm.java.util.ArrayList()
            raise

    @_reports("looked up")
    def size(self, name: str) -> int:
        path, fs = self._path(name)
        return int(fs.getFileStatus(path).getLen())

    @_reports("looked up")
    def age(self, name: str) -> float:
        """Return the seconds since the file was written; 0 if it does not exist any more."""
        path, fs = self._path(name)
        return time.time() - int(fs.getFileStatus(path).getModificationTime()) / 1000 if fs.exists(path) else 0.0

    @_reports("read")
    def read(self, name: str) -> bytes:
        if is_remote(self.spark):
            row = self._binary(name).select("content").first()
            return bytes(row[0]) if row else b""
        return self._read(name, 0)

    def read_json(self, name: str) -> Any:
        """Return the content of a small JSON file; ValueError if it is damaged."""
        damaged: tuple[type[Exception], ...] = (*spark_errors(), RecursionError)
        try:
            return json.loads(self.read(name))
        except damaged as error:
            raise ValueError(f"{name} cannot be read") from error

    @_reports("read")
    def read_end(self, name: str, size: int, length: int) -> bytes:
        """Return the last `length` bytes of a file of `size` bytes."""
        return self._read(name, max(0, size - length), size)

    @_reports("read")
    def read_parts(self, name: str, size: int, parts: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return parts of a file of `size` bytes; `parts`: where each part begins, and its length."""
        contents = []
        with self._opened(name, size) as stream:
            for start, length in parts:
                stream.seek(start)
                in_pieces = min(length, _PIECE_BYTES * _MAX_PIECES)
                pieces = [min(_PIECE_BYTES, in_pieces - at) for at in range(0, in_pieces, _PIECE_BYTES)]
                contents.append(b"".join(bytes(stream.readNBytes(n)) for n in (*pieces, length - in_pieces) if n))
        return contents

    def _read(self, name: str, start: int, size: int | None = None) -> bytes:
        pieces = []
        with self._opened(name, size) as stream:
            stream.seek(start)
            for _ in range(_MAX_PIECES):
                pieces.append(bytes(stream.readNBytes(_PIECE_BYTES)))
                if len(pieces[-1]) < _PIECE_BYTES:
                    return b"".join(pieces)
            return b"".join([*pieces, bytes(stream.readAllBytes())])

    @contextmanager
    def _opened(self, name: str, size: int | None = None) -> Iterator[Any]:
        path, fs = self._path(name)
        if size is None or not _in_store(path, fs):
            stream = fs.open(path)
        else:  # a known length saves a request to the store
            stream = fs.openFile(path).opt(_LENGTH, str(size)).build().get()
        try:
            yield stream
        finally:
            stream.close()

    @_reports("written")
    def write(self, name: str, data: bytes, new: bool = False) -> bool:
        """Write a file as a whole or not at all; with `new`, only if none exists. Return whether it was written."""
        path, fs = self._path(name)
        if self.is_store:
            return self._put(fs, path, data, new)
        partial, _ = self._path(f"{name}.{uuid4().hex[:8]}.partial")  # each writer of the name has a file of its own
        try:
            stream = fs.create(partial, True)
            try:
                stream.write(bytearray(data))
            finally:
                stream.close()
            if new:
                return self._link(fs, partial, path) if fs.getScheme() == "file" else self._rename(fs, partial, path)
            if not fs.rename(partial, path):
                fs.delete(path, False)
                if not fs.rename(partial, path):
                    raise StorageError(f"{path.toString()} cannot be written: its file system does not rename to it")
            return True
        finally:
            if fs.exists(partial):
                fs.delete(partial, False)

    def _put(self, fs: Any, path: Any, data: bytes, new: bool) -> bool:
        from py4j.protocol import Py4JJavaError

        builder = fs.createFile(path).create().overwrite(True).recursive()
        if new:
            builder.must(_IF_NEW, True)
        stream = builder.build()
        try:
            stream.write(bytearray(data))
            stream.close()
        except Py4JJavaError as error:
            stream.abort()
            if new and _is_java(error, "RemoteFileChangedException", "FileAlreadyExistsException"):
                return False
            raise
        return True

    def _rename(self, fs: Any, partial: Any, path: Any) -> bool:
        """Give a file its name if no file has it: in one step if the file system never renames onto a file."""
        return not fs.exists(path) and bool(fs.rename(partial, path))

    def _link(self, fs: Any, partial: Any, path: Any) -> bool:
        """Give a file on a local disk its name if no file has it; a rename would replace another writer's file."""
        from py4j.protocol import Py4JJavaError

        jvm: Any = self.spark._jvm
        source, target = (jvm.java.io.File(p.toUri().getPath()).toPath() for p in (partial, path))
        try:
            jvm.java.nio.file.Files.createLink(target, source)
        except Py4JJavaError as error:
            if _is_java(error, "FileAlreadyExistsException"):
                return False
            return self._rename(fs, partial, path)  # this disk cannot make links
        return True

    @_reports("deleted")
    def delete(self, name: str = "") -> None:
        """Delete a file, or a folder with all that lies in it, if it exists."""
        path, fs = self._path(name)
        if not fs.delete(path, True) and fs.exists(path):  # so says a local disk if files in it may not be deleted
            raise StorageError(f"{path.toString()} cannot be deleted")

    @_reports("moved")
    def move(self, name: str, to: str) -> None:
        """Rename a file or folder; both paths are below `root`, '' is `root` itself."""
        source, fs = self._path(name)
        target, _ = self._path(to)
        if not fs.rename(source, target):
            raise StorageError(f"{source.toString()} cannot be moved to {target.toString()}")

    def _binary(self, name: str) -> Any:
        return self.spark.read.format("binaryFile").load(escape_glob("/".join(p for p in (self.root, name) if p)))

    def _remote_sizes(self, name: str) -> dict[str, int]:
        from pyspark.errors import AnalysisException

        try:
            rows = self._binary(name).select("_metadata.file_name", "length").collect()
        except AnalysisException:
            return {}
        return {row[0]: row[1] for row in rows}
