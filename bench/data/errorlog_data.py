"""Crash-report logs with the shape of the qd-tree paper's ErrorLog-Int and ErrorLog-Ext (7.2), generated.

    branch -----> version string <----- build date <--- how old the build is on the machine --- client's date
      |                                                                                            |
      +-> mix of event types --> validity                                     delay of the report -+-> ingest time

Branches, events and machines are skewed; each branch has a mix of events of its own, a version string holds branch,
date and build number, and a report may arrive weeks after the client wrote it. Rows are in the order of ingestion.
`INTERNAL` has many branches that are built every day, and 8 types of events; `EXTERNAL` few releases with a build a
month, and 3,600 names of events, six for each application.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.data.cache import generated

FIRST_DAY = date(2019, 3, 4)  # of the log
QUERIED_COLUMNS = ("event_type", "os_build_date", "os_version", "client_ingest_date", "is_valid")
KINDS = (
    *("user_crash", "app_hang", "live_kernel_event", "device_crash", "blue_screen", "boot_failure", "update_rollback"),
    "firmware_fault",
)
# Properties of a machine: the same in all its reports.
OF_MACHINE = (
    *("memory_mb", "cores", "disk_gb", "model_id", "vendor_id", "bios_id", "gpu_id", "driver_id", "locale_id"),
    *("region_id", "ring_id", "edition_id", "firmware_id", "tenant_id", "screen_id", "battery_id", "dock_id"),
)
# Properties of a report: drawn anew each time, small numbers far more often than large ones.
OF_REPORT = (
    *("bucket_id", "module_id", "offset", "exception_code", "thread_count", "handle_count", "uptime_s", "dump_kb"),
    *("stack_depth", "process_id", "parent_id", "session_id", "retry_count", "queue_ms", "upload_ms", "cpu_permille"),
    *("memory_permille", "disk_permille", "page_faults", "gdi_objects", "open_files", "battery_permille"),
    *("temperature_c", "fan_rpm", "network_ms", "failures_before", "reports_before", "sequence", "checksum_low"),
    *("checksum_high", "cab_kb", "symbols_missing", "frames_unknown", "signature_id"),
)


@dataclass(frozen=True)
class Shape:
    """The shape of a log. Its builds begin `history` days before it, one every `cadence` days in each branch."""

    name: str
    columns: int
    events: int
    days: int
    branches: int
    cadence: int
    history: int
    half_life: int  # days until half of the machines have a newer build
    skew: float  # the k-th branch has a share of about 1 / k ** skew

    @cached_property
    def world(self) -> World:
        return World.of(self)


INTERNAL = Shape("errorlog-int", 50, 8, 7, 700, 1, 120, 10, 0.7)
EXTERNAL = Shape("errorlog-ext", 58, 3600, 15, 12, 30, 720, 120, 1.0)


@dataclass(frozen=True)
class World:
    """Names of branches and events, and cumulated probabilities to draw them by: the same for all rows and queries."""

    branches: list[str]
    events: list[str]
    branch_up_to: npt.NDArray[np.float64]
    event_up_to: npt.NDArray[np.float64]  # branch x event
    valid: npt.NDArray[np.float64]  # branch x event: the share of valid reports

    @staticmethod
    def of(shape: Shape) -> World:
        r = np.random.default_rng(7)
        branches = [_branch(i) for i in range(shape.branches)]
        events = list(KINDS) if shape.events == len(KINDS) else [_event(i) for i in range(shape.events)]
        popular = 1.0 / np.arange(1, shape.branches + 1) ** shape.skew
        frequent = 1.0 / np.arange(1, shape.events + 1) ** 1.1
        mix = r.permutation(frequent) * r.lognormal(0, 1.5, (shape.branches, shape.events))
        # Most reports are valid, but for one in ten pairs of branch and event hardly any is.
        valid = np.where(r.random(mix.shape) < 0.1, 0.1, 0.98)
        up_to = np.cumsum(mix, axis=1)
        return World(branches, events, _cumulated(popular), up_to / up_to[:, -1:], valid)


def _cumulated(weights: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float64]:
    up_to = np.cumsum(weights)
    shares: npt.NDArray[np.float64] = up_to / up_to[-1]
    return shares


_AREAS = ("shell", "kernel", "net", "media", "store", "print", "input", "graphics", "power", "sync")
_STAGES = ("dev", "test", "beta", "release")


def _branch(i: int) -> str:
    area, i = _AREAS[i % len(_AREAS)], i // len(_AREAS)
    return f"rs{i // len(_STAGES) + 1}_{area}_{_STAGES[i % len(_STAGES)]}"


_FAULTS = ("crash", "hang", "leak", "abort", "timeout", "corruption")


def _event(i: int) -> str:
    return f"app{i // len(_FAULTS):03}.{_FAULTS[i % len(_FAULTS)]}"


def version(shape: Shape, branch: int, day: int) -> str:
    """Return the version string of a branch's build on a day, counted from the first day of the log."""
    built = FIRST_DAY + timedelta(days=day)
    return f"10.0.{18000 + day}.{1000 + branch}.{shape.world.branches[branch]}.{built:%y%m%d}"


