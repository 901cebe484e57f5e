"""explain: tells which files of a table a query opens and skips, and why."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import HedgerowError, WorkloadError
from hedgerow.core.index.key_bounds import key_bounds
from hedgerow.core.index.whole_matches import TypedTerm
from hedgerow.core.predicates.nodes import TRUE, Cast, terms_of
from hedgerow.core.predicates.sql_text import predicate_text, readable, term_text
from hedgerow.core.workload.queries import Query, is_spelling, joined_columns
from hedgerow.core.workload.score import Means
from hedgerow.core.workload.wanted_rows import Aggregates, Top, WantedRows
from hedgerow.pipeline.open import open_table
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import in_own_session, needs_jvm, spark_errors
from hedgerow.spark.storage.paths import is_over
from hedgerow.spark.storage.source import Source, open_source
from hedgerow.sql.open_values import at_time
from hedgerow.sql.volatile_functions import part_by_place
from hedgerow.sql.where_conjuncts import where_conjuncts
from hedgerow.sql.workload import Workload
from hedgerow.tables.explained import Explained, Group
from hedgerow.tables.items_to_index import known_columns
from hedgerow.tables.managed import ManagedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SOME_TIME = "'2000-01-01'"  # for clocks, where only the form of a condition matters
_IS_QUERY = re.compile(r"\s*(SELECT|WITH)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Explanation:
    """The files that a query opens and skips, with reasons.

    `without_match`: the number of opened files without a matching row; None if that was not counted. `means`: how the
    files are chosen, as `last_query` says it for the query in an attached session.
    """

    table: str
    condition: str
    groups: tuple[Group, ...]
    without_match: int | None
    replica: str | None
    hints: tuple[str, ...]
    means: Means = "where"

    @property
    def files(self) -> int:
        return sum(len(group.files) for group in self.groups)

    @property
    def opened(self) -> int:
        return sum(len(group.files) for group in self.groups if group.opened)

    @property
    def sentence(self) -> str:
        """A sentence with the numbers of files."""
        matchless = "" if self.without_match is None else f", {self.without_match:,} of them without a match"
        of = "" if self.replica is None else f" of the replica {self.replica}"
        return f"{self.opened:,} of {self.files:,} files{of}, by {self.means}{matchless}"

    def __str__(self) -> str:
        lines = [f"{self.table}: {self.sentence}"]
        lines += [
            f"{'open' if group.opened else 'skip'} {len(group.files):,}: {group.because}" for group in self.groups
        ]
        return "\n".join([*lines, *self.hints])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "table": self.table,
            "condition": self.condition,
            "files": self.files,
            "opened": self.opened,
            "means": self.means,
            "without_match": self.without_match,
            "replica": self.replica,
            "groups": [
                {"opened": g.opened, "because": g.because, "files": list(g.files), "rows": g.rows} for g in self.groups
            ],
            "hints": list(self.hints),
        }


@in_own_session
def explain(spark: SparkSession, table: str, query: str, count: bool = True) -> Explanation:
    """Tell why a query opens and skips the files of a table that `apply` wrote.

    Args:
        query: SQL that reads the table by its name, by its place or through a view of it; or only a condition.
        count: also count the matching rows of each file that is opened, which reads these files.
    """
    needs_jvm(spark, "explain a query")
    opened = open_table(spark, table)
    is_query = _IS_QUERY.match(query) is not None
    sql = query if is_query else f"SELECT * FROM t WHERE {query}"  # a workload of one table fits any table
    workload = Workload.from_sql([sql])
    lost = _lost_joins(opened, workload.tables())
    bound = _query(opened, workload, {opened.name, table, opened.path.rpartition("/")[2]} if is_query else {"t"}, lost)
    p = bound.predicate(opened.name)
    by_place = part_by_place(sql)
    explained = opened.explained(_of_all_rows(bound) if by_place else bound)
    because = None
    if by_place:
        because = f"the value of {by_place} depends on which rows are read together"
    elif p == TRUE and any(scan.keys for scan in bound.scans):
        because = "no condition on them is known to the index"
    if because is not None:
        explained = explained.regrouped(replace(g, because=because) if g.opened else g for g in explained.groups)
    ignored = _not_understood(sql)
    # A whole query can be run on single files only if all of its WHERE was understood.
    text = query if not is_query else predicate_text(p) if not ignored else None
    without = _without_match(opened, text, explained) if count and text and not by_place else None
    not_understood = (f"{part} skips nothing: it is not understood" for part in ignored)
    hints = (
        *(*not_understood, *filter(None, lost.values()), *_hints(explained)),
        *(*_hints_on_keys(opened, bound), *_hint_on_wanted(bound.wanted(opened.name), explained)),
    )
    about = explained.groups, without, explained.replica, hints, explained.means
    return Explanation(opened.path, predicate_text(p), *about)


def _of_all_rows(query: Query) -> Query:
    """Return a query that needs every row of the tables that this one reads."""
    return replace(query, scans=tuple(replace(scan, predicate=TRUE, wanted=None) for scan in query.scans))


def _lost_joins(table: ManagedTable, read: Collection[str]) -> dict[str, str]:
    """Return the joined rows that the index cannot use for a query of these tables, each with a sentence that says why.

    A view may lead to another table than the one that the index describes."""
    stale = table.stale_joins()
    lost = dict.fromkeys(stale, "")
    reached = [(stored.name.lower(), key.other) for stored in table.newest.entry.joined for key in stored.joined.steps]
    for joined, other in reached:
        for name in (own for own in read if is_spelling(own, other)):
            described, found = table.joins.others.get(other.lower()), _in_session(table.spark, name)
            if described is not None and found is not None and set(found.roots) != set(described.roots):
                here, there = ", ".join(found.roots), ", ".join(described.roots)
                lost[joined] = f"conditions on {name} skip nothing: the query reads {here}, the index describes {there}"
            elif joined in stale:
                lost[joined] = (
                    f"conditions on {name} skip fewer files, or none, until repair: it has changed since it was indexed"
                )
    return lost


def _in_session(spark: SparkSession, name: str) -> Source | None:
    """Return the table or view that the session has under this name; None if it has none."""
    with suppress(HedgerowError, *spark_errors()):
        return open_source(spark, name) if spark.catalog.tableExists(name) else None
    return None


def _query(table: ManagedTable, workload: Workload, names: Collection[str], lost: Collection[str]) -> Query:
    """Return the query with the table's types; WorkloadError if it does not read the table.

    `names`: those by which it may call the table. `lost`: the joined rows that the index cannot use."""
    read = workload.tables()
    if not any(is_spelling(r, name) for r in read for name in names) and not any(
        is_over(r, table.format.rows()) for r in read
    ):
        others = f"it reads {', '.join(read)}, not {table.name}" if read else f"it does not read {table.name}"
        raise WorkloadError(f"the query cannot be explained: {next(iter(workload.skipped), others)}")
    bound = table.bound(workload, lost)
    if not len(bound):
        raise WorkloadError(f"the query cannot be explained: {bound.skipped[0]}")
    return bound.queries[0]


def _not_understood(sql: str) -> list[str]:
    """Return the parts of the query's WHERE that are not understood, so that they skip nothing."""

    def is_lost(part: str) -> bool:
        workload = Workload.from_sql([f"SELECT * FROM t WHERE {at_time(part, _SOME_TIME)}"])
        return all(query.predicate("t") == TRUE for query in workload)

    return [part for part in where_conjuncts(sql) if is_lost(part)]


