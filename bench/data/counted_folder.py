"""A folder of the local disk without Spark, which counts the bytes that are read and written in it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hedgerow.core.errors import StorageError
from hedgerow.spark.storage.folder import Folder


@dataclass
class Traffic:
    """Bytes that were read and written. `written`: by the beginning of the files' names."""

    read: int = 0
    reads: int = 0
    written: dict[str, int] = field(default_factory=dict)
    looks: int = 0  # at the age of a file


@dataclass(frozen=True)
class CountedFolder(Folder):
    """The part of `Folder` that a table's side folder needs."""

    traffic: Traffic = field(default_factory=Traffic)

    @staticmethod
    def at(root: Path) -> CountedFolder:
        root.mkdir(parents=True, exist_ok=True)
        spark: Any = None
        return CountedFolder(spark, str(root))

    def sizes(self, name: str = "") -> dict[str, int]:
        entries = Path(self.root, name).iterdir()
        return {path.name: path.stat().st_size if path.is_file() else -1 for path in entries}

    def write_times(self) -> dict[str, float]:
        return {path.name: path.stat().st_mtime for path in Path(self.root).iterdir()}

    def exists(self, name: str = "") -> bool:
        return Path(self.root, name).exists()

    def age(self, name: str) -> float:
        self.traffic.looks += 1
        return time.time() - Path(self.root, name).stat().st_mtime

    def read(self, name: str) -> bytes:
        try:
            data = Path(self.root, name).read_bytes()
        except OSError as error:
            raise StorageError(f"{self.root}/{name} cannot be read: {error}") from error
        self._count(len(data))
        return data

    def read_parts(self, name: str, size: int, parts: Sequence[tuple[int, int]]) -> list[bytes]:
        data = Path(self.root, name).read_bytes()
        self._count(sum(length for _, length in parts))
        return [data[start : start + length] for start, length in parts]

    def write(self, name: str, data: bytes, new: bool = False) -> bool:
        path = Path(self.root, name)
        if new and path.exists():
            return False
        path.write_bytes(data)
        kind = name.partition("-")[0]
        self.traffic.written[kind] = self.traffic.written.get(kind, 0) + len(data)
        return True

    def delete(self, name: str = "") -> None:
        Path(self.root, name).unlink(missing_ok=True)

    def _count(self, size: int) -> None:
        self.traffic.read += size
        self.traffic.reads += 1
