"""rewrites_of_others: names each OPTIMIZE of others that has replaced a layout, so that the autopilot stands back."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hedgerow.tables.delta.files import DeltaFiles
from hedgerow.tables.delta.waves import runs_of
from hedgerow.tables.managed import ManagedTable

_MOSTLY = 0.5  # of a layout's bytes: if more are gone, it is replaced


def rewrites_of_others(managed: ManagedTable | None) -> list[str]:
    """Return the OPTIMIZE commands of others after which the table was laid out again, and then the last one.

    None counts as long as most files of the last rewrite are there. The oldest comes first."""
    if managed is None or not isinstance(managed.format, DeltaFiles):
        return []
    done = [o for o in managed.state.all_operations(managed.format.side) if o.get("version") is not None]
    runs = runs_of(o for o in done if o["operation"] == "apply")
    if not _is_replaced(managed, runs):
        return []
    sizes = {part.id: float(sum(part.known.sizes_by_name.values())) for part in managed.parts}
    own = {max(int(o["version"]) for o in run): sum(sizes.get(o["part"], 0.0) for o in run) for run in runs}
    ours = {int(o["version"]) for o in done}  # a rollback is an OPTIMIZE for Delta too
    listed = managed.format.log.history().where("operation = 'OPTIMIZE'")
    rows = listed.select("version", "operationParameters", "operationMetrics").collect()
    others = [
        (int(version), _command(parameters), float((metrics or {}).get("numRemovedBytes", "inf")))
        for version, parameters, metrics in rows
        if int(version) not in ours
    ]
    return list(last_between(own, others))


def last_between(own: Mapping[int, float], others: Iterable[tuple[int, str, float]]) -> Iterable[str]:
    """Return the last command of others after each own rewrite and before the next one.

    `own`: the bytes of each rewrite, by its version. `others`: the version, the command, and the bytes that it removed;
    it has not replaced the rewrite before it if these are less than half of that one's.

    >>> others = [(2, "OPTIMIZE", 9.0), (5, "OPTIMIZE", 9.0), (6, "ZORDER", 6.0), (8, "OPTIMIZE", 3.0)]
    >>> list(last_between({3: 10.0, 7: 10.0}, others))
    ['ZORDER in version 6']
    """
    versions, last = sorted(own), {}
    for version, command, removed in sorted(others):
        before = bisect_left(versions, version)
        if before and removed >= _MOSTLY * own[versions[before - 1]]:
            last[before] = f"{command} in version {version}"
    return last.values()


def _is_replaced(managed: ManagedTable, runs: Sequence[Sequence[Mapping[str, Any]]]) -> bool:
    """True if most bytes of the last rewrite, with all its waves, are gone."""
    laid_out = [part for part in managed.parts if not part.entry.was_appended]
    if not laid_out:
        return False
    run = next((ids for run in runs if laid_out[-1].id in (ids := {o["part"] for o in run})), {laid_out[-1].id})
    files = managed.snapshot().files
    sizes = {name: size for part in laid_out if part.id in run for name, size in part.known.sizes_by_name.items()}
    left = float(files.sizes[files.places_of(sizes)].sum())
    return left < (1 - _MOSTLY) * sum(sizes.values())


def _command(parameters: Mapping[str, str]) -> str:
    columns = parameters.get("zOrderBy", "").strip("[]").replace('"', "").replace(",", ", ")
    return f"OPTIMIZE ZORDER BY ({columns})" if columns else "OPTIMIZE"
