"""The options of writing a table in a layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hedgerow.core.errors import LayoutError
from hedgerow.pipeline.inputs import at_least_one, bytes_of
from hedgerow.tables.items_to_index import MAX_DESCRIBED_ITEMS


@dataclass(frozen=True)
class WriteOptions:
    """Options of writing a table in a layout that are rarely needed.

    Args:
        max_block_rows: a file with more rows is written as several files.
        sort_by: the columns by which rows are sorted inside a file, `()` for none. By default the order of the curve
            where the layout follows one, and the column that `learn` chose.
        parquet: options of Spark's Parquet writer, such as `{"compression": "zstd"}`.
        statistics: the number of expressions (their bounds) and conditions (their outcomes) that the index describes
            beside plain columns: first the layout's own, then those that occur in most queries.
        retries: in place, how often to start again if others changed those files meanwhile.
        lookup_share: the share of the table's bytes that filters for look-ups may add: they tell which files may hold
            a value, of columns that the workload compares by `=` and IN and whose bounds let most files pass. 0: none.
        file_bytes: smaller blocks share files of about this size, such as "128MB": neighbours of the layout, one after
            the other, in row groups that queries skip one by one. None: a file for each block.
        wave_bytes: a larger table is written in waves, each from about so many bytes of the source's files, such as
            "200GB". The shuffle of a wave is all the temporary space that is needed, and a run that is killed goes on
            with the wave that it was at. Blocks of a table in waves have a file for each wave.
        other_tables: the places, by name, of the tables to which the layout's foreign keys lead.
    """

    max_block_rows: int | None = None
    sort_by: Sequence[str] | None = None
    parquet: Mapping[str, str] = field(default_factory=dict)
    statistics: int = MAX_DESCRIBED_ITEMS
    retries: int = 0
    lookup_share: float = 0.01
    wave_bytes: str = "1TB"
    file_bytes: str | None = None
    other_tables: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        at_least_one("max_block_rows", self.max_block_rows)
        bytes_of(self.wave_bytes, "wave")  # refused at once
        bytes_of(self.file_bytes or "1B", "file")
        if self.statistics < 0:
            raise LayoutError(f"statistics has to be at least 0, not {self.statistics}")
        if not 0 <= self.lookup_share <= 1:
            raise LayoutError(f"lookup_share is a share from 0 to 1, not {self.lookup_share}")
