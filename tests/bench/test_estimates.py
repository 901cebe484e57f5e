"""The suite of estimates: its quick form writes three tables and tells seconds of each beside its estimate."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.report.lines import read


@pytest.mark.long
def test_the_quick_form_holds(tmp_path: Path) -> None:
    lines = tmp_path / "lines.jsonl"
    command = [sys.executable, "-m", "bench", "estimates", "--quick", "--json", str(lines)]
    subprocess.run(command, check=True, env=dict(os.environ))
    found = read([lines])
    assert {(line["params"]["table"], line["params"]["statistics"]) for line in found} == {
        (table, most) for table in ("lineitem", "errors", "flights") for most in (0, 20, 120)
    }
    assert all(line["ratio"] > 0 and line["details"]["seconds"] > 0 for line in found)
