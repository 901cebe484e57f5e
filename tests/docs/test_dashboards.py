"""The page on dashboards runs, and prints what it shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hedgerow
from hedgerow.spark.start.session import configured
from tests.support.light_session import COMPILED

PAGE = (Path(__file__).parents[2] / "docs/guide/dashboards.md").read_text()


def test_page(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    compared = 0
    try:
        # As in the page's session: the number of partitions decides where files end.
        with configured(spark, files__minPartitionNum="2", **COMPILED):
            for program, _, shown in re.findall(r"```python\n(.*?)```(\n```text\n(.*?)```)?", PAGE, re.S):
                exec(compile(program.replace("shop/", f"{tmp_path}/"), "dashboards.md", "exec"), names)
                printed = capsys.readouterr().out.replace(f"{tmp_path}/", "shop/")
                if shown:
                    assert printed == shown, program
                    compared += 1
    finally:
        hedgerow.detach(spark)
    assert compared == 12
