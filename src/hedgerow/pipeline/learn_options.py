"""The options of learning that do not depend on the learner."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hedgerow.core.effort import Amounts, Effort, amounts_of
from hedgerow.core.errors import LayoutError
from hedgerow.core.learning.synthetic_queries import Recurrence
from hedgerow.core.workload.candidate_cuts import USUAL, Kind
from hedgerow.pipeline.inputs import at_least_one, bytes_of
from hedgerow.spark.storage.source import Source

_BLOCK_BYTES, _LEAST_BLOCK_BYTES, _BLOCKS, _MOST_BLOCKS = 64 << 20, 4 << 20, 16, 1000
_FINER = 4  # each block size that is tried is this many times smaller than the one before


@dataclass(frozen=True, kw_only=True)
class LearnOptions:
    """Options of learning that do not depend on the learner.

    Args:
        block_rows: the minimum rows of a block (half of it where many rows share a value). By default computed from
            `block_bytes` and the size of the source's files.
        block_bytes: the size of a block, such as "128MB". By default "64MB", or a sixteenth of a table of less than
            1 GB, but at least 4 MB. Smaller blocks are taken if queries gain more than the opening of more files
            usually costs on a disk, or in an object store.
        sample_rows: the rows to learn from. By default 100 for each block, but at least 10,000 and at most a million;
            with `exact=False` three times as many.
        seed: the same seed gives the same layout.
        cuts: the conditions that may divide rows. "atoms": the atoms of the queries, as in the papers. "usual": also an
            OR of bounds of several columns, places where values of rare conditions begin, and whether there is a value,
            if most rows have none. "+subtrees" adds all sub-trees of the queries' conditions.
        advanced_cuts: how many of them may be more than a comparison of one column with values, such as LIKE or a
            comparison of two columns. Each is a statistic of every file. By default there is no limit.
        recurrence: the probability, 0 to 1, that the next query repeats literals of an earlier one. With 1, only the
            queries of the workload count; below, similar queries count too. By default it is estimated from repeated
            literals.
        exact: where a learner's cells are counted: in all rows (True), or in the sample that it learns from (False).
            By default in a second sample of up to a million rows, which is all rows of a smaller table. With True a
            qd-tree always joins cells, so that all blocks have `block_rows`.
        effort: "quick" learns in about half the time, from fewer synthetic queries and sample rows; "thorough" takes
            two to three times as long.
        lookup_share: as in `WriteOptions`. Look-ups of ids that a filter will serve hardly count, because cuts for them
            would divide the rows to the harm of other queries. 0: they count like all queries.
        regions: how many regions are learned first, each of which tasks then divide into blocks by a sample of its own.
            Only for trees. By default none (1), unless a million rows to learn from are fewer than 50 for each block.
        storage: how many full copies of the table may be stored, each in a layout of its own. With 2, the second layout
            is learned for the queries that the first serves badly, and then both again in turns. `advise` and the
            autopilot then compare one copy with so many.
        allow_slower: no kind of query may become slower than it is by more than this share of its time. `advise`, the
            learner "auto" and the autopilot take no layout that breaks this; `learn` warns of it. Usual seconds count,
            not measured ones; for a small table the rows that a query reads.
    """

    block_rows: int | None = None
    block_bytes: str | None = None
    sample_rows: int | None = None
    seed: int = 0
    cuts: Kind = USUAL
    advanced_cuts: int | None = None
    recurrence: Recurrence = "auto"
    exact: bool | None = None
    effort: Effort = "normal"
    lookup_share: float = 0.01
    regions: int | None = None
    storage: int = 1
    allow_slower: float = 0.1

    def __post_init__(self) -> None:
        at_least_one("storage", self.storage)
        at_least_one("regions", self.regions)
        at_least_one("block_rows", self.block_rows)
        if self.block_bytes is not None:
            bytes_of(self.block_bytes, "block")  # refused at once, and not after minutes
        if not self.allow_slower >= 0:
            raise LayoutError(f"allow_slower has to be a share of at least 0, not {self.allow_slower!r}")
        if self.advanced_cuts is not None and not self.advanced_cuts >= 0:
            raise LayoutError(f"advanced_cuts has to be a number of at least 0, not {self.advanced_cuts!r}")

    @property
    def amounts(self) -> Amounts:
        """The limits of learning."""
        return replace(amounts_of(self.effort), advanced=self.advanced_cuts)

    def least_rows(self, source: Source) -> int:
        """Return the minimum rows of a block; the largest number, if several are to be tried."""
        return self.sizes(source)[0]

    def sizes(self, source: Source) -> list[int]:
        """Return the minimum rows of a block: the user's number, or else those to try, in falling order."""
        if self.block_rows is not None:
            return [self.block_rows]
        row_bytes = max(1.0, sum(source.widths.values()))
        if self.block_bytes is not None:
            return [max(1, round(bytes_of(self.block_bytes, "block") / row_bytes))]
        return [max(1, round(size / row_bytes)) for size in _sizes(source.rows * row_bytes)]


QUICK = LearnOptions(exact=False, effort="quick")


def _sizes(table_bytes: float) -> list[float]:
    """Return the bytes of a block to try for a table of this size.

    The first is 64 MB, or less where so few blocks would be made; smaller ones are neither many nor slow to read.

    >>> [[round(size / 2**20, 1) for size in _sizes(mb * 2**20)] for mb in (30, 800, 2_400, 20_000, 100_000)]
    [[4.0], [50.0, 12.5, 4.0], [64.0, 16.0, 4.0], [64.0, 20.0], [64.0]]
    """
    sizes = [min(_BLOCK_BYTES, max(_LEAST_BLOCK_BYTES, table_bytes / _BLOCKS))]
    least = max(_LEAST_BLOCK_BYTES, table_bytes / _MOST_BLOCKS)
    while sizes[-1] > least:
        sizes.append(max(sizes[-1] / _FINER, least))
    return sizes
