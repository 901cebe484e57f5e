"""The three levels of effort that a user can choose for learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as Choice

from hedgerow.core.errors import LayoutError

Effort = Choice["quick", "normal", "thorough"]


@dataclass(frozen=True, slots=True)
class Amounts:
    """The limits of one level of effort.

    `draws`: synthetic queries for each observed one; `cuts`: the maximal number of candidate cuts; `rows`: sample rows
    for each block; `advanced`: the maximal number of cuts that are advanced, None: any.
    """

    draws: int
    cuts: int
    rows: int
    advanced: int | None = None


QUICK = Amounts(draws=3, cuts=2000, rows=50)
NORMAL = Amounts(draws=10, cuts=2000, rows=100)
_AMOUNTS: dict[str, Amounts] = {"quick": QUICK, "normal": NORMAL, "thorough": Amounts(draws=20, cuts=4000, rows=200)}


def amounts_of(effort: Effort) -> Amounts:
    if effort not in _AMOUNTS:
        raise LayoutError(f"effort must be {', '.join(_AMOUNTS)}, not {effort!r}")
    return _AMOUNTS[effort]
