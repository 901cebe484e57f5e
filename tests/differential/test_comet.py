"""With Comet loaded, queries that skip files answer as Spark with Comet does without skipping.

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

pytestmark = [pytest.mark.long, pytest.mark.skipif(not os.environ.get(VARIABLE), reason=f"{VARIABLE} names no jar")]


def compared(*arguments: str) -> str:
    command = [sys.executable, "-m", "tests.differential", "--world", "each", *arguments]
    ran = subprocess.run(command, env=environment(), cwd=CHECKOUT, capture_output=True, text=True, timeout=7200)
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    return ran.stdout


def test_with_comet() -> None:
    seed = os.environ.get("HEDGEROW_SEED") or "comet"
    report = compared("--seed", seed, "--comparisons", "40000")
    scans = re.search(r"'comet': (\d+), 'spark': (\d+)", report)
    assert scans and int(scans[1]) > 0, "no scan was Comet's"
    (vacuous,) = re.findall(r"^all +[\d,]+ +([\d.]+)%", report, re.MULTILINE)  # of comparisons, no file is skipped
    assert float(vacuous) < 80
