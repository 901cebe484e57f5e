"""With Comet loaded, TPC-H and TPC-DS answer as Spark with Comet does without skipping.

HEDGEROW_COMET_JAR names Comet's jar for the installed Spark; Maven Central has one for Spark 4.1.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from bench.comet import VARIABLE
from tests.support.other_process import CHECKOUT, environment

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not os.environ.get(VARIABLE), reason=f"{VARIABLE} names no jar"),
]


@pytest.mark.parametrize(("suite", "queries"), [("tpch", 22), ("tpcds", 99)])
def test_with_comet(suite: str, queries: int) -> None:
    command = [sys.executable, "-m", "tests.published", suite, "--format", "parquet"]  # Comet reads no Delta table
    ran = subprocess.run(command, env=environment(), cwd=CHECKOUT, capture_output=True, text=True, timeout=7200)
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    counts = re.search(r": (\d+) compared, (\d+) not vacuous.* (\d+) of \d+ scans were Comet's", ran.stdout)
    assert counts, ran.stdout
    compared, not_vacuous, by_comet = map(int, counts.groups())
    assert compared == queries and not_vacuous > queries / 2 and by_comet > queries
