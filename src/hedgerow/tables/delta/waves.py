"""Divides the rewrite of a Delta table into waves, each a transaction, and finds those of a run that was killed.

    history of a run in three waves     wave 1 of 3   wave 2 of 3            killed before wave 3 was committed
    the same `apply` again                                         wave 3 of 3

A wave rewrites whole files, so the table has each row once after every wave. What is left to rewrite are the chosen
files that no finished wave of the run has written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hedgerow.core.layouts.layout_json import layout_to_json
from hedgerow.core.predicates.predicate_json import encode
from hedgerow.spark.storage.delta_log import Snapshot
from hedgerow.spark.storage.waves import divided
from hedgerow.tables.delta.files import DeltaFiles
from hedgerow.tables.entry import Entry
from hedgerow.tables.part import parts_of
from hedgerow.tables.rewrite_plan import Plan
from hedgerow.tables.sealed import digest
from hedgerow.tables.state import TableState, newest_state, read_state


@dataclass(frozen=True)
class Run:
    """A rewrite in several transactions.

    Args:
        key: a text that is equal for two runs only if they would write files alike.
        done: the number of finished waves.
        left: the files of each wave that is not finished, and their bytes.
    """

    key: str
    done: int
    left: list[tuple[list[str], int]]

    @property
    def waves(self) -> int:
        return self.done + len(self.left)

    def facts(self, wave: int) -> dict[str, Any]:
        """Return the facts of a wave for the table's history."""
        return {"run": self.key, "wave": wave, "waves": self.waves}


def run_of(table: DeltaFiles, plan: Plan, entry: Entry, snapshot: Snapshot, sizes: Mapping[str, int]) -> Run:
    """Return the waves in which files of these sizes are rewritten.

    `entry`: the entry of the part that the rewrite writes, without its id."""
    facts = [encode(replace(entry, origin={})), layout_to_json(plan.layout), plan.where]
    key = digest(json.dumps(facts, sort_keys=True).encode())[:12]
    number = newest_state(table.side)
    state = read_state(table.side, number) if number else TableState("delta")
    done, written = _finished(table, state, key, snapshot)
    left = divided({name: size for name, size in sizes.items() if name not in written}, plan.wave_bytes)
    return Run(key, done, [(names, sum(map(sizes.__getitem__, names))) for names in left])


def _finished(table: DeltaFiles, state: TableState, key: str, snapshot: Snapshot) -> tuple[int, set[str]]:
    """Return the number of the last wave that a run of this key committed before it was killed, and their files."""
    parts = {part.id: part for part in parts_of(table.side, state.parts)}
    last, written = 0, set[str]()
    for done in state.all_operations(table.side):
        if done["operation"] != "apply" or done.get("run") != key:
            continue
        part = parts.get(done["part"])
        files = set(part.known.names) & snapshot.files.place.keys() if part and part.is_readable else set()
        if "version" in done or files:  # else it was killed before its commit
            last, written = done["wave"], written | files
            if last == done["waves"]:  # that run has ended
                last, written = 0, set()
    return (last, written) if written else (0, written)  # if others replaced all of its files, the run begins again


def runs_of(rewrites: Iterable[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Return these rewrites, the oldest first, with all waves of a run, or all rewrites of a batch, in one list.

    >>> waves = [{"version": v, "run": "a", "wave": wave} for v, wave in ((3, 1), (4, 2), (5, 1))]
    >>> [[o["version"] for o in run] for run in runs_of([{"version": 1}, {"version": 2}, *waves])]
    [[1], [2], [3, 4], [5]]
    >>> [len(run) for run in runs_of([{"batch": "a"}, {"batch": "a", "run": "b", "wave": 1}, {"batch": "c"}])]
    [2, 1]
    """
    runs: list[list[Mapping[str, Any]]] = []
    for rewrite in rewrites:
        before = runs[-1][-1] if runs else {}
        is_next_wave = "run" in rewrite and rewrite["run"] == before.get("run") and rewrite["wave"] > before["wave"]
        batch = rewrite.get("batch")
        if is_next_wave if batch is None else batch == before.get("batch"):
            runs[-1].append(rewrite)
        else:
            runs.append([rewrite])
    return runs
