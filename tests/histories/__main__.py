"""`python -m tests.histories --seed 1 --histories 20 --format delta`; exit code 1 if one failed."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.histories")
    parser.add_argument("--seed", type=int, default=1, help="of the first history")
    parser.add_argument("--histories", type=int, default=5)
    parser.add_argument("--format", choices=("delta", "parquet"), default="delta")
    parser.add_argument("--steps", type=int, default=None)
    parser.add_argument("--seconds", type=float, default=None, help="begin no history after so long")
    parser.add_argument("--shrink", type=float, default=120, help="seconds to shrink each failing history")
    parser.add_argument("--replay", help="steps as JSON, as a failing history prints them")
    parser.add_argument("--one-router", action="store_true", help="route and read in the first session of the JVM")
    parser.add_argument("--quiet", action="store_true", help="do not print every step")
    given = parser.parse_args()
    os.environ["TZ"] = "UTC"
    time.tzset()

    import hedgerow
    from tests.histories.run import STEPS, Machine, a_history, report, start

    print(f"hedgerow from {hedgerow.__file__}", flush=True)
    spark = start()
    failed = believed = 0
    try:
        with tempfile.TemporaryDirectory(prefix="histories-") as folder:
            machine = Machine(
                spark,
                Path(folder),
                given.format,
                (lambda _: None) if given.quiet else _say,
                one_router=given.one_router,
            )
            if given.replay:
                steps = [(str(kind), int(seed)) for kind, seed in json.loads(given.replay)]
                histories = [(None, steps)]
            else:
                seeds = range(given.seed, given.seed + given.histories)
                histories = [(seed, a_history(given.format, seed, given.steps or STEPS)) for seed in seeds]  # type: ignore[misc]
            begun = time.perf_counter()
            for seed, steps in histories:
                if given.seconds and time.perf_counter() - begun > given.seconds:
                    break
                _say(f"history {seed}")
                failure = machine.run(steps)
                if failure is None:
                    continue
                failed, believed = failed + (not failure.believed), believed + failure.believed
                _say(report(given.format, seed, steps, failure))
                if not given.replay and not failure.believed and given.shrink > 0:
                    shorter, found = machine.shrink(steps, failure, given.shrink)
                    machine.run(shorter)  # once more, to be read
                    _say("shrunk to\n" + report(given.format, seed, shorter, found))
            print(machine.tally)
            print(f"{failed} histories failed, {believed} believed a file of the same name and size")
    finally:
        spark.stop()
    return 1 if failed else 0


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
