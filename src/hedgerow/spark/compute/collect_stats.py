"""Collects statistics of written files in one pass over only the columns that queries filter on.

Each task summarises its rows, file by file or row group by row group, with core's own collector. The driver only merges
the small results.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar
from zlib import crc32

import numpy as np
import pyarrow as pa

from hedgerow.core.arrays import Ints
from hedgerow.core.index.block_index import BlockIndex, GroupIndex
from hedgerow.core.index.index_file import index_bytes, index_of_bytes
from hedgerow.core.index.sums import has_sum, is_sum, sum_stats
from hedgerow.core.layouts.base import BlockIds, Layout
from hedgerow.core.predicates.nodes import Feature, Predicate, columns_in
from hedgerow.core.predicates.sql_text import feature_text, predicate_text, quote_name, term_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import NotedCondition, Stats, TermStats, collect
from hedgerow.core.pruning.combine_stats import concat, regroup
from hedgerow.core.pruning.words import WORD, words_in_texts
from hedgerow.spark.compute.assign_blocks import BLOCK, settings_for, with_block
from hedgerow.spark.compute.checksum import HASH, Checksum, hash_sums, observed, with_hash
from hedgerow.spark.compute.evaluate import (
    Computed,
    analysable,
    batch_outcomes,
    computed,
    failing_items,
    outcome_columns,
    row_outcomes,
    rows_of,
    settings_of,
    spark_columns,
    split_by_evaluator,
    without_user_functions,
)
from hedgerow.spark.compute.joins import NO_JOINS, Joins
from hedgerow.spark.helper_columns import helper_name
from hedgerow.spark.start.jar import gateway
from hedgerow.spark.start.session import configured, engines_off
from hedgerow.spark.start.ship import ship_modules
from hedgerow.spark.start.stable_functions import stable_functions
from hedgerow.spark.storage.footers import Footers

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_BATCH_ROWS = 1 << 16
_CHUNK_ROWS, _CHUNK_BYTES = 1 << 18, 64 << 20  # a task summarises so many rows or bytes at once
_MAX_CHUNK_SUMMARIES, _MAX_BATCH_SUMMARIES, _MAX_JOINED = 16, 64, 4  # a task joins its summaries when it has so many
_FILE, _GROUP = helper_name("file"), helper_name("row_group")
Piece = TypeVar("Piece")
Key = TypeVar("Key", int, str)
Summary = tuple[list[str], Stats]  # keys, and the statistics of the rows of each
_SUMMARY = "keys string, data binary"  # as a row


@dataclass(frozen=True)
class RowGroups:
    """The row groups of some files, in order: entry i begins at byte `start[i]` of the file with number `file[i]`."""

    file: Ints
    start: Ints

    @staticmethod
    def of_footers(footers: Footers) -> RowGroups | None:
        """Return the row groups; None if each file has only one, or some file cannot be read."""
        is_last = np.diff(footers.file, append=-1) != 0
        return None if is_last.all() or (footers.rows < 0).any() else RowGroups(footers.file, footers.start)

    @staticmethod
    def of_index(index: BlockIndex) -> RowGroups | None:
        """Return the row groups in an index; None if it has none."""
        groups = index.groups
        return None if groups is None else RowGroups(groups.block, groups.start)

    def read_alone(self, frame: DataFrame, files: Sequence[str]) -> DataFrame:
        """Return the rows of these files, with the start of each row's row group as `_metadata.file_block_start`."""
        from pyspark.sql.classic.dataframe import DataFrame as Classic

        starts: dict[str, list[int]] = {}
        for file, start in zip(self.file.tolist(), self.start.tolist(), strict=True):
            starts.setdefault(files[file], []).append(start)
        spark = frame.sparkSession
        return Classic(gateway(spark).divided(frame._jdf, json.dumps(starts)), spark)


