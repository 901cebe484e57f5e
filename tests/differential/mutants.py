"""Planted bugs of pruning, each of which the machine has to find within 10,000 comparisons.

    python -m tests.differential.mutants [--seed N] [--only WORD]

Tables are made once, without any bug. Then each bug is planted by itself, the same conditions are asked again through
`attach`, and what counts is how many comparisons it takes until a file with matching rows is skipped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import numpy as np

import hedgerow as hr
from hedgerow.core.predicates import step_functions as steps
from hedgerow.core.predicates.nodes import In, IsNull, Prefix
from hedgerow.core.pruning import block_stats as stats
from hedgerow.core.pruning import evaluator as outcomes
from hedgerow.core.pruning import noted_conditions as features
from hedgerow.core.pruning import spark_hash, value_filter
from hedgerow.core.pruning import value_codes as ranks
from hedgerow.core.pruning.block_stats import F_BIT, N_BIT, T_BIT
from hedgerow.spark.start import jar
from hedgerow.tables import settings_fit as session_fit
from scripts import build_jar
from tests.differential.cases import forget, namespace
from tests.differential.conditions import Known
from tests.differential.oracles import Tally, World
from tests.differential.sessions import EVERY, Sessions, started
from tests.differential.worlds import Phase, a_plan

Planted = Callable[[ExitStack], None]
MOST = 10_000
WORLDS = (
    "parquet", "decimals", "zones", "parquet", "views", "any", "delta", "cases", "parquet", "any", "decimals", "zones",
    "lookups", "lookups",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """A plausible bug, and how to plant it for a while."""

    name: str
    plant: Planted


# --- ways to plant ---


def instead(module: Any, name: str, new: Callable[[Any], Any]) -> Planted:
    """`new(old)` in place of a function, wherever it was imported to."""

    def plant(stack: ExitStack) -> None:
        old = getattr(module, name)
        changed = new(old)
        for holder in list(sys.modules.values()):
            if getattr(holder, "__name__", "").startswith("hedgerow.") and getattr(holder, name, None) is old:
                stack.enter_context(patch.object(holder, name, changed))

    return plant


def on_class(cls: type[Any], name: str, new: Callable[[Any], Any]) -> Planted:
    """`new(old)` in place of a method."""

    def plant(stack: ExitStack) -> None:
        stack.enter_context(patch.object(cls, name, new(getattr(cls, name))))

    return plant


def term_with(change: Callable[[Any], dict[str, Any]], kinds: tuple[str, ...] = ()) -> Planted:
    """What is known of a term, changed before it is used."""

    def new(old: Any) -> Any:
        def comparable(*args: Any) -> Any:
            found = old(*args)
            return (
                found if found is None or (kinds and found.type.kind not in kinds) else replace(found, **change(found))
            )

        return comparable

    return instead(outcomes, "_comparable", new)


def java(old: str, new: str) -> Planted:
    """Another text in the rule's source."""

    def plant(stack: ExitStack) -> None:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="mutant-")))
        # Py4J caches methods by the name of their class, so each jar has a package of its own.
        package, planted = f"hedgerow_{uuid4().hex}", 0
        for source in build_jar.SOURCES.rglob("*.java"):
            text = source.read_text()
            planted += text.count(old)
            text = text.replace("package hedgerow;", f"package {package};").replace(old, new)
            (folder / source.name).write_text(text)
        if planted != 1:
            raise LookupError(f"the rule has {planted} times {old}")
        path = folder / "mutant.jar"
        classes = folder / "classes"
        build_jar.compile_into(classes, folder, build_jar.compiler())
        build_jar.pack(classes, path)
        stack.enter_context(patch.multiple(jar, PACKAGE=package, jar_path=lambda: path))
        stack.enter_context(patch.dict(jar._gateways, clear=True))  # a jar cannot be loaded twice into one JVM

    return plant


# --- the bugs ---
# A bug of NOT alone cannot be seen here: Spark writes NOT (x > 5) as x <= 5 before it asks us.


def _op(old: str, new: str) -> Planted:
    return instead(steps, "_compare", lambda compare: lambda op, v: compare(new if op == old else op, v))


def _stepwise(node: type[Any], change: Callable[[Any], Any]) -> Planted:
    return instead(
        steps, "stepwise", lambda old: lambda p: change(old(p)) if isinstance(p, node) and old(p) else old(p)
    )


