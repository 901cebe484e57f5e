"""Locks of several names do not hold each other up, and a lock that cannot be had is told about in a sentence."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from hedgerow.core.errors import HedgerowError
from hedgerow.spark.start.machine_lock import machine_lock

HOLDS_ONE_AND_ASKS_FOR_ANOTHER = """
import sys, threading, time
from hedgerow.spark.start.machine_lock import machine_lock
first, second = sys.argv[1:]
holding = threading.Event()

def hold():
    with machine_lock(first):
        holding.set()
        time.sleep(1.5)

threading.Thread(target=hold).start()
holding.wait()
time.sleep(0.5)
with machine_lock(second):
    print("has both had")
"""


def test_two_processes_that_ask_for_what_the_other_holds() -> None:
    """The thread that asks must not keep the one that holds from letting go."""
    command = [sys.executable, "-c", HOLDS_ONE_AND_ASKS_FOR_ANOTHER]
    pairs = (("one", "other"), ("other", "one"))
    both = [subprocess.Popen([*command, *pair], stdout=subprocess.PIPE, text=True) for pair in pairs]
    try:
        assert [process.communicate(timeout=30)[0] for process in both] == ["has both had\n"] * 2
    finally:
        for process in both:
            process.kill()


def test_no_folder_for_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    with monkeypatch.context() as patched:
        patched.setattr(tempfile, "tempdir", str(tmp_path / "file"))
        with (
            pytest.raises(HedgerowError, match=r"temporary files cannot be written: .*Not a directory"),
            machine_lock("x"),
        ):
            pass
    with machine_lock("x"):
        pass
