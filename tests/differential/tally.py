"""Counts what was compared, and keeps the differences."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.differential.cases import Case


@dataclass(frozen=True)
class Finding:
    """A difference; findings of one signature are most likely one fault."""

    case: Case
    oracle: str
    message: str
    signature: str
    after: int
    parts: tuple[str, ...] = ()


@dataclass
class Tally:
    """What was compared, by oracle and door."""

    compared: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    vacuous: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    different: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    findings: dict[str, Finding] = field(default_factory=dict)
    repeats: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return self.compared.total()

    def compare(self, key: tuple[str, str, str], vacuous: bool) -> None:
        self.compared[key] += 1
        self.vacuous[key] += vacuous

    def add(self, finding: Finding, key: tuple[str, str, str]) -> bool:
        """Whether it is new."""
        self.different[key] += 1
        self.repeats[finding.signature] += 1
        if finding.signature in self.findings:
            return False
        self.findings[finding.signature] = finding
        return True
