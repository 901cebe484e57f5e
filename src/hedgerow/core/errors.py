"""The errors that a user may meet; each message is one sentence: what is wrong, and what to do."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import NoReturn


class HedgerowError(Exception):
    """The base class of all errors that Hedgerow raises."""


class FormatError(HedgerowError):
    """A file that Hedgerow did not write, that is damaged, or that a newer version wrote."""


class EngineError(HedgerowError):
    """A job that failed in Spark, where nothing more is known of the reason than its first line."""


class StorageError(EngineError):
    """A file or folder that the file system does not let Hedgerow read, write, move or delete."""


class WorkloadError(HedgerowError):
    """Queries that cannot be read or do not fit the table."""


class SchemaError(HedgerowError):
    """A table, column or type that is missing or not supported."""


class LayoutError(HedgerowError):
    """A layout that cannot be learned or applied."""


def assert_never(value: NoReturn) -> NoReturn:
    """End a `match` that covers all cases; mypy proves the call unreachable (`typing` has this from Python 3.11)."""
    raise AssertionError(f"unreachable: {value!r}")


def meant(name: str, known: Iterable[str]) -> str:
    """Words to put behind the name of what does not exist, if something known is called nearly so.

    >>> meant("o_custky", ["o_custkey", "o_orderdate"]), meant("nothing", ["x"])
    (': did you mean o_custkey?', '')
    """
    bare = {one.lower().strip("`"): one for one in known}
    near = get_close_matches(name.lower().strip("`").rpartition(".")[2], bare, 1)
    return f": did you mean {bare[near[0]]}?" if near else ""


class HedgerowWarning(UserWarning):
    """Something was left out, but the work continues."""


def warn(what: str, sentences: Sequence[str]) -> None:
    """Warn about what was left out, with the first sentence as an example."""
    if sentences:
        advise(f"{what}; the first: {sentences[0]}")


def advise(sentence: str) -> None:
    """Warn at the line that called Hedgerow."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(sentence, HedgerowWarning, stacklevel=level)


def _is_ours(module: str) -> bool:
    return module.split(".")[0] == __name__.split(".")[0]
