"""The answering process is killed at random moments, while clients of a Thrift Server run queries.

No query may fail, return other rows, or end much later than it does without Hedgerow. HEDGEROW_KILLS sets how often the
process is killed.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from tests.support.door import THRIFT, Door, free_port, thrift_address
from tests.support.other_process import environment
from tests.support.processes import helpers

KILLS, CLIENTS = int(os.environ.get("HEDGEROW_KILLS", "10")), 8
LATE = 2.0  # seconds
SUMS = "count(*), sum(CAST(xxhash64(a.id, a.price, a.kind, a.word, a.ts, a.day) AS DECIMAL(38)))"
WHERE = (
    "FROM {t} a WHERE number < 20",
    "FROM {t} a WHERE number BETWEEN 700 AND 710 OR id = 3",
    "FROM {t} a WHERE word LIKE '%9' AND late",
    "FROM {t} a WHERE price > 95 AND id < 400",
    "FROM {t} a JOIN {t} b ON a.id = b.id + 1 WHERE b.number < 20",
    "FROM {t} a JOIN {t} b ON a.id = b.id JOIN {t} c ON b.id = c.id WHERE c.number > 1900 AND a.kind = 'n'",
    "FROM {t} a WHERE a.id IN (SELECT id FROM {t} WHERE number > 1990)",
)
DECIDED = "SELECT count(*), count_if(files_opened < files), sum(seconds) FROM hedgerow_last_query()"


@dataclass
class Seen:
    """The seconds of the queries that the clients ran, with skipping and without, and the decisions about files."""

    routed: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    deciding: list[float] = field(default_factory=list)
    pruned: int = 0
    unpruned: int = 0


@pytest.mark.long
def test_killed_at_random_moments(things: str, tmp_path: Path) -> None:
    port, seed = free_port(), random.randrange(1000)
    door = Door.made(
        tmp_path,
        spark_master="local[2]",
        spark_driver_memory="2g",
        spark_eventLog_enabled="false",
        spark_hedgerow_timeout="1s",
        spark_hedgerow_startTimeout="300s",  # of the first start, before the clients begin
        spark_hedgerow_longestPause="1s",
    )
    queries = [f"SELECT {SUMS} {where.format(t=f'parquet.`{things}`')}" for where in WHERE]
    seen, over = Seen(), Event()
    with door.started("spark-submit", *THRIFT, *thrift_address(port), port=port) as server, jdbc(port) as connect:
        expected = answers(connect(), queries)
        assert ask(connect(), queries[0]) == expected[0]
        with ThreadPoolExecutor(CLIENTS) as pool:
            clients = [
                pool.submit(client, connect(), queries, expected, random.Random(f"{seed} {n}"), seen, over)
                for n in range(CLIENTS)
            ]
            try:
                kills = kill(server.pid, random.Random(seed), clients, seen)
            finally:
                over.set()
            for done in clients:
                done.result()
    print(
        f"seed {seed}: {kills} kills, {len(seen.routed)} queries, {len(seen.wrong)} wrong; {seen.pruned} scans skipped "
        f"files, {seen.unpruned} did not; slowest {max(seen.routed):.2f} s, plain {max(seen.plain):.2f} s, "
        f"slowest decision {max(seen.deciding):.2f} s"
    )
    assert kills == KILLS and not seen.wrong, seen.wrong
    assert seen.pruned and seen.unpruned
    assert max(seen.deciding) < LATE
    assert max(seen.routed) < max(seen.plain) + LATE


def client(
    statement: Any, queries: list[str], expected: list[str], rng: random.Random, seen: Seen, over: Event
) -> None:
    """Run random queries, every third one without skipping, until all is over; an error ends the test."""
    while not over.is_set():
        number, is_plain = rng.randrange(len(queries)), rng.random() < 1 / 3
        statement.execute(f"SET hedgerow.enabled={str(not is_plain).lower()}")
        start = time.monotonic()
        found = ask(statement, queries[number])
        (seen.plain if is_plain else seen.routed).append(time.monotonic() - start)
        if found != expected[number]:
            seen.wrong.append(f"{queries[number]}: {found}, not {expected[number]}")
        if not is_plain:
            scans, pruned, seconds = ask(statement, DECIDED).split()
            seen.pruned += int(pruned)
            seen.unpruned += int(scans) - int(pruned)
            seen.deciding.append(float(seconds))


def kill(server: int, rng: random.Random, clients: list[Any], seen: Seen) -> int:
    """Kill the server's Python again and again: while it starts, or once it has answered; some hang for a while before."""
    kills, deadline = 0, time.monotonic() + 60 * (KILLS + 5)
    while kills < KILLS and time.monotonic() < deadline and not any(one.done() for one in clients):
        before, must_answer = seen.pruned, rng.random() < 2 / 3
        while must_answer and seen.pruned == before and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(rng.choice((0.01, 0.5, 3)) * rng.random())
        for helper in helpers(server):
            if kills % 5 == 4:
                os.kill(helper, signal.SIGSTOP)
                time.sleep(5 * rng.random())
            os.kill(helper, signal.SIGKILL)
            kills += 1
    return kills


@contextmanager
def jdbc(port: int) -> Iterator[Any]:
    """A function that opens another connection to a Thrift Server, each with a session of its own."""
    java = launch_gateway(
        classpath=f"{environment()['SPARK_HOME']}/jars/*",
        javaopts=["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
        java_path=f"{environment()['JAVA_HOME']}/bin/java",
        die_on_exit=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=java, auto_convert=True))
    manager = gateway.jvm.java.sql.DriverManager
    try:
        yield lambda: manager.getConnection(f"jdbc:hive2://127.0.0.1:{port}", "someone", "").createStatement()
    finally:
        gateway.shutdown()


def answers(statement: Any, queries: list[str]) -> list[str]:
    """What the queries return without skipping."""
    statement.execute("SET hedgerow.enabled=false")
    return [ask(statement, query) for query in queries]


def ask(statement: Any, query: str) -> str:
    """The columns of the only row."""
    rows = statement.executeQuery(query)
    assert rows.next()
    return " ".join(str(rows.getString(i + 1)) for i in range(rows.getMetaData().getColumnCount()))
