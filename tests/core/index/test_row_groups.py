"""Row groups of random files: a group with a matching row is read, and storing or joining indexes changes nothing."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from hedgerow.core.index.block_index import BlockIndex, GroupIndex, concat_indexes
from hedgerow.core.index.index_file import index_bytes, index_of_bytes
from hedgerow.core.index.without_columns import with_columns
from hedgerow.core.predicates.nodes import Compare, In, IsNull, Or, Predicate, col, lit
from hedgerow.core.pruning.block_stats import Stats, collect
from hedgerow.core.pruning.combine_stats import regroup

VALUES = 30


def an_index(r: Random) -> tuple[BlockIndex, list[list[int | None]]]:
    """Return the index of some files, of which the last has no known row group, and the values of each row group."""
    files = r.randrange(1, 5)
    block = np.array([file for file in range(files) for _ in range(r.randrange(1, 5))])
    rows = [[r.choice((None, r.randrange(VALUES))) for _ in range(r.randrange(1, 6))] for _ in block]
    group_of = np.repeat(np.arange(len(rows)), list(map(len, rows)))
    stats = collect({col("x"): pa.array([v for some in rows for v in some])}, None, group_of, len(rows))
    blocks = regroup(stats, block, files)
    known = np.flatnonzero(block < files - 1)
    own = collect({col("x"): pa.array([v for i in known for v in rows[i]], pa.int64())}, None,
                  np.repeat(np.arange(len(known)), [len(rows[i]) for i in known]), len(known))  # fmt: skip
    groups = GroupIndex(own, block[known], known * 100) if len(known) else None
    return BlockIndex(blocks, groups=groups), rows


def a_condition(r: Random) -> tuple[Predicate, set[int | None]]:
    """Return a condition, and the values on which it is TRUE."""
    low, some = r.randrange(VALUES), [r.randrange(VALUES) for _ in range(3)]
    return r.choice(
        (
            (Compare(col("x"), "<", lit(low)), set(range(low))),
            (In(col("x"), tuple(map(lit, some))), set(some)),
            (Or((IsNull(col("x")), Compare(col("x"), "=", lit(low)))), {None, low}),
        )
    )


@pytest.mark.parametrize("seed", range(200))
def test_groups_with_matching_rows_are_read(seed: int) -> None:
    r = Random(seed)
    (one, rows), (two, more) = an_index(r), an_index(r)
    index = concat_indexes([one, two])
    stored = index_of_bytes(index_bytes(index))
    p, values = a_condition(r)
    opened = index.may_hold(p)
    read = index.groups_to_read(p, opened)
    assert (stored.may_hold(p) == opened).all() and (stored.groups_to_read(p, opened) == read).all()
    if index.groups is None:
        assert not len(read)
        return
    of_group = {(0, int(start)): rows[start // 100] for start in (one.groups.start if one.groups else ())}
    of_group |= {(1, int(start)): more[start // 100] for start in (two.groups.start if two.groups else ())}
    part = (index.groups.block >= len(one.blocks)).astype(int)
    for i, (number, start) in enumerate(zip(part.tolist(), index.groups.start.tolist(), strict=True)):
        holds = not values.isdisjoint(of_group[number, start])
        assert read[i] or not holds
        assert opened[index.groups.block[i]] or not holds
    assert (index.rows_to_read(p, opened) <= index.blocks.rows).all()
    places = np.array(sorted(r.sample(range(len(index.blocks)), r.randrange(len(index.blocks) + 1))), np.int64)
    some = index.take(places)
    assert (some.may_hold(p) == opened[places]).all()
    assert some.groups is not None
    kept = np.isin(index.groups.block, places)
    assert (some.groups_to_read(p, opened[places]) == read[kept]).all()
    assert (some.groups.start == index.groups.start[kept]).all()


def test_what_row_groups_lack_is_unknown() -> None:
    """An index that came to describe another column of the files only."""
    index, _ = an_index(Random(3))
    assert index.groups is not None
    fresh = collect(
        {col("y"): pa.array([1] * len(index.blocks))}, None, np.arange(len(index.blocks)), len(index.blocks)
    )
    grown = with_columns(index, BlockIndex(Stats(index.blocks.rows, fresh.terms, {})))
    p = Compare(col("y"), "=", lit(1))
    assert grown.groups_to_read(p, grown.may_hold(p)).all()