@dataclass(frozen=True)
class Entries:
    """Files, by the last parts of their names, or all row groups of these files: statistics have an entry for each."""

    files: Sequence[str]
    groups: RowGroups | None = None

    def marked(self, frame: DataFrame) -> DataFrame:
        """Return the rows with columns that tell each row's entry.

        They become columns first, because they are not available above a join or an observation."""
        if self.groups is None:
            return frame.withColumn(_FILE, file_name(frame))
        read = self.groups.read_alone(frame, self.files)
        return read.withColumns({_FILE: file_name(read), _GROUP: read.metadataColumn("_metadata")["file_block_start"]})

    @property
    def columns(self) -> list[str]:
        return [_FILE] if self.groups is None else [_FILE, _GROUP]

    def keys(self, names: Sequence[str | int]) -> list[str]:
        """Return a text for each entry; `names`: of the files."""
        if self.groups is None:
            return list(map(str, names))
        pairs = zip(self.groups.file.tolist(), self.groups.start.tolist(), strict=True)
        return [f"{names[file]}:{start}" for file, start in pairs]

    def index(self, stats: Stats) -> BlockIndex:
        """Return the index of the files, from the statistics of the entries."""
        if self.groups is None:
            return BlockIndex(stats)
        groups = GroupIndex(stats, self.groups.file, self.groups.start)
        return BlockIndex(regroup(stats, self.groups.file, len(self.files)), groups=groups)


def collect_files(
    frame: DataFrame,
    wanted: Sequence[Feature],
    schema: Mapping[str, Type],
    entries: Entries,
    known: Mapping[str, TermStats] | None = None,
    joins: Joins = NO_JOINS,
) -> BlockIndex:
    """Return the statistics of files, and of their row groups if they are among the entries.

    `frame` has the rows of these files. `known`: statistics of the entries that are not collected again.
    """
    wide = joins.widened(entries.marked(frame), wanted)
    items = usable_items(wide, wanted, {**schema, **joins.schema})
    return _with_sums(entries.index(_by_entry(wide, items, entries, known or {})), frame, wanted, schema, entries.files)


def collect_files_and_rows(
    frame: DataFrame,
    wanted: Sequence[Feature],
    schema: Mapping[str, Type],
    entries: Entries,
    known: Mapping[str, TermStats],
    joins: Joins = NO_JOINS,
) -> tuple[BlockIndex, Checksum]:
    """Return the same as `collect_files`, and the checksum of all rows, in one pass."""
    columns, named = list(map(quote_name, frame.columns)), entries.marked(frame)
    # Unusable items are left out first, because an analysis that fails above an observation would end it.
    items = usable_items(joins.widened(named, wanted), wanted, {**schema, **joins.schema})
    conditions = [item for item in items if isinstance(item, Predicate)]
    if all(isinstance(item, Predicate) or feature_text(item) in known for item in items):
        # Rows are hashed before they are joined, so that few of their columns take part in the join.
        stats, rows = _summed_by_spark(joins.widened(with_hash(named, columns), items), conditions, entries, known)
    else:
        with observed(named, columns) as (watched, checksums):
            stats = _by_entry(joins.widened(watched, items), items, entries, known)
        rows = checksums[0]
    return _with_sums(entries.index(stats), frame, wanted, schema, entries.files), rows


def _summed_by_spark(
    hashed: DataFrame, conditions: Sequence[Predicate], entries: Entries, known: Mapping[str, TermStats]
) -> tuple[Stats, Checksum]:
    """Let Spark collect counts, outcomes and checksums; sending the rows to Python would take most of the time."""
    from pyspark.sql import functions as f

    with engines_off(hashed.sparkSession), configured(hashed.sparkSession, **settings_of(conditions)):
        read = hashed.select(*entries.columns, HASH, *outcome_columns(conditions))
        words = [f.bit_or(name).alias(name) for name in read.columns[len(entries.columns) + 1 :]]
        summed = read.groupBy(*entries.columns).agg(*hash_sums(), *words).toArrow()
    bits = row_outcomes(summed, conditions)
    noted = {predicate_text(p): NotedCondition(p, bits[p]) for p in conditions}
    by_entry = Stats(summed["rows"].to_numpy(), {}, noted)
    keys = [
        ":".join(map(str, key)) for key in zip(*(summed[name].to_pylist() for name in entries.columns), strict=True)
    ]
    stats = _in_order(keys, by_entry, entries.keys(entries.files))
    total = sum(map(Checksum.of_sums, summed.drop_columns(entries.columns).to_pylist()), Checksum(0, 0, 0))
    return replace(stats, terms=dict(known)), total


