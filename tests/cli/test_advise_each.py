"""`hedgerow advise --each`: an error is told of its table, and the run goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hedgerow
from tests.support.events_table import conditions, write_events


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("shop")
    write_events(spark, str(place / "tables" / "events"), rows=2_000)
    spark.range(100).write.parquet(str(place / "tables" / "quiet"))
    (place / "tables" / "broken").mkdir()
    (place / "tables" / "broken" / "part-0.parquet").write_bytes(b"PAR1 and no more")
    asked = [*(f"SELECT id FROM events WHERE {c}" for c in conditions(1, 6)), "SELECT * FROM broken WHERE id = 1"]
    (place / "queries.sql").write_text(";\n".join(asked))
    return place


def test_each_table_of_a_folder(spark: SparkSession, shop: Path) -> None:
    queries = hedgerow.Workload.from_file(shop / "queries.sql")
    found = hedgerow.advise_each(
        spark, str(shop / "tables"), queries, options=hedgerow.LearnOptions(block_rows=500), learners=["range"]
    )
    events = found["events"]
    assert isinstance(events, hedgerow.Advice)
    assert [proposal.name for proposal in events.proposals] == ["range"]
    assert found["quiet"] == "no query reads it"
    assert "\n" not in str(found["broken"])


def test_a_line_for_each_table(run: Callable[..., Any], shop: Path) -> None:
    words = "advise", shop / "tables", shop / "queries.sql", "--each", "--learner", "range", "--block-rows", 500
    told = run(*words)
    assert told.exit_code == 0, told.output
    lines = {line.split()[0]: line for line in told.stdout.splitlines()[2:]}
    assert set(lines) == {"events", "quiet", "broken"}
    assert "leave it as it is" in lines["events"]
    assert "no query reads it" in lines["quiet"]


def test_what_is_refused(run: Callable[..., Any], shop: Path) -> None:
    assert run("advise", shop / "tables", "--each").stderr.startswith("error: --each takes a file of queries")
    nothing = run("advise", shop / "tables" / "quiet", shop / "queries.sql", "--each")
    assert nothing.exit_code == 1
    assert nothing.stderr.count("\n") == 1
