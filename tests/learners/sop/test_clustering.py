"""Merging row groups: by hand, against all pairs, and the order in which groups share zeros."""

from __future__ import annotations

from itertools import combinations
from random import Random

import numpy as np
import pytest

from hedgerow.core.arrays import Bools
from hedgerow.learners.sop.clustering import chained, grouped_rows

# Four features that 4, 3, 2 and 1 queries would use, and five vectors of theirs.
WEIGHTS = [4.0, 3.0, 2.0, 1.0]


def of(*texts: str) -> Bools:
    return np.array([[c == "1" for c in t] for t in texts], bool).reshape(len(texts), len(texts[0]) if texts else 1)


def test_a_case_by_hand() -> None:
    """At 50 rows a block:

        A 1000 x 30    B 0000 x 20    C 0011 x 10    D 0010 x 15    E 1100 x 60

    E is full from the start. The prices: A+B 20 * 4 = 80, A+C 30 * 3 + 10 * 4 = 130, A+D 30 * 2 + 15 * 4 = 120,
    B+C 20 * 3 = 60, B+D 20 * 2 = 40, C+D 15 * 1 = 15. C and D make 0011 x 25; then B+CD costs 20 * 3 = 60, less than
    A+B 80 and A+CD 30 * 3 + 25 * 4 = 190: 0011 x 45. A is left with it, 30 * 3 + 45 * 4 = 270, and there they are 75.
    """
    vectors = of("1000", "0000", "0011", "0010", "1100")
    assert grouped_rows(vectors, np.array([30, 20, 10, 15, 60]), WEIGHTS, 50).tolist() == [0, 0, 0, 0, 1]
    # With 45 rows a block BCD is full before A is asked. A joins E, for 30 * 3, and not BCD, for 270.
    assert grouped_rows(vectors, np.array([30, 20, 10, 15, 60]), WEIGHTS, 45).tolist() == [0, 1, 1, 1, 0]


def test_nothing_to_join() -> None:
    assert grouped_rows(of(), np.zeros(0, np.int64), [], 5).tolist() == []
    assert grouped_rows(of("10"), np.array([3]), [1.0, 1.0], 5).tolist() == [0]
    assert grouped_rows(of("10", "01"), np.array([5, 5]), [1.0, 1.0], 5).tolist() == [0, 1]


def slow(vectors: Bools, rows: list[int], weights: list[float], least: int) -> list[int]:
    """All pairs in every round; of equally cheap ones the first."""
    blocks = {i: ([i], v.copy(), n) for i, (v, n) in enumerate(zip(vectors, rows, strict=True))}

    def price(i: int, k: int) -> float:
        (_, v, n), (_, u, m) = blocks[i], blocks[k]
        w = np.array(weights)
        return n * float(w @ (u & ~v)) + m * float(w @ (v & ~u))

    def join(i: int, k: int) -> None:
        (own, v, n), (other, u, m) = blocks[i], blocks.pop(k)
        blocks[i] = own + other, v | u, n + m

    while True:
        small = sorted(i for i, block in blocks.items() if block[2] < least)
        if len(small) < 2:
            break
        join(*min(combinations(small, 2), key=lambda pair: (price(*pair), pair)))
    if small and len(blocks) > 1:
        to = min((k for k in sorted(blocks) if k != small[0]), key=lambda k: price(small[0], k))
        join(min(small[0], to), max(small[0], to))
    found = [0] * len(rows)
    for number, i in enumerate(sorted(blocks)):
        for member in blocks[i][0]:
            found[member] = number
    return found


@pytest.mark.parametrize("features", [1, 5, 9, 20])
def test_merging_equals_all_pairs(features: int) -> None:
    """Few weights and sizes, so that many pairs cost the same."""
    random = Random(features)
    joined = 0
    for _ in range(60):
        texts = {"".join(random.choice("01") for _ in range(features)) for _ in range(random.randint(1, 40))}
        vectors = of(*sorted(texts))
        rows = [random.choice((1, 2, 3, 10)) for _ in texts]
        weights = [float(random.choice((0, 1, 1, 2, 8))) for _ in range(features)]
        least = random.randint(1, 25)
        found = grouped_rows(vectors, np.array(rows), weights, least).tolist()
        assert found == slow(vectors, rows, weights, least)
        sizes = np.bincount(found, weights=rows)
        assert len(sizes) == 1 or sizes.min() >= least
        joined += len(texts) - len(sizes)
    assert joined > 100 * (features > 1)


def test_an_order_by_hand() -> None:
    """The tree is 1100 - 1000 - 0000 - 0001 - 0011, each one bit from the next: its walk is that line, from an end."""
    vectors = of("0000", "0011", "1000", "1100", "0001")
    assert chained(vectors).tolist() in ([3, 2, 0, 4, 1], [1, 4, 0, 2, 3])


def way(vectors: Bools, order: list[int]) -> int:
    return int((vectors[order[1:]] ^ vectors[order[:-1]]).sum())


def test_the_walk_is_at_most_twice_the_tree() -> None:
    """The triangle inequality of 4.1.2: the tree is no longer than the best walk, and its preorder at most twice it."""
    random = Random(1)
    shorter = 0
    for _ in range(40):
        vectors = of(*{"".join(random.choice("0001") for _ in range(12)) for _ in range(random.randint(2, 30))})
        order = chained(vectors).tolist()
        assert sorted(order) == list(range(len(vectors)))
        inside, tree = {0}, 0
        while len(inside) < len(vectors):
            length, k = min(
                (int((vectors[i] ^ vectors[k]).sum()), k) for i in inside for k in set(range(len(vectors))) - inside
            )
            inside.add(k)
            tree += length
        assert tree <= way(vectors, order) <= 2 * tree
        shorter += way(vectors, order) < way(vectors, list(range(len(vectors))))
    assert shorter > 30


def test_equal_vectors_and_none_have_an_order() -> None:
    assert chained(of()).tolist() == []
    assert sorted(chained(of("10", "10", "10")).tolist()) == [0, 1, 2]
