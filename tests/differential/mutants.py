"""Planted bugs of pruning, each of which the machine has to find within 10,000 comparisons.

    python -m tests.differential.mutants [--seed N] [--only WORD] [--java]

Tables are made once, without any bug. Then each bug is planted by itself, the same questions are asked again through
`attach`, and what counts is how many comparisons it takes until one is wrong: a file with rows that match a condition
is skipped, or a whole query has a wrong answer.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest
from random import Random
from time import monotonic

from pyspark.sql import Row

import hedgerow as hr
from tests.differential.cases import forget, namespace
from tests.differential.conditions import Known
from tests.differential.oracles import World
from tests.differential.planted_bugs import CONDITIONS, RULE, WHOLE_QUERIES, WHOLE_QUERY_RULE, Mutant
from tests.differential.queries import Question
from tests.differential.sessions import EVERY, Sessions, started
from tests.differential.tally import Tally
from tests.differential.worlds import Phase, a_plan
from tests.support.small_tables import as_if_large

MOST = 10_000
FORMS = ("first", "any", "aggregates")  # of whole queries: more than WHERE
QUERIES = 60  # for each phase


@dataclass(frozen=True)
class Suite:
    """Bugs of one kind, and the kinds of the tables that show them; `queries`: whole ones, for each phase."""

    bugs: Sequence[Mutant]
    rule: Sequence[Mutant]
    worlds: Sequence[str]
    queries: int = 0


SUITES = (
    Suite(CONDITIONS, RULE, (
        *("parquet", "decimals", "zones", "parquet", "views", "any", "delta"),
        *("cases", "parquet", "any", "decimals", "zones", "lookups", "lookups"),
    ) * 2),
    Suite(WHOLE_QUERIES, WHOLE_QUERY_RULE, ("parquet", "deletes", "history", "decimals", "deletes", "history") * 2, QUERIES),
)  # fmt: skip


@dataclass(frozen=True)
class Exam:
    """Questions to ask under each bug: conditions with the files they need, or whole queries with their answers."""

    world: Recorder
    phase: Phase
    relation: str
    conditions: Sequence[tuple[str, set[str]]] = ()
    queries: Sequence[tuple[Question, Counter[str]]] = ()

    def wrong(self) -> list[str | None]:
        """For each comparison, the condition or query if the answer is wrong."""
        world, sessions = self.world, self.world.sessions
        world.rel = self.relation
        sessions.configure(self.phase.settings, [])
        try:
            for _, declaration, _ in self.phase.variables:  # another world's may have the same names
                for session in sessions:
                    session.sql(declaration)
            return world.wrong_files(self.conditions) if self.conditions else world.wrong_answers(self.queries)
        finally:
            sessions.configure({}, list(self.phase.settings))


@dataclass
class Recorder(World):
    """A world that stands, with its questions and their answers, for many to ask."""

    exams: list[Exam] = field(default_factory=list)
    _ranked: dict[tuple[str, str], list[Row]] = field(default_factory=dict)

    def prepare(self, phases: int = 2) -> bool:
        self.names = namespace(self.sessions)
        try:
            for number in range(phases if self._made() else 0):
                self._ask(number)
        finally:
            keys = {key for phase in self.phases for key in phase.settings}
            self.sessions.configure({}, sorted(keys | set(self.plan.write)))
        return bool(self.exams)

    def _compared(self, phase: Phase, door: str, files: list[str], plans: list[tuple[str, Known]]) -> None:
        if door == "attach" and not self.whole:
            needed = [(p.sql, {f for f, t in zip(files, p.truth, strict=True) if t}) for _, p in plans]
            for part in self._parts(needed, 20):
                self.exams.append(Exam(self, phase, self.rel, conditions=part))

    def _compare_answers(self, phase: Phase, door: str, known: list[tuple[Question, Counter[str]]]) -> None:
        if door == "attach" and known:
            self.exams.append(Exam(self, phase, self.rel, queries=known))

    def wrong_files(self, conditions: Sequence[tuple[str, set[str]]]) -> list[str | None]:
        kept = self.kept("attach", [sql for sql, _ in conditions])
        pairs = zip(conditions, kept, strict=True)
        return [sql if _knows(opened) and needed - set(opened) else None for (sql, needed), opened in pairs]

    def wrong_answers(self, queries: Sequence[tuple[Question, Counter[str]]]) -> list[str | None]:
        answers = self._answers("attach", [question for question, _ in queries])
        pairs = zip(queries, answers, strict=True)
        return [None if self._is_fine(q, found, expected) else q.sql for (q, expected), found in pairs]

    def ranked(self, question: Question) -> list[Row]:
        key = self.rel, question.ranked
        if key not in self._ranked:
            self._ranked[key] = super().ranked(question)
        return self._ranked[key]

    def close(self) -> None:
        forget(self.sessions, self.names, self.plan, self.phases)


def _knows(opened: set[str] | str) -> bool:
    """True if these are the files that a query opens, not an error, and no scan is left out."""
    return not isinstance(opened, str) and EVERY not in opened


@contextmanager
def planted(mutant: Mutant | None, sessions: Sessions) -> Iterator[None]:
    try:
        with ExitStack() as stack:
            if mutant is not None:
                mutant.plant(stack)
            _attached_anew(sessions)
            yield
    finally:
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


def in_turn(worlds: Sequence[Recorder]) -> list[Exam]:
    """The first exam of each world, then the second of each: a bug that few worlds show is found sooner."""
    return [exam for exams in zip_longest(*(w.exams for w in worlds)) for exam in exams if exam is not None]


def first_wrong(exams: Sequence[Exam], most: int = MOST) -> tuple[int, str] | None:
    """Return the number and the text of the first comparison that is wrong; None if all are right."""
    asked = chain.from_iterable(exam.wrong() for exam in exams)
    return next(((number, text) for number, text in enumerate(islice(asked, most), 1) if text is not None), None)


def made(sessions: Sessions, suite: Suite, seed: str, most: int) -> Iterator[Recorder]:
    """Yield the suite's tables. Another one takes the place of a table that Spark or Hedgerow refuses."""
    wanted = min(most, len(suite.worlds))
    for number in range(4 * wanted):
        random = Random(f"{seed}/{number}")
        kind = suite.worlds[number % len(suite.worlds)]
        atoms = 15 if suite.queries else 40
        plan = a_plan(random, f"m{number}{'q' if suite.queries else ''}", kind)
        world = Recorder(sessions, plan, random, Tally(), kind, whole=suite.queries, forms=FORMS, atoms=atoms)
        if world.prepare():
            comparisons = sum(len(exam.conditions) + len(exam.queries) for exam in world.exams)
            print(f"table {number} ({kind}): {comparisons:,} comparisons", flush=True)
            wanted -= 1
            yield world
        if not wanted:
            return


