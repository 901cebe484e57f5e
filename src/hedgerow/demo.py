"""`make demo`: a table and its queries are made up, layouts learned, and what each would read is shown."""

from __future__ import annotations

import time
from datetime import date

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from hedgerow.core.cost import Score, index_of_assignment, score, score_index
from hedgerow.core.problem import Learner, Problem
from hedgerow.core.sample import Sample
from hedgerow.learners.hilbert import Hilbert
from hedgerow.learners.range import Range
from hedgerow.learners.zorder import ZOrder
from hedgerow.sql.workload import Workload

ROWS, BLOCK_ROWS, SAMPLE_ROWS = 400_000, 2_000, 100_000
MODES = ["AIR", "MAIL", "RAIL", "SHIP", "TRUCK"]


def shipments(rows: int, seed: int) -> pa.Table:
    """Shipments as they come in: nearly in the order of the day, everything else as it happens."""
    rng = np.random.default_rng(seed)
    start = np.datetime64("2025-01-01")
    shipped = np.sort(rng.integers(0, 365, rows)) + rng.integers(0, 10, rows)
    price = np.round(rng.lognormal(4, 1, rows), 2)
    return pa.table(
        {
            "shipped": pa.array(start + shipped.astype("timedelta64[D]"), pa.date32()),
            "received": pa.array(start + (shipped + rng.integers(1, 30, rows)).astype("timedelta64[D]"), pa.date32()),
            "customer": rng.zipf(1.3, rows) % 50_000,
            "price": price,
            "mode": pa.array(rng.choice(MODES, rows, p=[0.1, 0.3, 0.2, 0.1, 0.3])),
            "weight": rng.integers(1, 500, rows),
        }
    )


def questions(n: int, seed: int) -> list[str]:
    """What three kinds of people ask, with new literals each time."""
    rng = np.random.default_rng(seed)
    asked = []
    for i in range(n):
        day = date.fromordinal(date(2025, 1, 1).toordinal() + int(rng.integers(0, 350)))
        mode, weight = rng.choice(MODES), int(rng.integers(350, 490))
        asked.append(
            [
                f"SELECT sum(price) FROM shipments WHERE received = DATE '{day}' AND mode = '{mode}'",
                f"SELECT customer FROM shipments WHERE weight > {weight} AND price BETWEEN 200 AND {300 + weight}",
                f"SELECT count(*) FROM shipments WHERE shipped >= '{day}' AND shipped < date_add(DATE '{day}', 7)",
            ][i % 3]
        )
    return asked


def main() -> None:
    console = Console()
    table = shipments(ROWS, seed=1)
    schemas = {"shipments": table.schema}
    learned = Workload.from_sql(questions(90, seed=2), schemas)
    unseen = Workload.from_sql(questions(300, seed=3), schemas)
    sample = Sample.of_table(table, SAMPLE_ROWS, seed=4)
    whole = Sample.of_table(table)
    problem = Problem.build(sample, tuple(q.predicate("shipments") for q in learned), BLOCK_ROWS)
    console.print(f"{ROWS:,} shipments in blocks of at least {BLOCK_ROWS:,}; {len(learned)} queries to learn from\n")

    shown = Table(
        "layout", "blocks", "rows read, learned", "rows read, unseen", "bytes read, unseen", "seconds to learn"
    )
    in_order = np.arange(ROWS) // BLOCK_ROWS
    came = index_of_assignment(in_order, int(in_order[-1]) + 1, whole)
    first = [score_index(came, whole, w.queries, "shipments") for w in (learned, unseen)]
    _row(shown, "as it came", first, 0.0)
    learners: dict[str, Learner] = {"range": Range(), "zorder": ZOrder(), "hilbert": Hilbert()}
    for name, learner in learners.items():
        start = time.perf_counter()
        layout = learner.fit(problem)
        seconds = time.perf_counter() - start
        found = [score(layout, whole, w.queries, "shipments") for w in (learned, unseen)]
        _row(shown, name, found, seconds)
    shown.add_section()
    shown.add_row("rows that match", "", *(f"{100 * s.selectivity:.2f} %" for s in first), "", "")
    console.print(shown)


def _row(shown: Table, name: str, scores: list[Score], seconds: float) -> None:
    learned, unseen = scores
    shares = (learned.rows_read, unseen.rows_read, unseen.bytes_read)
    shown.add_row(name, f"{learned.blocks:,}", *(f"{100 * share:.2f} %" for share in shares), f"{seconds:.2f}")


if __name__ == "__main__":
    main()
