"""import_log: brings past queries into a table's log, from event logs of Spark, files of SQL, or a DataFrame."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import HedgerowError, WorkloadError
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.workload.wanted_files import means_of
from hedgerow.pipeline.logged import read_conditions
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import first_line, in_own_session, spark_errors
from hedgerow.spark.start.stable_functions import meaning
from hedgerow.spark.storage.event_log import PastQuery, PastScan, past_queries
from hedgerow.spark.storage.paths import plain_path
from hedgerow.spark.storage.source import Source, open_source
from hedgerow.sql.plan_text import conditions_of
from hedgerow.sql.workload import Workload
from hedgerow.tables.query_log import QueryLog, query_id

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EARLIEST = 0  # microseconds since 1970
_CLOCKS_DIFFER = 86_400.0  # seconds
_ROUNDED = 1e6  # microseconds by which a time in a text may differ
_STATEMENT_TIME = re.compile(r"^--\s*at:?\s+(\S.*)$", re.MULTILINE)
Entry = dict[str, Any]


@in_own_session
def import_log(spark: SparkSession, table: str, queries: str | Path | DataFrame, name: str | None = None) -> Imported:
    """Bring past queries of a table into its log, as if `log` had noted them. Queries in the log stay single.

    `queries`: the event logs of Spark, a folder or a file; a `.jsonl` file of {"at": "2026-11-01 12:00:00", "sql":
    "..."} with "seconds" if known; a `.sql` file of statements, each after a line `-- at 2026-11-01 12:00:00`; or a
    DataFrame with such columns. `name`: what SQL texts call the table.
    """
    source = open_source(spark, table, name)
    log = QueryLog.of(spark, table)
    if isinstance(queries, str | Path):
        path = Path(queries)
        if not path.exists():
            raise HedgerowError(f"there are no queries at {path}")
        if path.suffix not in (".sql", ".jsonl"):
            with step(spark, "reading event logs"):
                entries, skipped = _from_events(past_queries(path), log.root, source.schema, str(path))
            return _added(log, entries, skipped)
        texts, origin = _texts_of(path), str(path)
    else:
        texts, origin = _texts_of_frame(queries), "a DataFrame"
    entries, skipped = _from_sql(texts, source.name, source.schema, origin)
    return _added(log, _without_noted(log, entries, source), skipped)


@dataclass(frozen=True)
class Imported:
    """The result of an import: the number of entries added to the log, and a sentence for each thing left out."""

    entries: int
    skipped: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.entries:,} queries imported, {len(self.skipped):,} remarks"


def _added(log: QueryLog, entries: Sequence[Entry], skipped: Sequence[str]) -> Imported:
    """Add the entries that the log does not have yet, but none with a time in the future."""
    latest = (time() + _CLOCKS_DIFFER) * 1e6
    past = [entry for entry in entries if _EARLIEST <= entry["at"] <= latest]
    if len(past) < len(entries):
        skipped = [*skipped, f"{len(entries) - len(past):,} queries are of times that cannot be, and are left out"]
    present = log.ids() if past else set()
    fresh = list({entry["query"]: entry for entry in past if entry["query"] not in present}.values())
    if fresh:
        log.append(fresh)
    return Imported(len(fresh), tuple(skipped))


def _without_noted(log: QueryLog, entries: list[Entry], source: Source) -> list[Entry]:
    """Return the entries without the queries that `log` has noted.

    A text says neither a query's number nor the exact time of its start. It means a noted query if its conditions are
    the same, and its time is within that query's, give or take a second."""
    from pyspark.sql import functions as f

    if not entries or not log.exists():
        return entries
    schemas, session = {source.name: source.schema}, meaning(log.spark)

    def scans_of(conditions: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
        try:
            read = read_conditions(source.name, columns, conditions).bind(schemas, session)
        except WorkloadError:
            return ()
        return tuple(sorted(predicate_text(scan.predicate) for query in read for scan in query.scans))

    start = f.unix_micros("at")
    span = f.struct(start, start + f.coalesce("seconds", f.lit(0.0)) * 1e6)
    own = log.frame().where("source = 'session' AND NOT redacted").groupBy("conditions", "columns")
    noted: dict[tuple[str, ...], list[tuple[int, float]]] = {}
    for row in own.agg(f.collect_list(span).alias("spans")).toLocalIterator():
        noted.setdefault(scans_of(row.conditions, row.columns), []).extend(row.spans)

    def is_noted(entry: Entry) -> bool:
        scans = scans_of(entry["conditions"], entry["columns"])
        spans = noted.get(scans, ()) if scans else ()  # unread conditions equal no others
        return any(start - _ROUNDED <= entry["at"] <= end + _ROUNDED for start, end in spans)

    return [entry for entry in entries if not is_noted(entry)]


def _from_events(
    past: Iterator[PastQuery], root: str, schema: Mapping[str, Type], origin: str
) -> tuple[list[Entry], list[str]]:
    entries: list[Entry] = []
    unread = 0
    place = plain_path(root)
    for query in past:
        scans = [scan for scan in query.scans if _is_below(plain_path(scan.place), place)]
        if scans:
            read = [conditions_of(scan.condition, schema) if scan.condition else ([], 0) for scan in scans]
            unread += sum(failed for _, failed in read)
            conditions = [" AND ".join(parts) or "TRUE" for parts, _ in read]
            identity = query_id(query.application, query.execution, query.at)
            entries.append(_entry(identity, query.at, query.seconds, conditions, scans, origin, ["where"] * len(scans)))
    skipped = [f"{unread:,} conditions of event logs could not be read, and count as TRUE"] if unread else []
    return entries, skipped


def _is_below(place: str, root: str) -> bool:
    inside = place.removeprefix(root)
    return place.startswith(root) and (
        not inside or (inside[0] == "/" and not inside.startswith(("/_delta_log", "/_hedgerow")))
    )


def _entry(
    identity: str,
    at: int,
    seconds: float | None,
    conditions: list[str],
    scans: Sequence[PastScan],
    origin: str,
    kinds: Sequence[str],
) -> Entry:
    columns = sorted({column for scan in scans for column in scan.columns})
    counts = {name: sum(scan.counts.get(name, 0) for scan in scans) for name in ("files", "bytes", "rows", "kept")}
    return {
        "query": identity,
        "at": at * 1000,
        "source": origin,
        "conditions": conditions,
        **{name: [""] * len(conditions) for name in ("keys", "joins")},
        "columns": columns,
        "kinds": list(kinds),
        "means": [],
        **{name: counts[name] for name in ("files", "bytes", "rows")},
        "files_listed": counts["files"],
        "rows_kept": counts["kept"],
        "seconds": seconds,
        "redacted": False,
    }


def _from_sql(
    texts: Iterator[tuple[int, str, float | None]], table: str, schema: Mapping[str, Type], origin: str
) -> tuple[list[Entry], list[str]]:
    entries: list[Entry] = []
    skipped: list[str] = []
    for at, sql, seconds in texts:
        try:
            read = Workload.from_sql(sql, {table: schema})
        except WorkloadError as error:
            skipped.append(str(error))
            continue
        skipped += read.skipped
        for query in read:
            scans = [scan for scan in query.scans if scan.table.lower() == table.lower()]
            if scans:
                names = list(schema)
                read_columns = [scan.columns if scan.columns is not None else names for scan in scans]
                conditions = [predicate_text(scan.predicate) for scan in scans]
                past = [PastScan("", "", [c for c in columns if "." not in c], {}) for columns in read_columns]
                kinds = ["where" if scan.wanted is None else means_of(scan.wanted) for scan in scans]
                identity = query_id(at, conditions, sorted({c for scan in past for c in scan.columns}))
                entries.append(_entry(identity, at, seconds, conditions, past, origin, kinds))
    return entries, skipped


def _texts_of(path: Path) -> Iterator[tuple[int, str, float | None]]:
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise HedgerowError(f"the queries {path} cannot be read: {error}") from error
    if path.suffix == ".jsonl":
        for number, line in enumerate(content.splitlines(), 1):
            if line.strip():
                try:
                    entry = json.loads(line)
                    sql = str(entry["sql"])
                    sql.encode()  # ValueError if half of a pair of surrogates is missing
                    yield _milliseconds(entry["at"]), sql, _seconds(entry.get("seconds"))
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    raise HedgerowError(f'line {number} of {path} is not {{"at": ..., "sql": ...}}: {error}') from error
        return
    times = list(_STATEMENT_TIME.finditer(content))
    if not times:
        raise HedgerowError(f"{path} does not say when its statements ran: begin each with -- at 2026-11-01 12:00:00")
    ends = [*(match.start() for match in times[1:]), len(content)]
    for match, end in zip(times, ends, strict=True):
        try:
            at = _milliseconds(match[1].strip())
        except ValueError as error:
            raise HedgerowError(f"{path} has a time that cannot be read: {error}") from error
        yield at, content[match.end() : end], None


def _milliseconds(time: str) -> int:
    """Return the milliseconds of a time as ISO writes it; in UTC if it names no zone."""
    at = datetime.fromisoformat(time)
    return round((at if at.tzinfo else at.replace(tzinfo=timezone.utc)).timestamp() * 1000)


def _seconds(value: Any) -> float | None:
    """Return the seconds; None if not known, which pandas writes as NaN; ValueError or TypeError for other values."""
    seconds = math.nan if value is None else float(value)
    if seconds < 0 or math.isinf(seconds):
        raise ValueError(f"seconds cannot be {value}")
    return None if math.isnan(seconds) else seconds


def _texts_of_frame(frame: DataFrame) -> Iterator[tuple[int, str, float | None]]:
    from pyspark.sql import functions as f

    missing = {"at", "sql"} - set(frame.columns)
    if missing:
        raise HedgerowError(f"a history of queries needs the columns at and sql; {min(missing)} is missing")
    seconds = f.col("seconds").cast("double") if "seconds" in frame.columns else f.lit(None).cast("double")
    millis = f.unix_millis(f.col("at").cast("timestamp"))
    try:
        rows = frame.select(millis, f.col("sql").cast("string"), seconds).where("sql IS NOT NULL").toLocalIterator()
        for at, sql, took in rows:
            yield at or 0, sql, _seconds(took)
    except ValueError as error:
        raise HedgerowError(f"the history of queries cannot be read: {error}") from error
    except spark_errors() as error:
        raise HedgerowError(f"the history of queries cannot be read: {first_line(error)}") from error
