"""The files of a table with the facts that Spark itself skips by: partitions, Delta's log, Parquet's footers.

    Delta      the log states partitions, minimum and maximum    other files are not opened
    Parquet    folders name partitions                           other files are not opened
               footers state minimum and maximum                 other files are opened, but no rows are read;
                                                                 of a TIMESTAMP_NTZ Spark does not look at them

These facts are for estimates only: the evaluator decides a little better than Spark, by lists and pairs of columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from hedgerow.core.arrays import Ints
from hedgerow.core.predicates.nodes import Column
from hedgerow.core.predicates.sql_text import quote_name, term_text
from hedgerow.core.predicates.types import NOT_PUSHED, Type
from hedgerow.core.pruning.block_stats import Stats, TermStats
from hedgerow.core.pruning.stated_bounds import stated_bounds
from hedgerow.spark.storage.delta_log import Snapshot
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.footer import UNREADABLE
from hedgerow.spark.storage.footers import footers_of
from hedgerow.spark.storage.source import Source

_MAX_FOOTERS = 256  # of more files, some from all over the table are read
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class StatedFiles:
    """Statistics of files. `opening` decides which files Spark opens, `reading` in which of them it reads rows.

    `files`: the number of files in the table, for it may have more than are described."""

    opening: Stats
    reading: Stats
    files: int


def stated_files(source: Source, columns: Sequence[Column]) -> StatedFiles | None:
    """Return the files of a source with the stated facts about these columns; None if no file is known.

    Of Parquet files without a log, only the facts of top-level columns are read."""
    if source.snapshot is not None:
        return _in_log(source, source.snapshot, columns)
    return _in_footers(source, [c.path[0] for c in columns if len(c.path) == 1]) if source.files else None


def _in_log(source: Source, snapshot: Snapshot, columns: Sequence[Column]) -> StatedFiles:
    listed = snapshot.stated([column.path for column in columns])
    if source.sizes is not None:  # the source may be some files of the table
        listed = listed.filter(
            pa.array([snapshot.full_path(name) in source.sizes for name in listed["path"].to_pylist()])
        )
    rows = listed["rows"].to_numpy()
    rows = np.where(rows < 0, max(1, source.rows // max(1, len(rows))), rows)
    terms = {}
    for i, column in enumerate(columns):
        if f"low_{i}" in listed.column_names:
            low, high = (listed[f"{end}_{i}"].combine_chunks() for end in ("low", "high"))
            nulls = listed[f"nulls_{i}"].fill_null(-1).to_numpy()
            terms[term_text(column)] = stated_bounds(low, high, nulls, rows)
    stats = Stats(rows, _fitting(terms, source.schema), {})
    return StatedFiles(stats, stats, len(rows))


def _in_footers(source: Source, columns: Sequence[str]) -> StatedFiles | None:
    folder = Folder(source.frame.sparkSession, "")
    chosen = source.files[:: -(-len(source.files) // _MAX_FOOTERS)]
    sizes = {file: source.sizes[file] if source.sizes else folder.size(file) for file in chosen}
    names = [quote_name(column) for column in columns]
    footers = footers_of(folder, sizes, bounds_of=names)
    rows = footers.rows
    if (rows == UNREADABLE).any():
        return None
    partitions = _fitting(_in_folders(source, chosen, columns, rows), source.schema)
    stated = footers.known_terms(source.schema)
    terms = {name: term for name, term in stated.items() if term.type.kind not in NOT_PUSHED} | partitions
    return StatedFiles(Stats(rows, partitions, {}), Stats(rows, terms, {}), len(source.files))


def _in_folders(source: Source, files: Sequence[str], columns: Sequence[str], rows: Ints) -> dict[str, TermStats]:
    """Return the statistics of the columns whose values are in the names of the files' folders: `day=2024-05-01`."""
    from pyspark.sql.pandas.types import to_arrow_type

    by_file = [dict(part.split("=", 1) for part in file.split("/")[:-1] if "=" in part) for file in files]
    terms = {}
    for column in columns:
        if all(column in parts for parts in by_file):
            texts = [unquote(parts[column]) for parts in by_file]
            try:
                kind = to_arrow_type(source.frame.schema[column].dataType)
                values = pa.array([None if text == _NULL_FOLDER else text for text in texts], pa.string()).cast(kind)
            except pa.ArrowException:
                continue
            nulls = np.where(values.is_null().to_numpy(zero_copy_only=False), rows, 0)
            terms[quote_name(column)] = stated_bounds(values, values, nulls, rows)
    return terms


def _fitting(terms: Mapping[str, TermStats], schema: Mapping[str, Type]) -> dict[str, TermStats]:
    """Return the terms that have the type of their column: of others, the order is not known."""
    return {name: term for name, term in terms.items() if schema[name].kind == term.type.kind}
