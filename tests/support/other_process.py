"""What another Python needs to run Spark as this one does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hedgerow.spark.start.java import NO_JAVA, find_java

CHECKOUT = Path(__file__).parents[2]


def environment() -> dict[str, str]:
    import pyspark

    home = find_java()
    if home is None:
        pytest.skip(NO_JAVA)
    own = {"JAVA_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(Path(pyspark.__file__).parent)}
    paths = os.pathsep.join([str(CHECKOUT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, **own, "PYTHONPATH": paths, "SPARK_LOCAL_IP": "127.0.0.1"}


def run(program: str, *args: str) -> Any:
    """The program in a Python of its own; what it prints last, as JSON."""
    command = [sys.executable, "-c", program, *args]
    ran = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=400)
    assert ran.returncode == 0, f"{ran.stdout[-1000:]}\n{ran.stderr[-4000:]}"
    return json.loads(ran.stdout.splitlines()[-1])


def begun(program: str, *args: str) -> subprocess.Popen[str]:
    """A process that runs the program and has said that it begins."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, *args],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None and process.stdout.readline().strip() == "begins"
    return process


def killed_after(seconds: float, program: str, *args: str) -> str:
    """What the program prints until it is killed, Python and JVM, so many seconds after it began."""
    process = begun(program, *args)
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGKILL)
    printed, _ = process.communicate()
    return printed


def told_then_killed(seconds: float, program: str, *args: str) -> tuple[Any, bool]:
    """What the program tells as JSON before it begins, and whether it ended before it was killed, so long after."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, *args],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    told = process.stdout.readline()
    assert process.stdout.readline().strip() == "begins", told
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGKILL)
    rest, _ = process.communicate()
    return json.loads(told), "ended" in rest
