"""Every error a user may meet, as one sentence that says what is wrong and what to do."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NoReturn


class HedgerowError(Exception):
    """The root: catch this to catch all of ours."""


class FormatError(HedgerowError):
    """A file is not ours, is damaged, or was written by a newer version."""


class WorkloadError(HedgerowError):
    """Queries that cannot be read or do not fit the table."""


class SchemaError(HedgerowError):
    """A table, column or type that is missing or not supported."""


class LayoutError(HedgerowError):
    """A layout that cannot be learned or applied."""


def assert_never(value: NoReturn) -> NoReturn:
    """Close a `match`: mypy proves it unreachable (typing has it only from Python 3.11)."""
    raise AssertionError(f"unreachable: {value!r}")


class HedgerowWarning(UserWarning):
    """Something was left out, and the work goes on."""


def warn(what: str, sentences: Sequence[str]) -> None:
    """Tell the caller of our caller what was left out, and why by an example."""
    if sentences:
        warnings.warn(f"{what}; the first: {sentences[0]}", HedgerowWarning, stacklevel=3)