def _with_sums(
    index: BlockIndex, frame: DataFrame, wanted: Sequence[Feature], schema: Mapping[str, Type], files: Sequence[str]
) -> BlockIndex:
    """Add the sums of columns among the items, by file; Spark adds them up, and a sum that overflows is unknown."""
    from pyspark.sql import functions as f

    sums = {feature_text(i): term_text(c) for i in wanted if is_sum(i) for c in columns_in(i) if has_sum(c, schema)}
    if not sums:
        return index
    totals = [f.try_sum(f.expr(column)).alias(str(i)) for i, column in enumerate(sums.values())]
    with engines_off(frame.sparkSession):
        by_file = {row[0]: row[1:] for row in frame.groupBy(file_name(frame)).agg(*totals).toLocalIterator()}
    nothing = (None,) * len(sums)
    columns = zip(*(by_file.get(file, nothing) for file in files), strict=True)
    terms = {
        name: sum_stats(schema[column], values) for (name, column), values in zip(sums.items(), columns, strict=True)
    }
    return replace(index, blocks=replace(index.blocks, terms={**index.blocks.terms, **terms}))


def with_words(stats: Stats, frame: DataFrame, stored: Stats, files: Sequence[str]) -> Stats:
    """Add the words of the columns that have words in `stored`; Spark collects them from all rows."""
    from pyspark.sql import functions as f

    columns = [name for name in stats.terms if name in stored.terms and stored.terms[name].words]
    if not columns:
        return stats
    by_row = (f.collect_set(f.regexp_extract_all(f.expr(name), f.lit(f"({WORD})"), f.lit(0))) for name in columns)
    sets = [f.array_distinct(f.flatten(words)).alias(str(i)) for i, words in enumerate(by_row)]
    with engines_off(frame.sparkSession):
        by_file = {row[0]: row for row in frame.groupBy(file_name(frame)).agg(*sets).toLocalIterator()}
    terms = dict(stats.terms)
    for place, name in enumerate(columns, 1):
        words = [words_in_texts(by_file[file][place] if file in by_file else ()) for file in files]
        terms[name] = replace(terms[name], words=TermStats.of_sets(terms[name].type, words))
    return replace(stats, terms=terms)


def file_name(frame: DataFrame) -> Column:
    """Return the name of each row's file; this also works if the table has a column `_metadata`."""
    return frame.metadataColumn("_metadata")["file_name"]


def _in_order(keys: Sequence[str], stats: Stats, order: Sequence[str]) -> Stats:
    """Return the statistics with one entry for each key in `order`; a key may occur several times in `keys`."""
    place = {key: i for i, key in enumerate(order)}
    return regroup(stats, [place[key] for key in keys], len(order))


def _by_entry(frame: DataFrame, items: Sequence[Feature], entries: Entries, known: Mapping[str, TermStats]) -> Stats:
    from pyspark.sql import functions as f

    # Spark sends a key with each row to Python. Names are long, so their CRC is the key, unless two files share one.
    names: Sequence[str | int] = [crc32(name.encode()) for name in entries.files]
    key = f.crc32(f.col(_FILE).cast("binary"))
    if len(set(names)) < len(names):
        names, key = entries.files, f.col(_FILE)
    if entries.groups is not None:
        key = f.concat_ws(":", key.cast("string"), f.col(_GROUP).cast("string"))
    keys, stats = collect_by(frame, key, [i for i in items if feature_text(i) not in known])
    collected = _in_order(keys, stats, entries.keys(names))
    return replace(collected, terms={**collected.terms, **known})


