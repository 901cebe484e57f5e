"""Collects statistics of written files in one pass over just the columns that queries filter on.

Each task summarises its rows file by file with core's own collector; the driver only merges the small results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar
from zlib import crc32

import numpy as np
import pyarrow as pa

from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.index_file import index_bytes, index_of_bytes
from hedgerow.core.layouts.base import BlockIds, Layout
from hedgerow.core.predicates.nodes import Feature, Predicate
from hedgerow.core.predicates.sql_text import feature_text, predicate_text, quote_name
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import NotedCondition, Stats, TermStats, collect, concat, regroup
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
from hedgerow.spark.start.session import configured

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_BATCH_ROWS = 1 << 16
_CHUNK_ROWS, _CHUNK_BYTES = 1 << 18, 64 << 20  # that a task summarises at once
_MAX_WAITING_PARTS, _MAX_WAITING_BATCHES = 16, 64  # summaries that a task keeps before it joins them
_FILE = helper_name("file")
Key = TypeVar("Key", int, str)


def collect_files(
    frame: DataFrame,
    wanted: Sequence[Feature],
    schema: Mapping[str, Type],
    files: Sequence[str],
    known: Mapping[str, TermStats] | None = None,
    joins: Joins = NO_JOINS,
) -> Stats:
    """Statistics of files: entry i describes `files[i]`, a path below the table's. `frame` reads just these files.

    `known`: statistics of some terms, which are not collected again.
    """
    from pyspark.sql import functions as f

    # The file's name becomes a column first: above a join or an observation it is not available.
    wide = joins.widened(frame.withColumn(_FILE, file_name(frame)), wanted)
    return _by_file(wide, f.col(_FILE), usable_items(wide, wanted, {**schema, **joins.schema}), files, known or {})


def collect_files_and_rows(
    frame: DataFrame,
    wanted: Sequence[Feature],
    schema: Mapping[str, Type],
    files: Sequence[str],
    known: Mapping[str, TermStats],
    joins: Joins = NO_JOINS,
) -> tuple[Stats, Checksum]:
    """As `collect_files`, and the checksum of all rows, in the same pass."""
    from pyspark.sql import functions as f

    columns = list(map(quote_name, frame.columns))
    # The file's name becomes a column first: above a join or an observation it is not available.
    named = frame.withColumn(_FILE, file_name(frame))
    # Unusable items are left out first: an analysis that fails above an observation would end it.
    items = usable_items(joins.widened(named, wanted), wanted, {**schema, **joins.schema})
    conditions = [item for item in items if isinstance(item, Predicate)]
    if all(isinstance(item, Predicate) or feature_text(item) in known for item in items):
        # Rows are hashed before they are joined: then few of their columns take part in the join.
        return _summed_by_spark(joins.widened(with_hash(named, columns), items), conditions, files, known)
    with observed(named, columns) as (watched, checksums):
        stats = _by_file(joins.widened(watched, items), f.col(_FILE), items, files, known)
    return stats, checksums[0]


def _summed_by_spark(
    hashed: DataFrame, conditions: Sequence[Predicate], files: Sequence[str], known: Mapping[str, TermStats]
) -> tuple[Stats, Checksum]:
    """Counts, outcomes and checksums need no Python; to send the rows to it would take most of the time."""
    from pyspark.sql import functions as f

    with configured(hashed.sparkSession, **settings_of(conditions)):
        read = hashed.select(_FILE, HASH, *outcome_columns(conditions))
        words = [f.bit_or(name).alias(name) for name in read.columns[2:]]
        found = read.groupBy(_FILE).agg(*hash_sums(), *words).toArrow()
    bits = row_outcomes(found, conditions)
    noted = {predicate_text(p): NotedCondition(p, bits[p]) for p in conditions}
    by_file = Stats(found["rows"].to_numpy(), {}, noted)
    stats = _in_order(found[_FILE].to_pylist(), by_file, list(map(_last_part, files)))
    total = sum(map(Checksum.of_sums, found.drop_columns(_FILE).to_pylist()), Checksum(0, 0, 0))
    return replace(stats, terms=dict(known)), total


def with_words(stats: Stats, frame: DataFrame, stored: Stats, files: Sequence[str]) -> Stats:
    """With the words of those columns of which `stored` has them; found by Spark in all rows, not in dictionaries."""
    from pyspark.sql import functions as f

    columns = [name for name in stats.terms if name in stored.terms and stored.terms[name].words]
    if not columns:
        return stats
    found = (f.collect_set(f.regexp_extract_all(f.expr(name), f.lit(f"({WORD})"), f.lit(0))) for name in columns)
    sets = [f.array_distinct(f.flatten(words)).alias(str(i)) for i, words in enumerate(found)]
    by_file = {row[0]: row for row in frame.groupBy(file_name(frame)).agg(*sets).toLocalIterator()}
    terms = dict(stats.terms)
    for place, name in enumerate(columns, 1):
        words = [words_in_texts(by_file[file][place] if file in by_file else ()) for file in map(_last_part, files)]
        terms[name] = replace(terms[name], words=TermStats.of_sets(terms[name].type, words))
    return replace(stats, terms=terms)


def file_name(frame: DataFrame) -> Column:
    """The name of the file that a row was read from; a table may have a column called `_metadata` itself."""
    return frame.metadataColumn("_metadata")["file_name"]


def _last_part(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _in_order(keys: Sequence[str], stats: Stats, order: Sequence[str]) -> Stats:
    """Statistics of keys, a key perhaps several times, as those of `order`: entry i describes the key `order[i]`."""
    place = {key: i for i, key in enumerate(order)}
    return regroup(stats, [place[key] for key in keys], len(order))


def _by_file(
    frame: DataFrame,
    key: Column,
    items: Sequence[Feature],
    files: Sequence[str],
    known: Mapping[str, TermStats],
) -> Stats:
    from pyspark.sql import functions as f

    names = list(map(_last_part, files))
    # Every row carries its key to Python. Names are long, so the key is their CRC where no two files share one.
    numbers = [str(crc32(name.encode())) for name in names]
    if len(set(numbers)) == len(numbers):
        names, key = numbers, f.crc32(key.cast("binary"))
    keys, stats = collect_by(frame, key, [i for i in items if feature_text(i) not in known])
    collected = _in_order(keys, stats, names)
    return replace(collected, terms={**collected.terms, **known})


def usable_items(frame: DataFrame, wanted: Sequence[Feature], schema: Mapping[str, Type]) -> list[Feature]:
    """The items that this frame can evaluate, and that mean the same in every session."""
    return analysable(frame, without_user_functions(wanted), schema)[0]


def collect_by(frame: DataFrame, key: Column, items: Sequence[Feature]) -> tuple[list[str], Stats]:
    """Statistics of the rows of each key, a number or a text without line ends; the same key may come several times.

    `items`: usable ones, see `usable_items`."""
    predicates = [item for item in items if isinstance(item, Predicate)]
    terms = computed(item for item in items if not isinstance(item, Predicate))

    def summed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        so_far: list[tuple[list[str], Stats]] = []
        for batch in filter(len, batches):
            so_far.append(_stats_by_key(batch, terms, predicates))
            if len(so_far) == _MAX_WAITING_BATCHES:
                so_far = [_joined(so_far)]
        if so_far:
            own, joined = _joined(so_far)
            data = index_bytes(BlockIndex(joined))
            yield pa.record_batch([pa.array(["\n".join(own)]), pa.array([data], pa.binary())], names=["keys", "data"])

    read = frame.select(key.alias("_key"), *spark_columns(terms), *outcome_columns(predicates))
    with configured(frame.sparkSession, execution__arrow__maxRecordsPerBatch=_BATCH_ROWS, **settings_of(items)):
        results = read.mapInArrow(summed, "keys string, data binary").toArrow().to_pylist()
    if not results:
        return [], Stats(np.zeros(0, np.int64), {}, {})
    keys = [key for r in results for key in r["keys"].split("\n")]
    return keys, concat([index_of_bytes(r["data"]).blocks for r in results])


def collect_blocks(
    frame: DataFrame, layout: Layout, wanted: Sequence[Feature], schema: Mapping[str, Type], joins: Joins = NO_JOINS
) -> Stats:
    """Statistics of the blocks that the layout would make, before anything is written; entry i describes block i."""
    frame, schema = joins.widened(frame, (*wanted, *layout.features)), {**schema, **joins.schema}
    items, _ = analysable(frame, without_user_functions(wanted), schema)
    terms = computed(item for item in items if not isinstance(item, Predicate))
    by_spark, by_core = split_by_evaluator(items)
    key = BLOCK  # another process calls the column otherwise

    def summed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        so_far: list[tuple[list[int], Stats]] = []
        for table in _chunks(batches):
            so_far.append(_stats_of_chunk(table, table[key].to_numpy(), terms, by_spark, by_core))
            if len(so_far) == _MAX_WAITING_PARTS:
                so_far = [_joined(so_far)]
        if so_far:
            ids, stats = _joined(so_far)
            data = index_bytes(BlockIndex(stats))
            yield pa.record_batch([pa.array([ids], pa.list_(pa.int32())), pa.array([data])], names=["ids", "data"])

    read = with_block(frame, layout, schema).select(BLOCK, *spark_columns(terms), *outcome_columns(by_spark))
    settings = settings_for(layout, items)
    with configured(frame.sparkSession, execution__arrow__maxRecordsPerBatch=_BATCH_ROWS, **settings):
        results = read.mapInArrow(summed, "ids array<int>, data binary").toArrow().to_pylist()
    if not results:
        return Stats(np.zeros(layout.blocks, np.int64), {}, {})
    ids, stats = _joined([(r["ids"], index_of_bytes(r["data"]).blocks) for r in results])
    return regroup(stats, ids, layout.blocks)


def _chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows in pieces of limited size: what a task holds at once does not grow with the table."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= _CHUNK_ROWS or sum(b.nbytes for b in waiting) >= _CHUNK_BYTES:
            yield pa.Table.from_batches(waiting).combine_chunks()
            waiting = []
    if sum(map(len, waiting)):
        yield pa.Table.from_batches(waiting).combine_chunks()


def _stats_of_chunk(
    table: pa.Table,
    block: BlockIds,
    terms: Computed,
    by_spark: Sequence[Predicate],
    by_core: Sequence[Predicate],
) -> tuple[list[int], Stats]:
    """The blocks that these rows belong to, and the statistics of each."""
    own, entry = np.unique(block, return_inverse=True)
    rows = rows_of(table, terms)
    bits = {**row_outcomes(table, by_spark), **{p: rows.evaluate(p) for p in by_core}}
    stats = collect(rows.ranked, bits, entry, len(own))
    unknown = {feature_text(t) for t in failing_items(table, terms)}
    known = {n: TermStats.unknown(t.type, len(own)) if n in unknown else t for n, t in stats.terms.items()}
    return own.tolist(), replace(stats, terms=known)


def _joined(parts: Sequence[tuple[list[Key], Stats]]) -> tuple[list[Key], Stats]:
    """The blocks, or files, that any part has, and the statistics of each over all parts."""
    own = np.unique([i for ids, _ in parts for i in ids])
    places = np.searchsorted(own, [i for ids, _ in parts for i in ids])
    return own.tolist(), regroup(concat([stats for _, stats in parts]), places, len(own))


def _stats_by_key(batch: pa.RecordBatch, terms: Computed, predicates: Sequence[Predicate]) -> tuple[list[str], Stats]:
    """The keys of a batch, and the statistics of the rows of each."""
    codes = batch.column("_key").dictionary_encode()
    ids, names = codes.indices.to_numpy(zero_copy_only=False), list(map(str, codes.dictionary.to_pylist()))
    if len(names) == 1:  # nearly always, unless a join has mixed the rows
        return names, _batch_stats(batch, terms, predicates)
    own, stats = _stats_of_chunk(pa.Table.from_batches([batch]), ids, terms, predicates, [])
    return [names[i] for i in own], stats


def _batch_stats(batch: pa.RecordBatch, terms: Computed, predicates: Sequence[Predicate]) -> Stats:
    stats = collect(rows_of(batch, terms).columns)
    unknown = {feature_text(t) for t in failing_items(batch, terms)}
    known = {n: TermStats.unknown(t.type, 1) if n in unknown else t for n, t in stats.terms.items()}
    features = {
        predicate_text(p): NotedCondition(p, np.array([bits], np.uint8))
        for p, bits in zip(predicates, batch_outcomes(batch, predicates), strict=True)
    }
    return Stats(np.array([batch.num_rows]), known, features)