def _without_match(table: ManagedTable, condition: str, explained: Explained) -> int | None:
    """Count the opened files without a matching row; None if the condition needs other tables too."""
    try:
        matching = table.rows_opened(explained).where(condition)
        with step(table.spark, "counting matching rows"):
            rows = matching.select("_metadata.file_name").distinct().collect()
    except spark_errors():  # joined tables, or a column named _metadata
        return None
    return len(explained.opened) - len(rows)


def _hints_on_keys(table: ManagedTable, query: Query) -> Iterator[str]:
    """Yield a hint for each column by which the query joins other rows: their keys are known when it runs."""
    indexes = [part.stored_index.blocks for part in table.parts]
    filtered = {lookup.column for part in table.parts for lookup in part.entry.lookups}
    for key in known_columns(joined_columns([query], table.name), table.schema):
        name = term_text(key)
        term = TypedTerm(key, table.schema[name])
        if name in filtered or key_bounds(indexes, term) is not None:
            yield f"the keys that the query joins by {name} may skip more files while it runs"
        elif term.across(indexes) is None:
            yield f"keys of joins by {name} skip nothing: the index does not describe it"
        else:
            yield f"keys of joins by {name} skip nothing: most files may hold any of them"


def _hint_on_wanted(wanted: WantedRows | None, explained: Explained) -> Iterator[str]:
    """Yield a hint if a query that may need few files, such as an ORDER BY with LIMIT, has them chosen by WHERE."""
    if explained.means == "where" and isinstance(wanted, Top):
        yield "ORDER BY with LIMIT skips nothing more: each of these files may hold one of the first rows"
    elif explained.means == "where" and isinstance(wanted, Aggregates):
        yield "the aggregates are read from the files: the index does not describe them, or no file has only one group"


def _hints(explained: Explained) -> tuple[str, ...]:
    """Return a hint for each part of the condition that skips nothing."""
    hints = []
    for atom in explained.undecided:
        text, casts = predicate_text(atom), [t for t in terms_of(atom) if isinstance(t, Cast)]
        if casts:
            column = term_text(casts[0].column)
            hints.append(f"{text} skips nothing: it compares {term_text(casts[0])}; compare {column} itself")
        else:
            hints.append(f"{text} skips nothing: the index does not describe it, or such rows are in every file")
    return tuple(map(readable, hints))
