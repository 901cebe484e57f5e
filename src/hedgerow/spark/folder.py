"""Small files beside a table, on whatever file system Spark can reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Folder:
    """Paths below `root`, through Hadoop's file system API."""

    spark: SparkSession
    root: str

    def _path(self, name: str) -> tuple[Any, Any]:
        jvm: Any = self.spark._jvm
        path = jvm.org.apache.hadoop.fs.Path(f"{self.root}/{name}" if name else self.root)
        return path, path.getFileSystem(self.spark._jsparkSession.sessionState().newHadoopConf())

    def exists(self, name: str = "") -> bool:
        path, fs = self._path(name)
        return bool(fs.exists(path))

    def sizes(self, name: str = "") -> dict[str, int]:
        """Files directly in the folder, with their lengths."""
        path, fs = self._path(name)
        if not fs.exists(path):
            return {}
        return {s.getPath().getName(): s.getLen() for s in fs.listStatus(path) if s.isFile()}

    def is_empty(self) -> bool:
        path, fs = self._path("")
        return not fs.exists(path) or len(fs.listStatus(path)) == 0

    def read(self, name: str) -> bytes:
        path, fs = self._path(name)
        stream = fs.open(path)
        try:
            return bytes(self.spark._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))  # type: ignore[union-attr]
        finally:
            stream.close()

    def write(self, name: str, data: bytes) -> None:
        """The file appears whole or not at all."""
        path, fs = self._path(name)
        partial, _ = self._path(name + ".partial")
        stream = fs.create(partial, True)
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()
        if not fs.rename(partial, path):
            fs.delete(path, False)
            fs.rename(partial, path)

    def delete(self, name: str = "") -> None:
        path, fs = self._path(name)
        fs.delete(path, True)

    def move(self, name: str, to: str) -> None:
        """Rename; both are below `root`, '' being `root` itself."""
        source, fs = self._path(name)
        target, _ = self._path(to)
        if not fs.rename(source, target):
            raise OSError(f"{source} cannot be moved to {target}")
