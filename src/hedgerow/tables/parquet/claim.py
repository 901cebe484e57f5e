"""Lets one run at a time write a table in its place, as is done in an object store.

    _hedgerow/run-1    the claim of a run that was killed, with the run's name
    _hedgerow/run-2    the claim of the run that writes now

Two runs in one folder would list only their own files, and readers would take the others for new rows. A claim is
written only if its number is free, so one of two runs gets it. Who claims the place deletes what a killed run left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from hedgerow.core.errors import HedgerowError
from hedgerow.spark.storage.folder import Folder
from hedgerow.tables.known_files import CLAIM, SIDE
from hedgerow.tables.parquet.runs import new_run, was_killed
from hedgerow.tables.parquet.target import Contents, look
from hedgerow.tables.parquet.waves import has_waves
from hedgerow.tables.state import newest_state


@contextmanager
def claimed(place: Folder, before: Contents, goes_on: bool) -> Iterator[None]:
    """Empty the place and keep other runs out of it while the body writes a table there.

    If the body fails before it has written a state or finished a wave, the place is emptied again. HedgerowError if
    another run writes there, or if the contents are not those of `before` any more.

    `goes_on`: the body goes on with the waves of an earlier run, and deletes all else itself."""
    side = Folder(place.spark, f"{place.root}/{SIDE}")
    claim = _claim(side)
    if claim is None:
        raise HedgerowError(
            f"another run writes to {place.root} now, so nothing is written: name another place, or wait"
        )
    try:
        now = look(place)
        if (now.state, now.files, now.in_the_way) != (before.state, before.files, before.in_the_way):
            raise HedgerowError(f"{place.root} was changed meanwhile, so nothing is written: apply again")
        if not goes_on:
            _empty(place, claim)
        try:
            yield
        finally:
            if not newest_state(side) and not has_waves(side):
                _empty(place, claim)
    finally:
        with suppress(HedgerowError):  # the process is known to have ended, so the next run can claim the place
            side.delete(claim)


def _claim(side: Folder) -> str | None:
    """Write a claim of this run and return its name; None if another run has the place."""
    numbers = [int(match[1]) for match in map(re.compile(CLAIM).fullmatch, side.sizes()) if match]
    newest = max(numbers, default=0)
    if newest and not was_killed(side.read(f"run-{newest}").decode(errors="replace"), side, f"run-{newest}"):
        return None
    claim = f"run-{newest + 1}"
    return claim if side.write(claim, new_run().encode(), new=True) else None


def _empty(place: Folder, claim: str) -> None:
    """Delete all in the place but the claim."""
    for name in place.sizes():
        if name != SIDE:
            place.delete(name)
    for name in place.sizes(SIDE):
        if name != claim:
            place.delete(f"{SIDE}/{name}")
