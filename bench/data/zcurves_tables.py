"""Tables and queries with the shapes of the Z-order paper's four, which are not public: generated from a seed.

The generator follows all that the paper states: rows and columns, the columns that queries filter on and how many at
once, at most one matching row in a hundred, the order of flights, the column that most queries on tweets begin with.
Values have the skew and the correlations of such data: places lie in cities, fares follow distances, delays have long
tails. The widths of ranges are a guess, made once and not fitted to any learner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

Generator = np.random.Generator
Numbers = npt.NDArray[Any]
MOST = 0.01  # largest share of the rows that a query may match
FILES = 8  # of the source table
SAMPLE_ROWS = 50_000  # on which matching rows are counted


@dataclass(frozen=True, slots=True)
class QueriedColumn:
    """A column, its relative frequency in queries, and bounds for the share of rows in its range; None: one value."""

    column: str
    often: float
    wide: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a table and its queries.

    `counts[i]`: the share of queries on i + 1 columns. `first`: the share of queries that filter on the first of
    `queried`. `reads` is Table 1 of the paper, the millions of rows scanned: default, range, equal, learned.
    """

    make: Callable[[int, Generator], dict[str, Any]]
    paper_mrows: int
    queried: tuple[QueriedColumn, ...]
    counts: tuple[float, ...]
    first: float
    reads: tuple[float, float, float, float]


def table_of(name: str, rows: int, seed: int = 0) -> pa.Table:
    columns = SHAPES[name].make(rows, np.random.default_rng([seed, list(SHAPES).index(name)]))
    return pa.table(columns)


