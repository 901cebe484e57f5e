"""`hedgerow files` prints the paths that another engine opens, a line each, whatever the names are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import hedgerow as hr
from tests.support.lay_out import by_ranges
from tests.support.things_table import by_id, write_things


def test_the_command(run: Callable[..., Any], spark: SparkSession, tmp_path: Path) -> None:
    source = write_things(spark, str(tmp_path / "source"))
    table = by_id(spark, source, str(tmp_path / "things"), ["number < 100"])
    lines = run("files", table.path, "--where", "number < 100")
    assert lines.output.splitlines() == table.plain_files("number < 100") and lines.exit_code == 0
    found = json.loads(run("files", table.path, "--json").output)
    assert found == {"files": table.plain_files()}
    assert run("files", table.path, "--where", "false").output == ""
    odd = str(tmp_path / "new\nline")
    hr.apply(spark, source, by_ranges(spark, table.path, "id", 500, ["id < 9"], "things"), odd)
    result = run("files", odd)
    assert result.exit_code == 1 and "--json" in result.output
    (path,) = json.loads(run("files", odd, "--where", "id < 9", "--json").output)["files"]
    assert Path(path).is_file()
