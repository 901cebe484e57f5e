"""learn, score, apply, table, read, route, attach: the one place where Spark, SQL, learners and core meet."""

from __future__ import annotations

import hashlib
import json
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from hedgerow.core import cost
from hedgerow.core.bind import path_of
from hedgerow.core.codec import decode_predicate, encode
from hedgerow.core.cuts import Kind
from hedgerow.core.errors import FormatError, HedgerowError, LayoutError, WorkloadError, warn
from hedgerow.core.expr import And, Column, Or, Predicate, Term, columns, term_text, terms, text, walk
from hedgerow.core.layout import Layout, layout_from_dict, layout_to_dict, sql_of
from hedgerow.core.problem import Learner, Problem, unanswered
from hedgerow.core.redraw import Recurrence, redrawn, searched
from hedgerow.core.replicas import fit_beside
from hedgerow.core.rewrite import normalise
from hedgerow.core.rows import Rows
from hedgerow.core.sample import Sample
from hedgerow.core.stats import Stats
from hedgerow.core.workload import Query, Workload
from hedgerow.spark.attach import install, remove, routed
from hedgerow.spark.attach import last_query as last_query
from hedgerow.spark.delta import is_delta
from hedgerow.spark.evaluate import Item, lasting, needed
from hedgerow.spark.progress import step
from hedgerow.spark.sample import draw, sample_size
from hedgerow.spark.session import is_remote, meaning
from hedgerow.spark.source import Source, open_source
from hedgerow.spark.stats import collect_blocks
from hedgerow.tables.delta import DeltaTable
from hedgerow.tables.parquet import ParquetTable, create
from hedgerow.tables.remote import route_remotely
from hedgerow.tables.replicas import place_of
from hedgerow.tables.rewrite import Plan, rewrite

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LEARNERS = {
    "random": "hedgerow.learners.random:Random",
    "range": "hedgerow.learners.range:Range",
    "zorder": "hedgerow.learners.zorder:ZOrder",
    "hilbert": "hedgerow.learners.hilbert:Hilbert",
    "zorder_learned": "hedgerow.learners.zorder_learned:ZOrderLearned",
    "qdtree": "hedgerow.learners.qdtree:QdTree",
    "bottom_up": "hedgerow.learners.bottom_up:BottomUp",
    "sop_zorder": "hedgerow.learners.sop_zorder:SopZOrder",
    "woodblock": "hedgerow.learners.woodblock:Woodblock",
}
VERSION = 1
MANY = 300  # expressions and conditions that an index describes
_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


