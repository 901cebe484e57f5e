"""What a run of a suite is asked to do; a suite looks at what concerns it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Form = Literal["quick", "full"]
Case = tuple[str, Mapping[str, Any]]  # a learner and its parameters


@dataclass(frozen=True, slots=True)
class Options:
    """None or nothing: what the suite's form has by default."""

    form: Form = "full"
    seed: int = 0
    learners: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    sf: float | None = None
    months: tuple[str, ...] = ()

    def cases(self, default: tuple[Case, ...]) -> tuple[Case, ...]:
        """The learners to run, each with the parameters given."""
        return tuple((name, self.params) for name in self.learners) or default
