"""A file that is saved is there as a whole, or the older one stays."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hedgerow.core.errors import HedgerowError
from hedgerow.core.text_file import write_text


@contextmanager
def no_space(most: int) -> Iterator[None]:
    """Let no file grow beyond so many bytes, as if the disk were full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("older", [None, "old"])
def test_without_space(tmp_path: Path, older: str | None) -> None:
    path = tmp_path / "plan.json"
    if older is not None:
        path.write_text(older)
    with no_space(10), pytest.raises(HedgerowError, match=f"^the layout cannot be written to {path}: File too large$"):
        write_text(path, "n" * 100_000, "the layout")
    assert [file.read_text() for file in tmp_path.iterdir()] == ([] if older is None else [older])


def test_an_older_file(tmp_path: Path) -> None:
    """It keeps its mode, and a link stays a link."""
    path, link = tmp_path / "plan.json", tmp_path / "link.json"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    write_text(link, "ü", "the layout")
    assert link.is_symlink() and path.read_text(encoding="utf-8") == "ü" and path.stat().st_mode & 0o777 == 0o640


def test_no_plain_file(tmp_path: Path) -> None:
    write_text("/dev/null", "new", "the layout")
    assert not Path("/dev/null").is_file()
    with pytest.raises(HedgerowError, match="Is a directory"):
        write_text(tmp_path, "new", "the layout")
