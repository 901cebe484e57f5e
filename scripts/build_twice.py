"""Build the sdist and the wheel twice, in two folders, and compare their bytes; the second pair stays in FOLDER.

    python scripts/build_twice.py [FOLDER]     by default dist

Only committed files are built. Hatch and PySpark have to be installed in this Python, as in .venv.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(folder: Path) -> None:
    first, second = (built(name) for name in ("first", "second and longer"))
    folder.mkdir(parents=True, exist_ok=True)
    differing = first.keys() ^ second.keys()
    for name in sorted(first.keys() & second.keys()):
        print(f"{hashlib.sha256(second[name]).hexdigest()}  {name}")
        if first[name] != second[name]:
            differing |= {name}
        (folder / name).write_bytes(second[name])
    if differing:
        raise SystemExit(f"two builds differ in {', '.join(sorted(differing))}")


def built(name: str) -> dict[str, bytes]:
    """Build in a fresh copy of the last commit, under a path of its own; return the bytes of each file."""
    with tempfile.TemporaryDirectory(prefix="hedgerow-build-") as parent:
        copy = Path(parent) / name
        call("git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(copy))
        shutil.rmtree(copy / ".git")
        environment = {**os.environ, "SOURCE_DATE_EPOCH": commit_time(), "PYTHONPATH": ""}
        call(sys.executable, "-m", "hatchling", "build", "--directory", "out", cwd=copy, env=environment)
        return {path.name: path.read_bytes() for path in sorted((copy / "out").iterdir())}


def commit_time() -> str:
    return subprocess.check_output(["git", "log", "-1", "--format=%ct"], cwd=ROOT, text=True).strip()


def call(*command: str, **options: object) -> None:
    if subprocess.run(command, stdout=sys.stderr, **options).returncode:  # type: ignore[call-overload]
        raise SystemExit(f"{' '.join(command)} failed")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "dist"))
