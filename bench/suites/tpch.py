"""TPC-H's lineitem and queries on it, for the suites that run on Spark."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import cycle, islice
from pathlib import Path

from bench.data.tpch_generator import generate

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


# Queries of dashboards: nearly the kinds of `web_log`, on a table that came in the order of its ids.
DASHBOARD: Mapping[str, str] = {
    "newest": "SELECT * FROM lineitem ORDER BY l_shipdate DESC, {key} LIMIT 100",
    "newest of a mode": "SELECT * FROM lineitem WHERE l_shipmode = '{s}' ORDER BY l_shipdate DESC, {key} LIMIT 50",
    "newest of a part": "SELECT * FROM lineitem WHERE l_partkey = {k} ORDER BY l_shipdate DESC, {key} LIMIT 20",
    "dearest of a month": "SELECT * FROM lineitem WHERE {month} ORDER BY l_extendedprice DESC, {key} LIMIT 20",
    "count of a month": "SELECT count(*) FROM lineitem WHERE {month}",
    "count of a condition": "SELECT count(*) FROM lineitem WHERE l_shipmode = '{s}' AND l_quantity > {q} AND {month}",
    "latest of a supplier": "SELECT max(l_shipdate) FROM lineitem WHERE l_suppkey = {u}",
    "an order": "SELECT * FROM lineitem WHERE l_orderkey = {o}",
    "fifty parts": "SELECT * FROM lineitem WHERE l_partkey IN ({parts})",
    "a probe": "SELECT * FROM lineitem WHERE l_comment LIKE '%{w}%' LIMIT 10",
    "count by flag": "SELECT l_returnflag, count(*) FROM lineitem WHERE {month} GROUP BY l_returnflag",
    "sum of a year": "SELECT sum(l_quantity), count(*) FROM lineitem WHERE {year}",
}


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
    conditions = (_SHAPES[i % len(_SHAPES)].format(**_literals(r, scale)) for i in range(n))
    return [f"SELECT sum(l_extendedprice * l_discount) FROM lineitem WHERE {condition}" for condition in conditions]


def dashboard(n: int, scale: float, seed: int) -> list[tuple[str, str]]:
    """Return the kind and the text of n queries of `DASHBOARD`, the kinds in turn, each with new literals."""
    r = random.Random(seed)
    kinds = islice(cycle(DASHBOARD.items()), n)
    return [(kind, text.format(**_literals(r, scale), **_dashboard_literals(r, scale))) for kind, text in kinds]


def _literals(r: random.Random, scale: float) -> dict[str, object]:
    year, (first, second) = r.randrange(1992, 1998), r.sample(_MODES, 2)
    return {
        **{"y": year, "z": year + 1, "m": r.randrange(1, 13), "d": r.randrange(1, 5), "e": r.randrange(5, 9)},
        **{"q": r.randrange(5, 50), "s": first, "t": second, "w": r.choice(_WORDS)},
        "k": r.randrange(1, int(200_000 * scale)),
        "u": r.randrange(1, int(10_000 * scale)),
        "o": r.randrange(int(6_000_000 * scale)),
    }


def _dashboard_literals(r: random.Random, scale: float) -> dict[str, object]:
    year, first = r.randrange(1992, 1998), f"DATE '{r.randrange(1992, 1998)}-{r.randrange(1, 13):02d}-01'"
    return {
        "key": "l_orderkey, l_linenumber",
        "parts": ", ".join(str(r.randrange(1, int(200_000 * scale))) for _ in range(50)),
        "month": f"l_shipdate >= {first} AND l_shipdate < add_months({first}, 1)",
        "year": f"l_shipdate >= DATE '{year}-01-01' AND l_shipdate < DATE '{year + 1}-01-01'",
    }
