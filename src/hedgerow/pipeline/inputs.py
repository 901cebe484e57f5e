"""Opens and checks the arguments of the functions that users call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import HedgerowError, LayoutError, SchemaError, WorkloadError, counted, meant, warn
from hedgerow.core.workload.queries import Query, Workload
from hedgerow.pipeline.keys_of_others import with_keys
from hedgerow.pipeline.likely_values import likely_values
from hedgerow.spark.start.session import spark_errors
from hedgerow.spark.start.stable_functions import meaning
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.paths import paths_over
from hedgerow.spark.storage.source import Source, open_source
from hedgerow.sql.workload import Workload as SqlWorkload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MOST_BYTES = 1 << 30  # of another table whose keys are read
MOST_QUERIES = 200  # `advise` and the autopilot draw at most this many, because each query takes time


def opened_with_queries(
    spark: SparkSession, source: str | Sequence[str] | DataFrame, workload: Workload, table: str | None
) -> tuple[Source, tuple[Query, ...], tuple[str, ...]]:
    """Open a table; return it, the queries that fit it, and for each query left out a sentence with the reason.

    `table`: the table's name in the workload; None: the workload's only table."""
    if not len(workload):
        raise WorkloadError("the workload has no query, so there is nothing to learn from")
    opened = open_source(spark, source, table or workload.only_table())
    paths = paths_over(workload.tables(), lambda: opened.frame)
    own = workload.on(opened.name, paths)
    bound = own.bind({opened.name: opened.schema}, meaning(spark))
    if not len(bound):
        raise HedgerowError(f"no query of the workload fits the table {opened.name}: {bound.skipped[-1]}")
    others = _tables_of_session(spark, set(own.tables()) - {opened.name})
    schemas = {name: source.schema for name, source in {opened.name: opened, **others}.items()}
    joined = own.bind(schemas, meaning(spark)) if others else bound
    if len(joined) < len(bound):  # the session has other tables of these names
        joined, others = bound, {}
    likely = with_likely_values(joined, {opened.name: opened, **others})
    return opened, with_keys(likely.queries, opened, others), bound.skipped


def _tables_of_session(spark: SparkSession, names: Iterable[str]) -> dict[str, Source]:
    """Return the tables and views with these names that the session has, unless they are large."""
    found = {}
    for name in sorted(names):
        with suppress(HedgerowError, *spark_errors()):
            if spark.catalog.tableExists(name):
                source = open_source(spark, name)
                plan = source.frame._jdf.queryExecution().optimizedPlan()
                if int(plan.stats().sizeInBytes()) <= _MOST_BYTES:
                    found[name] = source
    return found


def check_columns(source: Source, columns: Sequence[str]) -> None:
    """SchemaError if the table lacks one of the columns, with the name that was perhaps meant."""
    names = {name.lower().strip("`") for name in source.schema}
    for column in columns:
        if column.lower().strip("`") not in names and "." not in column:
            hint = meant(column, source.schema) or f": it has {', '.join(source.schema)}"
            raise SchemaError(f"{source.name} has no column {column}{hint}")


def tables_in(spark: SparkSession, place: str) -> dict[str, str]:
    """Return the places of the tables in a folder or a database of the catalog, by name; empty if it is neither.

    In a folder, each subfolder is a table."""
    folder = Folder(spark, place.rstrip("/"))
    places = {n: f"{folder.root}/{n}" for n in folder.folders() if "=" not in n}
    if places or "/" in place or not spark.catalog.databaseExists(place):
        return places
    return {t.name: f"{place}.{t.name}" for t in spark.catalog.listTables(place) if not t.isTemporary}


def opened_tables(spark: SparkSession, sources: str | Mapping[str, Any]) -> dict[str, Source]:
    """Open the tables; HedgerowError if there is none."""
    if isinstance(sources, str):
        sources = tables_in(spark, sources)
    if not sources:
        raise HedgerowError("there is no table: name a directory with a folder for each, a database, or tables by name")
    return {name: open_source(spark, source, name) for name, source in sources.items()}


def bound_to(tables: Mapping[str, Source], workload: Workload) -> Workload:
    """Return the queries that fit the tables; WorkloadError if there is none."""
    spark = next(iter(tables.values())).frame.sparkSession
    bound = workload.bind({name: source.schema for name, source in tables.items()}, meaning(spark))
    bound = with_likely_values(bound, tables)
    if not any(q.reads(name) for q in bound for name in tables):
        why = f": {bound.skipped[-1]}" if bound.skipped else ""
        raise WorkloadError(f"no query of the workload fits the tables {', '.join(tables)}{why}")
    workload.warn_of_left_out(bound.skipped)
    names = {name.lower() for name in tables}
    others = sorted({table for table in bound.tables() if table.lower() not in names})
    warn("some tables are not among those given", [f"queries read {table}, too" for table in others])
    return bound


def with_likely_values(workload: Workload, sources: Mapping[str, Source]) -> Workload:
    """Return the workload with likely values for clocks and parameters; warn of conditions that stay without."""
    if not isinstance(workload, SqlWorkload):
        return workload
    spark = next(iter(sources.values())).frame.sparkSession
    schemas = {name: source.schema for name, source in sources.items()}
    filled, left_out = workload.with_values(schemas, meaning(spark), lambda opened: likely_values(sources, opened))
    warn(f"nothing is learned from {counted(len(left_out), 'condition')} on more than the row", left_out)
    return filled


_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}


def bytes_of(size: str, what: str) -> float:
    """Return the number of bytes in a text; LayoutError if it is none. `what`: the thing that has this size.

    >>> bytes_of("1.5KB", "block")
    1536.0
    """
    number, unit = size.upper().rstrip("BKMGT"), size.upper().lstrip("0123456789. ")
    if unit not in _UNITS or not number.strip().replace(".", "", 1).isdigit():
        raise LayoutError(f"a {what} size is written like 64MB, not {size!r}")
    return float(number) * _UNITS[unit]


def at_least_one(name: str, value: int | None) -> int | None:
    """Return the value; LayoutError if it is below 1."""
    if value is not None and value < 1:
        raise LayoutError(f"{name} has to be at least 1, not {value}")
    return value
