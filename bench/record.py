"""One measurement as one JSON line, with what is needed to repeat it."""

from __future__ import annotations

import json
import platform
import resource
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

# The fields that all suites share; a line has some of them. Figures of a single suite are in `details`. `params` hold
# only options of the run and no results, so that `compare` can match the lines of two runs.
FIELDS = (
    *("suite", "learner", "params", "sf", "month", "rows", "blocks", "block_rows", "least_block", "queries"),
    *("queries_unseen", "bound", "bound_unseen", "rows_read", "rows_read_unseen", "blocks_read", "blocks_read_unseen"),
    *("bytes_read", "bytes_read_unseen", "learn_seconds", "fit_seconds", "apply_seconds", "peak_mb", "p50_ms"),
    *(
        "p99_ms",
        "mrows_per_s",
        "ratio",
        "trees",
        "trees_per_s",
        "curve",
        "details",
        "run_seconds",
        "seed",
        "commit",
        "versions",
        "older",
    ),
)
WRITTEN_BY_RUNS = ("bench/results", "docs/results.md", "docs/results")
PACKAGES = ("hedgerow", "numpy", "pyarrow", "sqlglot", "pyspark", "duckdb", "jax", "optax")


def line(**measured: Any) -> dict[str, Any]:
    """Return a record with the commit, the versions and the peak memory filled in."""
    unknown = set(measured) - set(FIELDS)
    if unknown:
        raise ValueError(f"a line of a benchmark has no field {', '.join(sorted(unknown))}")
    own = {"peak_mb": round(_peak_mb()), "commit": commit(), "versions": _versions()}
    return {name: value for name, value in {**own, **measured}.items() if value is not None}


def emit(record: Mapping[str, Any], target: Path | None) -> None:
    text = json.dumps(dict(sorted(record.items(), key=lambda item: FIELDS.index(item[0]))))
    print(text, flush=True)
    if target is not None:
        with target.open("a", encoding="utf-8") as file:
            file.write(text + "\n")


def progress(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def _peak_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 if platform.system() == "Linux" else peak / 1024**2  # macOS counts bytes


def commit() -> str:
    """Return the checkout's commit, with a + if the code differs from it; files that runs write do not count."""
    try:
        code = (":/", *(f":(top,exclude){path}" for path in WRITTEN_BY_RUNS))
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", *code)
        return _git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    run = subprocess.run(["git", *arguments], cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    return run.stdout.strip()


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions
