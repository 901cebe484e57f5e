"""show: draws a table and the reads of its queries as a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hedgerow.core.errors import HedgerowError, LayoutError
from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.synthetic_queries import searched_columns
from hedgerow.core.predicates.nodes import Column, Compare, Literal, Predicate, columns_of, terms_of
from hedgerow.core.predicates.sql_text import predicate_text, readable, term_text
from hedgerow.core.text_file import write_text
from hedgerow.core.workload.queries import Query
from hedgerow.picture.before_after import changes
from hedgerow.picture.cuts_by_level import cuts_by_level
from hedgerow.picture.facts import Askers, Branch, CurvePoint, File, Picture, Prices, QueryReads
from hedgerow.picture.file_map import Part, file_maps
from hedgerow.picture.learning_curve import learning_curve
from hedgerow.picture.page import page
from hedgerow.picture.weeks import weeks_of
from hedgerow.pilot.decision_notes import decisions
from hedgerow.pipeline.logged import logged
from hedgerow.pipeline.open import open_table
from hedgerow.spark.compute.sample import draw
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import in_own_session, needs_jvm
from hedgerow.spark.storage.source import Source, open_source
from hedgerow.sql.query_outline import outline_of
from hedgerow.sql.workload import Workload
from hedgerow.tables.managed import ManagedTable
from hedgerow.tables.query_log import QueryLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SAMPLE_ROWS, _VALUES = 100_000, 30


class Shown:
    """A picture of a table; `save` writes it as a page of HTML."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture

    @cached_property
    def html(self) -> str:
        return page(self.picture)

    def save(self, path: str | Path) -> None:
        write_text(path, self.html, "the page")


@in_own_session
def show(
    spark: SparkSession,
    table: str,
    workload: Workload | None = None,
    seed: int = 0,
    *,
    price: float | None = None,
    price_per_tb: float | None = None,
) -> Shown:
    """Draw a table that `apply` wrote, and the reads of the queries, by default of those in its log.

    Args:
        price: of an hour of the cluster.
        price_per_tb: of a terabyte (10^12 bytes) that queries read.
    """
    needs_jvm(spark, "show a table")
    opened = open_table(spark, table)
    if workload is None:
        try:
            workload = logged(spark, table)
        except HedgerowError:
            workload = Workload(())
    queries = [query for query in opened.bound(workload) if query.reads(opened.name)] if len(workload) else []
    tree = _tree_of(opened.layout)
    with step(spark, "looking at the table"):
        source = open_source(spark, opened.path, opened.name)
        sample = _sample(source, queries, () if tree is None else (*tree.cuts, *_described(opened)), seed)
    listed = opened.known
    visible = [i for i in range(len(listed)) if listed.visible[i]]
    order = sorted(visible, key=lambda i: (int(listed.blocks[i]), listed.names[i]))
    files = tuple(File(listed.names[i], int(listed.rows[i]), int(listed.blocks[i])) for i in order)
    place = {file.name: i for i, file in enumerate(files)}
    with step(spark, "asking the index"):
        reads = _reads(opened, source, queries, sample, place)
    narrow = [] if sample is None else _narrow(opened, queries, sample)
    with step(spark, "drawing"):
        curve = _curve(opened, sample, queries)
    past = decisions(spark, table)
    return Shown(
        Picture(
            title=opened.name,
            facts=tuple((n.replace("_", " "), f"{f:,}" if type(f) is int else str(f)) for n, f in opened.plain_facts()),
            queries=reads,
            files=files,
            tree=None if tree is None else _branches(tree, files, reads),
            levels=() if tree is None else tuple(cuts_by_level(tree)),
            narrow=tuple(narrow),
            decisions=tuple((d.at, d.action, "; ".join(d.reasons)) for d in past),
            maps=file_maps(place, {column: _stats_of(opened, column) for column, _ in narrow}),
            curve=curve,
            weeks=weeks_of(QueryLog.of(spark, table), past),
            prices=Prices(price, price_per_tb),
        )
    )


def _sample(source: Source, queries: Sequence[Query], others: Sequence[Predicate], seed: int) -> Sample | None:
    """Draw some rows, on which the matching share of each query is counted; None if no query has a condition.

    `others`: further conditions that are evaluated on the rows."""
    predicates = [query.predicate(source.name) for query in queries]
    if not any(columns_of(p) for p in predicates):
        return None
    return draw(source, [*predicates, *others], _SAMPLE_ROWS, seed, searched_columns(predicates))[0]


