"""What the README shows runs, it is short, and so is the reading that CONTRIBUTING recommends."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hedgerow
from hedgerow.spark.start.session import configured
from tests.support.light_session import COMPILED

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_example(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", README, re.S)
    assert "lake/" in program
    names: dict[str, Any] = {}
    try:
        with configured(spark, **COMPILED):
            exec(compile(program.replace("lake/", f"{tmp_path}/"), "README.md", "exec"), names)
        (scan,) = hedgerow.last_query(spark)
        assert 0 < scan.files_opened < scan.files / 2
    finally:
        hedgerow.detach(spark)
    assert "rows read" in capsys.readouterr().out
    assert 0 < len(names["table"].files(where="price = 77")) < len(names["table"].known) / 2


def test_readme_is_short() -> None:
    assert len(README.splitlines()) <= 120


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = {*re.findall(r"`make (\S+)`", README), *re.findall(r"^make (\S+)", CONTRIBUTING, re.M)}
    assert {"demo", "test", "dist"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_four_files_are_short() -> None:
    files = re.findall(r"`(core/[\w/]+\.py)`", CONTRIBUTING)
    assert len(files) == 4
    assert sum(len((ROOT / "src/hedgerow" / f).read_text().splitlines()) for f in files) < 1150
