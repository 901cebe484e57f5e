"""The sentence that an error of the JVM leaves in ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hedgerow.spark.start.session import first_line, spark_errors

NOWHERE = "/no/such/file"
CASES: dict[str, Callable[[Any], object]] = {
    f"{NOWHERE} (No such file or directory)": lambda jvm: jvm.java.io.FileInputStream(NOWHERE),
    f'Cannot run program "{NOWHERE}": error=2, No such file or directory': lambda jvm: (
        jvm.java.lang.Runtime.getRuntime().exec(NOWHERE)
    ),
    'For input string: "x"': lambda jvm: jvm.java.lang.Integer.parseInt("x"),
    f"java.nio.file.NoSuchFileException: {NOWHERE}": lambda jvm: jvm.java.nio.file.Files.delete(
        jvm.java.io.File(NOWHERE).toPath()
    ),
    "java.util.NoSuchElementException": lambda jvm: jvm.java.util.ArrayDeque().removeFirst(),
}


@pytest.mark.parametrize("line", CASES)
def test_an_error_of_java(spark: SparkSession, line: str) -> None:
    """Its class is named only if the message is no sentence."""
    with pytest.raises(spark_errors()) as error:
        CASES[line](spark._jvm)
    assert first_line(error.value) == line


def test_an_error_of_spark(spark: SparkSession) -> None:
    with pytest.raises(spark_errors()) as error:
        spark.sql("SELECT 1 / 0").collect()
    assert first_line(error.value).startswith("[DIVIDE_BY_ZERO] Division by zero")


def test_a_package_that_executors_lack_is_named(spark: SparkSession) -> None:
    lines = (
        "Traceback (most recent call last):",
        '  File "worker.py", line 1',
        "ModuleNotFoundError: No module named 'numpy'",
    )
    python = f"{spark.sparkContext.pythonExec} on the executors"
    assert first_line(RuntimeError("\n".join(lines))).startswith(f"{python} has no numpy: install it there, or")
