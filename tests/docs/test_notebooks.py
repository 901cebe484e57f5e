"""The notebooks run from their first cell to their last, each in a Python of its own, as a reader would run them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def program(notebook: Path) -> str:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def test_there_are_notebooks() -> None:
    assert [notebook.stem for notebook in NOTEBOOKS] == ["quickstart", "star"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_it_runs(notebook: Path, tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", program(notebook)], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    said = {
        "quickstart": r"(?P<opened>\d+) of (?P<files>\d+) files",
        "star": r"has (?P<files>\d+); the keys left (?P<opened>\d+)",
    }
    files = re.search(said[notebook.stem], run.stdout)
    assert files and int(files["opened"]) < int(files["files"]) / 4, run.stdout
    assert not list(tmp_path.iterdir())  # nothing is left behind
