"""Where Delta's jars come from, and what a session without them says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import hedgerow
from hedgerow.core.errors import HedgerowError
from hedgerow.spark.start import delta_jars as jars
from hedgerow.spark.start.delta_jars import PACKAGES, VARIABLE, cached_jars, delta_settings, package
from hedgerow.spark.start.machine_lock import machine_lock
from tests.support.other_process import run


@pytest.fixture(autouse=True)
def no_jars(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def fill(folder: Path) -> list[str]:
    """What Ivy leaves of Delta, and of something else."""
    group, artifact, version = package().split(":")
    ours = [f"{group}_{artifact}-{version}.jar", f"io.delta_delta-storage-{version}.jar", "io.unitycatalog_x-0.6.jar"]
    (folder / "jars").mkdir(parents=True)
    for name in [*ours, "io.delta_delta-storage-1.0.jar", "org.apache.hadoop_hadoop-client-api-3.4.2.jar"]:
        (folder / "jars" / name).touch()
    return [str(folder / "jars" / name) for name in ours]


def test_no_session_starts_where_connect_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    with pytest.raises(HedgerowError, match=r"Spark Connect.*another process"):
        hedgerow.session()


def test_the_cache(tmp_path: Path) -> None:
    assert cached_jars() == [] and delta_settings({}, fetch=False) == {}
    ours = fill(tmp_path / ".ivy2.5.2")
    assert cached_jars() == ours == cached_jars(str(tmp_path / ".ivy2.5.2"))
    assert cached_jars(str(tmp_path)) == []
    found = delta_settings({"spark.sql.extensions": "mine.Extension", "spark.jars": "mine.jar"}, fetch=False)
    assert found["spark.jars"] == ",".join(["mine.jar", *ours])
    assert found["spark.sql.extensions"] == "mine.Extension,io.delta.sql.DeltaSparkSessionExtension"
    assert PACKAGES not in found


def test_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "cache")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache" / "jars"))
    assert len(delta_settings({}, fetch=True)["spark.jars"].split(",")) == 5
    for wrong in (str(tmp_path / "nowhere.jar"), str(tmp_path)):
        monkeypatch.setenv(VARIABLE, wrong)
        with pytest.raises(HedgerowError, match="where no jar is"):
            delta_settings({}, fetch=True)


def test_maven_is_asked_only_for_those_who_want_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "_has_delta_extra", lambda: True)
    assert delta_settings({}, fetch=True)[PACKAGES] == package()
    assert delta_settings({}, fetch=False) == {}
    monkeypatch.setattr(jars, "_has_delta_extra", lambda: False)
    assert delta_settings({}, fetch=True) == {}


def test_only_one_process_fetches() -> None:
    """Ivy gives processes that fetch the same jar at once half a file each."""
    with machine_lock("fetch"):
        other = subprocess.Popen([sys.executable, "-c", FETCHES], stdout=subprocess.PIPE, text=True)
        assert other.stdout and other.stdout.readline() == "asks\n"
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(timeout=1)
    assert other.communicate(timeout=60) == ("fetches\n", None)


FETCHES = """
from hedgerow.spark.start.machine_lock import machine_lock
print("asks", flush=True)
with machine_lock("fetch"):
    print("fetches")
"""

WITHOUT = """
import json, os, sys
import hedgerow as hr
folder = sys.argv[1]
os.environ["HOME"] = folder  # no cache there, and Maven cannot be reached
os.environ["JAVA_TOOL_OPTIONS"] = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9 -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=9"
spark = hr.session("1g", "local[1]", **{"spark.jars.ivy": folder + "/ivy"})
spark.range(100).write.parquet(folder + "/plain")
os.makedirs(folder + "/things/_delta_log")
found = [spark.read.parquet(folder + "/plain").count()]
for call in (lambda: hr.table(spark, folder + "/things"), lambda: hr.apply(spark, folder + "/things", None)):
    try:
        call()
    except hr.HedgerowError as error:
        found.append(str(error))
spark.stop()
print(json.dumps(found))
"""


@pytest.mark.spark
@pytest.mark.long
def test_without_any_jar(tmp_path: Path) -> None:
    rows, *errors = run(WITHOUT, str(tmp_path))
    assert rows == 100 and len(errors) == 2
    assert all("no Delta jar" in error and "\n" not in error for error in errors)


LATE = """
import json, sys
import hedgerow as hr
from hedgerow.spark.start.session import local_session
earlier = local_session("1g", "local[1]")
for stopped in (False, True):
    if stopped:
        earlier.stop()
    spark = hr.session("1g", "local[1]")
    rows = spark.sql("SELECT * FROM range(100)").count()
try:
    hr.table(spark, sys.argv[1])
except hr.HedgerowError as error:
    print(json.dumps([rows, str(error)]))
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.long
def test_after_another_session(tmp_path: Path) -> None:
    (tmp_path / "things" / "_delta_log").mkdir(parents=True)
    rows, error = run(LATE, str(tmp_path / "things"))
    assert rows == 100 and "before any other session of the process" in error


def test_a_session_has_one_public_name() -> None:
    """With Delta if it can be had; there is no second one that lacks it."""
    assert [name for name in hedgerow._PUBLIC if "session" in name.lower()] == ["session"]
