"""Writes a text file as a whole or not at all."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from hedgerow.core.errors import HedgerowError


def write_text(path: str | Path, text: str, content: str) -> None:
    """Write a text file; if that fails, an older file stays as it was, and HedgerowError names the `content`."""
    target = Path(os.path.realpath(path))
    part = target.parent / f".{uuid4().hex}.partial"
    try:
        if target.exists() and not target.is_file():  # such as /dev/stdout, whose place no file may take
            target.write_text(text, encoding="utf-8")
            return
        part.write_text(text, encoding="utf-8")
        if target.exists():
            shutil.copymode(target, part)
        part.replace(target)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise HedgerowError(f"{content} cannot be written to {path}: {error.strerror}") from error
