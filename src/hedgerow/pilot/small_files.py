"""Files of the same block, each from another insert: which are worth joining to one.

Each insert leaves a small file in each block, and a query opens all of those of its blocks. Joined are at least
`join_at` files of a block, the smallest ones, of which the largest has at most half of the bytes:

    block 3     1 MB  1 MB  2 MB  1 MB  60 MB      the first four become one of 5 MB
    block 9     1 MB  60 MB                        nothing

So a byte is in a file at least twice as large each time, and it is rewritten at most `new_rewrites` times from its
insert on.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hedgerow.core.arrays import Bools, Floats, Ints
from hedgerow.core.learning.seconds import Speed
from hedgerow.pilot.file_seconds import seconds_in_files
from hedgerow.pilot.files_to_move import Files, past_of
from hedgerow.pilot.history import History
from hedgerow.pilot.settings import AutopilotSettings
from hedgerow.tables.delta.files import DeltaFiles
from hedgerow.tables.managed import ManagedTable


def runs_to_join(blocks: Ints, sizes: Floats, times: Floats, settings: AutopilotSettings) -> Iterator[Ints]:
    """Yield the places of files that may be joined, for each block that has enough of them.

    `blocks`: -1 for files that are not in the newest layout. `times`: how often their bytes were rewritten."""
    may = np.flatnonzero((blocks >= 0) & (times + 1 <= settings.new_rewrites))
    order = may[np.lexsort((sizes[may], blocks[may]))]
    for places in np.split(order, np.flatnonzero(np.diff(blocks[order])) + 1):
        half = np.cumsum(sizes[places]) / 2
        fits = np.flatnonzero(sizes[places] <= half)  # the largest of so many files has at most half of the bytes
        if len(fits) and fits[-1] + 1 >= settings.join_at:
            yield places[: fits[-1] + 1]


def has_new_small_files(managed: ManagedTable | None, history: History, settings: AutopilotSettings) -> bool:
    """True if some files of a Delta table may be joined, and were not judged since the last write."""
    if managed is None or not isinstance(managed.format, DeltaFiles):
        return False
    if history.has_judged(managed.state.operations[-1]["time"]):
        return False
    snapshot = managed.format.snapshot()
    *_, times, blocks = past_of(managed, snapshot, {}, history.times_in_all)
    return any(True for _ in runs_to_join(blocks, snapshot.files.sizes.astype(float), times, settings))


def worth_joining(
    files: Files, speed: Speed, queries: float, rate: float, settings: AutopilotSettings
) -> tuple[Bools, float]:
    """Return the files that pay for being joined to others, and the mean seconds of a query that this saves in all.

    `queries` are expected, and a rewrite takes the seconds `rate` for each byte."""
    chosen, saved = np.zeros(len(files.sizes), bool), 0.0
    runs = list(runs_to_join(files.blocks, files.sizes, files.times_in_all, settings))
    if not runs or not files.opened:
        return chosen, saved
    now = seconds_in_files(files.source, speed, files.sizes, files.opened)
    joined = np.array([files.sizes[run].sum() for run in runs])
    opened = [(query, np.array([of[run].any() for run in runs])) for query, of in files.opened]
    gains = np.array([now[run].sum() for run in runs]) - seconds_in_files(files.source, speed, joined, opened)
    pays = queries * gains > settings.margin * rate * joined
    for run in (runs[i] for i in np.flatnonzero(pays).tolist()):
        chosen[run] = True
    return chosen, float(gains[pays].sum())
