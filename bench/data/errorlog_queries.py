"""Queries on the crash-report logs, by teams that watch their own events in their own branches, day after day.

A team always asks for the same events of one branch, in one of three forms; builds and dates move on. Some teams ask
far more often than others. So event lists and branches repeat, in learned and in unseen queries; exact versions and
dates repeat less often. A query reads the days before it was asked, and most look back farther than the log goes.
"""

from __future__ import annotations

import random
from bisect import bisect
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import accumulate

from bench.data.errorlog_data import FIRST_DAY, INTERNAL, Shape, built_on, version

TEAMS = 250


@dataclass(frozen=True, slots=True)
class Habits:
    """How much a team's queries select; each pair is the least and the most. Developers watch their own branch, however
    small; support watches the most frequent events (`popular`)."""

    events: tuple[int, int]
    builds: tuple[int, int]  # days of builds
    ingested: tuple[int, ...]  # days back
    popular: bool


INSIDE = Habits((1, 2), (1, 2), (7, 14, 30), False)
OUTSIDE = Habits((2, 20), (60, 360), (15, 30), True)


@dataclass(frozen=True, slots=True)
class Team:
    branch: int
    events: tuple[str, ...]
    form: str
    back: int


def teams(shape: Shape) -> list[Team]:
    """Return the teams, the same for every seed of queries."""
    r = random.Random(f"{shape.name}, teams")
    return [_team(shape, r) for _ in range(TEAMS)]


def _team(shape: Shape, r: random.Random) -> Team:
    habits, world = _habits(shape), shape.world
    branch = bisect(world.branch_up_to, r.random()) if habits.popular else r.randrange(shape.branches)
    n = r.randint(*habits.events)
    if habits.popular:  # applications that come after each other in the list have one owner
        first = bisect(world.event_up_to[branch], r.random())
        events = [world.events[(first + i) % shape.events] for i in range(n)]
    else:
        events = r.sample(world.events, n)
    form = r.choices(("equal", "prefix", "word"), (5, 2, 3))[0]
    return Team(branch, tuple(sorted(events)), form, r.choice(habits.ingested))


def _habits(shape: Shape) -> Habits:
    return INSIDE if shape is INTERNAL else OUTSIDE


def conditions(shape: Shape, seed: int, n: int, today: int | None = None, asking: slice = slice(None)) -> list[str]:
    """Return the condition of each query; a larger `n` with the same seed begins with the same queries.

    `today` is the day of the log on which the queries run, by default the last. `asking`: the teams that ask.
    """
    r = random.Random(f"{shape.name}, {seed}" if today is None else f"{shape.name}, {seed}, day {today}")
    today = shape.days - 1 if today is None else today
    some = teams(shape)[asking]
    often = list(accumulate(1 / (k + 10) for k in range(len(some))))
    return [_condition(shape, r.choices(some, cum_weights=often)[0], today, r) for _ in range(n)]


def queries(shape: Shape, seed: int, n: int) -> list[str]:
    return [f"SELECT * FROM errors WHERE {condition}" for condition in conditions(shape, seed, n)]


def _condition(shape: Shape, team: Team, today: int, r: random.Random) -> str:
    age = int(r.expovariate(1 / shape.half_life))
    build = int(built_on(shape, today - age))
    text = version(shape, team.branch, build)
    wide = r.randint(*_habits(shape).builds)
    last = min(today, build + r.randrange(wide))
    version_condition = {
        "equal": f"os_version = '{text}'",
        "prefix": f"os_version LIKE '{'.'.join(text.split('.')[:4])}.%'",
        "word": f"os_version LIKE '%.{shape.world.branches[team.branch]}.%'",
    }[team.form]
    listed = ", ".join(f"'{e}'" for e in team.events)
    end = today - r.randrange(2)
    return (
        f"event_type IN ({listed}) AND {version_condition} "
        f"AND os_build_date BETWEEN DATE '{_day(last - wide + 1)}' AND DATE '{_day(last)}' "
        f"AND client_ingest_date BETWEEN DATE '{_day(end - team.back + 1)}' AND DATE '{_day(end)}' AND is_valid = TRUE"
    )


def _day(day: int) -> date:
    return FIRST_DAY + timedelta(days=day)
