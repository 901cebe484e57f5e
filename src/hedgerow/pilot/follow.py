"""follow_changes: looks at a table again whenever it has changed, within a budget, until a signal comes."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hedgerow.core.errors import HedgerowError, advise
from hedgerow.core.signals import as_if_interrupted
from hedgerow.pilot.budget import Budget
from hedgerow.pilot.decision import Decision

_MAX_FAILURES = 10  # in a row; after each one the pause doubles


def follow_changes(
    look: Callable[[], Decision],
    mark: Callable[[], Any],
    per_hour: float,
    pause: float,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], Any] = time.sleep,
) -> Iterator[Decision]:
    """Yield the decision of each look, for ever; a look that fails is repeated, up to ten times in a row.

    Args:
        mark: returns a value that differs once there is something new to look at.
        per_hour: the seconds of looks and rewrites in an hour.
        pause: the seconds between two marks.
    """
    budget, seen, failures = Budget.full(per_hour, clock()), None, 0
    while True:
        begun = clock()
        try:
            now = mark()
            if now != seen:
                decision = look()
                budget.spend(clock() - begun, clock())
                yield decision
            seen, failures = now, 0
        except HedgerowError as error:
            budget.spend(clock() - begun, clock())
            failures += 1
            if failures == _MAX_FAILURES:
                raise
            advise(f"the autopilot tries again: {error}")
        wait(max(budget.pause(clock()), pause * 2.0**failures))


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """End the body quietly at Ctrl-C and SIGTERM, once it has cleaned up."""
    if threading.current_thread() is not threading.main_thread():  # only that one gets signals
        yield
        return
    before = signal.signal(signal.SIGTERM, as_if_interrupted)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)
