"""Errors and warnings for users; each message is one sentence that says what is wrong and what to do."""

from __future__ import annotations

import logging
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
    """A Spark job that failed for a reason that Hedgerow does not know."""


class StorageError(EngineError):
    """A file or folder that Hedgerow is not allowed to read, write, move or delete."""


class WorkloadError(HedgerowError):
    """Queries that cannot be read or do not fit the table."""


class SchemaError(HedgerowError):
    """A table, column or type that is missing or not supported."""


class LayoutError(HedgerowError):
    """A layout that cannot be learned or applied."""


def assert_never(value: NoReturn) -> NoReturn:
    """End a `match` that covers all cases; mypy proves the call unreachable (`typing` has this from Python 3.11)."""
    raise AssertionError(f"unreachable: {value!r}")


def meant(name: str, existing: Iterable[str]) -> str:
    """Return a suggestion for a message about a name that does not exist; "" if no existing name is similar.

    >>> meant("o_custky", ["o_custkey", "o_orderdate"]), meant("nothing", ["x"])
    (': did you mean o_custkey?', '')
    """
    bare = {candidate.lower().strip("`"): candidate for candidate in existing}
    near = get_close_matches(name.lower().strip("`").rpartition(".")[2], bare, 1)
    return f": did you mean {bare[near[0]]}?" if near else ""


class HedgerowWarning(UserWarning):
    """Something was left out, but the work continues."""


_LISTED, _LONGEST = 5, 240  # sentences in one warning, and characters in one sentence
_LOGGER = logging.getLogger("hedgerow")


def warn(summary: str, sentences: Sequence[str]) -> None:
    """Warn with a summary and the first sentences, several of them in lines; without sentences there is no warning.

    The log of `hedgerow` gets all sentences at level INFO if the warning has not all of them as they are."""
    few = first_few(sentences, "level INFO of the log hedgerow, or --debug on the command line, lists all")
    if few != list(sentences):
        _LOGGER.info("%s", "\n  ".join([f"{summary}:", *sentences]))
    if len(few) == 1:
        advise(f"{summary}: {few[0]}")
    elif few:
        advise("\n  ".join([f"{summary}:", *few]))


def first_few(sentences: Sequence[str], all_of_them: str) -> list[str]:
    """Return the first sentences without the middles of long ones, and how many more there are.

    >>> first_few(["a", "b", "c", "d", "e", "f", "g"], "--json lists all")
    ['a', 'b', 'c', 'd', 'e', 'and 2 more; --json lists all']
    """
    more = [f"and {len(sentences) - _LISTED:,} more; {all_of_them}"] if len(sentences) > _LISTED else []
    return [*(shortened(sentence, _LONGEST) for sentence in sentences[:_LISTED]), *more]


def shortened(text: str, width: int) -> str:
    """Return a text without its middle if it is longer than `width`: its ends say most about a condition.

    >>> shortened("country = 'de' AND ts >= 1 AND ts < 9 ORDER BY ts LIMIT 9", 36)
    "country = 'de' AND ... Y ts LIMIT 9"
    """
    if len(text) <= width:
        return text
    tail = (width - 5) * 2 // 5
    return f"{text[: width - 5 - tail].rstrip()} ... {text[-tail:].lstrip()}"


def counted(count: float, noun: str, plural: str = "") -> str:
    """Return the count with the noun in its number.

    >>> counted(1, "row"), counted(2000, "query", "queries")
    ('1 row', '2,000 queries')
    """
    return f"{count:,.0f} {noun if count == 1 else plural or noun + 's'}"


def advise(sentence: str) -> None:
    """Issue a warning that points to the line that called Hedgerow."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(sentence, HedgerowWarning, stacklevel=level)


def _is_ours(module: str) -> bool:
    return module.split(".")[0] == __name__.split(".")[0]
