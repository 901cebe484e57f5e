"""The questions of the demo: twelve queries of nine kinds, each with literals that can be drawn anew."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from hedgerow.demo.shop import CAMPAIGNS, COUNTRIES, DAYS, FIRST_DAY, PAGES, SEGMENTS

_DRAWS = 12  # of each question, to learn from
_NEW = ("week", "week_end", "fortnight", "fortnight_end", "id", "amount")  # literals of a timed query that no other has
_TIMED_SEED = 2026
_SPANS = {"week": 7, "fortnight": 14}  # days

_QUESTIONS = (
    (
        "a week and a country",
        "SELECT count(DISTINCT customer_id), sum(amount) FROM events WHERE {in_week} AND country = '{country}'",
    ),
    (
        "LIKE '%/page%'",
        "SELECT country, count(*), sum(amount) FROM events WHERE url LIKE '%/{page}%' GROUP BY country",
    ),
    (
        "LIKE '%/page%'",
        "SELECT count(DISTINCT customer_id), max(took_ms) FROM events WHERE url LIKE '%/{page}%' AND {in_fortnight}",
    ),
    (
        "column against column",
        "SELECT url, count(*) AS late FROM events WHERE took_ms > limit_ms GROUP BY url"
        " ORDER BY late DESC, url LIMIT 10",
    ),
    (
        "a segment, by a join",
        "SELECT events.country, count(*), sum(amount) FROM events JOIN customers ON customer_id = id"
        " WHERE segment = '{segment}' GROUP BY events.country",
    ),
    (
        "a segment, by a join",
        "SELECT state, count(*), sum(amount) FROM events JOIN orders ON order_id = orders.id"
        " JOIN customers ON orders.customer_id = customers.id WHERE segment = '{segment}' GROUP BY state",
    ),
    (
        "the newest 100 errors",
        "SELECT at, url, status, payload FROM events WHERE status >= {status} ORDER BY at DESC, event_id LIMIT 100",
    ),
    (
        "a count of a condition",
        "SELECT count(*) FROM events WHERE {in_fortnight} AND status >= {status}",
    ),
    ("an id", "SELECT * FROM events WHERE event_id = '{id}'"),
    (
        "a look-up in a map",
        "SELECT attributes['device'], count(*), sum(amount) FROM events WHERE attributes['campaign'] = '{campaign}'"
        " GROUP BY attributes['device']",
    ),
    (
        "a look-up in a map",
        "SELECT count(DISTINCT customer_id) FROM events"
        " WHERE attributes['campaign'] IN ('{campaign}', '{other_campaign}') AND amount > 0",
    ),
    (
        "OR across columns",
        "SELECT customer_id, sum(amount) AS spent FROM events WHERE amount > {amount} OR attempts >= {attempts}"
        " GROUP BY customer_id ORDER BY spent DESC, customer_id LIMIT 20",
    ),
)


@dataclass(frozen=True)
class Question:
    """A query, and the kind that it belongs to."""

    kind: str
    text: str


def to_time(rows: int) -> list[Question]:
    """Return the queries that are timed over so many rows."""
    return _asked(_timed_literals(rows))


def to_learn_from(rows: int) -> list[Question]:
    """Return queries of the same kinds. Names, such as a page or a country, come again in those that are timed."""
    r, timed = random.Random(_TIMED_SEED + 1), _timed_literals(rows)
    new = {name: timed[name] for name in _NEW}
    return [question for _ in range(_DRAWS) for question in _asked(_drawn(r, rows, new))]


def _asked(literals: Mapping[str, object]) -> list[Question]:
    spans = {
        f"in_{name}": f"day BETWEEN DATE '{literals[name]}' AND DATE '{literals[f'{name}_end']}'" for name in _SPANS
    }
    return [Question(kind, text.format_map({**literals, **spans})) for kind, text in _QUESTIONS]


def _timed_literals(rows: int) -> Mapping[str, object]:
    drawn = _drawn(random.Random(_TIMED_SEED), rows, {})
    return {**drawn, "page": "checkout", "segment": "wholesale", "country": "ch", "status": 500}


def _drawn(r: random.Random, rows: int, without: Mapping[str, object]) -> dict[str, object]:
    """Draw each literal, but none that the other literals have."""
    taken = set(without.values())

    def one(values: Iterable[object]) -> object:
        return r.choice([value for value in values if value not in taken])

    def span(days: int) -> tuple[object, object]:
        firsts = [FIRST_DAY + timedelta(day) for day in range(DAYS - days + 1)]
        spans = [(first, first + timedelta(days - 1)) for first in firsts]
        return r.choice([ends for ends in spans if taken.isdisjoint(ends)])

    ends = {name: span(days) for name, days in _SPANS.items()}
    campaigns = [f"c{i}" for i in range(CAMPAIGNS)]
    return {
        **{name: first for name, (first, _) in ends.items()},
        **{f"{name}_end": last for name, (_, last) in ends.items()},
        "country": one(COUNTRIES),
        "page": one(PAGES),
        "segment": one(SEGMENTS),
        "status": one((301, 400, 404, 500, 501, 503)),
        "id": one(event_id(r.randrange(rows)) for _ in range(2)),
        "campaign": one(campaigns),
        "other_campaign": one(campaigns),
        "amount": one(range(50_000, 90_000, 1_000)),
        "attempts": one((6, 7, 8)),
    }


def event_id(row: int) -> str:
    """Return the id of an event, as `shop` makes it."""
    return hashlib.md5(str(row).encode()).hexdigest()[:16]
