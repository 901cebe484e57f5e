"""TPC-H's lineitem and queries on it, for the suites that run on Spark."""

from __future__ import annotations

import random
from pathlib import Path

from hedgerow.demo import generate

ROWS_PER_SF = 6_000_000
_SHAPES = (
    "l_shipdate >= DATE '{y}-{m:02d}-01' AND l_shipdate < add_months(DATE '{y}-{m:02d}-01', 1) "
    "AND l_discount BETWEEN 0.0{d} AND 0.0{e} AND l_quantity < {q}",
    "l_shipmode IN ('{s}', '{t}') AND l_commitdate < l_receiptdate "
    "AND l_receiptdate >= DATE '{y}-01-01' AND l_receiptdate < DATE '{z}-01-01'",
    "l_partkey = {k}",
    "l_returnflag = 'R' AND l_quantity > {q}",
    "l_suppkey BETWEEN {u} AND {u} + 200",
    "l_orderkey < {o} AND l_comment LIKE '%{w}%'",
)
KINDS = len(_SHAPES)
_MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
_WORDS = ("fox", "regular", "pinto", "quick", "deposits", "ironic")


def lineitem(folder: Path, scale: float, parts: int = 4) -> str:
    """Return the folder of the table's Parquet files, made once for all suites that share it."""
    target = folder / f"sf{scale:g}"
    if not target.exists():
        partial = target.with_suffix(".partial")
        generate(partial, scale, ["lineitem"], parts)
        partial.rename(target)
    return str(target / "lineitem")


def questions(n: int, scale: float, seed: int) -> list[str]:
    """Return SELECTs of six shapes in turn, each with new literals."""
    r = random.Random(seed)
    texts = []
    for i in range(n):
        year, (first, second) = r.randrange(1992, 1998), r.sample(_MODES, 2)
        literals = {
            **{"y": year, "z": year + 1, "m": r.randrange(1, 13), "d": r.randrange(1, 5), "e": r.randrange(5, 9)},
            **{"q": r.randrange(5, 50), "s": first, "t": second, "w": r.choice(_WORDS)},
            "k": r.randrange(1, int(200_000 * scale)),
            "u": r.randrange(1, int(10_000 * scale)),
            "o": r.randrange(int(6_000_000 * scale)),
        }
        condition = _SHAPES[i % len(_SHAPES)].format(**literals)
        texts.append(f"SELECT sum(l_extendedprice * l_discount) FROM lineitem WHERE {condition}")
    return texts
