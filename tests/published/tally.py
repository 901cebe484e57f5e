"""Counts of a suite's queries, and the sentence that sums them up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.published.outcome import Outcome, Skipped


@dataclass
class Tally:
    """`compared` are those that ended alike or not; those of them in which no file was skipped are `vacuous`.

    ties: a LIMIT cut between equal rows, so that both answers are right; without the LIMIT all rows are compared.
    errors: compared ones that end in an error, the same each time.
    with_rows: how many answer at least one row; the others could only gain some.
    not_run: how many were not compared, by the reason.
    scans, comets: the scans of the attached queries, and how many of them were Comet's.
    """

    suite: str
    compared: int = 0
    errors: int = 0
    ties: int = 0
    with_rows: int = 0
    files: int = 0
    opened: int = 0
    scans: int = 0
    comets: int = 0
    vacuous: list[str] = field(default_factory=list)
    not_run: Counter[str] = field(default_factory=Counter)
    different: list[tuple[str, str, str]] = field(default_factory=list)  # its name, its SQL, in what
    notes: list[str] = field(default_factory=list)

    def count(self, name: str, plain: Outcome, skips: Skipped) -> None:
        self.compared += 1
        self.errors += bool(plain.error)
        self.with_rows += bool(plain.rows)
        self.files += skips.files
        self.opened += skips.opened
        if not skips:
            self.vacuous.append(name)

    def lines(self) -> list[str]:
        reasons = ", ".join(f"{n} {why}" for why, n in self.not_run.most_common())
        told = (
            f"{self.suite}: {self.compared:,} compared, {self.compared - len(self.vacuous):,} not vacuous, "
            f"{len(self.vacuous):,} vacuous, {sum(self.not_run.values()):,} not run ({reasons or 'none'}), "
            f"{len(self.different):,} different; {self.with_rows:,} answer rows, {self.errors:,} end in the same error, {self.ties:,} ties at a LIMIT, "
            f"{self.opened:,} of {self.files:,} files opened, {self.comets:,} of {self.scans:,} scans were Comet's"
        )
        return [
            told,
            *self.notes,
            *(f"  DIFFERENT {name}: {why}\n    {' '.join(sql.split())}" for name, sql, why in self.different),
        ]
