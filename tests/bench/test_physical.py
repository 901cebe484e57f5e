"""Tables that are written, of peers too, answer alike; what queries take on them is told by table and by template."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from bench import physical
from bench.options import Options
from bench.report.markdown import pages
from bench.report.page import page
from hedgerow.sql.workload import Workload

ROWS = 4000


def data(folder: Path) -> physical.Physical:
    folder.mkdir()
    keys = range(ROWS)
    rows = {
        "k": [k * 7919 % ROWS for k in keys],
        "word": [f"w-{k % 13}-" for k in keys],
        "v": [k * 31 % 100 for k in keys],
    }
    for i in range(2):
        pq.write_table(pa.table(rows).slice(i * ROWS // 2, ROWS // 2), folder / f"{i}.parquet")
    asked = [
        f"SELECT count(*), sum(v) FROM things WHERE k BETWEEN {a} AND {a + 99} AND v < 90" for a in range(0, 4000, 100)
    ]
    timed = [("range", asked[7]), ("like", "SELECT * FROM things WHERE word LIKE '%-3-%' AND v = 5")]
    return physical.Physical("errorlog-int-physical", "things", folder, Workload.from_sql(asked), timed, "v")


@pytest.mark.long
def test_a_line(delta: SparkSession, tmp_path: Path) -> None:
    asked = data(tmp_path / "source")
    options = Options("quick")
    peers = list(physical.peers_of(delta, asked, 10, tmp_path))
    assert [way.name for way in peers] == list(physical.PEERS)
    assert all(len(way.files()) > 4 and way.seconds > 0 for way in peers if way.name != "source")
    line = physical.measured(delta, asked, ("qdtree", {}), options, tmp_path, peers)
    told = line["details"]
    assert set(told["seconds"]) == {*physical.PEERS, "unrouted", "routed", "attached", "attached, Delta"}
    assert set(told["duckdb_seconds"]) == {*physical.PEERS, "attached", "routed"}
    assert told["advised_against"]  # a toy
    assert set(told["template_ms"]) == {"range", "like"}
    assert len(told["decisions_ms"]) == len(physical.QUANTILES) and told["decisions_ms"][0] > 0
    least = min(told["seconds"][way] for way in physical.PEERS)
    assert line["ratio"] == pytest.approx(told["seconds"]["attached"] / least, rel=0.1)
    assert "| qd-tree, attached |" in "".join(pages(page([line])).values())
