"""Puts a folder that was written in full into the place of another one.

    orders -> .orders.hedgerow-old            the old folder is moved aside
    .orders.hedgerow-partial-... -> orders    the new folder is checked there; if it is wrong, the old one returns
    .orders.hedgerow-old                      the old folder is deleted last

After a run that was killed between the two moves there is no `orders`: `bring_back` then moves the old folder back.
"""

from __future__ import annotations

from hedgerow.core.errors import HedgerowError, advise
from hedgerow.spark.storage.folder import Folder
from hedgerow.tables.known_files import DECISIONS, LOG, REWRITE_COST, SIDE, KnownFiles
from hedgerow.tables.parquet.folder import old_place
from hedgerow.tables.parquet.target import Contents, look
from hedgerow.tables.state import newest_state, state_name

_CHANGED = "{} was changed meanwhile, so it is not replaced: apply again"


def exchange(around: Folder, new: str, name: str, before: Contents, written: KnownFiles) -> None:
    """Replace the folder `name` by `new`.

    Args:
        before: the contents of the folder `name` when writing began; HedgerowError if they have changed since.
        written: the files of `new`.
    """
    old, shown = old_place(name), f"{around.root}/{name}".removeprefix("file://")
    was_there = around.exists(name)
    if was_there:
        _finish_last(around, old, name)
        around.move(name, old)
    elif around.exists(old):  # another run has just moved it aside
        raise HedgerowError(_CHANGED.format(shown))
    try:
        if was_there and look(_in(around, old)) != before:
            raise HedgerowError(_CHANGED.format(shown))
        around.move(new, name)
        if around.exists(f"{name}/{new}"):  # another process made a folder `name` meanwhile, and `new` is now in it
            around.delete(f"{name}/{new}")
            raise HedgerowError(_CHANGED.format(shown))
        if not _is_in_place(around, name, written):
            raise HedgerowError(f"{shown} is not as it was written, so nothing is replaced: apply again")
    except BaseException:
        _put_back(around, old if was_there else None, name, written)
        raise
    if was_there and look(_in(around, old)) == before:
        try:
            _drop(around, old, name)
        except HedgerowError as error:
            advise(f"{shown} is replaced, but {old} beside it, the old table, has to be deleted: {error}")


def _is_in_place(around: Folder, name: str, written: KnownFiles) -> bool:
    """True if all written files exist, and the state that lists them."""
    now = around.sizes(name)
    return written.visible_sizes.items() <= now.items() and around.exists(f"{name}/{SIDE}/{state_name(1)}")


def _put_back(around: Folder, old: str | None, name: str, written: KnownFiles) -> None:
    """Delete the folder `name` if this run wrote it, and move the old folder back."""
    if around.exists(name):
        if not set(around.sizes(name)) <= {*written.visible_sizes, SIDE, "_SUCCESS"}:
            return  # another process wrote it, so the old folder stays aside
        around.delete(name)
    if old is not None and around.exists(old):
        around.move(old, name)


def _finish_last(around: Folder, old: str, name: str) -> None:
    """Finish the exchange of a run that was killed after its table was in place; HedgerowError if there is none."""
    if not around.exists(old):
        return
    if not newest_state(_in(around, f"{name}/{SIDE}")):
        shown = f"{around.root}/{old}".removeprefix("file://")
        raise HedgerowError(f"{shown} has files that another run moved aside: move or delete it, and apply again")
    _drop(around, old, name)


def _drop(around: Folder, old: str, name: str) -> None:
    """Move the log, the decisions and the measured cost from the replaced folder to the new one; delete the rest."""
    for kept in (LOG, DECISIONS, REWRITE_COST):
        if not around.exists(f"{name}/{kept}"):
            if around.exists(f"{old}/{kept}"):
                around.move(f"{old}/{kept}", f"{name}/{kept}")
        elif kept != REWRITE_COST:  # another process has begun a folder there, or a killed run has moved a part of it
            for entry in around.sizes(f"{old}/{kept}").keys() - around.sizes(f"{name}/{kept}").keys():
                around.move(f"{old}/{kept}/{entry}", f"{name}/{kept}/{entry}")
    around.delete(old)


def _in(around: Folder, name: str) -> Folder:
    return Folder(around.spark, f"{around.root}/{name}")
