"""The fifteen templates with literals drawn in four ways: a learner that suits one way may fail in another.

uniform    as the specification says: every value of a list is as likely as the others
other      another program: periods of any length that begin on any day, bounds and steps of its own
skewed     a few values are asked for often, most hardly ever (Zipf), in an order of its own for each list
drifting   at a time two fifths of each list, further along the list with every query; the unseen queries come last
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

from bench.data.tpch_templates import BRANDS, MODES, NATIONS, REGIONS, SEGMENTS, TEMPLATES, TYPES, Literals

WAYS = ("uniform", "other", "skewed", "drifting")
ZIPF_EXPONENT = 1.1
WINDOW = 0.4  # share of a list from which drifting literals come at a time
LEARNED_UNTIL = 0.6  # share of the time; the unseen queries come later
Place = Callable[["_FromLists", int, str], int]  # which of n items to take; the text names the list


def queries(way: str, seed: int, per_template: int, unseen: bool = False) -> list[tuple[str, str]]:
    """Return SQL text and condition of queries, one of each template after the other."""
    drawn = []
    sources = {n: random.Random(f"{way}, {seed}, template {n}") for n in TEMPLATES}
    for i in range(per_template):
        share = i / per_template
        now = LEARNED_UNTIL + (1 - LEARNED_UNTIL) * share if unseen else LEARNED_UNTIL * share
        places: dict[str, Place] = {"skewed": _skewed, "drifting": _drifting(now)}
        for n, template in TEMPLATES.items():
            r = _FromLists(sources[n].random(), places[way]) if way in places else sources[n]
            literals = (_OTHER if way == "other" else {}).get(n, template.draw)(r)
            drawn.append((template.text(literals), template.condition(literals)))
    return drawn


class _FromLists(random.Random):
    """A random source whose draws from lists and ranges take the item at the place that a function chooses."""

    def __init__(self, seed: float, place: Place) -> None:
        super().__init__(seed)
        self._place = place

    def choice(self, seq: Any) -> Any:
        return seq[self._place(self, len(seq), str(seq))]

    def randrange(self, start: Any, stop: Any = None, step: Any = 1) -> int:
        low, high = (0, start) if stop is None else (start, stop)
        return int(low) + self._place(self, high - low, f"{low} {high}")

    def sample(self, population: Any, k: int, *, counts: Any = None) -> list[Any]:
        sampled: list[Any] = []
        while len(sampled) < k:
            item = self.choice(population)
            sampled += [] if item in sampled else [item]
        return sampled


def _skewed(r: _FromLists, n: int, name: str) -> int:
    order = list(range(n))
    random.Random(name).shuffle(order)
    return r.choices(order, [1 / (rank + 1) ** ZIPF_EXPONENT for rank in range(n)])[0]


def _drifting(now: float) -> Place:
    def place(r: _FromLists, n: int, name: str) -> int:
        length = min(n, max(2, round(WINDOW * n)))
        return round(now * (n - length)) + int(r.random() * length)

    return place


# --- another program ------------------------------------------------------------------------------


def _period(shortest: int, longest: int) -> Callable[[random.Random], Literals]:
    def drawn(r: random.Random) -> Literals:
        start = date(1994, 9, 1) + timedelta(days=r.randrange(760))
        return {"start": start, "end": start + timedelta(days=r.randrange(shortest, longest))}

    return drawn


def _q6(r: random.Random) -> Literals:
    discount = r.randrange(8)
    bounds = {"low": f"0.{discount:02}", "high": f"0.{discount + r.randrange(1, 4):02}"}
    return {**_period(20, 200)(r), **bounds, "quantity": r.randrange(5, 45)}


def _q12(r: random.Random) -> Literals:
    first, second = r.sample(MODES, 2)
    return {"one": first, "other": second, **_period(30, 250)(r)}


def _q19(r: random.Random) -> Literals:
    literals: dict[str, object] = {}
    for i in (1, 2, 3):
        least = r.randrange(1, 35)
        literals |= {f"brand{i}": r.choice(BRANDS), f"low{i}": least, f"high{i}": least + r.randrange(5, 20)}
    return literals


_OTHER: dict[int, Callable[[random.Random], Literals]] = {
    1: lambda r: {"day": date(1995, 2, 1) + timedelta(days=r.randrange(700))},
    3: lambda r: {"segment": r.choice(SEGMENTS), "day": date(1995, 1, 1) + timedelta(days=r.randrange(600))},
    4: _period(20, 120),
    5: lambda r: {"region": r.choice(list(REGIONS)), **_period(60, 400)(r)},
    6: _q6,
    8: lambda r: {"nation": r.choice(list(NATIONS)), "region": r.choice(list(REGIONS)), "type": r.choice(TYPES)},
    10: _period(20, 150),
    12: _q12,
    14: _period(5, 40),
    19: _q19,
}
