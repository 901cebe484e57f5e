"""Command: python -m tests.differential --seed N --comparisons N [--world KIND]."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from random import Random
from time import monotonic

from bench.comet import comet_settings, scans_of
from tests.differential.oracles import World
from tests.differential.sessions import Sessions, started
from tests.differential.shrink import shrunk
from tests.differential.tally import Tally
from tests.differential.worlds import WORLD_KINDS, a_plan
from tests.support.small_tables import as_if_large


def compare(
    sessions: Sessions,
    seed: int | str,
    comparisons: int,
    kind: str = "any",
    batch: tuple[int, int] = (40, 40),
    seconds: float = float("inf"),
    until: int = 1 << 30,
    tally: Tally | None = None,
    verbose: bool = True,
    whole: int = 4,
    size: float = 1.0,
    atoms: int = 40,
    without: tuple[str, ...] = (),
    phases: int = 2,
    forms: tuple[str, ...] = (),
    planned: int = 0,
) -> Tally:
    """Worlds one after the other, until so many comparisons are made, so many differences found, or time is up."""
    tally = tally or Tally()
    begun, number = monotonic(), 0
    while tally.total < comparisons and len(tally.findings) < until and monotonic() - begun < seconds:
        random = Random(f"{seed}/{number}")
        chosen = kind
        if kind == "each":
            chosen = WORLD_KINDS[number % len(WORLD_KINDS)]
        elif kind == "any" and random.random() < 0.6:
            chosen = random.choice(WORLD_KINDS)
        plan = a_plan(random, f"{abs(hash_of(seed))}_{number}", chosen)
        while any(word in repr(plan) for word in without):  # known faults
            plan = a_plan(random, plan.number, chosen)
        told = Counter(tally.notes)
        World(sessions, plan, random, tally, chosen, batch, whole, forms, atoms, size, planned).run(phases, comparisons)
        number += 1
        if verbose:
            rate = tally.total / (monotonic() - begun)
            print(
                f"world {seed}/{number - 1} ({chosen}, {plan.read_format}): {tally.total:,} comparisons, {len(tally.findings)} kinds of difference, {rate:.0f}/s",
                flush=True,
            )
            for note in tally.notes - told:
                if ("efuse" in note and "conditions" not in note) or "laid out" in note:
                    print(f"    {note}", flush=True)
    return tally


def hash_of(seed: int | str) -> int:
    """A number for a seed that is the same in every process."""
    return Random(str(seed)).randrange(1 << 20)


def table(tally: Tally) -> str:
    lines = [f"{'oracle':8} {'door':7} {'format':8} {'compared':>9} {'vacuous':>8} {'different':>9}"]
    for key in sorted(tally.compared):
        n = tally.compared[key]
        lines.append(f"{key[0]:8} {key[1]:7} {key[2]:8} {n:9,} {tally.vacuous[key] / n:8.1%} {tally.different[key]:9,}")
    n = max(1, tally.total)
    lines.append(f"{'all':25} {n:9,} {tally.vacuous.total() / n:8.1%} {tally.different.total():9,}")
    lines += ["", *(f"{count:9,}  {kind}" for kind, count in sorted(tally.kinds.items()))]
    lines += ["", *(f"{count:9,}  {note}" for note, count in tally.notes.most_common(25))]
    return "\n".join(lines)


@as_if_large()
def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--comparisons", type=int, default=10_000)
    parser.add_argument("--world", default="any", choices=(*WORLD_KINDS, "each"))
    parser.add_argument("--batch", default="40,40", help="conditions in one plan: for attach, for route")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--until", type=int, default=1 << 30, help="stop at so many kinds of difference")
    parser.add_argument("--whole", type=int, default=4, help="whole queries in each phase")
    parser.add_argument("--planned", type=int, default=0, help="queries of more than WHERE in each phase, planned only")
    parser.add_argument("--forms", default="", help="kinds of whole queries, with commas between")
    parser.add_argument(
        "--size", type=float, default=1.0, help="share of the usual number of conditions for each table"
    )
    parser.add_argument("--without", default="", help="words, with commas between: no table whose plan has one of them")
    parser.add_argument("--atoms", type=int, default=40, help="conditions in each phase")
    parser.add_argument(
        "--phases", type=int, default=2, help="how often each table is asked; 0: only its values are compared"
    )
    parser.add_argument("--shrink", type=int, default=3, help="so many differences are shrunk and printed as scripts")
    parser.add_argument("--extension", action="store_true", help="the JVM attaches the sessions, not Python")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark")
    args = parser.parse_args()
    first, _, second = args.batch.partition(",")
    sessions = started(by_extension=args.extension, **dict(setting.split("=", 1) for setting in args.conf))
    try:
        tally = compare(
            sessions,
            args.seed,
            args.comparisons,
            args.world,
            (int(first), int(second)),
            args.seconds,
            args.until,
            whole=args.whole,
            size=args.size,
            atoms=args.atoms,
            without=tuple(filter(None, args.without.split(","))),
            phases=args.phases,
            forms=tuple(filter(None, args.forms.split(","))),
            planned=args.planned,
        )
        for finding in list(tally.findings.values())[: args.shrink]:
            print(
                f"\n# {'-' * 20} {finding.oracle}, {finding.case.door}: {finding.message[:200]}\n{shrunk(sessions, finding.case).script()}"
            )
        print(f"\nseed {args.seed}\n{table(tally)}")
        if comet_settings():
            print(f"scans of the last queries: {scans_of(sessions.plain)}")
        for signature, finding in tally.findings.items():
            print(f"{tally.repeats[signature]:6} x after {finding.after:7,}: {signature}: {finding.message[:120]!r}")
        return 1 if tally.findings else 0
    finally:
        sessions.plain.stop()


if __name__ == "__main__":
    sys.exit(main())
