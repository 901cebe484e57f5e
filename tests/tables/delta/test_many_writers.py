"""Rewrites while others write: the rows are those of a serial order of what was committed."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hedgerow as hr
from hedgerow.spark.storage.delta_log import Conflict
from hedgerow.tables.delta.rewrite import rewrite
from tests.support.delta_writers import LAST, MARK, Believed, InProcess, InThread, expected, lost, make, plan, steps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Other = InThread | InProcess


def interleave(spark: SparkSession, path: str, seed: int, others: list[Other], longest: float) -> str:
    """One table, one rewrite, and what others do meanwhile; what became of the rewrite."""
    r = random.Random(seed)
    make(spark, path, with_vectors=seed % 2 == 0)
    todo = [steps(r, r.randrange(1, 4), f"delta.`{path}`") for _ in others]
    for other, own in zip(others, todo, strict=True):
        other.start(own, r.random() * longest)
    time.sleep(r.random() * longest)  # an UPDATE takes about as long as a rewrite, so either may be first
    believed: Believed = {}
    spark.conf.set(MARK, "ours")
    spark.conf.unset(LAST)  # else it is the version of an earlier commit where Delta notes none for this session
    try:
        rewrite(spark, path, plan(), retries=r.randrange(2))
        ended = "rewritten"
        if version := spark.conf.get(LAST, None):
            believed["ours"] = int(version)
    except Conflict as error:
        ended = str(error).split("another ")[1].split()[0]
    finally:
        spark.conf.unset(MARK)
    for other in others:
        believed |= other.finish()
    assert not lost(spark, path, believed), (seed, believed)
    now = sorted(map(tuple, spark.read.format("delta").load(path).collect()))
    assert now == expected(spark, path, [step for own in todo for step in own]), (seed, todo)
    if ended == "rewritten":
        table = hr.table(spark, path)
        for where in ("id < 20", "v = 3", "id > 900", "v > 100 AND id < 200"):
            found = sorted(map(tuple, table.read(where=where).collect()))
            assert found == sorted(map(tuple, spark.read.format("delta").load(path).where(where).collect())), where
    return ended


@pytest.mark.long
def test_interleaved(delta: SparkSession, tmp_path: Path) -> None:
    interleave(delta, str(tmp_path / "t"), 0, [InThread(delta)], 2.0)


@pytest.fixture(scope="module")
def process() -> Iterator[InProcess]:
    other = InProcess()
    yield other
    other.close()


@pytest.fixture(scope="module")
def alone(delta: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> float:
    """The seconds that a rewrite takes when nobody else writes."""
    for name in ("warm-up", "t"):
        path = str(tmp_path_factory.mktemp("alone") / name)
        make(delta, path, with_vectors=True)
        begun = time.perf_counter()
        rewrite(delta, path, plan())
    return time.perf_counter() - begun


@pytest.mark.long
@pytest.mark.parametrize("start", range(0, 200, 25))
def test_many_interleaved(delta: SparkSession, tmp_path: Path, process: InProcess, alone: float, start: int) -> None:
    found: Counter[str] = Counter()
    for seed in range(start, start + 25):
        others: list[Other] = [InThread(delta)] if seed % 3 else [InThread(delta), process]
        found[interleave(delta, str(tmp_path / f"t{seed}"), seed, others, alone)] += 1
    assert found["rewritten"] and len(found) > 1, f"nothing was tried: {found}"
