"""Build the wheel, install it into an empty environment, and run `hedgerow demo` there on a small table."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = "spark,delta,jre"
ROWS = "120000"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="hedgerow-wheel-") as name:
        folder = Path(name)
        source = folder / "source"  # without a jar, as a clone is
        shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "*.jar", "__pycache__", "dist"))
        call(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, source)
        (wheel,) = folder.glob("hedgerow-*.whl")
        call(sys.executable, "-m", "venv", folder / "env")
        programs = folder / "env" / "bin"
        begun = time.perf_counter()
        call(programs / "python", "-m", "pip", "install", "--quiet", f"{wheel}[{EXTRAS}]")
        size = sum(file.lstat().st_size for file in (folder / "env").rglob("*") if file.is_file())
        print(f"installed with {EXTRAS}: {time.perf_counter() - begun:.0f} s, {size / 1e6:.0f} MB")
        # The environment must not see this checkout.
        environment = {key: value for key, value in os.environ.items() if key not in ("JAVA_HOME", "PYTHONPATH")}
        for words in (["--version"], ["doctor"], ["--master", "local[2]", "demo", "--rows", ROWS]):
            call(programs / "hedgerow", *words, cwd=folder, env=environment)
        if not (folder / "hedgerow-demo.html").stat().st_size:
            raise SystemExit("the demo has not written its page")


def call(*command: str | Path, **options: object) -> None:
    if subprocess.run(command, **options).returncode:  # type: ignore[call-overload]
        raise SystemExit(f"{' '.join(map(str, command))} failed")


if __name__ == "__main__":
    main()
