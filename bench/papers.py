"""`python -m bench paper NAME`: the suites of one paper; a run that was cut off goes on with the suite it was at."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.every_suite import EVERY, PHYSICAL, SUITES_OF
from bench.options import Form
from bench.record import commit, progress
from bench.report import lines
from bench.report.write import LINES


def main(arguments: list[str]) -> None:
    options = _parser().parse_args(arguments)
    form: Form = "quick" if options.quick else "full"
    file = options.json or Path(f"{options.paper}-{form}.jsonl")
    names = [name for name in SUITES_OF[options.paper] if form == "full" or not name.endswith(PHYSICAL)]
    runs = [(name, seed) for seed in range(options.seed, options.seed + options.seeds) for name in names]
    done = set(_done(file, form))
    left = [run for run in runs if run not in done]
    minutes = sum(_minutes(name, form) for name, _ in left)
    progress(
        f"{options.paper}: {len(left)} of {len(runs)} runs are left, about {minutes / 60:.1f} hours; lines in {file}"
    )
    for at, (name, seed) in enumerate(left, 1):
        progress(f"{at} of {len(left)}: {name}, seed {seed}, about {_minutes(name, form):.0f} minutes")
        _run(name, form, seed, file)


def _run(name: str, form: Form, seed: int, file: Path) -> None:
    """Run a suite in a process of its own; the file gets its lines when it has ended."""
    way = [*(["--physical"] if name.endswith(PHYSICAL) else []), *(["--quick"] if form == "quick" else [])]
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "lines.jsonl"
        command = [sys.executable, "-m", "bench", name.removesuffix(PHYSICAL), *way, "--seed", str(seed)]
        ended = subprocess.run([*command, "--json", str(part)])
        if ended.returncode:
            raise SystemExit(ended.returncode)
        with file.open("a", encoding="utf-8") as target:
            target.write(part.read_text(encoding="utf-8"))


def _done(file: Path, form: Form) -> Iterator[tuple[str, int]]:
    """Yield the suites and seeds that have run on this commit; with changed code, none has."""
    now = commit()
    for line in lines.read([file]) if file.exists() else ():
        if lines.form(line) == form and line["commit"] == now and not now.endswith("+"):
            yield line["suite"], line["seed"]


def _minutes(name: str, form: Form) -> float:
    """Return how long a suite took when its committed lines were measured; as estimated, if there are none."""
    took = lines.seconds(line for line in lines.read([LINES / f"{form}.jsonl"]) if line["suite"] == name)
    return took / 60 or (EVERY[name].minutes if form == "full" else 1.0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench paper", description="Run the suites of one paper.")
    add = parser.add_argument
    add("paper", choices=SUITES_OF, help="qdtree and thesis are layouts by cuts, pando by trees, zorder by curves")
    add("--quick", action="store_true", help="the short form of each suite, without written tables")
    add("--seed", type=int, default=0, help="the first seed (0)")
    add("--seeds", type=int, default=1, metavar="N", help="how many seeds, one run each (1)")
    add("--json", type=Path, metavar="FILE", help="append the lines to this file (PAPER-FORM.jsonl); go on with it")
    return parser
