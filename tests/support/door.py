"""Starts the programs that come with Spark, as users start them: from the command line, with a spark-defaults.conf."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from hedgerow.cli.commands import app
from hedgerow.spark.storage.event_log import past_queries
from tests.support.other_process import environment
from tests.support.things_table import FILES

EXTENSIONS = "spark.sql.extensions"
QUERY = "SELECT 'row', id, price, kind, word FROM {table} WHERE number < 20"
REPORT = "SELECT 'report', table, files, files_opened, reason FROM hedgerow_last_query()"
OFF = "SET hedgerow.enabled=false"
# A join with a side that only the run knows: its keys are in two files, the first and the last.
JOIN = "SELECT 'joined', t.id, s.tag FROM {table} t JOIN VALUES (5, 'low'), (1995, 'high') AS s(number, tag) ON t.number = s.number"
JOIN_REPORT = "SELECT 'read', files_opened, files_read, keys FROM hedgerow_last_query()"
ANY_SIZE = "SET hedgerow.runtimeBytes=0"  # of the files among which keys choose
# The lines of a session: the same query with skipping and without, and a join.
LINES = QUERY, REPORT, ANY_SIZE, JOIN, JOIN_REPORT, OFF, QUERY
SESSION = "".join(f"{line};\n" for line in LINES)
THRIFT = "--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2", "spark-internal"
CONNECT = "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"
_OWN = {
    "spark.master": "local[1]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.rolling.enabled": "false",
    "spark.eventLog.compress": "false",  # so that it can be read while the program runs
    "spark.hedgerow.startTimeout": "300s",  # other programs may keep this machine busy
    "spark.hedgerow.timeout": "120s",
}


@dataclass(frozen=True)
class Door:
    """A folder with a spark-defaults.conf, from which Spark's programs are started."""

    folder: Path

    @staticmethod
    def made(folder: Path, **own: str) -> Door:
        """With the lines that `hedgerow doctor --conf` prints, and settings of one's own: `spark_a_b` is spark.a.b."""
        printed = CliRunner().invoke(app, ["doctor", "--conf"])
        assert printed.exit_code == 0, printed.output
        lines = dict(line.split(None, 1) for line in printed.stdout.splitlines())
        more = {key if "." in key else key.replace("_", "."): value for key, value in own.items()}
        extensions = ",".join(filter(None, (more.pop(EXTENSIONS, ""), lines[EXTENSIONS])))
        log = {"spark.eventLog.dir": f"{folder}/events"}
        (folder / "events").mkdir()
        settings = {**_OWN, **log, **lines, **more, EXTENSIONS: extensions}
        (folder / "conf").mkdir()
        conf = "".join(f"{key} {value}\n" for key, value in settings.items())
        (folder / "conf" / "spark-defaults.conf").write_text(conf)
        return Door(folder)

    @property
    def environment(self) -> dict[str, str]:
        return {**environment(), "SPARK_CONF_DIR": str(self.folder / "conf"), "TERM": "dumb"}

    def command(self, name: str, *words: str) -> list[str]:
        return [f"{self.environment['SPARK_HOME']}/bin/{name}", *words]

    def run(self, name: str, *words: str, typed: str | None = None) -> str:
        """Run a program of Spark's to its end; return what it prints."""
        ran = subprocess.run(
            self.command(name, *words),
            env=self.environment,
            cwd=self.folder,
            input=typed,
            capture_output=True,
            text=True,
            timeout=400,
        )
        assert ran.returncode == 0, f"{ran.stdout[-2000:]}\n{ran.stderr[-4000:]}"
        return ran.stdout

    @contextmanager
    def started(self, name: str, *words: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
        """A server of Spark's that listens; it is ended with the body."""
        printed = self.folder / f"{port}.log"
        with printed.open("wb") as out:
            server = subprocess.Popen(
                self.command(name, *words), env=self.environment, cwd=self.folder, stdout=out, stderr=out
            )
        try:
            deadline = time.time() + 300
            while not is_open(port):
                assert server.poll() is None and time.time() < deadline, printed.read_text()[-4000:]
                time.sleep(0.1)
            yield server
        finally:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(60)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()

    def files_opened(self, table: str) -> list[int]:
        """The number of files that each scan of a table has opened, as Spark's event log counts them."""
        queries = sorted(past_queries(self.folder / "events"), key=lambda query: query.at)
        return [scan.counts["files"] for query in queries for scan in query.scans if scan.place.endswith(table)]

    def check(self, printed: str, table: str, numbers: Collection[int] = range(20), opened: int = 1) -> None:
        """Check the output of `SESSION`, and the files that it opened."""
        # A prompt may stand before.
        lines = [line.split("\t") for line in re.findall(r"(?:row|report|joined|read)\t.*\S", printed)]
        rows = [tuple(rest) for word, *rest in lines if word == "row"]
        half = len(numbers)
        assert len(rows) == 2 * half, printed
        assert sorted(rows[:half]) == sorted(rows[half:])
        assert sorted(int(number) for number, *_ in rows[:half]) == sorted(numbers)
        [report] = [rest for word, *rest in lines if word == "report"]
        assert report[:3] == ["things", str(FILES), str(opened)] and report[3].lower() in ("null", "none"), report
        assert sorted(rest for word, *rest in lines if word == "joined") == [["1995", "high"], ["5", "low"]]
        assert [rest for word, *rest in lines if word == "read"] == [[str(FILES), "2", "2"]]
        assert self.files_opened(table) == [opened, 2, FILES]


def thrift_address(port: int) -> list[str]:
    settings = {"hive.server2.thrift.port": str(port), "hive.server2.thrift.bind.host": "127.0.0.1"}
    return [word for key, value in settings.items() for word in ("--hiveconf", f"{key}={value}")]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def classes(folder: Path, source: Path, command: Sequence[str]) -> Path:
    """Compile a Java program against Spark's jars; return the folder of its classes."""
    jars = Path(environment()["SPARK_HOME"], "jars")
    words = [*command, "-encoding", "UTF-8", "-d", str(folder), "-cp", os.pathsep.join(map(str, jars.glob("*.jar")))]
    done = subprocess.run([*words, str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder
