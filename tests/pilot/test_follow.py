"""The autopilot follows a table: a look at each change, within the budget, and an end at once when it is told to."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.core.errors import HedgerowError, HedgerowWarning
from hedgerow.pilot.budget import Budget
from hedgerow.pilot.decision import Decision
from hedgerow.pilot.follow import ended_by_signals, follow_changes

HOUR = 3600.0


@given(
    st.floats(1.0, HOUR),
    st.lists(st.tuples(st.floats(0.0, 5000.0), st.floats(0.0, 5000.0)), max_size=20),
)
def test_no_more_is_worked_than_the_budget(per_hour: float, steps: Sequence[tuple[float, float]]) -> None:
    """But for the last piece of work, which is not known before. After the pause, work may begin."""
    budget, now, begun, worked = Budget.full(per_hour, 0.0), 0.0, 0.0, 0.0
    for idle, seconds in steps:
        now += idle
        now += budget.pause(now)
        assert budget.pause(now) == pytest.approx(0.0, abs=1e-6)
        assert worked <= per_hour * (1 + (now - begun) / HOUR) * (1 + 1e-9)
        now, worked = now + seconds, worked + seconds
        budget.spend(seconds, now)


@dataclass
class World:
    """A table whose versions come at given times, and looks that take some seconds; some of them fail."""

    versions: Sequence[float]
    look_seconds: float = 1.0
    failing: Sequence[int] = ()
    now: float = 0.0
    looks: list[float] = field(default_factory=list)

    def mark(self) -> int:
        return sum(at <= self.now for at in self.versions)

    def look(self) -> Decision:
        self.looks.append(self.now)
        self.now += self.look_seconds
        if len(self.looks) in self.failing:
            raise HedgerowError("another transaction came first")
        return Decision("nothing", (str(len(self.looks)),))

    def wait(self, seconds: float) -> None:
        self.now += seconds
        if self.now > 10 * HOUR:
            raise KeyboardInterrupt

    def follow(self, per_hour: float = HOUR) -> list[Decision]:
        decisions = []
        with ended_by_signals():
            for decision in follow_changes(self.look, self.mark, per_hour, 10.0, lambda: self.now, self.wait):
                decisions.append(decision)
        return decisions


def test_a_look_at_the_beginning_and_at_each_version() -> None:
    world = World([100.0, 101.0, 500.0, 900.5])
    assert len(world.follow()) == 4  # two versions came between two looks
    assert all(any(0 <= look - at <= 11 for look in world.looks) for at in world.versions)


def test_a_version_that_comes_during_a_look_is_looked_at() -> None:
    world = World([0.0, 5.0], look_seconds=9.0)
    assert len(world.follow()) == 2


def test_beside_a_busy_writer_the_budget_holds() -> None:
    """A version each second, and looks of 30 s."""
    world = World(list(itertools.accumulate([1.0] * 36_000)), look_seconds=30.0)
    world.follow(per_hour=360.0)
    assert len(world.looks) * 30.0 <= 360.0 * 11 + 30.0
    assert len(world.looks) * 30.0 >= 360.0 * 10  # and it is used


def test_after_a_failure_it_tries_again_and_less_often() -> None:
    world = World([0.0], failing=[1, 2, 3])
    with pytest.warns(HedgerowWarning, match="tries again: another transaction"):
        assert [d.reasons for d in world.follow()] == [("4",)]
    pauses = [after - before for before, after in itertools.pairwise(world.looks)]
    assert pauses == [21.0, 41.0, 81.0]


def test_after_ten_failures_it_ends() -> None:
    world = World([0.0], failing=range(1, 20))
    with pytest.warns(HedgerowWarning), pytest.raises(HedgerowError, match="another transaction"):
        world.follow()
    assert len(world.looks) == 10


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_at_a_signal(number: signal.Signals) -> None:
    before, reached = signal.getsignal(signal.SIGTERM), []
    with ended_by_signals():
        os.kill(os.getpid(), number)
        signal.pause()
        reached.append("the end")
    assert not reached and signal.getsignal(signal.SIGTERM) is before
