"""Reads the scans of past queries from Spark's event logs: filter, columns, files, bytes and rows of each scan.

A log is a file of JSON lines, or a folder of such files. They may be compressed with zstd, as Spark does by default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from hedgerow.core.errors import HedgerowError
from hedgerow.spark.start.session import OWN_QUERIES

_EVENT = "org.apache.spark.sql.execution.ui.SparkListener"
_LOCATION = re.compile(r"\((\d+) paths?\)\[(.*)\]$", re.DOTALL)
_NEXT_PATH = re.compile(r", (?=[A-Za-z][\w+.-]*:/|\.\.\.$)")
_HIDDEN = "_hedgerow_"  # columns that the optimizer rule adds
_FIELD = re.compile(r"([A-Za-z_][\w ]*)#\d+")
# Plan nodes between a filter and its scan that keep the number of rows.
_TRANSPARENT = ("Project", "ColumnarToRow", "WholeStageCodegen", "InputAdapter")
_METRICS = {"files": "number of files read", "bytes": "size of files read", "rows": "number of output rows"}


@dataclass
class PastScan:
    """A scan of a past query.

    `place`: the first folder or file that was read. `condition`: the filter above the scan, as Spark prints it."""

    place: str
    condition: str
    columns: list[str]
    counts: dict[str, int]


@dataclass
class PastQuery:
    """A query that ended without an error, with its scans. `execution`: the number that the application gave it."""

    application: str
    execution: int
    at: int  # milliseconds since 1970
    seconds: float
    scans: list[PastScan]


@dataclass
class _Running:
    """A query whose end was not read yet.

    `plans`: the first plan, and the last one. Spark replaces a part of a plan that turns out to have no rows."""

    at: int
    plans: list[Mapping[str, Any]]
    values: dict[int, int] = field(default_factory=dict)


def past_queries(path: Path) -> Iterator[PastQuery]:
    """Yield the queries of all event logs at a path that ended without an error; damaged lines and Hedgerow's own
    queries are left out."""
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    if not path.exists():
        raise HedgerowError(f"there is no event log at {path}")
    is_log, application = False, ""
    for file in files:
        if file.name.startswith((".", "appstatus")):
            continue
        if _compression(file) in ("lz4", "snappy", "lzf"):
            raise HedgerowError(f"the event log {file} is compressed with {_compression(file)}: only zstd can be read")
        running: dict[int, _Running] = {}
        totals: dict[int, int] = {}
        for event in _events(file):
            is_log = True
            if event["Event"] == "SparkListenerApplicationStart":  # only in the first file of a log in several
                application = str(event.get("App ID"))
            yield from _followed(event, application, running, totals)
    if not is_log:
        raise HedgerowError(f"{path} holds no event log of Spark")


def _compression(file: Path) -> str:
    """Return the last part of the file's name; Spark adds another one while the program runs."""
    return file.name.removesuffix(".inprogress").rpartition(".")[2]


def _events(file: Path) -> Iterator[dict[str, Any]]:
    try:
        with pa.OSFile(str(file)) as raw:
            stream = pa.CompressedInputStream(raw, "zstd") if _compression(file) in ("zstd", "zst") else raw
            for line in _lines(stream):
                with suppress(ValueError):
                    event = json.loads(line)
                    if isinstance(event, dict) and isinstance(event.get("Event"), str):
                        yield event
    except OSError as error:
        raise HedgerowError(f"the event log {file} cannot be read: {error}") from error


def _lines(stream: Any) -> Iterator[bytes]:
    """Yield the lines; the last one may be incomplete if the program that wrote the log was killed."""
    rest = b""
    with suppress(OSError):  # the end of a compressed file may be missing
        while piece := stream.read(1 << 20):
            *whole, rest = (rest + piece).split(b"\n")
            yield from whole
    yield rest


def _followed(
    event: dict[str, Any], application: str, running: dict[int, _Running], totals: dict[int, int]
) -> Iterator[PastQuery]:
    """Note the facts of an event; yield the query if the event ends one."""
    with suppress(KeyError, TypeError, ValueError):
        match event["Event"].removeprefix(_EVENT):
            case "SQLExecutionStart" if OWN_QUERIES not in event.get("jobTags", ()):
                running[event["executionId"]] = _Running(event["time"], [event["sparkPlanInfo"]])
            case "SQLAdaptiveExecutionUpdate":
                running[event["executionId"]].plans[1:] = [event["sparkPlanInfo"]]
            case "DriverAccumUpdates":
                running[event["executionId"]].values.update((key, value) for key, value in event["accumUpdates"])
            case "SparkListenerStageCompleted":
                for metric in event["Stage Info"]["Accumulables"]:
                    with suppress(KeyError, TypeError, ValueError):
                        totals[metric["ID"]] = int(metric["Value"])
            case "SQLExecutionEnd":
                query = running.pop(event["executionId"])
                if not event.get("errorMessage"):
                    values = {**totals, **query.values}
                    scans: dict[Any, PastScan] = {}
                    for plan in reversed(query.plans):
                        for scan in _scans(plan, "", None, values):
                            scans.setdefault((scan.place, scan.condition, *scan.columns), scan)
                    seconds = (event["time"] - query.at) / 1000
                    yield PastQuery(application, event["executionId"], query.at, seconds, list(scans.values()))


def _scans(plan: Mapping[str, Any], condition: str, above: Any, values: Mapping[int, int]) -> Iterator[PastScan]:
    """Yield the scans of a plan.

    `condition`, `above`: the condition and the node of the filter above the plan, if no node between changes the rows.
    """
    name = plan["nodeName"].strip()
    if name.startswith("Scan ") and "Location" in plan.get("metadata", {}):
        place = _LOCATION.search(plan["metadata"]["Location"])
        named = _FIELD.findall(plan["simpleString"].partition("] Batched")[0])
        columns = [name for name in named if not name.startswith(_HIDDEN)]
        counts = {key: _metric(plan, metric, values) for key, metric in _METRICS.items()}
        counts["kept"] = counts["rows"] if above is None else _metric(above, _METRICS["rows"], values)
        if place is not None:
            yield PastScan(place[2] if place[1] == "1" else _NEXT_PATH.split(place[2])[0], condition, columns, counts)
    if name == "Filter":
        condition, above = plan["simpleString"].removeprefix("Filter "), plan
    elif not name.startswith(_TRANSPARENT):
        condition, above = "", None
    for child in plan["children"]:
        yield from _scans(child, condition, above, values)


def _metric(plan: Mapping[str, Any], name: str, values: Mapping[int, int]) -> int:
    return sum(max(0, values.get(m["accumulatorId"], 0)) for m in plan["metrics"] if m["name"] == name)
