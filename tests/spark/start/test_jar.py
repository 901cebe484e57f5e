"""The rule compiles on a machine without a JDK, without a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import build_jar


def test_the_rule_compiles(tmp_path: Path) -> None:
    try:
        build_jar.compiler()  # fetched once from Maven Central
        build_jar.class_path()  # the same for Delta's jars
    except SystemExit as error:
        if "not the file" in str(error):
            raise
        pytest.skip(str(error))
    build_jar.compile_into(tmp_path, build_jar.SOURCES)
    sources = {source.stem for source in build_jar.SOURCES.rglob("*.java")}
    assert sources <= {compiled.stem for compiled in tmp_path.rglob("*.class")}
