"""`python -m bench SUITE [--quick] [--seed N] [--json FILE]`; `python -m bench quick` runs the quick form of all."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench import apply, attach, prune, route_rows
from bench.record import emit

SUITES: dict[str, Callable[[str, int], Iterator[dict[str, Any]]]] = {
    "prune": prune.run,
    "apply": apply.run,
    "route-rows": route_rows.run,
    "attach": attach.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Hedgerow: one JSON line a run.")
    parser.add_argument("suite", choices=[*SUITES, "quick"], help="what to measure; quick: a short form of everything")
    parser.add_argument("--quick", action="store_true", help="the short form of this suite")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also append the lines to this file")
    options = parser.parse_args()
    everything = options.suite == "quick"
    form = "quick" if options.quick or everything else "full"
    for name in SUITES if everything else [options.suite]:
        for record in SUITES[name](form, options.seed):
            emit(record, options.json)


if __name__ == "__main__":
    main()