@dataclass(frozen=True)
class Learned:
    """A layout with what `apply` needs to know of its making."""

    layout: Layout
    table: str
    predicates: tuple[Predicate, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    noted: tuple[Predicate, ...] = ()  # conditions whose outcomes the index should hold, whatever the layout
    fit_seconds: float | None = None  # how long the learner thought, Spark's passes apart; not saved

    @property
    def blocks(self) -> int:
        return self.layout.blocks

    def __str__(self) -> str:
        made = f" by {self.provenance['learner']}" if "learner" in self.provenance else ""
        return f"a {self.layout.kind} layout of {self.table}{made}: {self.blocks:,} blocks"

    def to_json(self) -> str:
        return json.dumps(
            {
                "hedgerow_learned": VERSION,
                "table": self.table,
                "provenance": dict(self.provenance),
                "warnings": self.warnings,
                "layout": layout_to_dict(self.layout),
                "predicates": [encode(p) for p in self.predicates],
                "noted": [encode(p) for p in self.noted],
            }
        )

    @staticmethod
    def from_json(value: str) -> Learned:
        """What `to_json` wrote; FormatError for anything else."""
        try:
            found = json.loads(value)
            if found["hedgerow_learned"] > VERSION:
                raise FormatError(f"this layout was written by a newer Hedgerow (format {found['hedgerow_learned']})")
            return Learned(
                layout_from_dict(found["layout"]),
                found["table"],
                tuple(map(decode_predicate, found["predicates"])),
                found["provenance"],
                tuple(found["warnings"]),
                tuple(map(decode_predicate, found.get("noted", ()))),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError("this is no layout that `learn` made, or a damaged one") from error

    def save(self, path: str | Path) -> None:
        try:
            Path(path).write_text(self.to_json(), encoding="utf-8")
        except OSError as error:
            raise HedgerowError(f"the layout cannot be written to {path}: {error.strerror}") from error

    @staticmethod
    def load(path: str | Path) -> Learned:
        try:
            return Learned.from_json(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise HedgerowError(f"the layout {path} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise FormatError(f"{path} is no layout that `learn` made") from error


def make_learner(name: str, **params: Any) -> Learner:
    if name not in LEARNERS:
        raise LayoutError(f"there is no learner {name!r}; there are {', '.join(LEARNERS)}")
    module, _, cls = LEARNERS[name].partition(":")
    columns = params.get("columns", ())
    params |= {"columns": (columns,) if isinstance(columns, str) else tuple(columns)} if columns else {}
    try:
        found: Learner = getattr(import_module(module), cls)(**params)
    except TypeError as error:
        raise LayoutError(f"the learner {name} does not take these parameters: {error}") from error
    return found


def learn(
    spark: SparkSession,
    source: str | Sequence[str] | DataFrame,
    workload: Workload,
    learner: str = "qdtree",
    block_rows: int | None = None,
    sample_rows: int | None = None,
    seed: int = 0,
    *,
    block_bytes: str = "64MB",
    table: str | None = None,
    cuts: Kind = "atoms",
    recurrence: Recurrence = "auto",
    exact: bool = True,
    given: Sequence[str | ParquetTable | DeltaTable] = (),
    **params: Any,
) -> Learned:
    """Sample the table, evaluate the workload's predicates on the sample, and let the learner make a layout.

    Args:
        source: a Parquet directory, a list of files, a catalog table or a DataFrame.
        block_rows: rows that a block should have at least (half of it where many rows share a value); without it
            `block_bytes` counts, by the size of the source's files.
        sample_rows: 100 for each block by default, but at least 10,000 and at most a million.
        table: the source's name in the workload; by default the last part of its path or name.
        cuts: what may divide rows: conditions of the queries, or sub-trees of them too ("atoms+subtrees").
        recurrence: how likely the next query repeats literals of an earlier one, 0 to 1. With 1 only the queries seen
            count; below, others like them do too. By default it is estimated from how often literals came back.
        exact: count the rows of a learner's cells in the whole table, not just in the sample.
        given: tables with the same rows that stay as they are, replicas of the new one: a query counts by what the one
            reads that serves it best, so the layout is learned for those that the given ones serve badly.
        params: what the learner takes.
    """
    beside = [open_table(spark, t) if isinstance(t, str) else t for t in given]
    fitted = make_learner(learner, **params)
    with step(spark, "looking at the table"):
        opened, queries, skipped = _fitting(spark, source, workload, table)
        least = _positive("block_rows", block_rows) or _rows_of_bytes(opened, block_bytes)
        wanted = _positive("sample_rows", sample_rows) or sample_size(opened.rows, least)
    predicates = tuple(q.predicate(opened.name) for q in queries)
    with step(spark, "sampling"):
        named: list[Term] = [Column(path_of(name)) for name in getattr(fitted, "columns", ())]
        named += searched(predicates) if recurrence != 1 else []
        sample, refused = draw(opened, predicates, wanted, seed, named)
        sample, own = _lasting(sample)
    noted = unanswered(predicates, sample)
    with step(spark, f"learning ({learner})"):
        started = perf_counter()
        measured = 0.0

        def measure(layout: Layout) -> Stats:
            nonlocal measured
            since = perf_counter()
            items = {sql_of(item): item for item in (*needed(predicates), *noted, *layout.features)}
            found = collect_blocks(opened.frame, layout, list(items.values()), opened.schema)
            measured += perf_counter() - since
            return found

        asked, weights, sample, seen = redrawn(predicates, [q.weight for q in queries], sample, recurrence, seed)
        problem = Problem.build(sample, asked, least, weights, cuts, seed)
        problem = replace(problem, seen=seen, measure=measure if exact else None)
        paired = fit_beside(fitted, problem, best_of(beside, asked)) if beside else None
        layout = fitted.fit(problem) if paired is None else paired.layout
        seconds = perf_counter() - started - measured
    provenance = {
        "source": opened.origin,
        "learner": learner,
        "parameters": {name: list(v) if isinstance(v, tuple) else v for name, v in params.items()},
        "cuts": cuts,
        "recurrence": recurrence,
        "exact": exact,
        "block_rows": least,
        "sample_rows": len(sample),
        "seed": seed,
        "workload": hashlib.sha256("\n".join(map(text, predicates)).encode()).hexdigest()[:16],
    }
    if paired is not None:
        provenance["given"] = {"tables": [t.path for t in beside], "alone": paired.given, "together": paired.together}
    warn(f"{len(skipped)} of {len(workload)} queries are left out", skipped)
    warn(f"{len(refused)} conditions cannot be evaluated", refused)
    warn(f"nothing is learned from {len(own)} expressions that call functions of your own", own)
    warnings = (*skipped, *refused, *own)
    return Learned(layout, opened.name, predicates, provenance, warnings, noted, round(seconds, 2))


def score(
    spark: SparkSession,
    source: str | Sequence[str] | DataFrame,
    workload: Workload,
    layout: Layout | Learned,
    sample_rows: int | None = None,
    seed: int = 1,
    exact: bool = False,
    *,
    table: str | None = None,
) -> cost.Score:
    """What the workload would read under the layout: on a fresh sample, or on all rows if `exact`."""
    plain = layout.layout if isinstance(layout, Learned) else layout
    with step(spark, "looking at the table"):
        named = table or (layout.table if isinstance(layout, Learned) else None)
        opened, queries, skipped = _fitting(spark, source, workload, named)
    predicates = [q.predicate(opened.name) for q in queries]
    feature_terms = [x for x in plain.features if not isinstance(x, Predicate)]
    predicates += [x for x in plain.features if isinstance(x, Predicate)]
    wanted = _positive("sample_rows", sample_rows) or sample_size(opened.rows, max(1, opened.rows // plain.blocks))
    with step(spark, "scoring"):
        sample, _ = draw(opened, predicates, opened.rows if exact else wanted, seed, feature_terms)
        noted = layout.noted if isinstance(layout, Learned) else unanswered(predicates, sample)
        found = cost.score(plain, sample.noting(noted), queries, opened.name)
    warn(f"{len(skipped)} of {len(workload)} queries are left out", skipped)
    return found


def apply(
    spark: SparkSession,
    source: str | Sequence[str] | DataFrame,
    layout: Layout | Learned,
    to: str | None = None,
    *,
    where: str | Sequence[str] | None = None,
    retries: int = 0,
    overwrite: bool = False,
    max_block_rows: int | None = None,
    sort_by: Sequence[str] | None = None,
    options: Mapping[str, str] | None = None,
    table: str | None = None,
    replica: str | None = None,
    statistics: int = MANY,
) -> ParquetTable | DeltaTable:
    """Rewrite the table, one file per block, with an index over them: into a new directory, or a Delta table in place.

    Args:
        to: the directory; without it the source has to be a Delta table. With `replica`, the table that gets one.
        replica: the name of a full copy of the table at `to` in this layout, which lies inside of that table.
        where: in place, rewrite only some files: a condition on the partition columns, or the files' names.
        retries: in place, how often to begin again when others changed those files meanwhile.
        overwrite: replace what is at `to`; without it an existing, non-empty target is refused.
        max_block_rows: a block with more rows is written as several files.
        sort_by: the order of rows inside a file, `()` for none; by default that of the curve where the layout follows
            one, and the column that queries filter on most.
        options: for Spark's Parquet writer, such as `{"compression": "zstd"}`.
        statistics: how many expressions (their bounds) and conditions (their outcomes) the index holds beside plain
            columns: the layout's own, and of the others those that most queries ask for.
    """
    copy_of, place = None, to
    if replica is not None:
        if to is None:
            raise HedgerowError("a replica is of a table that Hedgerow wrote: say which with to=")
        copy_of = ParquetTable.open(spark, to.rstrip("/"))
        place = place_of(copy_of.path, replica)
    learned = layout if isinstance(layout, Learned) else Learned(layout, "")
    opened = open_source(spark, source, table or learned.table or None)
    if statistics < 0:
        raise LayoutError(f"statistics is how many more the index holds, 0 or more, not {statistics}")
    by_key = sort_by is None
    if sort_by is None:
        sort_by = _most_filtered(learned.predicates, opened)[:1]
    provenance = {
        **learned.provenance,
        "source": opened.origin,
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": {"hedgerow": version("hedgerow"), "spark": spark.version, "python": platform.python_version()},
    }
    described = [encode(item) for item in _described(learned, statistics)]
    writing = {
        "max_block_rows": _positive("max_block_rows", max_block_rows),
        "sort_by": list(sort_by),
        "by_key": by_key,
        "options": dict(options or {}),
    }
    if place is not None:
        if where is not None:
            raise HedgerowError("where= limits a rewrite in place, so it does not go with to=")
        written = create(
            opened,
            learned.layout,
            place,
            statistics=described,
            provenance=provenance,
            writing=writing,
            overwrite=overwrite,
            copy_of=copy_of,
        )
        return written if copy_of is None else ParquetTable.open(spark, copy_of.path)
    if not isinstance(source, str) or not is_delta(spark, source):
        raise HedgerowError(f"only a Delta table is rewritten in place: say where to write {opened.origin} with to=")
    plan = Plan(learned.layout, opened.name, learned.predicates, described, provenance, writing, where)
    return rewrite(spark, source, plan, retries)


def open_table(spark: SparkSession, path: str) -> ParquetTable | DeltaTable:
    """Open a table that `apply` wrote: a directory, or a Delta table by its path or name."""
    if not is_remote(spark) and is_delta(spark, path):
        return DeltaTable.open(spark, path)
    return ParquetTable.open(spark, path.rstrip("/"))


def read(spark: SparkSession, path: str, where: str | None = None, columns: Sequence[str] | None = None) -> DataFrame:
    """The matching rows of a table that `apply` wrote, from just the files that may hold some."""
    return open_table(spark, path).read(where, columns)


def route(spark: SparkSession, sql: str) -> DataFrame:
    """Run one query as an attached session would: it opens only the files that matter.

    Over Spark Connect only a plain `SELECT ... FROM table WHERE column = literal AND ...` skips files.
    """
    return route_remotely(spark, sql) if is_remote(spark) else routed(spark, spark.sql(sql))


def attach(spark: SparkSession) -> None:
    """Let every query of this session skip files of managed tables, however it was written.

    `spark.conf.set("hedgerow.enabled", "false")` turns that off for a while, `detach` for good.
    """
    install(spark)


def detach(spark: SparkSession) -> None:
    """Let the session's queries read as if `attach` had never been called."""
    remove(spark)


def _fitting(
    spark: SparkSession, source: str | Sequence[str] | DataFrame, workload: Workload, table: str | None
) -> tuple[Source, tuple[Query, ...], tuple[str, ...]]:
    """The source under the workload's name for it, the queries that fit it, and a sentence for each that does not."""
    if not len(workload):
        raise WorkloadError("the workload has no query, so there is nothing to learn from")
    tables = workload.tables()
    opened = open_source(spark, source, table or (tables[0] if len(tables) == 1 else None))
    bound = workload.on(opened.name).bind({opened.name: opened.schema}, meaning(spark))
    if not len(bound):
        raise HedgerowError(f"no query of the workload fits the table {opened.name}: {bound.skipped[0]}")
    return opened, bound.queries, bound.skipped


def _lasting(sample: Sample) -> tuple[Sample, list[str]]:
    """The sample without what calls functions of the user's, and a sentence for each of these: no index holds what may
    be something else tomorrow, so to divide rows by it would spare nobody anything."""
    columns_, truths = sample.rows.columns, sample.rows.truths
    kept = set(lasting([*columns_, *truths]))
    if not kept:
        raise HedgerowError("the queries ask nothing but functions of your own, which may be others tomorrow")
    rows = Rows({t: c for t, c in columns_.items() if t in kept}, {p: b for p, b in truths.items() if p in kept})
    left_out = [f"{sql_of(x)} may be something else tomorrow" for x in (*columns_, *truths) if x not in kept]
    return replace(sample, rows=rows), left_out


def best_of(given: Sequence[ParquetTable | DeltaTable], predicates: Sequence[Predicate]) -> list[float]:
    """What each predicate reads of the given table that serves it best, as a share of its rows."""
    return [min(reads) for reads in zip(*(t.rows_read(predicates) for t in given), strict=True)]


def _described(learned: Learned, limit: int) -> list[Item]:
    """What the index says of blocks: the bounds of columns; of expressions and conditions the layout's own, and those
    that most queries ask for."""
    own = [x for x in learned.layout.features if isinstance(x, Predicate)]
    filtered = {c for p in learned.predicates for c in columns(p)}  # also those that only LIKE and functions look at
    filtered |= {x for x in learned.layout.features if isinstance(x, Column)}  # they tell blocks apart, asked or not
    compound = [x for x in own if isinstance(x, And | Or)]  # what is known of their parts does not answer them
    items = dict.fromkeys((*needed([*learned.predicates, *own], filtered), *learned.noted, *compound))
    asked = Counter(x for p in learned.predicates for x in {*terms(p), *walk(normalise(p))})
    first = {*learned.layout.features, *(t for p in own for t in terms(p))}
    more = [x for x in items if not isinstance(x, Column)]
    more.sort(key=lambda x: (x not in first, -asked[x], sql_of(x)))
    return [x for x in items if isinstance(x, Column)] + more[:limit]


def _positive(name: str, value: int | None) -> int | None:
    if value is not None and value < 1:
        raise LayoutError(f"{name} has to be at least 1, not {value}")
    return value


def _rows_of_bytes(source: Source, size: str) -> int:
    """How many rows make a block of that many bytes."""
    number, unit = size.upper().rstrip("BKMG"), size.upper().lstrip("0123456789. ")
    if unit not in _UNITS or not number.strip().replace(".", "", 1).isdigit():
        raise LayoutError(f"a block size is written like 64MB, not {size!r}")
    return max(1, round(float(number) * _UNITS[unit] / max(1.0, sum(source.widths.values()))))


def _most_filtered(predicates: Sequence[Predicate], source: Source) -> list[str]:
    counts: dict[str, int] = {}
    for p in predicates:
        for name in (term_text(t) for t in terms(p)):
            if name in source.schema and "." not in name:
                counts[name] = counts.get(name, 0) + 1
    return sorted(counts, key=lambda n: (-counts[n], n))
