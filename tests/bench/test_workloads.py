"""The benches' queries are described as chapter 2 of the thesis describes those of customers."""

from __future__ import annotations

import pyarrow as pa

from bench.options import Options
from bench.suites import workloads
from hedgerow.sql.workload import Workload

ROWS = pa.table({"x": list(range(100)), "name": [f"n{i % 10}" for i in range(100)]})
ASKED = (
    "x < 10",  # nine tenths of the rows are filtered out
    "x < 10",
    "x < 50 AND name LIKE '%1'",  # 5 rows
    "name LIKE 'n2%'",  # by bounds, as the comparisons
)


def test_a_table_and_all_tables() -> None:
    texts = [f"SELECT * FROM t WHERE {condition}" for condition in ASKED]
    options = Options("quick")
    one = workloads._measured("t", ROWS, Workload.from_sql([*texts, "SELECT * FROM t"]), options)
    assert (one["queries"], one["ratio"]) == (5, 0.25)
    details = one["details"]
    assert details["filtered_out"] == [0.9, 0.9, 0.95, 0.9]
    assert (details["expressions"], details["conditions"], details["frequent"]) == (2, 4, [0.6, 0.4])
    assert sorted(details["points"]) == [1, 2]  # of names only the prefix
    other = workloads._measured("u", ROWS, Workload.from_sql(["SELECT * FROM u"] * 5), options)
    found = workloads._of_all([one, other], options)
    assert (found["queries"], found["ratio"]) == (10, 0.25)
    shares = found["details"]["shares"]
    assert shares["queries that filter out more than 75 % of the rows"] == 1.0
    assert shares["queries that filter out more than 90 % of the rows"] == 0.25
    assert shares["expressions compared with one literal only"] == 0.5
    assert shares["tables with a column in more than half of their queries"] == 1.0  # the one that is filtered
