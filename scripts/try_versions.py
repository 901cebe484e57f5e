"""Run the Spark tests with each supported pair of Python and Spark, and print a table for the docs.

    python scripts/try_versions.py FOLDER [4.1 4.3 ...]

Each pair gets an environment in the folder, which is kept, and a log of its tests beside it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = (
    "tests/contract",
    "tests/tables",
    "tests/spark",
    "tests/pipeline/test_pipeline.py",
    "tests/pipeline/test_explain.py",
)


@dataclass(frozen=True)
class Versions:
    """Versions to try together; `delta` is None if Delta has no release for that Spark."""

    python: str
    spark: str
    delta: str | None

    def __str__(self) -> str:
        return f"{self.python} | {self.spark} | {self.delta or 'none'}"


TRIED = (
    Versions("3.10", "4.0.5", "4.4.0"),
    Versions("3.10", "4.1.4", "4.4.0"),
    Versions("3.11", "4.2.0", "4.4.0"),
    Versions("3.12", "4.2.1", "4.4.0"),
    Versions("3.13", "4.2.0", "4.4.0"),
    Versions("3.13", "4.3.0", None),
    Versions("3.14", "4.2.1", "4.4.0"),
)


def main(folder: Path, only: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    print("| Python | Spark | Delta | passed | failed | skipped |\n|---|---|---|---|---|---|")
    for versions in TRIED:
        if not only or any(versions.spark.startswith(o) for o in only):
            print(f"| {versions} | {tried(folder, versions)} |", flush=True)


def tried(folder: Path, versions: Versions) -> str:
    """Return the numbers of passed, failed and skipped tests as cells of a row, or the reason why there are none."""
    python = shutil.which(f"python{versions.python}")
    if python is None:
        return f"no Python {versions.python} here | |"
    place = folder / f"python{versions.python}-spark{versions.spark}"
    log = place.with_suffix(f"{place.suffix}.log")
    with log.open("w") as out:
        if not (place / "installed").exists():
            install: list[str | Path] = [place / "bin" / "python", "-m", "pip", "install", "--quiet"]
            delta = [f"delta-spark=={versions.delta}"] if versions.delta else []
            commands: list[list[str | Path]] = [
                [python, "-m", "venv", "--clear", place],
                [*install, "-e", f"{ROOT}[dev]", "--no-deps"],
                [*install, *wanted(versions)],
                *([[*install, "--no-deps", *delta]] if delta else []),
            ]
            for command in commands:
                if subprocess.run(command, stdout=out, stderr=out).returncode:
                    return "cannot be installed | |"
            (place / "installed").touch()
        tests: list[str | Path] = [
            place / "bin" / "python",
            "-m",
            "pytest",
            "-q",
            "-m",
            "not long",
            "-p",
            "no:cacheprovider",
            *TESTS,
        ]
        subprocess.run(tests, cwd=ROOT, stdout=out, stderr=out)
    last = log.read_text().rstrip().rpartition("\n")[2]
    counts = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|skipped|errors?)", last)}
    failed = counts.get("failed", 0) + counts.get("error", 0) + counts.get("errors", 0)
    return f"{counts.get('passed', 0)} | {failed} | {counts.get('skipped', 0)}"


def wanted(versions: Versions) -> list[str]:
    """Return the project's requirements, with this Spark in place of its own."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        sys.exit("This script needs Python 3.11 or newer.")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    named = [*project["dependencies"], *extras["bench"], *extras["dev"], *extras["bo"], *extras["rl"]]
    others = [name for name in named if not name.startswith(("pyspark", "hedgerow"))]
    return [*others, f"pyspark=={versions.spark}"]


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), sys.argv[2:])
