"""Layouts learned from a log with the autopilot's forecast and without it, in memory.

Rows come each day, and dashboards ask for them. After some weeks a layout is learned from the log. Later rows
go through it into blocks of their own, for each day. The ratio is the rows that the next day's queries read, of those
that they read in the layout learned without the forecast.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any, cast

import numpy as np
import pyarrow as pa
from pyspark.sql import Row

from bench.memory import bound, predicates_of
from bench.options import Options
from bench.record import line, progress
from hedgerow.core.effort import QUICK
from hedgerow.core.learning.held_out import problem_of
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.virtual_blocks import index_of_assignment
from hedgerow.learners.qdtree.qdtree import QdTree
from hedgerow.pilot.recent_queries import RecentLog
from hedgerow.pipeline.inputs import MOST_QUERIES
from hedgerow.spark.compute.sample import sample_size

Asked = list[tuple[float, str]]  # the time in days, and the condition
Ask = Callable[[int, np.random.Generator], list[str]]

START, WEEK, HALF_LIFE = date(2026, 1, 1), 7, 7.0  # a Thursday
EPOCH = START.toordinal() - date(1970, 1, 1).toordinal()
DAYS, LONG = 40, 120  # of a log; of one with months
ROWS, BLOCK_ROWS = {"quick": 500, "full": 1000}, 100  # a day, and at least in a block
DAY = 86_400e6  # microseconds


def _sql(number: int) -> str:
    return f"DATE '{START + timedelta(int(number))}'"


def _range(first: int, end: int) -> str:
    return f"day >= {_sql(first)} AND day < {_sql(end)}"


def _kinds(condition: str) -> list[str]:
    return [f"{condition} AND kind = {3 * i}" for i in range(6)]


def _week(today: int, r: np.random.Generator) -> list[str]:
    return _kinds(f"day >= {_sql(today - WEEK)}")


def _constant(today: int, r: np.random.Generator) -> list[str]:
    return [f"{_range(5 * i, 5 * i + 7)} AND region = 'r{i}'" for i in range(6)]


def _any_days(today: int, r: np.random.Generator) -> list[str]:
    firsts, days = r.integers(0, today + 1, 6), r.integers(1, 14, 6)
    return [f"{_range(a, a + n)} AND kind = {r.integers(20)}" for a, n in zip(firsts, days, strict=True)]


def _reports(today: int, is_due: bool, days: int, each: int) -> list[str]:
    of_period = f"{_range(today - days, today)} AND amount"
    return [f"{of_period} < {amount}" for amount in range(each, 10_000, each)] if is_due else []


HISTORIES: dict[str, tuple[int, Ask]] = {
    "constant": (DAYS, _constant),
    "any days": (DAYS, _any_days),
    "today": (DAYS, lambda today, r: _kinds(f"day >= {_sql(today)}")),
    "yesterday": (DAYS, lambda today, r: _kinds(f"day = {_sql(today - 1)}")),
    "last 7 days": (DAYS, _week),
    "last 30 days": (DAYS, lambda today, r: _kinds(f"day >= {_sql(today - 30)}")),
    "last week": (DAYS, lambda today, r: _kinds(_range(today - today % WEEK - WEEK, today - today % WEEK))),
    "mixed": (DAYS, lambda today, r: _week(today, r) + _constant(today, r) + _any_days(today, r)),
    "changing": (DAYS, lambda today, r: (_week if today < DAYS - 9 else _constant)(today, r)),
    "on Mondays": (DAYS, lambda today, r: _week(today, r) + _reports(today, today % WEEK == 4, WEEK, 300)),
    "each month": (LONG, lambda day, r: _week(day, r) + _reports(day, (START + timedelta(day)).day == 1, 30, 80)),
}


def run(options: Options) -> Iterator[dict[str, Any]]:
    for name, (days, ask) in HISTORIES.items():
        progress(f"forecast: seed {options.seed}, {name}")
        r, days = np.random.default_rng(options.seed), days + options.seed % 31  # seeds end on different days
        rows = _rows(days + WEEK, ROWS[options.form], r)
        asked = [(day + 0.3 + r.random() / 2, text) for day in range(days + WEEK) for text in ask(day, r)]
        came, coming = ([(at, text) for at, text in asked if (at >= days) == late] for late in (False, True))
        logs = (recent_log(came, forecast) for forecast in (True, False))
        ours, without = (_read(log, rows, days, coming, options.seed) for log in logs)
        yield line(
            suite="forecast",
            learner="qdtree",
            params={"form": options.form, "history": name},
            rows=len(rows),
            block_rows=BLOCK_ROWS,
            rows_read_unseen=round(ours[0], 4),
            ratio=round(ours[0] / without[0], 3),
            details={"ratio_of_the_week": round(ours[1] / without[1], 3)},
            seed=options.seed,
        )


def _rows(days: int, each: int, r: np.random.Generator) -> pa.Table:
    n = days * each
    regions = np.array([f"r{i}" for i in range(8)])[r.integers(0, 8, n)]
    number = (np.repeat(np.arange(days), each) + EPOCH).astype("int32")
    numbers = {"kind": r.integers(0, 20, n), "amount": r.integers(0, 10_000, n)}
    return pa.table({"day": pa.array(number, pa.date32()), "region": regions, **numbers})


def recent_log(asked: Asked, forecast: bool = True) -> RecentLog:
    """Return a log in which these conditions were asked, without Spark."""
    by_text = defaultdict[str, list[float]](list)
    for at, text in asked:
        by_text[text].append(at + EPOCH)
    now = max(at for at, _ in asked) + EPOCH
    queries = []
    for text, times in sorted(by_text.items(), key=lambda of: max(of[1])):
        asked_for = {"conditions": [text], "keys": [""], "columns": ["day", "region", "kind", "amount"]}
        days = {"first": min(times) * DAY, "last": max(times) * DAY, "days": sorted({int(at) for at in times})}
        weight = sum(0.5 ** ((now - at) / HALF_LIFE) for at in times)
        counts = {"times": len(times), "weight": weight, "on_last_day": sum(at > now - 1 for at in times)}
        queries.append(Row(**asked_for, **days, **counts, redacted=False))
    return RecentLog(cast(Any, None), queries, HALF_LIFE, now * DAY, forecast)  # only messages name the log


def _read(log: RecentLog, rows: pa.Table, days: int, coming: Asked, seed: int) -> tuple[float, float]:
    """Return the share of rows that the queries of the next day read, and those of the next week, on average."""
    workload = log.workload("t", MOST_QUERIES).bind({"t": rows.schema})
    each = len(rows) // (days + WEEK)
    sample = Sample.of_table(rows.slice(0, days * each))
    sample = sample.part(sample_size(len(sample), BLOCK_ROWS, QUICK.rows), seed)
    asked = predicates_of(workload), [query.weight for query in workload]
    problem = problem_of(sample, *asked, BLOCK_ROWS, seed=seed, amounts=QUICK)
    layout, whole = QdTree().fit(problem), Sample.of_table(rows)
    load = np.maximum(0, np.arange(len(rows)) // each - days + 1)  # 1 for the rows of the first coming day
    blocks = layout.assign(whole.rows).astype(np.int64) + layout.blocks * load
    index = index_of_assignment(blocks, layout.blocks * (WEEK + 1), whole)
    shares = defaultdict[bool, list[float]](list)
    asking = bound([f"SELECT * FROM t WHERE {text}" for _, text in coming], rows)
    for (at, _), p in zip(coming, predicates_of(asking), strict=True):
        opened = (index.blocks.rows * index.to_open(p))[: layout.blocks * (int(at) - days + 2)].sum()
        shares[int(at) == days].append(float(opened / (each * (int(at) + 1))))
    return float(np.mean(shares[True])), float(np.mean(shares[True] + shares[False]))
