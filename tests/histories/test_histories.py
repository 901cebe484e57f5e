"""Random histories: a small sample with a new seed each day, and many in `make test-long`.

HEDGEROW_SEED gives the seed; a failing history is shrunk and printed as a command.
"""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.histories.run import FORMATS, Machine, a_history, report


def todays_seed() -> int:
    return int(os.environ.get("HEDGEROW_SEED") or date.today().toordinal())


def run(
    spark: SparkSession, folder: Path, format_: str, seeds: range, steps: int, seconds: float, at_the_end: bool = False
) -> None:
    """No history fails; `seconds` is the time to shrink one that does; `at_the_end`: queries come after the last step."""
    print(f"HEDGEROW_SEED={seeds.start}")
    machine = Machine(spark, folder, format_)
    try:
        for seed in seeds:
            history = a_history(format_, seed, steps)
            failure = machine.run(history, len(history) - 1 if at_the_end else 0)
            if failure is not None and not failure.believed:
                shorter, found = machine.shrink(history, failure, seconds)
                pytest.fail(report(format_, seed, shorter, found), pytrace=False)
    finally:
        machine.close()
        print(machine.tally)


@pytest.mark.parametrize("format_", FORMATS)
def test_sample(delta: SparkSession, tmp_path: Path, format_: str) -> None:
    seed = todays_seed()
    run(delta, tmp_path, format_, range(seed, seed + 1), steps=2, seconds=60, at_the_end=True)


@pytest.mark.long
@pytest.mark.parametrize("start", range(0, 100, 10))
@pytest.mark.parametrize("format_", FORMATS)
def test_many(delta: SparkSession, tmp_path: Path, format_: str, start: int) -> None:
    run(delta, tmp_path, format_, range(start, start + 10), steps=12, seconds=300)


@pytest.mark.parametrize("format_", FORMATS)
def test_the_same_seed_gives_the_same_history(format_: str) -> None:
    seed = Random().randrange(1 << 30)
    assert a_history(format_, seed) == a_history(format_, seed)
