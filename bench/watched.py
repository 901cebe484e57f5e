"""Runs a step in a process of its own, and watches the memory of all its processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SECONDS_BETWEEN_LOOKS = 0.1


def watched(module: str, *arguments: str) -> dict[str, Any]:
    """Run a module; return the figures in its last line, with the peak memory of its processes."""
    process = subprocess.Popen([sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE, text=True)
    with peak_memory(process.pid) as peaks:
        out, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{module} {' '.join(arguments)} ended with {process.returncode}")
    return {**json.loads(out.splitlines()[-1]), **peaks}


@contextmanager
def peak_memory(root: int) -> Iterator[Mapping[str, int]]:
    """Watch a process and all its descendants.

    `python_mb` is of the driver's Python, `jvm_mb` of the largest JVM, `worker_mb` of the largest Python worker."""
    peaks = {"python_mb": 0, "jvm_mb": 0, "worker_mb": 0}
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(SECONDS_BETWEEN_LOOKS):
            for kind, megabytes in _memory(root):
                peaks[kind] = max(peaks[kind], megabytes)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield peaks
    finally:
        ended.set()
        watcher.join()


def resident_mb() -> int:
    """Return the resident megabytes of this process."""
    return _resident_mb(Path("/proc/self"))


def _resident_mb(process: Path) -> int:
    return int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def _memory(root: int) -> Iterator[tuple[str, int]]:
    """Yield the kind and the resident megabytes of this process and of all its descendants."""
    children: dict[int, list[int]] = {}
    facts: dict[int, tuple[str, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                rest = (entry / "stat").read_text().rsplit(")", 1)[1]
                program = os.readlink(entry / "exe").rsplit("/", 1)[-1]
                facts[int(entry.name)] = program, _resident_mb(entry)
            except (OSError, IndexError):
                continue
            children.setdefault(int(rest.split()[1]), []).append(int(entry.name))
    below = [root]
    while below:
        pid = below.pop()
        below += children.get(pid, ())
        if pid in facts:
            program, megabytes = facts[pid]
            yield "python_mb" if pid == root else "jvm_mb" if program == "java" else "worker_mb", megabytes
