"""The invented index of a table of many files, and the conditions of queries; no such file was ever written.

The files are the cells of a grid over `day`, `customer` and `price`, as a tree or a curve over these columns makes
them; `shipped` follows `day`. The ranges of `id` and of the three columns `random_0` to `random_2` are nearly the whole
range in each file. Three columns have few values, of which each file has some; 20 searches are noted.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hedgerow.core.arrays import Ints
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.nodes import And, Compare, In, Like, Literal, Or, Predicate, col, lit
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import ANY, NotedCondition, Stats, TermStats
from hedgerow.core.pruning.distinct_sets import DistinctSets
from hedgerow.core.pruning.value_codes import ArrowValues

DAYS, CUSTOMERS, PRICES, SHIPPED_AFTER = 3650, 50_000_000, 10_000_000, 30
FIRST_DAY = 12_000
RANDOM = ("id", "random_0", "random_1", "random_2")
LAST = 1 << 40  # of the random columns
FEW = {"kind": (25, 2), "status": (5, 5), "courier": (40, 4)}  # its different values, and how many a file has
SEARCHES = 20
ROWS = 1_000_000  # of a file
SCHEMA = {
    "day": "date",
    "shipped": "date",
    **dict.fromkeys(("customer", "price", *RANDOM), "bigint"),
    **dict.fromkeys((*FEW, "note"), "string"),
}


def make_index(files: int, seed: int) -> BlockIndex:
    """Invent the statistics of the files."""
    rng = np.random.default_rng(seed)
    cells = round(files ** (1 / 3)) + 1
    at = np.arange(files)
    spans = {
        name: _span(place, cells, size, rng)
        for name, place, size in (
            ("day", at // cells**2, DAYS),
            ("customer", at // cells % cells, CUSTOMERS),
            ("price", at % cells, PRICES),
        )
    }
    low, high = (FIRST_DAY + end for end in spans["day"])
    spans["day"] = low, high
    spans["shipped"] = low + rng.integers(0, 3, files), high + SHIPPED_AFTER - rng.integers(0, 3, files)
    for name in RANDOM:
        margins = rng.integers(0, LAST // 20, (2, files))
        spans[name] = margins[0], LAST - margins[1]
    terms = {f"{name}": of_span(Type(SCHEMA[name]), *span) for name, span in spans.items()}
    for name, (values, of_file) in FEW.items():
        terms[name] = of_few([word(name, i) for i in range(values)], of_file, files, rng)
    conditions = {}
    for i in range(SEARCHES):
        bits = rng.choice(np.array([1, 3, ANY], np.uint8), files, p=[0.8, 0.15, 0.05])
        conditions[predicate_text(search(i))] = NotedCondition(search(i), bits)
    return BlockIndex(Stats(np.full(files, ROWS), terms, conditions))


def _span(place: Ints, cells: int, size: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return the least and the greatest value of each file, whose cell is one of so many."""
    width = size / cells
    low = (place * width + rng.random(len(place)) * width / 10).astype(np.int64)
    return low, np.maximum(low, ((place + 1) * width - rng.random(len(place)) * width / 10).astype(np.int64))


def of_span(type_: Type, low: npt.ArrayLike, high: npt.ArrayLike) -> TermStats:
    """Return the statistics of a column without NULLs, from the least and the greatest value of each file."""
    low, high = np.asarray(low), np.asarray(high)
    values, codes = np.unique(np.concatenate([low, high]), return_inverse=True)
    places, n = codes.astype(np.int32) * 2 + 1, len(low)
    return TermStats(
        type_, ArrowValues(pa.array(values)), places[:n], places[n:], np.zeros(n, np.int64), np.zeros(n, bool)
    )


def of_few(values: list[str], of_file: int, files: int, rng: np.random.Generator) -> TermStats:
    """Return the statistics of a column of few values, of which each file has some."""
    sets = sorted(
        {tuple(sorted(rng.choice(len(values), of_file, replace=False).tolist())) for _ in range(min(500, files))}
    )
    coded = DistinctSets.build([tuple(2 * place + 1 for place in places) for places in sets])
    set_of = np.sort(rng.integers(0, len(sets), files)).astype(np.int32)
    ends = (np.array([places[end] for places in sets], np.int32) * 2 + 1 for end in (0, -1))
    low, high = (end[set_of] for end in ends)
    sets_of_files = DistinctSets(set_of, coded.offsets, coded.codes)
    return TermStats(
        Type(kinds.STRING), values, low, high, np.zeros(files, np.int64), np.zeros(files, bool), sets_of_files
    )


def make_condition(number: int, seed: int) -> Predicate:
    """Return the condition of a query; each seventh is over columns whose ranges exclude hardly a file."""
    rng = random.Random(seed * 1000 + number)
    days = _between("day", FIRST_DAY, FIRST_DAY + DAYS, rng, kind=kinds.DATE)
    customers = _between("customer", 0, CUSTOMERS, rng)
    match number % 7:
        case 0:
            return And((*days, *customers))
        case 1:
            return And((*days, In(col("kind"), tuple(lit(word("kind", i)) for i in rng.sample(range(25), 3)))))
        case 2:
            equal = Compare(col("customer"), "=", lit(rng.randrange(CUSTOMERS)))
            return And((equal, *_between("price", 0, PRICES, rng)))
        case 3:
            shipped = _between("shipped", FIRST_DAY, FIRST_DAY + DAYS, rng, kind=kinds.DATE)
            return And((search(rng.randrange(SEARCHES)), *shipped))
        case 4:
            return Or(tuple(And((*_between("price", 0, PRICES, rng), _courier(rng))) for _ in range(3)))
        case 5:
            return And((Compare(col("status"), "=", lit(word("status", 1))), *days, *customers, _courier(rng)))
    return And(tuple(p for name in RANDOM[1:] for p in _between(name, 0, LAST, rng)))


def _courier(rng: random.Random) -> Predicate:
    return Compare(col("courier"), "=", lit(word("courier", rng.randrange(40))))


def _between(
    name: str, first: int, last: int, rng: random.Random, kind: str = kinds.INT
) -> tuple[Predicate, Predicate]:
    """Return the two sides of a range of a thousandth to a tenth of the values."""
    width = round((last - first) * 10 ** rng.uniform(-3, -1))
    start = rng.randrange(first, last - width)
    ends = start, start + max(1, width)
    at_least, below = (Compare(col(name), op, Literal(kind, end)) for op, end in zip((">=", "<"), ends, strict=True))
    return at_least, below


def search(number: int) -> Like:
    return Like(col("note"), f"%{word('word', number)}%")


def word(name: str, number: int) -> str:
    return f"{name}{number:02d}"


def file_names(files: int) -> list[str]:
    return [f"part-{i:07d}-c000.snappy.parquet" for i in range(files)]


def column_bytes(files: int, seed: int) -> dict[str, Any]:
    """Invent the bytes of each column in each file."""
    rng = np.random.default_rng(seed)
    return {name: rng.integers(100_000, 8_000_000, files) for name in SCHEMA}
