"""Folders that the user may not write: each verb does what it can, and says in one sentence what it could not do."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from tests.support.answers import answer
from tests.support.delta_tables import by_number, write
from tests.support.other_process import run
from tests.support.things_table import by_id, write_things

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
    "dry run": lambda: hr.autopilot(spark, path, mode="dry_run"),
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
    assert list(told["verify"]) == ["done", []]
    assert "no queries" in told["dry run"][1][0], "a dry run needs no lock"
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


OVERWRITE = """
import json, sys, warnings
import hedgerow as hr
layout, to, *sources = sys.argv[1:]
spark = hr.session("1g", "local[2]", **{"spark.sql.shuffle.partitions": "2", "spark.log.level": "OFF"})
told = []
for source in sources:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", hr.HedgerowWarning)
        try:
            hr.apply(spark, source, hr.Learned.load(layout), to, overwrite=True)
            told.append(["done", *(str(w.message) for w in warned)])
        except hr.HedgerowError as error:
            told.append(["refused", str(error)])
print(json.dumps(told))
"""


@pytest.mark.long
def test_an_old_table_that_cannot_be_deleted(delta: SparkSession, tmp_path: Path) -> None:
    """It is moved aside by the first run; the second one changes nothing, for it would mix the two."""
    things, sources = tmp_path / "things", [str(tmp_path / f"source{i}") for i in range(3)]
    for i, source in enumerate(sources):
        delta.range(i * 100, i * 100 + 50).selectExpr("id", "id % 7 AS v").coalesce(1).write.parquet(source)
    learned = hr.learn(
        delta,
        sources[0],
        hr.Workload.from_sql("SELECT * FROM t WHERE v = 3"),
        "range",
        hr.LearnOptions(block_rows=10),
        table="t",
    )
    learned.save(tmp_path / "layout.json")
    hr.apply(delta, sources[0], learned, str(things))
    allow(things, stat.S_IRUSR | stat.S_IXUSR)
    try:
        first, second = run(UNPRIVILEGED, OVERWRITE, str(tmp_path / "layout.json"), str(things), *sources[1:])
    finally:
        for folder in (things, tmp_path / ".things.hedgerow-old"):
            allow(folder, stat.S_IRWXU)
    assert first[0] == "done" and ".things.hedgerow-old" in first[1] and "has to be deleted" in first[1], first
    assert second[0] == "refused" and ".things.hedgerow-old" in second[1], second
    assert answer(delta.read.parquet(str(things))) == answer(delta.read.parquet(sources[1]))
    assert hr.apply(delta, sources[2], learned, str(things), overwrite=True).verify()["rows"] == 50
    assert answer(delta.read.parquet(str(things))) == answer(delta.read.parquet(sources[2]))
    assert not (tmp_path / ".things.hedgerow-old").exists()