def _in(keep: Callable[[Any], Any]) -> Planted:
    def new(old: Any) -> Any:
        return lambda p: old(replace(p, **{_literals(p): keep(getattr(p, _literals(p)))}) if isinstance(p, In) else p)

    return instead(steps, "stepwise", new)


def _literals(p: In) -> str:
    return next(name for name in p.__dataclass_fields__ if name != "term")


def _array(module: Any, bits: Any) -> Planted:
    """Another NOT, for sets of outcomes."""

    def plant(stack: ExitStack) -> None:
        stack.enter_context(patch.object(module, "NOT_BITS", bits))

    return plant


def _swapped(stack: ExitStack) -> None:
    stack.enter_context(patch.multiple(outcomes, _AND=outcomes._OR, _OR=outcomes._AND))


def _no_nulls(stack: ExitStack) -> None:
    stack.enter_context(patch.object(stats.TermStats, "may_null", property(lambda t: np.zeros(len(t.nulls), bool))))


def _unknown_nulls(stack: ExitStack) -> None:
    """Where few rows are NULL, nobody counts them."""
    stack.enter_context(patch.object(stats.TermStats, "may_null", property(lambda t: np.greater(t.nulls, 3))))


def _by_prefix(old: Any) -> Any:
    def narrow(p: Any, found: Any, known: Any) -> None:
        old(p, found, known)
        name = features.predicate_text(p)[:9]
        for feature_name, feature in known.conditions.items():
            if feature_name[:9] == name:
                found &= feature.bits
                return

    return narrow


def _order(stack: ExitStack) -> None:
    """The answer is about the files in another order."""
    from hedgerow.core.index import block_index as views

    cover = views.BlockIndex.choose_files

    def covered(self: Any, *a: Any, **k: Any) -> Any:
        found = cover(self, *a, **k)
        return replace(found, opened=np.roll(found.opened, 1))

    stack.enter_context(patch.object(views.BlockIndex, "choose_files", covered))


def _cut(values: Any) -> list[Any]:
    """Unique, still sorted: a value that meets its neighbour stays as it is."""
    found: list[Any] = []
    for old, new in values:
        found.append(new if (not found or new > found[-1]) else old)
    return found


def _last_code(old: Any) -> Any:
    def code_of(values: Any, value: Any, gap: int = 0) -> int:
        found = int(old(values, value, gap))
        return found + 1 if gap == 0 and found % 2 == 0 and found < 2 * len(values) else found

    return code_of


def _eight_bytes(stack: ExitStack) -> None:
    stack.enter_context(patch.dict(spark_hash._NUMBER_BYTES, {"date": 8}))