def built_on(shape: Shape, day: Any) -> Any:
    """Return the last day with a build, up to this one."""
    return np.maximum(day // shape.cadence * shape.cadence, -shape.history)


def rows_of(shape: Shape, rows: int, start: int, end: int) -> pa.Table:
    """Return rows `start` to `end` of a table of `rows` rows, with all columns."""
    r, n, world = np.random.default_rng([7, rows, start]), end - start, shape.world
    ingested = (np.arange(start, end) + r.random(n)) / rows * shape.days
    delay = np.where(r.random(n) < 0.6, 0, r.geometric(0.2, n))
    client = np.floor(ingested).astype(np.int64) - delay
    branch = np.searchsorted(world.branch_up_to, r.random(n))
    age = np.floor(r.exponential(shape.half_life / np.log(2), n)).astype(np.int64)
    day = built_on(shape, client - age)
    weekly = r.random(n) < 0.5  # half of the machines take one build a week only
    day = np.where(weekly, built_on(shape, day // 7 * 7), day)
    flat = (world.event_up_to + np.arange(shape.branches)[:, None]).ravel()
    event = np.minimum(np.searchsorted(flat, r.random(n) + branch), (branch + 1) * shape.events - 1) % shape.events
    valid = r.random(n) < world.valid[branch, event]
    machine = np.floor(r.pareto(0.7, n) * 1000).astype(np.int64) % 200_000
    columns: dict[str, pa.Array] = {
        "ingest_time": _minutes(ingested),
        "client_ingest_date": _dates(client),
        "os_build_date": _dates(day),
        "os_version": _versions(shape, branch, day),
        "event_type": pa.DictionaryArray.from_arrays(pa.array(event, pa.int32()), world.events).cast(pa.string()),
        "is_valid": pa.array(valid),
        "machine_id": pa.array(machine),
    }
    for i, name in enumerate(OF_MACHINE):
        columns[name] = pa.array((machine * (2 * i + 3) + i) % (7 * i + 5))
    for i, name in enumerate(OF_REPORT[: shape.columns - len(columns)]):
        columns[name] = pa.array(r.geometric(1 / (10 * i + 10), n))
    return pa.table(columns)


def _minutes(days: npt.NDArray[np.float64]) -> pa.Array:
    first = np.datetime64(FIRST_DAY, "m").astype(np.int64)
    return pa.array((first + np.floor(days * 1440).astype(np.int64)) * 60_000_000, pa.timestamp("us"))


def _dates(days: npt.NDArray[np.int64]) -> pa.Array:
    first = np.datetime64(FIRST_DAY, "D").astype(np.int64)
    return pa.array((first + days).astype(np.int32), pa.int32()).cast(pa.date32())


def _versions(shape: Shape, branch: npt.NDArray[np.int64], day: npt.NDArray[np.int64]) -> pa.Array:
    pairs, place = np.unique(branch * 10_000 + (day + shape.history), return_inverse=True)
    texts = [version(shape, p // 10_000, p % 10_000 - shape.history) for p in pairs.tolist()]
    return pa.DictionaryArray.from_arrays(pa.array(place, pa.int32()), texts).cast(pa.string())


def table(shape: Shape, rows: int) -> Path:
    """Return the folder of the table's Parquet files."""

    def some(start: int, end: int) -> pa.Table:
        return rows_of(shape, rows, start, end)

    return generated(shape.name, rows, some)
