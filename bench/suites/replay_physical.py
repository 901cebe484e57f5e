"""The thesis' experiment on written tables (6.1): days of inserts and queries, in seconds and in bytes.

A day's rows are inserted into a Delta table of requests, then the day's queries run; half-way the queries change. As in
the thesis a query is a scan with a filter, and reads whole rows. Each query that runs counts `TIMES` times, in seconds
and in the log, so that scans dominate without rewrites (in the thesis inserts are 0.6 %). There are two histories:

    standing     two of three queries come every day, as from dashboards, until the queries change; in the thesis
                 most columns are always compared with the same values (Fig. 2.5)
    changing     all queries have new literals, also those that are counted but not run

Side by side:

    nothing      rows stay as they come
    by hand      half-way, Delta's OPTIMIZE ZORDER by the columns that most queries filter on
    autopilot    queries are logged; at each quarter of a day, first after its insert, `hedgerow.autopilot` runs
    known        after each day's insert and at noon the table is rewritten for the queries so far; the time of
                 rewrites is not counted
    best         before each day's queries the table is rewritten for just these; that time is not counted

For the autopilot a day is a half-life, and seven days are a period.

Each step runs in all ways, one after the other, so that a noisy minute of the machine hits all of them. The bytes read
come from the log, which all ways write. A day's regret is how much longer its queries take than in another way: than in
`best`, which knows the coming queries, and than in `known`, which knows as much as the autopilot.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.options import Options
from bench.record import line, progress
from hedgerow.demo.race import rotated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hedgerow.pipeline.learn_options import LearnOptions
    from hedgerow.pipeline.log import Log
    from hedgerow.sql.workload import Workload

ROWS = {"quick": 20_000, "full": 1_500_000}  # a day
DAYS = {"quick": 4, "full": 8}
QUERIES = {"quick": 4, "full": 30}  # a day
TIMES = 12  # each query that runs counts as so many
LEAST_BYTES = {"quick": 0, "full": 64 << 20}
STANDING = {"standing": 2 / 3, "changing": 0.0}  # of a day's queries
_DAY = 86_400.0
_WORDS = ("timeout", "refused", "throttled", "retry", "corrupt", "missing", "denied", "expired")
_ZORDER = "user, latency"
COLUMNS = (
    "TIMESTAMP '2026-01-01 00:00:00' + make_interval(0, 0, 0, {day}, 0, 0, pmod(xxhash64(id, 1), 86400)) AS at",
    "CAST(pmod(xxhash64(id, 2), 1000) * pmod(xxhash64(id, 3), 1000) / 10 AS INT) AS user",
    "concat('C', pmod(xxhash64(id, 4), 40)) AS country",
    "CAST(element_at(array(200, 200, 200, 200, 301, 404, 500, 503), CAST(1 + pmod(xxhash64(id, 5), 8) AS INT)) AS INT)"
    " AS status",
    "CAST(pow(pmod(xxhash64(id, 6), 1000) / 100D, 4) AS INT) AS latency",
    "concat('/api/v', pmod(xxhash64(id, 7), 3), '/r', pmod(xxhash64(id, 8), 300), '/', hex(xxhash64(id, 9))) AS url",
    "map('courier', concat('K', pmod(xxhash64(id, 10), 25)), 'version', concat('v', pmod(xxhash64(id, 11), 60)))"
    " AS props",
    "concat(hex(xxhash64(id, 12)), ' ', element_at(array({words}), CAST(1 + pmod(xxhash64(id, 13), 8) AS INT)), ' ',"
    " hex(xxhash64(id, 14))) AS message",
)
_WHOLE_ROWS = "count(*), bit_xor(xxhash64(id, at, user, country, status, latency, url, map_entries(props), message))"
# Before and after the change; the last of each stays the same.
_EARLY = (
    "props['courier'] = 'K{k}' AND status >= 500",
    "message LIKE '%{word}%' AND country = 'C{c}'",
    "user BETWEEN {user} AND {user} + 300",
)
_LATE = (
    "props['version'] = 'v{v}' AND latency > 100",
    "url LIKE '/api/v{n}/r{r}/%'",
    "user BETWEEN {user} AND {user} + 300",
)


@dataclass
class Way:
    """One way to keep the table, with the seconds and bytes so far."""

    name: str
    path: str
    spark: SparkSession
    log: Log | None = None
    scans: float = 0.0
    inserts: float = 0.0
    looks: float = 0.0  # of the autopilot, to decide
    moves: float = 0.0
    moved: float = 0.0
    actions: list[str] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)  # measured seconds of each rewrite over estimated ones
    by_day: list[float] = field(default_factory=list)

    @property
    def total(self) -> float:
        return self.scans + self.inserts + self.looks + self.moves


def run(options: Options) -> Iterator[dict[str, Any]]:
    for history in STANDING:
        yield from _replay(history, options)


def _replay(history: str, options: Options) -> Iterator[dict[str, Any]]:
    import hedgerow as hr

    form, r = options.form, random.Random(options.seed)
    spark = hr.session("4g", "local[2]", spark_sql_shuffle_partitions="8")
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-replay-"))
    try:
        ways = [Way(name, str(folder / name.replace(" ", "-")), spark.newSession()) for name in WAYS]
        _, by_hand, autopilot, by_known, best = ways
        for way in (autopilot, by_known, best):
            hr.attach(way.spark)
        _warm_up(spark, str(folder / "warm-up"))
        begun = time.time()
        for day in range(DAYS[form]):
            progress(f"replay ({history}): day {day + 1} of {DAYS[form]}")
            for way in ways:
                way.inserts += _insert(way, day, ROWS[form])
                way.log = way.log or hr.log(way.spark, way.path, every=1e6)
            shapes = _LATE if 2 * day >= DAYS[form] else _EARLY
            standing = round(STANDING[history] * QUERIES[form])
            questions = [
                [_condition(random.Random(f"{options.seed} {n}"), shapes[n % len(shapes)])] * TIMES
                for n in range(standing)
            ]
            for shape in r.choices(shapes, k=QUERIES[form] - standing):
                questions.append([_condition(r, shape) for _ in range(TIMES)])
            r.shuffle(questions)
            to_come = hr.Workload.from_sql(_question(c) for conditions in questions for c in conditions)
            _lay_out(best, to_come, hr.LearnOptions(recurrence=1))
            for way in ways:
                way.by_day.append(0.0)
            for number, part in enumerate(_parts(questions)):
                if day or number:  # before that, the log is empty
                    half_life = (
                        (time.time() - begun) / _DAY / (day + number / 4)
                    )  # mean seconds of a day so far, in days
                    _pilot(autopilot, form, half_life)
                    if number % 2 == 0:
                        _lay_out_known(by_known, half_life)
                _ask(ways, part)
            if 2 * (day + 1) == DAYS[form]:
                _by_hand(by_hand)
        for way in ways:
            yield _line(way, ways, history, options)
    finally:
        spark.stop()
        shutil.rmtree(folder)


WAYS = {  # by way, the learner or command that rewrites the table
    "nothing": "none",
    "by hand": "delta zorder",
    "autopilot": "qdtree",
    "known": "qdtree",
    "best": "qdtree",
}


def _warm_up(spark: SparkSession, path: str) -> None:
    way = Way("warm-up", path, spark, by_day=[0.0])
    _insert(way, 0, 10_000)
    _ask([way], [[_condition(random.Random(n), shape)] for n in range(5) for shape in (*_EARLY, *_LATE)])


def _insert(way: Way, day: int, rows: int) -> float:
    words = ", ".join(f"'{word}'" for word in _WORDS)
    columns = [column.format(day=day, words=words) for column in COLUMNS]
    frame = way.spark.range(day * rows, (day + 1) * rows, 1, 2).selectExpr("id", *columns)
    begun = time.perf_counter()
    frame.sortWithinPartitions("at").write.format("delta").mode("append").save(way.path)
    return time.perf_counter() - begun


def _parts(questions: list[list[str]]) -> list[list[list[str]]]:
    """Split the queries of a day into quarters."""
    ends = [len(questions) * quarter // 4 for quarter in range(5)]
    return [questions[begin:end] for begin, end in pairwise(ends)]


def _condition(r: random.Random, shape: str) -> str:
    literals = {
        **{"k": r.randrange(25), "word": r.choice(_WORDS), "c": r.randrange(40), "v": r.randrange(60)},
        **{"n": r.randrange(3), "r": r.randrange(300), "user": int(r.random() ** 2 * 90_000)},
    }
    return shape.format(**literals)


def _question(condition: str) -> str:
    return f"SELECT {_WHOLE_ROWS} FROM requests WHERE {condition}"


def _ask(ways: list[Way], questions: list[list[str]]) -> None:
    """Run the first query of each list; a log gets entries for the others, as if each had run like the first."""
    for way in ways:
        way.spark.read.format("delta").load(way.path).createOrReplaceTempView("requests")
        way.spark.sql("SELECT count(id) FROM requests").collect()  # the list of files is read anew
    for turn, sql in enumerate(_question(conditions[0]) for conditions in questions):
        answers = []
        for way in rotated(ways, turn):
            begun = time.perf_counter()
            answers.append(way.spark.sql(sql).collect())
            seconds = time.perf_counter() - begun
            way.scans += TIMES * seconds
            way.by_day[-1] += TIMES * seconds
        assert answers[1:] == answers[:-1], f"the ways differ in {sql}"
    for way in ways:
        if way.log is not None:
            _log_others(way, way.log, questions)


def _log_others(way: Way, running: Log, questions: list[list[str]]) -> None:
    """Enter into the log the queries that are counted but not run.

    Each gets the entry of the query that ran for it, at a random time between the first and the last of these.
    """
    from hedgerow.tables.query_log import QueryLog

    running.flush()
    log = QueryLog.of(way.spark, way.path)
    entries = sorted(log.frame().toArrow().to_pylist(), key=lambda entry: entry["at"])
    ran = [entry for entry in entries if " " not in entry["query"] and entry["conditions"] != ["TRUE"]][
        -len(questions) :
    ]
    r, begun, ended = random.Random(len(entries)), ran[0]["at"], ran[-1]["at"]
    log.append(
        [
            {
                **entry,
                "query": f"{entry['query']} {n}",
                "conditions": [condition],
                "at": begun + r.random() * (ended - begun),
            }
            for entry, conditions in zip(ran, questions, strict=True)
            for n, condition in enumerate(conditions[1:], 2)
        ]
    )


def _lay_out_known(way: Way, half_life: float) -> None:
    from hedgerow.pilot.recent_queries import RecentLog
    from hedgerow.pipeline.inputs import MOST_QUERIES
    from hedgerow.pipeline.learn_options import QUICK
    from hedgerow.tables.query_log import QueryLog

    recent = RecentLog.read(QueryLog.of(way.spark, way.path), half_life)
    _lay_out(way, recent.workload("requests", MOST_QUERIES), QUICK)


def _lay_out(way: Way, workload: Workload, options: LearnOptions) -> None:
    import hedgerow as hr

    hr.apply(way.spark, way.path, hr.learn(way.spark, way.path, workload, options=options, table="requests"))


def _by_hand(way: Way) -> None:
    begun = time.perf_counter()
    before = _size(way.path)
    way.spark.sql(f"OPTIMIZE delta.`{way.path}` ZORDER BY ({_ZORDER})").collect()
    way.moves += time.perf_counter() - begun
    way.moved += before
    way.actions.append("zorder")


def _pilot(way: Way, form: str, half_life: float) -> None:
    import hedgerow as hr

    begun = time.perf_counter()
    least = LEAST_BYTES[form]
    settings = hr.AutopilotSettings(
        half_life=half_life, period=7 * half_life, least_bytes=least, least_new=least, cooldown=0.0, rewrites=4.0
    )
    decision = hr.autopilot(way.spark, way.path, settings=settings)
    seconds = time.perf_counter() - begun
    way.looks += decision.search_seconds if decision.done else seconds
    way.moves += seconds - decision.search_seconds if decision.done else 0.0
    progress(f"replay: {decision}")
    way.actions.append(decision.action)
    if decision.outcome is not None:
        way.moved += decision.outcome.bytes
        way.errors.append(round(decision.outcome.seconds / max(0.1, decision.cost), 2))


def _regrets(way: Way, baseline: Way) -> list[float]:
    return [round(mine / theirs - 1, 2) for mine, theirs in zip(way.by_day, baseline.by_day, strict=True)]


def _size(path: str) -> int:
    return sum(file.stat().st_size for file in Path(path).rglob("*.parquet") if "_hedgerow" not in file.parts)


def _line(way: Way, ways: list[Way], history: str, options: Options) -> dict[str, Any]:
    _, _, _, by_known, best = ways
    assert way.log is not None
    way.log.stop()
    from pyspark.sql import functions as f

    from hedgerow.tables.query_log import QueryLog

    read, files = QueryLog.of(way.spark, way.path).frame().agg(f.sum("bytes"), f.sum("files")).first() or (0, 0)
    inserted = way.spark.read.format("delta").load(way.path).count()

    return line(
        suite="replay-physical",
        learner=WAYS[way.name],
        params={"form": options.form, "history": history, "way": way.name},
        rows=inserted,
        queries=DAYS[options.form] * QUERIES[options.form] * TIMES,
        ratio=round(way.total / ways[0].total, 3),
        details={
            "seconds": {
                **{"scans": round(way.scans, 1), "inserts": round(way.inserts, 1)},
                **{"looking": round(way.looks, 1), "rewriting": round(way.moves, 1), "total": round(way.total, 1)},
            },
            "bytes_read": int(read),
            "files_read": int(files),
            "bytes_moved_per_byte_inserted": round(way.moved / _size(ways[0].path), 2),
            "scan_seconds_by_day": [round(seconds, 1) for seconds in way.by_day],
            "regret_by_day": _regrets(way, best),
            "regret_of_the_known_by_day": _regrets(way, by_known),
            "actions": way.actions,
            "real_over_estimated": way.errors,
        },
        seed=options.seed,
    )