CORE = (
    Mutant("<= is read as <", _op("<=", "<")),
    Mutant(">= is read as >", _op(">=", ">")),
    Mutant("NULL is ignored", _no_nulls),
    Mutant("few NULLs are ignored", _unknown_nulls),
    Mutant("IS NULL is NULL on NULL", _stepwise(IsNull, lambda s: replace(s, steps=replace(s.steps, on_null=None)))),
    Mutant("NaN is forgotten", term_with(lambda t: {"nan": np.zeros(len(t.nan), bool)})),
    Mutant("NaN is below every value", on_class(steps.Steps, "at", lambda old: lambda self, value: self.outcomes[0])),
    Mutant("AND and OR change places", _swapped),
    Mutant("OR looks at its first part only", instead(outcomes, "_combined", lambda old: lambda f, parts: old(f, parts if f is steps.and3 else parts[:1]))),
    Mutant("an IN list has one value", _in(lambda some: some[:1])),
    Mutant("an IN list lacks its last value", _in(lambda some: some[:-1] if len(some) > 1 else some)),
    Mutant("a prefix ends at itself", instead(steps, "prefix_end", lambda old: lambda prefix: prefix + "\0")),
    Mutant("a prefix's first letter is left out", _stepwise(Prefix, lambda s: replace(s, steps=replace(s.steps, breaks=tuple((v + "a", side) if i == 0 else (v, side) for i, (v, side) in enumerate(s.steps.breaks)))))),
    Mutant("upper bounds are one value too low", term_with(lambda t: {"high": np.maximum(t.high - 2, t.low).astype(np.int32)})),
    Mutant("lower bounds are one value too high", term_with(lambda t: {"low": np.minimum(t.low + 2, t.high).astype(np.int32)})),
    Mutant("strings are cut to one character", term_with(lambda t: {"values": _cut((v, v[:1]) for v in t.values)}, ("string",))),
    Mutant("timestamps are cut to seconds", term_with(lambda t: {"values": _cut((v, v // 1_000_000 * 1_000_000) for v in t.values)}, ("timestamp", "timestamp_ntz"))),
    Mutant("decimals lose their scale", term_with(lambda t: {"values": _cut((v, v.to_integral_value()) for v in t.values)}, ("decimal",))),
    Mutant("sets of values lack the largest", instead(outcomes, "_narrow_by_sets", lambda old: lambda bits, s, low, sets: old(bits, s, low, replace(sets, codes=np.minimum(sets.codes, np.max(sets.codes, initial=0) - 2))))),
    Mutant("a value between two known ones is the upper one", instead(ranks, "code_of", _last_code)),
    Mutant("a break at a value lies above it", instead(outcomes, "_steps_passed", lambda old: lambda breaks, codes: np.searchsorted(breaks, codes, side="left"))),
    Mutant("implication stops one step short", instead(steps, "true_within", lambda old: lambda a, b: any(o is True for o in a.outcomes) and any(o is True for o in b.outcomes[:-1]))),
    Mutant("implication ignores NULL", instead(steps, "true_within", lambda old: lambda a, b: old(replace(a, on_null=None), b))),
    Mutant("a feature is found by the beginning of its text", instead(features, "narrow_by_noted_conditions", _by_prefix)),
    Mutant("the opposite feature is read as it is", _array(features, np.arange(8, dtype=np.uint8))),
    Mutant("NOT of NULL is FALSE and TRUE stays", _array(outcomes, np.array([(b & N_BIT and F_BIT) | (b & T_BIT) for b in range(8)], np.uint8))),
    Mutant("two columns: < is read as >", instead(outcomes, "_compare_spans", lambda old: lambda op, *spans: old({"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(op, op), *spans))),
    Mutant("two columns: = is never TRUE where bounds differ", instead(outcomes, "_compare_spans", lambda old: lambda op, a, b, c, d: np.where((op == "=") & ((a != c) | (b != d)), F_BIT, old(op, a, b, c, d)).astype(np.uint8))),
    Mutant("files are in another order", _order),
    Mutant("what was noted under other settings counts", instead(session_fit, "difference", lambda old: lambda written, now: None)),
    Mutant("a filter forgets the last file of a value", on_class(value_filter.Shape, "places", lambda old: lambda self, block, h: old(self, block, h)[:-1])),
    Mutant("a filter's decimals lose their scale", instead(spark_hash, "_without_point", lambda old: lambda value, scale: old(value, 0) if value == value.to_integral_value() else old(value, scale))),
    Mutant("a filter's dates have eight bytes", _eight_bytes),
    Mutant("joined steps keep the first part's NULL", instead(steps, "combine", lambda old: lambda f, a, b: replace(old(f, a, b), on_null=a.on_null if f is steps.or3 else old(f, a, b).on_null))),
)  # fmt: skip

JAVA = (
    Mutant("the rule: <=> is written as =", java('e instanceof EqualNullSafe ? "<=>"', 'e instanceof EqualNullSafe ? "="')),
    Mutant("the rule: OR is written as AND", java("return new Wire.Or(", "return new Wire.And(")),
    Mutant("the rule: <= is written as <", java('e instanceof LessThanOrEqual ? "<="', 'e instanceof LessThanOrEqual ? "<"')),
    Mutant("the rule: NOT is left out", java("return new Wire.Not(of(not.child()));", "return of(not.child());")),
    Mutant("the rule: a day begins when it does in UTC", java("LocalDate.ofEpochDay(day).atStartOfDay(zone)", 'LocalDate.ofEpochDay(day).atStartOfDay(ZoneId.of("UTC"))')),
    Mutant("the rule: a day's end belongs to it", java('case "<=" -> at(day, "<", day.end());', 'case "<=" -> at(day, "<", day.start());')),
    Mutant("the rule: IS NULL is written as IS NOT NULL", java("return isNull(is.child());", "return new Wire.Not(isNull(is.child()));")),
    Mutant("the rule: collations are ignored", java('type.catalogString().equals("string")', "!type.catalogString().isEmpty()")),
    Mutant("the rule: types of both sides may differ", java("if (!left.dataType().equals(right.dataType())) {", "if (left == right) {")),
    Mutant("the rule: bits are read one place off", java("bits.charAt(place) == '0'", "bits.charAt((place + 1) % bits.length()) == '0'")),
)  # fmt: skip


# --- asking ---


@dataclass
class Recorder(World):
    """A world that stands, with its conditions and their truth, for many to ask."""

    exams: list[tuple[Phase, str, list[str], list[tuple[str, Known]]]] = field(default_factory=list)

    def prepare(self, phases: int = 2) -> bool:
        self.names = namespace(self.sessions)
        self.whole = 0
        if not self._made():
            return False
        for number in range(phases):
            self._ask(number)
        keys = {key for phase in self.phases for key in phase.settings}
        self.sessions.configure({}, sorted(keys | set(self.plan.write)))
        return True

    def _compared(self, phase: Phase, door: str, files: list[str], plans: list[tuple[str, Known]]) -> None:
        if door == "attach":
            self.exams.append((phase, self.rel, files, plans))

    def close(self) -> None:
        forget(self.sessions, self.names, self.plan, self.phases)


@contextmanager
def planted(mutant: Mutant | None, sessions: Sessions) -> Iterator[None]:
    with ExitStack() as stack:
        if mutant is not None:
            mutant.plant(stack)
        _attached_anew(sessions)
        yield
    _attached_anew(sessions)


def _attached_anew(sessions: Sessions) -> None:
    """Attach the session to a new rule, with nothing remembered."""
    hr.detach(sessions.attached)
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("hedgerow."):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()
    hr.attach(sessions.attached)


def found_after(worlds: list[Recorder], sessions: Sessions, most: int = MOST) -> tuple[int, str] | None:
    """How many comparisons it takes until one is wrong, and its condition; None where all are right."""
    asked = 0
    sessions.configure({}, sorted({key for world in worlds for phase, *_ in world.exams for key in phase.settings}))
    before: list[str] = []
    for world in worlds:
        for phase, relation, files, plans in world.exams:
            sessions.configure(phase.settings, before)
            before, world.rel = list(phase.settings), relation
            for _, declaration, _ in phase.variables:  # another world's may have the same names
                for session in sessions:
                    session.sql(declaration)
            for at in range(0, len(plans), 20):
                part = plans[at : at + 20]
                kept = world.kept("attach", [k.sql for _, k in part])
                for (_, known), opened in zip(part, kept, strict=True):
                    asked += 1
                    if isinstance(opened, str) or EVERY in opened:
                        continue
                    if {f for f, t in zip(files, known.truth, strict=True) if t} - opened:
                        return asked, known.sql
                if asked >= most:
                    return None
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential.mutants", description=__doc__)
    parser.add_argument("--seed", default="mutants")
    parser.add_argument("--only", default="", help="bugs whose name holds one of these words, with commas between")
    parser.add_argument("--worlds", type=int, default=2 * len(WORLDS))
    parser.add_argument("--java", action="store_true", help="those of the rule too")
    args = parser.parse_args()
    sessions = started()
    worlds: list[Recorder] = []
    tally = Tally()
    try:
        number = 0
        while len(worlds) < args.worlds and number < 4 * args.worlds:
            random = Random(f"{args.seed}/{number}")
            kind = WORLDS[number % len(WORLDS)]
            world = Recorder(sessions, a_plan(random, f"m{number}", kind), random, tally, kind)
            if world.prepare() and world.exams:
                worlds.append(world)
                print(f"world {number} ({kind}): {sum(len(e[3]) for e in world.exams):,} comparisons", flush=True)
            number += 1
        with planted(None, sessions):
            wrong = found_after(worlds, sessions)
            print(f"without a bug: {wrong or 'nothing is wrong'}", flush=True)
        missed = 0
        for mutant in (*CORE, *(JAVA if args.java else ())):
            if not any(word in mutant.name for word in args.only.split(",")):
                continue
            begun = monotonic()
            try:
                with planted(mutant, sessions):
                    found = found_after(worlds, sessions)
            except Exception as error:
                print(f"  not planted  {mutant.name}: {type(error).__name__}: {error}", flush=True)
                missed += 1
                continue
            missed += found is None
            told = f"after {found[0]:6,}" if found else "NOT FOUND   "
            print(
                f"  {told}  {mutant.name}  ({monotonic() - begun:.0f} s)  {found[1][:100]!r}"
                if found
                else f"  {told}  {mutant.name}",
                flush=True,
            )
        print(f"missed: {missed}")
        return 1 if missed else 0
    finally:
        for world in worlds:
            world.close()
        sessions.plain.stop()


if __name__ == "__main__":
    sys.exit(main())
