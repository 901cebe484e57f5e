"""A sample of random comparisons each day, and a large fixed budget for `make test-long`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timezone

import pytest
from pyspark.sql import SparkSession

from tests.differential.__main__ import compare, table
from tests.differential.sessions import Sessions, over
from tests.differential.shrink import shrunk
from tests.differential.tally import Tally
from tests.support.small_tables import as_if_large


@pytest.fixture(scope="module")
def sessions(spark: SparkSession) -> Iterator[Sessions]:
    with as_if_large():
        yield over(spark.newSession())  # what a case sets stays there


def check(sessions: Sessions, tally: Tally, seed: str) -> None:
    print(f"HEDGEROW_SEED={seed}\n{table(tally)}")
    if tally.findings:
        first = next(iter(tally.findings.values()))
        pytest.fail(
            f"{len(tally.findings)} kinds of difference with HEDGEROW_SEED={seed}; the first is {first.message}\n\n"
            f"{shrunk(sessions, first.case).script()}",
            pytrace=False,
        )


@pytest.mark.filterwarnings("ignore")
def test_sample(sessions: Sessions) -> None:
    seed = os.environ.get("HEDGEROW_SEED") or datetime.now(timezone.utc).strftime("%Y-%m-%d")
    check(sessions, compare(sessions, seed, 1_500, seconds=10, verbose=False, whole=1, atoms=10), seed)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(4))
def test_many(sessions: Sessions, part: int) -> None:
    seed = os.environ.get("HEDGEROW_SEED") or f"fixed {part}"
    check(sessions, compare(sessions, seed, 25_000, "each", verbose=False), seed)
