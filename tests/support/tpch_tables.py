"""TPC-H's lineitem and orders, and random conditions about them."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.support.random_queries import Ground, conditions_of

_MODES = ["AIR", "RAIL", "TRUCK", "SHIP", "MAIL", "FOB", "REG AIR"]
_WORDS = ["furious", "express", "pending", "silent", "even", "ironic", "regular", "bold"]


def generate(folder: Path, scale: float = 1) -> Path:
    """Parquet files of both tables, in two parts each."""
    tool = str(Path(sys.executable).with_name("tpchgen-cli"))
    command = [tool, "parquet", "-s", str(scale), "-T", "lineitem,orders", "--parts", "2", "-o", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def _day(r: random.Random) -> str:
    return f"{r.randrange(1992, 1999)}-{r.randrange(1, 13):02d}-{r.randrange(1, 29):02d}"


LINES: list[Callable[[random.Random, str], str]] = [
    lambda r, e: f"{e}l_shipdate {r.choice(['<', '<=', '>=', '>'])} DATE '{_day(r)}'",
    lambda r, e: f"{e}l_shipdate BETWEEN DATE '{(d := _day(r))}' AND DATE '{d}' + INTERVAL {r.randrange(1, 90)} DAYS",
    lambda r, e: f"{e}l_receiptdate = '{_day(r)}'",
    lambda r, e: f"{e}l_commitdate < {e}l_receiptdate",
    lambda r, e: f"{e}l_shipdate > {e}l_commitdate",
    lambda r, e: f"month({e}l_shipdate) = {r.randrange(1, 13)}",
    lambda r, e: f"year({e}l_shipdate) = {r.randrange(1992, 1999)}",
    lambda r, e: f"{e}l_quantity {r.choice(['<', '>=', '='])} {r.randrange(51)}",
    lambda r, e: f"{e}l_discount BETWEEN 0.0{r.randrange(5)} AND 0.0{r.randrange(5, 10)}",
    lambda r, e: f"{e}l_extendedprice * (1 - {e}l_discount) > {r.randrange(1000, 100000)}",
    lambda r, e: f"{e}l_extendedprice < {r.randrange(900, 90000)}.{r.randrange(100):02d}",
    lambda r, e: f"{e}l_partkey IN ({', '.join(str(r.randrange(1, 200_001)) for _ in range(r.randrange(1, 6)))})",
    lambda r, e: f"{e}l_suppkey = {r.randrange(1, 10_001)}",
    lambda r, e: f"{e}l_orderkey BETWEEN {(k := r.randrange(6_000_000))} AND {k + r.randrange(100_000)}",
    lambda r, e: f"{e}l_orderkey % {r.randrange(2, 9)} = 0",
    lambda r, e: f"{e}l_shipmode IN ('{r.choice(_MODES)}', '{r.choice(_MODES)}')",
    lambda r, e: f"{e}l_shipmode <> '{r.choice(_MODES)}'",
    lambda r, e: f"{e}l_returnflag = '{r.choice('RANX')}'",
    lambda r, e: f"{e}l_linestatus = '{r.choice('OF')}'",
    lambda r, e: f"{e}l_shipinstruct LIKE '{r.choice(['DELIVER%', '%BACK%', 'TAKE%', '%COD'])}'",
    lambda r, e: f"{e}l_comment LIKE '%{r.choice(_WORDS)}%'",
    lambda r, e: f"{e}l_comment NOT LIKE '{r.choice('abcdefg')}%'",
    lambda r, e: f"substring({e}l_comment, 1, 1) = '{r.choice('abcdefg')}'",
    lambda r, e: f"{e}l_linenumber {r.choice(['=', '>'])} {r.randrange(1, 8)}",
    lambda r, e: f"{e}{r.choice(['l_comment', 'l_tax', 'l_shipdate'])} IS {r.choice(['', 'NOT '])}NULL",
    lambda r, e: f"{e}l_tax = 0.0{r.randrange(9)} AND {e}l_quantity > {r.randrange(50)}.5",
    lambda r, e: f"datediff({e}l_receiptdate, {e}l_shipdate) > {r.randrange(31)}",
    lambda r, e: f"coalesce({e}l_returnflag, 'x') = '{r.choice('RAN')}'",
]
condition = conditions_of(LINES, 0.3, ["AND", "AND", "AND", "OR"], 0.1)


def _of_orders(r: random.Random, d: str) -> str:
    return r.choice(
        [
            f"{d}o_orderdate < DATE '{_day(r)}'",
            f"{d}o_totalprice > {r.randrange(300_000)}",
            f"{d}o_orderpriority LIKE '{r.randrange(1, 6)}%'",
            f"{d}o_orderkey < {r.randrange(100_000)}",
        ]
    )


LINEITEM = Ground(
    condition,
    key="l_orderkey",
    number="l_linenumber",
    most=8,
    group="l_shipmode",
    foreign="l_orderkey",
    primary="o_orderkey",
    label="o_orderpriority",
    other=_of_orders,
)
