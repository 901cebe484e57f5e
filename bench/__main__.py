"""`python -m bench SUITE [options]`; `quick` and `paper` run several, `compare` and `report` read what runs left."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from bench import papers
from bench.every_suite import EVERY, PHYSICAL, SUITES, WRITTEN
from bench.options import Options
from bench.record import emit
from bench.report import compare
from bench.report import write as report

OTHERS = {"paper": papers.main, "compare": compare.main, "report": report.main}


def main() -> None:
    if len(sys.argv) > 1 and sys.argv[1] in OTHERS:
        return OTHERS[sys.argv[1]](sys.argv[2:])
    arguments = _parser().parse_args()
    if arguments.suite == "quick":
        return _each(sys.argv[1:])
    options = Options(
        form="quick" if arguments.quick else "full",
        learners=tuple(arguments.learners),
        params=dict(arguments.params),
        sf=arguments.sf,
        months=tuple(arguments.months),
    )
    if arguments.physical and f"{arguments.suite}{PHYSICAL}" not in WRITTEN:
        able = ", ".join(name.removesuffix(PHYSICAL) for name in WRITTEN)
        raise SystemExit(f"{arguments.suite} writes no tables: --physical is for {able}")
    suite = EVERY[f"{arguments.suite}{PHYSICAL}" if arguments.physical else arguments.suite]
    for seed in range(arguments.seed, arguments.seed + arguments.seeds):
        started = time.perf_counter()
        for record in suite.run(replace(options, seed=seed)):
            ended = time.perf_counter()
            emit({**record, "run_seconds": round(ended - started, 1)}, arguments.json)
            started = ended


def _each(arguments: list[str]) -> None:
    """Run the quick form of each suite in a process of its own, so that memory and Spark session are not shared."""
    arguments.remove("quick")
    for name in SUITES:
        ended = subprocess.run([sys.executable, "-m", "bench", name, "--quick", *arguments])
        if ended.returncode:
            raise SystemExit(ended.returncode)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Hedgerow: one JSON line a run.")
    add = parser.add_argument
    add("suite", choices=[*SUITES, "quick", *OTHERS], help="what to measure; quick: a short form of everything")
    add("--quick", action="store_true", help="the short form of this suite")
    add("--physical", action="store_true", help="write the tables and time the queries, beside peers")
    add("--seed", type=int, default=0, help="the first seed (0)")
    add("--seeds", type=int, default=1, metavar="N", help="how many seeds, one run each (1)")
    add("--json", type=Path, metavar="FILE", help="also append the lines to this file")
    learning = parser.add_argument_group("suites that learn (fig3, fig8, errorlog-..., tpch-month, zcurves)")
    add = learning.add_argument
    add(
        "--learner",
        action="append",
        default=[],
        dest="learners",
        metavar="NAME",
        help="a learner to run; may be repeated",
    )
    add(
        "--param",
        action="append",
        default=[],
        dest="params",
        type=_param,
        metavar="KEY=VALUE",
        help="of the learners, or of the suite",
    )
    add("--sf", type=float, help="scale factor of TPC-H")
    add("--month", action="append", default=[], dest="months", type=_month, metavar="YYYY-MM", help="may be repeated")
    return parser


def _month(text: str) -> str:
    return datetime.strptime(text, "%Y-%m").strftime("%Y-%m")  # refused before the data is made


def _param(text: str) -> tuple[str, Any]:
    """Return name and value of KEY=VALUE; the value is parsed as JSON if it is JSON, else it is a string.

    >>> _param("cells=8"), _param("criterion=skip")
    (('cells', 8), ('criterion', 'skip'))
    """
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"a parameter is written key=value, not {text}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


if __name__ == "__main__":
    main()
