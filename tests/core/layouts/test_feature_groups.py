"""Vectors of features to blocks."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hedgerow.core.errors import FormatError
from hedgerow.core.layouts.feature_groups import GroupLayout
from hedgerow.core.layouts.layout_json import layout_from_json
from hedgerow.core.predicates.nodes import Opaque, Predicate, col
from hedgerow.core.pruning.row_batch import Rows

x, y = col("x"), col("y")
FEATURES = tuple(Opaque(f"f{i}", ()) for i in range(9))


def vectors(n: int, wanted: list[str]) -> Rows:
    """Rows on which just the features marked 1 are TRUE; the others FALSE or NULL in turn."""
    truths: dict[Predicate, Any] = {
        p: np.array([2 if v[i] == "1" else (1, 4)[j % 2] for j, v in enumerate(wanted)], np.uint8)
        for i, p in enumerate(FEATURES[:n])
    }
    return Rows({}, truths)


def test_known_vectors_go_where_the_map_says() -> None:
    layout = GroupLayout(FEATURES[:2], {"11": 0, "10": 0, "01": 1, "00": 2})
    assert layout.assign(vectors(2, ["11", "00", "01", "10"])).tolist() == [0, 2, 1, 0]


def test_an_unseen_vector_goes_where_it_teaches_the_fewest_new_features() -> None:
    """001 would teach block 0 one feature (the third) and block 1 none; 011 one each, so the first."""
    layout = GroupLayout(FEATURES[:3], {"110": 0, "101": 1})
    assert layout.assign(vectors(3, ["001", "011", "000", "111"])).tolist() == [1, 0, 0, 0]


def test_unseen_vectors_equal_a_slow_search() -> None:
    random = Random(0)
    for n in (1, 4, 9):  # nine features need a second byte
        every = ["".join(bits) for bits in product("01", repeat=n)]
        known = {v: random.randrange(4) for v in random.sample(every, random.randint(1, 2 ** (n - 1)))}
        layout = GroupLayout(FEATURES[:n], known)
        wanted = random.sample(every, min(len(every), 60))

        def slow(vector: str, known: dict[str, int] = known) -> int:
            def lessons(block: int) -> int:
                inside = [v for v, b in known.items() if b == block]
                return sum(c == "1" and all(v[i] == "0" for v in inside) for i, c in enumerate(vector))

            return known.get(vector, min(range(max(known.values()) + 1), key=lessons))

        assert layout.assign(vectors(n, wanted)).tolist() == [slow(v) for v in wanted]


def test_no_features_is_one_block() -> None:
    layout = GroupLayout((), {})
    assert (layout.blocks, layout.assign(Rows({x: pa.array([1, 2])})).tolist()) == (1, [0, 0])


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("not json", "this is not a layout, because it is not valid JSON"),
        ("[1]", "not a Hedgerow layout"),
        ('{"kind": "tree"}', "not a Hedgerow layout"),
        ('{"hedgerow_layout": 2, "node": "TreeLayout"}', r"another Hedgerow \(format 2\)"),
        ('{"hedgerow_layout": 1, "node": "QuiltLayout"}', "not what Hedgerow wrote"),
        ('{"hedgerow_layout": 1, "node": "Column", "path": ["x"]}', "not what Hedgerow wrote"),
        ('{"hedgerow_layout": 1, "node": "TreeLayout", "cuts": [5], "nodes": []}', "not a layout"),
        ('{"hedgerow_layout": 1, "node": "TreeLayout", "cuts": [], "nodes": [["0", "0", "0"]]}', "is damaged"),
        ('{"hedgerow_layout": 1, "node": "TreeLayout", "cuts": []}', "not what Hedgerow wrote"),
    ],
)
def test_what_is_no_layout_is_refused(value: str, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        layout_from_json(value)
