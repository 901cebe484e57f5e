"""Folders that the user may not write: each verb does what it can, and says in one sentence what it could not do."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hedgerow as hr
from tests.support.answers import answer
from tests.support.delta_tables import by_number, write
from tests.support.other_process import run
from tests.support.things_table import by_id, write_things

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Root may write everywhere, unless it gives up two capabilities, which its next program then lacks.
UNPRIVILEGED = """
import ctypes, os, sys
for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1], *sys.argv[2:]])
"""
VERBS = """
import json, sys, warnings
import hedgerow as hr
from tests.support.things_table import COLUMNS
path, kind, queries = sys.argv[1:]
spark = hr.session("1g", "local[2]", **{"spark.sql.shuffle.partitions": "2", "spark.log.level": "OFF"})
asked = hr.Workload.from_sql("SELECT * FROM things WHERE price < 3")
table = hr.table(spark, path)
verbs = {
    "verify": table.verify,
    "append": lambda: table.append(spark.range(9000, 9100).selectExpr(*COLUMNS)),
    "relearn": lambda: hr.table(spark, path).relearn(asked),
    "import": lambda: hr.import_log(spark, path, queries, name="things"),
    "autopilot": lambda: hr.autopilot(spark, path),
    "dry run": lambda: hr.autopilot(spark, path, dry_run=True),
    "calibrate": lambda: hr.calibrate(spark, path, asked),
    "rollback": lambda: hr.table(spark, path).rollback(),
}
told = {}
for name, verb in verbs.items():
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", hr.HedgerowWarning)
        try:
            verb()
            told[name] = "done", [str(w.message) for w in warned if issubclass(w.category, hr.HedgerowWarning)]
        except hr.HedgerowError as error:
            told[name] = "refused", [str(error)]
        except Exception as error:
            told[name] = "raw", [repr(error)]
print(json.dumps(told))
"""


def allow(folder: Path, mode: int) -> None:
    for inside, _, _ in os.walk(folder):
        os.chmod(inside, mode)


@pytest.mark.long
@pytest.mark.parametrize("format_", ["parquet", "delta"])
@pytest.mark.parametrize("place", ["", "_hedgerow"])
def test_no_verb_fails_otherwise(delta: SparkSession, tmp_path: Path, format_: str, place: str) -> None:
    path, queries = tmp_path / "things", tmp_path / "queries.jsonl"
    queries.write_text('{"at": "2026-01-01 12:00:00", "sql": "SELECT * FROM things WHERE number = 3"}\n')
    if format_ == "delta":
        by_number(delta, write(delta, str(path)))
    else:
        by_id(delta, write_things(delta, str(tmp_path / "source")), str(path), ["number < 100"])
    before = answer(delta.read.format(format_).load(str(path))).rows
    allow(path / place, stat.S_IRUSR | stat.S_IXUSR)
    try:
        told: dict[str, tuple[str, list[Any]]] = run(UNPRIVILEGED, VERBS, str(path), format_, str(queries))
    finally:
        allow(path / place, stat.S_IRWXU)
    assert list(told["verify"]) == list(told["dry run"]) == ["done", []]
    assert not any(did == "raw" or "\n" in text for did, texts in told.values() for text in texts), told
    for name in ("relearn", "import", "autopilot", "calibrate"):
        assert told[name][0] == "refused" and str(path) in told[name][1][0], (name, told[name])
    rows = answer(delta.read.format(format_).load(str(path))).rows
    # Delta's log can be written where ours cannot: the rows are there then, and a warning tells what is missing.
    appended = format_ == "delta" and place == "_hedgerow"
    assert told["append"][0] == ("done" if appended else "refused"), told["append"]
    assert rows == before + 100 * appended
    assert hr.table(delta, str(path)).verify()["rows"] == rows
    if appended:
        assert "the rows are in" in told["append"][1][0] and "taken back" in told["rollback"][1][0], told
