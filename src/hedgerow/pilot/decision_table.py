"""decision_table: the autopilot's decisions as a table of Spark, to query and to chart."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hedgerow.pilot.decision import Decision, Figures
from hedgerow.pilot.decision_notes import decisions
from hedgerow.spark.start.session import in_own_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FIGURES = [(f.name, pa.string() if f.name == "part" else pa.float64()) for f in fields(Figures)]
SCHEMA = pa.schema(
    [
        ("at", pa.string()),
        ("action", pa.string()),
        ("done", pa.bool_()),
        ("reasons", pa.list_(pa.string())),
        ("gain", pa.float64()),  # estimated seconds, like the cost
        ("cost", pa.float64()),
        ("search_seconds", pa.float64()),
        *_FIGURES,
        ("rewrite_seconds", pa.float64()),  # measured
        ("rewritten_bytes", pa.float64()),
        ("path", pa.string()),
    ]
)


@in_own_session
def decision_table(spark: SparkSession, table: str) -> DataFrame:
    """Return the autopilot's decisions about a table, one a row; see `Decision`, `Figures` and `Outcome`.

    `gain`, `cost` and the columns of `Figures` are estimates; `rewrite_seconds` and `rewritten_bytes` are measured."""
    from pyspark.sql import functions as f

    rows = pa.Table.from_pylist(list(map(decision_row, decisions(spark, table))), SCHEMA)
    return spark.createDataFrame(rows).withColumn("at", f.col("at").cast("timestamp"))


def decision_row(decision: Decision) -> dict[str, Any]:
    """Return a decision as one flat row; missing figures are None.

    >>> row = decision_row(Decision("nothing", ("too soon",), at="2026-01-01T10:00:00+00:00"))
    >>> {name: value for name, value in row.items() if value is not None}
    {'at': '2026-01-01T10:00:00+00:00', 'action': 'nothing', 'done': False, 'reasons': ['too soon'], 'gain': 0.0, \
'cost': 0.0, 'search_seconds': 0.0}
    """
    figures, outcome = decision.figures, decision.outcome
    return {
        "at": decision.at,
        "action": decision.action,
        "done": decision.done,
        "reasons": list(decision.reasons),
        "gain": decision.gain,
        "cost": decision.cost,
        "search_seconds": decision.search_seconds,
        **{name: None if figures is None else getattr(figures, name) for name, _ in _FIGURES},
        "rewrite_seconds": None if outcome is None else outcome.seconds,
        "rewritten_bytes": None if outcome is None else outcome.bytes,
        "path": None if outcome is None else outcome.path,
    }
