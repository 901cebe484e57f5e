"""Try each learner on each kind of condition alone, on a small table.

Columns are independent of each other and rows are in no order, so only learning can reduce the rows read.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa

from bench.matching import matching
from bench.memory import InMemory, bound, measured, predicates_of
from bench.options import Case, Options
from bench.report.quality import sound
from hedgerow.core.predicates.nodes import Expr, terms_of
from hedgerow.core.predicates.sql_text import term_text

ROWS = {"quick": 20_000, "full": 200_000}
BLOCKS, QUERIES = 50, {"quick": 20, "full": 60}
FIRST_DAY, DAYS = date(2020, 1, 1), 2000
_WORDS = [a + b + c for a in "bdg" for b in ("ab", "el", "in", "or") for c in ("ka", "lo", "mi", "nu", "po")]
KINDS: Mapping[str, Callable[[random.Random], str]] = {
    "number between": lambda r: f"amount BETWEEN {(x := r.randrange(9_500))} AND {x + r.randrange(20, 500)}",
    "number equal": lambda r: f"shop = {r.randrange(500)}",
    "number IN a list": lambda r: f"shop IN ({', '.join(map(str, r.sample(range(500), 5)))})",
    "date range": lambda r: _days(r),
    "text equal": lambda r: f"city = '{r.choice(_WORDS)}'",
    "text LIKE 'a%'": lambda r: f"city LIKE '{r.choice(_WORDS)[:3]}%'",
    "text LIKE '%a%'": lambda r: f"note LIKE '%{r.choice(_WORDS)}%'",
    "column against column": lambda r: f"{r.choice(('sent', 'paid'))} > due",
    "function of a column": lambda r: f"month(made) = {r.randrange(1, 13)}",
    "arithmetic": lambda r: f"amount - price > {r.randrange(7_000, 9_500)}",
    "IS NULL": lambda r: f"{r.choice(('coupon', 'gift'))} IS NULL",
    "OR of two columns": lambda r: f"shop = {r.randrange(500)} OR amount < {r.randrange(20, 300)}",
    "AND of two columns": lambda r: f"city = '{r.choice(_WORDS)}' AND amount < {r.randrange(1_000, 5_000)}",
}
_LEARNERS = ("range", "zorder", "hilbert", "zorder_learned", "bottom_up", "sop_zorder", "qdtree", "pando")
CASES: tuple[Case, ...] = tuple((name, {}) for name in _LEARNERS)


def _days(r: random.Random) -> str:
    first = FIRST_DAY + timedelta(r.randrange(DAYS - 60))
    return f"made >= DATE '{first}' AND made < DATE '{first + timedelta(r.randrange(5, 60))}'"


def table(rows: int, seed: int) -> pa.Table:
    r = np.random.default_rng([seed, rows])
    day = np.datetime64(FIRST_DAY)
    due = r.integers(0, DAYS, rows)
    words = np.array(_WORDS)
    some = [words[r.integers(0, len(words), rows)] for _ in range(3)]
    return pa.table(
        {
            "amount": r.integers(0, 10_000, rows),
            "price": r.integers(0, 10_000, rows),
            "shop": r.integers(0, 500, rows),
            "city": words[r.integers(0, len(words), rows)],
            "note": np.char.add(np.char.add(np.char.add(some[0], " "), np.char.add(some[1], " ")), some[2]),
            "made": day + r.integers(0, DAYS, rows),
            "due": day + due,
            "sent": day + due + r.integers(-90, 10, rows),
            "paid": day + due + r.integers(-60, 5, rows),
            "coupon": pa.array(r.integers(0, 9, rows), mask=r.random(rows) < 0.05),
            "gift": pa.array(r.integers(0, 9, rows), mask=r.random(rows) < 0.1),
        }
    )


def run(options: Options) -> Iterator[dict[str, Any]]:
    rows, n = ROWS[options.form], QUERIES[options.form]
    data = table(rows, options.seed)
    for kind, condition in KINDS.items():
        # Seeds of learned queries are 0 or more, so ~seed, which is negative, is never one of them.
        conditions = [_drawn(condition, n, f"{kind}, {seed}") for seed in (options.seed, ~options.seed)]
        learned, unseen = (bound([f"SELECT * FROM sales WHERE {c}" for c in those], data) for those in conditions)
        matched, matched_unseen = (fmean(matching(data, those)) for those in conditions)
        params = {"conditions": kind}
        terms = sorted({t for p in predicates_of(learned) for t in terms_of(p) if isinstance(t, Expr)}, key=term_text)
        bounds = matched, matched_unseen
        own = InMemory("kinds", data, learned, unseen, bounds, rows // BLOCKS, params=params, expressions=terms)
        lines = []
        for case in options.cases(CASES):
            lines.append(measured(own, case, options.form, options.seed))
            yield lines[-1]
        sound(lines)


def _drawn(condition: Callable[[random.Random], str], n: int, seed: str) -> list[str]:
    r = random.Random(seed)
    return [condition(r) for _ in range(n)]
