"""Servers whose sessions nobody attached skip files too: the Thrift Server, and Spark Connect."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hedgerow.spark.start.delta_jars import delta_settings
from tests.support.door import ANY_SIZE, CONNECT, JOIN, QUERY, SESSION, THRIFT, Door, free_port, thrift_address
from tests.support.other_process import run
from tests.support.processes import LOOPBACK, helpers, listening, py4j_answer, variables
from tests.support.things_table import FILES

pytestmark = pytest.mark.long  # a server takes half a minute to start on a busy machine


@dataclass(frozen=True)
class Server:
    """A running server."""

    door: Door
    port: int
    pid: int


@pytest.fixture(scope="module")
def thrift(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    port, door = free_port(), Door.made(tmp_path_factory.mktemp("thrift"))
    with door.started("spark-submit", *THRIFT, *thrift_address(port), port=port) as server:
        yield Server(door, port, server.pid)


def test_thrift_server_with_beeline(thrift: Server, things: str) -> None:
    (thrift.door.folder / "queries.sql").write_text(SESSION.format(table=f"parquet.`{things}`"))
    quiet = ["--silent=true", "--showHeader=false", "--outputformat=tsv2"]
    url = f"jdbc:hive2://127.0.0.1:{thrift.port}"
    printed = thrift.door.run("beeline", "-u", url, "-n", "someone", *quiet, "-f", "queries.sql")
    thrift.door.check(printed, things)


def test_nothing_answers_without_the_secret(thrift: Server) -> None:
    """After the test above, so that the process runs that answers."""
    [helper] = helpers(thrift.pid)
    ports = [*listening(thrift.pid), *listening(helper)]
    assert {address for address, _ in ports} <= LOOPBACK, ports
    given = variables(helper)
    gateway, secret = int(given["PYSPARK_GATEWAY_PORT"]), given["PYSPARK_GATEWAY_SECRET"]
    assert gateway in [port for _, port in listening(thrift.pid)]
    assert py4j_answer(gateway, secret).startswith("!y")
    for wrong in (None, "", secret[:-1], "x" * len(secret)):
        assert not any(py4j_answer(port, wrong).startswith("!y") for _, port in ports), wrong
    assert secret not in subprocess.run(["ps", "-ef"], capture_output=True, text=True).stdout


CLIENT = """
import json, sys
import hedgerow as hr
from pyspark.sql import SparkSession

port, format, path, query, any_size, join = sys.argv[1:]
spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()


def ask(frame):  # the rows, and the files that were opened for them
    rows = sorted(map(list, frame.collect()), key=str)
    return [json.loads(json.dumps(rows, default=str)), [[s.files_opened, s.reason] for s in hr.last_query(spark)]]


spark.read.format(format).load(path).createOrReplaceTempView("things")
found = {"unattached": ask(spark.sql(query))}
hr.attach(spark)
[printed] = spark.sql("SELECT 'told', table, files, files_opened, reason FROM hedgerow_last_query()").collect()
found |= {"printed": list(printed), "sql": ask(spark.sql(query)), "route": ask(hr.route(spark, query))}
spark.sql(any_size)
found["joined"] = [ask(spark.sql(join))[0], [[s.files_opened, s.files_read, s.keys] for s in hr.last_query(spark)]]
spark.sql("RESET hedgerow.runtimeBytes")
"""

READ = """
hard = "word LIKE '%9' AND (number < 20 OR number = 25)"  # no condition that Hedgerow itself reads over Connect
table = hr.table(spark, path)
found |= {
    "hard": ask(table.read(where=hard)),
    "hard, routed": ask(hr.route(spark, f"SELECT a.* FROM things a JOIN (SELECT id FROM things WHERE {hard}) b ON a.id = b.id")),
    "files": [len(table.files(where=hard)), len(table.files(where="number < 20")), len(table.files())],
}
spark.sql("SET hedgerow.enabled=false")
found["hard, off"] = ask(table.read(where=hard))[0]
spark.sql("RESET hedgerow.enabled")
"""

OFF = """
spark.sql("SET hedgerow.enabled=false")
found["off"] = ask(spark.sql(query))[0]
spark.sql("RESET hedgerow.enabled")
hr.detach(spark)
found["detached"] = ask(spark.sql(query))[0]
hr.attach(spark)
found["attached again"] = ask(spark.sql(query))
spark.stop()
print(json.dumps(found))
"""


def test_spark_connect(things: str, tmp_path: Path) -> None:
    found = connected(tmp_path, CLIENT + READ + OFF, "parquet", things, QUERY.format(table="things"))
    check(found, rows=20, opened=1)
    assert found["hard"] == [found["hard, off"], [[1, None]]]
    assert len(found["hard"][0]) == 2
    assert found["hard, routed"][0] == found["hard"][0] and [1, None] in found["hard, routed"][1]
    assert found["files"] == [1, 1, FILES]


def test_spark_connect_with_delta(delta_things: str, tmp_path: Path) -> None:
    # Delta's own bounds skip no file for this list.
    query = QUERY.format(table="things").replace("number < 20", "number IN (5, 1995)")
    own = delta_settings({}, fetch=False)
    check(connected(tmp_path, CLIENT + OFF, "delta", delta_things, query, **own), rows=2, opened=2)


def connected(folder: Path, program: str, format: str, path: str, query: str, **own: str) -> dict[str, Any]:
    """Run the program as a client of a Spark Connect server with the extension; return the JSON that it prints."""
    pytest.importorskip("grpc")
    port = free_port()
    door = Door.made(folder, spark_connect_grpc_binding_port=str(port), **own)
    with door.started("spark-submit", *CONNECT, port=port):
        found: dict[str, Any] = run(program, str(port), format, path, query, ANY_SIZE, JOIN.format(table="things"))
    return found


def check(found: dict[str, Any], rows: int, opened: int) -> None:
    assert len(found["off"]) == rows
    assert found["joined"] == [[["joined", 1995, "high"], ["joined", 5, "low"]], [[FILES, 2, 2]]]
    assert found["printed"] == ["told", "things", FILES, opened, None]
    for how in ("unattached", "sql", "route", "attached again"):
        assert found[how] == [found["off"], [[opened, None]]], how
    assert found["detached"] == found["off"]