def missed(sessions: Sessions, bugs: Sequence[Mutant], exams: Sequence[Exam]) -> int:
    """Plant one bug after the other; print when each is noticed, and return how many are not."""
    count = 0
    for bug in bugs:
        begun = monotonic()
        try:
            with planted(bug, sessions):
                wrong = first_wrong(exams)
        except (Exception, SystemExit) as error:  # the compiler exits
            told, wrong = f"not planted: {type(error).__name__}: {error}", None
        else:
            told = "NOT FOUND" if wrong is None else f"after {wrong[0]:,}: {wrong[1][:100]!r}"
        count += wrong is None
        print(f"  {bug.name} ({monotonic() - begun:.0f} s) {told}", flush=True)
    return count


@as_if_large()
def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential.mutants", description=__doc__)
    parser.add_argument("--seed", default="mutants")
    parser.add_argument("--only", default="", help="bugs whose name holds one of these words, with commas between")
    parser.add_argument("--tables", type=int, default=100, help="at most so many for each kind of bugs")
    parser.add_argument("--java", action="store_true", help="those of the rule too")
    args = parser.parse_args()
    sessions = started()
    total = 0
    try:
        for suite in SUITES:
            bugs = [*suite.bugs, *(suite.rule if args.java else ())]
            bugs = [bug for bug in bugs if any(word in bug.name for word in args.only.split(","))]
            worlds = list(made(sessions, suite, args.seed, args.tables)) if bugs else []
            exams = in_turn(worlds)
            if bugs:
                with planted(None, sessions):
                    print(f"without a bug: {first_wrong(exams) or 'nothing is wrong'}", flush=True)
            total += missed(sessions, bugs, exams)
            for world in worlds:
                world.close()
        print(f"missed: {total}")
        return 1 if total else 0
    finally:
        sessions.plain.stop()


if __name__ == "__main__":
    sys.exit(main())