def _curve(table: ManagedTable, sample: Sample | None, queries: Sequence[Query]) -> tuple[CurvePoint, ...]:
    """Return the learning curve of a table that a single tree divides."""
    if sample is None or not isinstance(table.layout, TreeLayout):
        return ()
    looked_up = {lookup.column for part in table.parts for lookup in part.entry.lookups}
    others = [q for q in queries if looked_up.isdisjoint(map(term_text, columns_of(q.predicate(table.name))))]
    return learning_curve(table.layout, sample, others, table.name, _described(table)) if others else ()


def _described(table: ManagedTable) -> list[Predicate]:
    """Return the conditions whose outcomes the newest index has."""
    return [item for item in table.newest.entry.statistics if isinstance(item, Predicate)]


def _reads(
    table: ManagedTable, source: Source, queries: Sequence[Query], sample: Sample | None, place: Mapping[str, int]
) -> tuple[QueryReads, ...]:
    """Return the reads of each query; `place`: the number of each file of the table itself."""
    all_explained = [table.explained(query) for query in queries]
    outlines = [outline_of(query, table.name) for query in queries]
    changed = changes(table, source, queries, [outline.kind for outline in outlines], all_explained)
    reads = []
    for query, explained, outline, change in zip(queries, all_explained, outlines, changed, strict=True):
        opened = frozenset(place[name] for name in explained.opened if name in place)
        matching = None if sample is None else sample.selectivity(query.predicate(table.name))
        facts = explained.rows_read, matching, opened, explained.replica, explained.means
        undecided = tuple(readable(predicate_text(atom)) for atom in explained.undecided)
        reads.append(QueryReads(outline.text, *facts, outline.kind, undecided, *change))
    return tuple(reads)


def _narrow(table: ManagedTable, queries: Sequence[Query], sample: Sample) -> list[tuple[str, float]]:
    """Return for each column that queries filter on the mean share of rows that a search for a value reads."""
    columns = Counter(t for q in queries for t in terms_of(q.predicate(table.name)) if isinstance(t, Column))
    shares = []
    some = sample.part(_VALUES).rows
    for column, _ in columns.most_common():
        with suppress(LayoutError):  # a column without an order
            ranked = some.ranks(column)
            values = [ranked.values[place] for place in ranked.places if place >= 0]
            equal = [Compare(column, "=", Literal(ranked.type.kind, value)) for value in values]
            if equal:
                shares.append((term_text(column), sum(table.rows_read(equal)) / len(equal)))
    return shares


def _stats_of(table: ManagedTable, column: str) -> list[Part]:
    """Return what each part of the index knows of a column."""
    parts = table.indexed().parts
    return [(own.index.blocks.terms[column], own.known.names) for own in parts if column in own.index.blocks.terms]


def _tree_of(layout: Layout) -> TreeLayout | None:
    tree = layout.tree if isinstance(layout, OverlapLayout) else layout
    return tree if isinstance(tree, TreeLayout) and tree.nodes else None


def _branches(tree: TreeLayout, files: Sequence[File], reads: Sequence[QueryReads]) -> Branch:
    """Return the tree; each cut has the rows in the blocks below it, and the queries that open a file there.

    A block may be in several places, for small neighbouring cells are joined."""
    rows, openers = Counter[int](), dict[int, set[int]]()
    for i, file in enumerate(files):
        rows[file.block] += file.rows
        openers.setdefault(file.block, set()).update(n for n, q in enumerate(reads) if i in q.opened)

    def opening(blocks: set[int]) -> set[int]:
        return set[int]().union(*(openers.get(b, ()) for b in blocks))

    def askers(some: set[int]) -> Askers:
        by_kind = {reads[n].kind: reads[n].text for n in sorted(some, reverse=True)}
        return Askers(len(some), tuple(reversed(by_kind.values())))

    branches: dict[int, tuple[Branch, set[int]]] = {}

    def child(kid: int) -> tuple[Branch, set[int]]:
        if kid >= 0:
            return branches[kid]
        return Branch(f"block {~kid}", rows[~kid], askers(openers.get(~kid, set()))), {~kid}

    for node in reversed(tree.top_down()):
        cut, left, right = tree.nodes[node]
        (yes, a), (no, b) = child(left), child(right)
        on_yes, on_no, below = opening(a), opening(b), sum(rows[block] for block in a | b)
        sides = askers(on_yes - on_no), askers(on_no - on_yes), askers(on_yes & on_no)
        text = readable(predicate_text(tree.cuts[cut]))
        branches[node] = Branch(text, below, askers(on_yes | on_no), yes, no, *sides), a | b
    return branches[0][0]
