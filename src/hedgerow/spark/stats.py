"""Statistics of written files in one pass over just the columns that queries filter on.

Each task sums up its rows by file with core's own collector and sends the small result; the driver only merges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hedgerow.core.expr import Predicate, Term
from hedgerow.core.stats import Stats, concat, regroup
from hedgerow.core.store import index_bytes, index_of_bytes
from hedgerow.core.types import Type
from hedgerow.core.views import BlockIndex, View
from hedgerow.spark.evaluate import columns, computed, rows_of, usable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def collect_files(
    frame: DataFrame, wanted: Sequence[Term | Predicate], schema: Mapping[str, Type], files: Sequence[str]
) -> Stats:
    """Entry i of the result is `files[i]` (a bare name); `frame` reads just these files."""
    from pyspark.sql import functions as f

    items, _ = usable(frame, wanted, schema)
    names = computed(items)

    def summed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts: list[Stats] = []
        seen: list[str] = []
        for batch in batches:
            here = batch.column("_file").dictionary_encode()
            rows = rows_of(batch, names)
            entry = here.indices.to_numpy(zero_copy_only=False)
            found = here.dictionary.to_pylist()
            whole = rows.stats(entry, len(found)) if names else Stats(np.bincount(entry), {}, {})
            parts.append(whole)
            seen += found
        if parts:
            own = sorted(set(seen))
            joined = regroup(concat(parts), [own.index(s) for s in seen], len(own))
            data = index_bytes(BlockIndex((View(joined),)))
            yield pa.record_batch([pa.array(["\n".join(own)]), pa.array([data], pa.binary())], names=["files", "data"])

    read = frame.select(f.col("_metadata.file_name").alias("_file"), *columns(names))
    results = read.mapInArrow(summed, "files string, data binary").toArrow().to_pylist()
    if not results:
        return Stats(np.zeros(len(files), np.int64), {}, {})
    place = {name: i for i, name in enumerate(files)}
    parts = [index_of_bytes(r["data"]).blocks for r in results]
    targets = [place[name] for r in results for name in r["files"].split("\n")]
    return regroup(concat(parts), targets, len(files))
