"""A file system that fails is told about in one sentence, by whatever a folder was asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hedgerow.core.errors import StorageError
from hedgerow.spark.storage.folder import Folder

FAILING: dict[str, Callable[[Folder], Any]] = {
    "write": lambda folder: folder.write("x", b"1"),
    "write, only if new": lambda folder: folder.write("x", b"1", new=True),
    "read": lambda folder: folder.read("x"),
    "read_end": lambda folder: folder.read_end("x", 10, 4),
    "read_parts": lambda folder: folder.read_parts("x", 10, [(0, 4)]),
    "size": lambda folder: folder.size("x"),
    "move": lambda folder: folder.move("x", "y"),
}


@pytest.mark.parametrize("asked", FAILING)
def test_below_a_file_there_is_nothing(spark: SparkSession, tmp_path: Path, asked: str) -> None:
    (tmp_path / "file").write_bytes(b"no folder")
    with pytest.raises(StorageError, match=r"file/x cannot be \w+") as told:
        FAILING[asked](Folder(spark, str(tmp_path / "file")))
    assert "\n" not in str(told.value)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("asked", ["write", "exists", "sizes", "delete"])
def test_an_unknown_file_system(spark: SparkSession, asked: str) -> None:
    folder = Folder(spark, "nosuch://bucket/table")
    with pytest.raises(StorageError, match=r"nosuch://bucket/table.* cannot be [\w ]+: .*No FileSystem for scheme"):
        getattr(folder, asked)("x", *[b"1"] * (asked == "write"))