def usable_items(frame: DataFrame, wanted: Sequence[Feature], schema: Mapping[str, Type]) -> list[Feature]:
    """Return the items that Spark can evaluate on each row of this frame; of users' functions only stable ones."""
    of_rows = [item for item in wanted if not is_sum(item)]
    return analysable(frame, without_user_functions(of_rows, stable_functions(frame.sparkSession)), schema)[0]


def collect_by(frame: DataFrame, key: Column, items: Sequence[Feature]) -> Summary:
    """Return the statistics of the rows of each key, a number or a text of one line; a key may occur several times.

    `items`: see `usable_items`."""
    predicates = [item for item in items if isinstance(item, Predicate)]
    terms = computed(item for item in items if not isinstance(item, Predicate))

    def summarised(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        filled = filter(len, batches)
        return _one_summary(filled, lambda batch: _stats_by_key(batch, terms, predicates), _MAX_BATCH_SUMMARIES)

    spark = frame.sparkSession
    with engines_off(spark), configured(spark, execution__arrow__maxRecordsPerBatch=_BATCH_ROWS, **settings_of(items)):
        read = frame.select(key.alias("_key"), *spark_columns(terms), *outcome_columns(predicates))
        return _summary_of_tasks(read, summarised)


def _one_summary(pieces: Iterable[Piece], summarise: Callable[[Piece], Summary], most: int) -> Iterator[pa.RecordBatch]:
    """Yield one summary of all rows of a task, which keeps at most `most` summaries of pieces at a time."""
    summaries: list[Summary] = []
    for piece in pieces:
        summaries.append(summarise(piece))
        if len(summaries) == most:
            summaries = [_joined(summaries)]
    if summaries:
        keys, stats = _joined(summaries)
        data = index_bytes(BlockIndex(stats))
        yield pa.record_batch([pa.array(["\n".join(keys)]), pa.array([data], pa.binary())], names=["keys", "data"])


def _summary_of_tasks(
    read: DataFrame, summarised: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], joiners: int = 0
) -> Summary:
    """Return the summaries of all tasks, one after the other; `joiners`: so many other tasks join them before."""
    ship_modules(read.sparkSession)
    summaries = read.mapInArrow(summarised, _SUMMARY)
    if joiners:
        summaries = summaries.repartition(joiners).mapInArrow(_joined_summaries, _SUMMARY)
    results = list(map(_summary_of_row, summaries.toArrow().to_pylist()))
    if not results:
        return [], Stats(np.zeros(0, np.int64), {}, {})
    return [key for keys, _ in results for key in keys], concat([stats for _, stats in results])