def write(table: pa.Table, folder: Path) -> None:
    """Write the table into a new folder, in `FILES` files."""
    folder.mkdir()
    for i, start in enumerate(range(0, len(table), len(table) // FILES)):
        pq.write_table(table.slice(start, len(table) // FILES), folder / f"part-{i}.parquet", compression="zstd")


def queries(name: str, table: pa.Table, n: int, seed: int) -> list[str]:
    """Return queries with ranges around the values of rows drawn at random, narrowed until few enough rows match."""
    shape = SHAPES[name]
    r = np.random.default_rng([abs(seed), seed < 0, list(SHAPES).index(name)])
    sample = table.take(np.arange(0, table.num_rows, max(1, table.num_rows // SAMPLE_ROWS)))
    values = {a.column: sample[a.column].to_numpy() for a in shape.queried}
    ranked = {column: np.sort(own) for column, own in values.items()}
    texts: list[str] = []
    while len(texts) < n:
        columns = _about(shape, r)
        row = r.integers(len(sample))
        spans = {a.column: np.exp(r.uniform(*np.log(a.wide))) if a.wide else 0.0 for a in columns}
        for _ in range(12):
            bounds = {c: _bounds(ranked[c], values[c][row], span) for c, span in spans.items()}
            matching = np.logical_and.reduce([(values[c] >= a) & (values[c] <= b) for c, (a, b) in bounds.items()])
            if matching.mean() <= MOST:
                conditions = " AND ".join(_condition(c, a, b) for c, (a, b) in bounds.items())
                texts.append(f"SELECT * FROM {name} WHERE {conditions}")
                break
            spans = {c: 0.7 * span for c, span in spans.items()}
    return texts


def _about(shape: Shape, r: Generator) -> list[QueriedColumn]:
    n = 1 + r.choice(len(shape.counts), p=shape.counts)
    begun = [shape.queried[0]] if r.random() < shape.first else []
    others = shape.queried[1:]
    often = np.array([a.often for a in others])
    picked = r.choice(len(others), n - len(begun), replace=False, p=often / often.sum())
    return begun + [others[i] for i in sorted(picked)]


def _bounds(ranked: Numbers, value: Any, span: float) -> tuple[Any, Any]:
    """Return the ends of a range around a value that spans this share of the rows, about half of it on either side."""
    if not span:
        return value, value
    at, half = np.searchsorted(ranked, value), span / 2 * len(ranked)
    low, high = max(0, int(at - half)), min(len(ranked) - 1, int(at + half))
    return min(ranked[low], value), max(ranked[high], value)


def _condition(column: str, low: Any, high: Any) -> str:
    a, b = _literal(low), _literal(high)
    return f"{column} = {a}" if a == b else f"{column} BETWEEN {a} AND {b}"


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return f"'{value}'"
    return f"DATE '{value}'" if isinstance(value, np.datetime64 | date) else f"{value:.10g}"


# --- the tables -----------------------------------------------------------------------------------


def _zipf(r: Generator, n: int, rows: int, power: float = 1.0) -> Numbers:
    """Draw numbers below n, small ones the most frequent."""
    share = 1 / np.arange(1, n + 1) ** power
    return r.choice(n, rows, p=share / share.sum())


def _names(prefix: str, numbers: Numbers) -> pa.Array:
    kinds = pa.array([f"{prefix}{i}" for i in range(int(numbers.max()) + 1)])
    return kinds.take(pa.array(numbers))


def _places(r: Generator, rows: int, cities: int) -> tuple[Numbers, Numbers, Numbers]:
    """Draw city, longitude and latitude, somewhere in the United States."""
    city = _zipf(r, cities, rows)
    lon, lat = r.uniform(-124, -68, cities)[city], r.uniform(26, 48, cities)[city]
    return city, np.round(lon + r.normal(0, 0.15, rows), 4), np.round(lat + r.normal(0, 0.12, rows), 4)


def _days(first: date, days: Numbers) -> Numbers:
    return np.datetime64(first) + days.astype("timedelta64[D]")


def contributions(rows: int, r: Generator) -> dict[str, Any]:
    """Donations to candidates: most in the months before an election, amounts in round numbers."""
    city, lon, lat = _places(r, rows, 600)
    cycle = r.choice(16, rows, p=np.linspace(1, 4, 16) / np.linspace(1, 4, 16).sum())
    day = 730 * cycle + np.minimum(729, 730 * r.beta(3, 1.2, rows)).astype(int)
    amount = np.where(
        r.random(rows) < 0.7,
        r.choice([25, 50, 100, 200, 250, 500, 1000, 2000, 2300, 2500], rows),
        np.exp(r.normal(5, 1.3, rows)).astype(int) + 1,
    )
    recipient = (_zipf(r, 300, rows) + 40 * cycle) % 3000
    return {
        "contribution_date": _days(date(1981, 1, 1), day),
        "amount": amount.astype(np.int64),
        "lon": lon,
        "lat": lat,
        "recipient": recipient.astype(np.int32),
        "party": _names("party ", (recipient * 7919 % 10 // 4.5).astype(int)),
        "seat": _names("seat ", recipient % 8),
        "contributor": r.integers(0, max(2, rows // 4), rows),
        "state": _names("S", city % 50),
    }


def flights(rows: int, r: Generator) -> dict[str, Any]:
    """Flights of 22 years in the order of their days, hub to hub; a late start is a late arrival."""
    day = np.sort(r.integers(0, 8035, rows))
    airports = 300
    x, y = r.uniform(-124, -68, airports), r.uniform(26, 48, airports)
    origin, target = _zipf(r, airports, rows, 0.8), _zipf(r, airports, rows, 0.8)
    target = np.where(target == origin, (target + 1) % airports, target)
    distance = (60 * np.hypot((x[origin] - x[target]) * 0.78, y[origin] - y[target])).astype(np.int32) + 40
    air = (distance / 8 + 18 + r.normal(0, 6, rows)).astype(np.int32)
    start = np.where(r.random(rows) < 0.5, r.normal(510, 110, rows), r.normal(1020, 140, rows)).astype(int) % 1440
    late = np.where(r.random(rows) < 0.6, r.normal(-2, 3, rows), r.exponential(28, rows)).astype(np.int32)
    taxi_out, taxi_in = r.gamma(4, 4, rows).astype(np.int32), r.gamma(3, 2, rows).astype(np.int32)
    carrier = (origin + _zipf(r, 6, rows)) % 20
    dates = _days(date(1987, 1, 1), day)
    return {
        "flight_date": dates,
        "flight_year": (dates.astype("datetime64[Y]").astype(int) + 1970).astype(np.int16),
        "flight_month": (dates.astype("datetime64[M]").astype(int) % 12 + 1).astype(np.int16),
        "weekday": ((day + 4) % 7).astype(np.int16),
        "dep_minute": start.astype(np.int32),
        "dep_delay": late,
        "arr_minute": ((start + air + 30) % 1440).astype(np.int32),
        "arr_delay": (late + r.normal(-3, 9, rows)).astype(np.int32),
        "carrier": _names("C", carrier),
        "flight": (carrier * 500 + r.integers(0, 500, rows)).astype(np.int32),
        "plane": r.integers(0, 5000, rows).astype(np.int32),
        "origin": _names("A", origin),
        "target": _names("A", target),
        "origin_lon": np.round(x[origin], 3),
        "origin_lat": np.round(y[origin], 3),
        "target_lon": np.round(x[target], 3),
        "target_lat": np.round(y[target], 3),
        "distance": distance,
        "air_minutes": air,
        "taxi_out": taxi_out,
        "taxi_in": taxi_in,
    }


def taxi(rows: int, r: Generator) -> dict[str, Any]:
    """Rides in New York: by month, most of them in Manhattan, some to the airports; the fare follows the distance."""
    month = np.sort(r.integers(0, 72, rows))
    minute = month * 43_800 + r.integers(0, 43_800, rows)
    along = r.normal(0, 1, (2, rows))  # Manhattan lies aslant
    lon, lat = -73.975 + 0.012 * along + r.normal(0, 0.006, (2, rows)), 40.755 + 0.019 * along
    lat += r.normal(0, 0.005, (2, rows))
    for end, place, often in ((0, 0, 0.04), (0, 1, 0.03), (1, 0, 0.03), (1, 1, 0.04)):
        there = r.random(rows) < often
        lon[end, there] = (-73.787, -73.872)[place] + r.normal(0, 0.004, there.sum())
        lat[end, there] = (40.644, 40.773)[place] + r.normal(0, 0.003, there.sum())
    lon, lat = np.round(lon, 5), np.round(lat, 5)
    miles = np.round(1.35 * np.hypot(53 * (lon[1] - lon[0]), 69 * (lat[1] - lat[0])) + r.gamma(2, 0.15, rows), 2)
    fare = np.round((2.5 + 2.6 * miles + r.gamma(2, 1, rows)) * 2) * 50
    tip = np.where(r.random(rows) < 0.45, 0, np.round(fare * r.choice([0.1, 0.18, 0.2, 0.25], rows)))
    return {
        "pickup_minute": minute.astype(np.int64),
        "dropoff_minute": (minute + 3 + miles * 4 + r.gamma(2, 2, rows)).astype(np.int64),
        "passengers": (1 + _zipf(r, 6, rows, 2)).astype(np.int32),
        "miles": miles,
        "pickup_lon": lon[0],
        "pickup_lat": lat[0],
        "dropoff_lon": lon[1],
        "dropoff_lat": lat[1],
        "rate": (1 + _zipf(r, 5, rows, 4)).astype(np.int32),
        "payment": _names("paid ", _zipf(r, 4, rows, 1.5)),
        "fare_cents": fare.astype(np.int32),
        "tip_cents": tip.astype(np.int32),
        "total_cents": (fare + tip + 50).astype(np.int32),
    }


def tweets(rows: int, r: Generator) -> dict[str, Any]:
    """Tweets with a place, in no order: a country has its languages, few people have many followers."""
    city, lon, lat = _places(r, rows, 2000)
    second = (86_400 * 60 * r.beta(1.3, 1, rows)).astype(np.int64)
    country = city % 40
    followers = np.exp(r.normal(5.5, 1.8, rows)).astype(np.int32)
    language = np.where(r.random(rows) < 0.6, country % 25, _zipf(r, 25, rows, 1.5))
    length = np.minimum(140, r.gamma(4, 18, rows)).astype(np.int32)
    return {
        "id": r.permutation(rows).astype(np.int64),
        "created": 1_400_000_000 + second,
        "lon": lon,
        "lat": lat,
        "country": _names("country ", country),
        "language": _names("lang ", language),
        "followers": followers,
        "friends": (followers**0.7 * np.exp(r.normal(1, 0.8, rows))).astype(np.int32),
        "posts": np.exp(r.normal(8, 1.6, rows)).astype(np.int32),
        "favourites": np.exp(r.normal(6, 2, rows)).astype(np.int32),
        "app": _names("app ", _zipf(r, 30, rows, 1.4)),
        "sender": r.integers(0, max(2, rows // 8), rows),
        "reply_to": np.where(r.random(rows) < 0.8, 0, r.integers(0, rows, rows)),
        "length": length,
        "hashtags": r.poisson(0.4, rows).astype(np.int16),
        "has_link": r.random(rows) < 0.3,
    }


SHAPES = {
    "contributions": Shape(
        contributions,
        86,
        (
            QueriedColumn("contribution_date", 0, (0.02, 0.15)),
            QueriedColumn("amount", 3, (0.05, 0.4)),
            QueriedColumn("lon", 3, (0.03, 0.3)),
            QueriedColumn("lat", 3, (0.03, 0.3)),
            QueriedColumn("recipient", 2, (0.02, 0.3)),
            QueriedColumn("state", 1, None),
            QueriedColumn("party", 1, None),
        ),
        (0, 0.1, 0.25, 0.35, 0.2, 0.1),
        0.85,
        (77.3, 7.41, 8.32, 5.97),
    ),
    "flights": Shape(
        flights,
        120,
        (
            QueriedColumn("flight_date", 0, (0.01, 0.1)),
            QueriedColumn("dep_minute", 2, (0.03, 0.3)),
            QueriedColumn("arr_delay", 2, (0.03, 0.3)),
            QueriedColumn("distance", 2, (0.03, 0.3)),
            QueriedColumn("origin", 1, None),
        ),
        (0, 0.3, 0.4, 0.3),
        0.9,
        (8.45, 10.4, 7.88, 4.02),
    ),
    "taxi": Shape(
        taxi,
        175,
        (
            QueriedColumn("pickup_minute", 0, (0.01, 0.2)),
            QueriedColumn("pickup_lon", 3, (0.02, 0.2)),
            QueriedColumn("pickup_lat", 3, (0.02, 0.2)),
            QueriedColumn("miles", 2, (0.02, 0.3)),
            QueriedColumn("total_cents", 2, (0.02, 0.3)),
        ),
        (0, 0.35, 0.4, 0.25),
        0.6,
        (77.2, 57.9, 11.8, 6.45),
    ),
    "tweets": Shape(
        tweets,
        15,
        (
            QueriedColumn("created", 0, (0.002, 0.04)),
            QueriedColumn("lon", 1, (0.05, 0.5)),
            QueriedColumn("lat", 1, (0.05, 0.5)),
            QueriedColumn("country", 1, None),
            QueriedColumn("language", 1, None),
            QueriedColumn("followers", 1, (0.05, 0.5)),
            QueriedColumn("friends", 1, (0.05, 0.5)),
            QueriedColumn("posts", 1, (0.05, 0.5)),
            QueriedColumn("favourites", 1, (0.05, 0.5)),
            QueriedColumn("app", 1, None),
        ),
        (0.1, 0.3, 0.35, 0.25),
        0.95,
        (10.7, 0.364, 1.67, 0.349),
    ),
}