def _joined_summaries(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = (row for batch in batches for row in batch.to_pylist())
    return _one_summary(rows, _summary_of_row, _MAX_JOINED)


def _summary_of_row(row: Mapping[str, Any]) -> Summary:
    return row["keys"].split("\n"), index_of_bytes(row["data"]).blocks


def collect_blocks(
    frame: DataFrame,
    layout: Layout,
    wanted: Sequence[Feature],
    schema: Mapping[str, Type],
    joins: Joins = NO_JOINS,
    joiners: int = 0,
) -> Stats:
    """Return the statistics of the blocks that the layout would make; entry i describes block i. Nothing is written.

    Each task may have rows of all blocks. `joiners`: so many tasks join their results, where the driver would get too
    many."""
    frame, schema = joins.widened(frame, (*wanted, *layout.features)), {**schema, **joins.schema}
    items = usable_items(frame, wanted, schema)
    terms = computed(item for item in items if not isinstance(item, Predicate))
    by_spark, by_core = split_by_evaluator(items)
    key = BLOCK  # as a local name: in a worker process, `BLOCK` is the name of another column

    def summarise(chunk: pa.Table) -> Summary:
        ids, stats = _stats_of_chunk(chunk, chunk[key].to_numpy(), terms, by_spark, by_core)
        return list(map(str, ids)), stats

    def summarised(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _one_summary(_chunks(batches), summarise, _MAX_CHUNK_SUMMARIES)

    read = with_block(frame, layout, schema).select(BLOCK, *spark_columns(terms), *outcome_columns(by_spark))
    settings = settings_for(layout, items)
    with configured(frame.sparkSession, execution__arrow__maxRecordsPerBatch=_BATCH_ROWS, **settings):
        ids, stats = _summary_of_tasks(read, summarised, joiners)
    return regroup(stats, list(map(int, ids)), layout.blocks)


def count_combinations(
    frame: DataFrame, layouts: Sequence[Layout], schema: Mapping[str, Type], joins: Joins = NO_JOINS
) -> tuple[Ints, Ints]:
    """Return the combinations of blocks that rows have, as columns in lexicographic order, and their numbers of rows.

    A combination has a block of each layout.
    """
    features = [feature for layout in layouts for feature in layout.features]
    frame, schema = joins.widened(frame, features), {**schema, **joins.schema}
    names = [helper_name(f"block_{i}") for i in range(len(layouts))]
    settings: dict[str, int | bool] = {}
    for name, layout in zip(names, layouts, strict=True):
        frame = with_block(frame, layout, schema).withColumnRenamed(BLOCK, name)
        settings |= settings_for(layout)
    with engines_off(frame.sparkSession), configured(frame.sparkSession, **settings):
        counted = frame.groupBy(*names).count().toArrow().sort_by([(name, "ascending") for name in names])
    return np.array([counted[name].to_numpy() for name in names], np.int64), counted["count"].to_numpy()


def _chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows in pieces of limited size, so that a task's memory does not grow with the table."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= _CHUNK_ROWS or sum(b.nbytes for b in waiting) >= _CHUNK_BYTES:
            yield pa.Table.from_batches(waiting).combine_chunks()
            waiting = []
    if sum(map(len, waiting)):
        yield pa.Table.from_batches(waiting).combine_chunks()


def _stats_of_chunk(
    table: pa.Table, block: BlockIds, terms: Computed, by_spark: Sequence[Predicate], by_core: Sequence[Predicate]
) -> tuple[list[int], Stats]:
    """Return the ids of the blocks of these rows, and the statistics of each block."""
    ids, entry = np.unique(block, return_inverse=True)
    rows = rows_of(table, terms)
    bits = {**row_outcomes(table, by_spark), **{p: rows.evaluate(p) for p in by_core}}
    stats = collect(rows.ranked, bits, entry, len(ids))
    return ids.tolist(), replace(stats, terms=_certain(stats, table, terms, len(ids)))


def _certain(stats: Stats, rows: pa.Table | pa.RecordBatch, terms: Computed, entries: int) -> dict[str, TermStats]:
    """Return the statistics of the terms; those of a term that failed on some row are unknown."""
    failing = {feature_text(t) for t in failing_items(rows, terms)}
    return {n: TermStats.unknown(t.type, entries) if n in failing else t for n, t in stats.terms.items()}


def _joined(summaries: Sequence[tuple[list[Key], Stats]]) -> tuple[list[Key], Stats]:
    """Return one summary of several: each key once, with the statistics of all its rows."""
    keys = np.unique([key for part, _ in summaries for key in part])
    places = np.searchsorted(keys, [key for part, _ in summaries for key in part])
    return keys.tolist(), regroup(concat([stats for _, stats in summaries]), places, len(keys))


def _stats_by_key(batch: pa.RecordBatch, terms: Computed, predicates: Sequence[Predicate]) -> Summary:
    """Return the keys of a batch, and the statistics of the rows of each key."""
    codes = batch.column("_key").dictionary_encode()
    numbers, keys = codes.indices.to_numpy(zero_copy_only=False), list(map(str, codes.dictionary.to_pylist()))
    if len(keys) > 1:  # rare, unless a join has mixed the rows
        places, stats = _stats_of_chunk(pa.Table.from_batches([batch]), numbers, terms, predicates, [])
        return [keys[i] for i in places], stats
    stats = collect(rows_of(batch, terms).columns)
    noted = {
        predicate_text(p): NotedCondition(p, np.array([bits], np.uint8))
        for p, bits in zip(predicates, batch_outcomes(batch, predicates), strict=True)
    }
    return keys, Stats(np.array([batch.num_rows]), _certain(stats, batch, terms, 1), noted)
