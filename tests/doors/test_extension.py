"""Sessions that nobody attached skip files too, with `spark.sql.extensions=hedgerow.HedgerowExtensions`."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hedgerow.spark.start.jar import conf_lines
from tests.support.other_process import environment, run
from tests.support.things_table import FILES, by_id, write_things

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def things(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    source = write_things(spark, str(tmp_path_factory.mktemp("plain") / "things.parquet"))
    return by_id(spark, source, str(tmp_path_factory.mktemp("ours") / "things"), ["number < 100"]).path


SQL = """
SELECT 'asked', count(*), sum(number) FROM parquet.`{path}` WHERE number < 20;
SELECT 'told', * EXCEPT (seconds, bytes, bytes_opened) FROM hedgerow_last_query();
SET hedgerow.enabled=false;
SELECT 'asked', count(*), sum(number) FROM parquet.`{path}` WHERE number < 20;
"""


def test_spark_sql(things: str, tmp_path: Path) -> None:
    script = tmp_path / "queries.sql"
    script.write_text(SQL.format(path=things))
    own = {"spark.hedgerow.startTimeout": "120s", "spark.hedgerow.timeout": "60s", "spark.ui.enabled": "false"}
    settings = [word for key, value in {**conf_lines(), **own}.items() for word in ("--conf", f"{key}={value}")]
    command = [f"{environment()['SPARK_HOME']}/bin/spark-sql", "--master", "local[1]", *settings, "-f", str(script)]
    ran = subprocess.run(command, env=environment(), cwd=tmp_path, capture_output=True, text=True, timeout=400)
    assert ran.returncode == 0, ran.stderr[-3000:]
    lines = [line.split("\t") for line in ran.stdout.splitlines()]
    asked = [rest for word, *rest in lines if word == "asked"]
    assert asked == [["20", "190"], ["20", "190"]]
    [[table, files, opened, reason]] = [rest for word, *rest in lines if word == "told"]
    assert (table, files, opened, reason) == ("things", str(FILES), "1", "NULL")


SESSION = """
import json, os, signal, socket, sys, time
from pyspark.sql import SparkSession
from hedgerow.spark.start.jar import conf_lines

path, files = sys.argv[1], int(sys.argv[2])
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
own = {"spark.hedgerow.startTimeout": "120s", "spark.hedgerow.timeout": "20s", "spark.driver.host": "127.0.0.1"}
for key, value in {**conf_lines(), **own}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
handle = spark._jvm.java.lang.ProcessHandle

def rows():
    return spark.sql(f"SELECT count(*) FROM parquet.`{path}` WHERE number < 20").head()[0]

def told():
    [row] = spark.sql("SELECT files_opened, reason FROM hedgerow_last_query()").collect()
    return row

def helpers():
    return [int(p.pid()) for p in handle.current().children().toArray() if "hedgerow" in str(p.info().commandLine())]

def ports(pid):
    inodes = set()
    for link in os.listdir(f"/proc/{pid}/fd"):
        try:
            inodes.add(os.readlink(f"/proc/{pid}/fd/{link}"))
        except OSError:
            pass
    found = []
    for table in ("tcp", "tcp6"):
        for line in open(f"/proc/{pid}/net/{table}").readlines()[1:]:
            _, local, _, state, *_rest = line.split()
            if state == "0A" and f"socket:[{line.split()[9]}]" in inodes:
                address, _, port = local.rpartition(":")
                found.append((address, int(port, 16)))
    return found

assert helpers() == []  # nothing is started before it is needed
assert rows() == 20 and told() == (1, None), told()
[helper] = helpers()

listening = [at for pid in (helper, int(handle.current().pid())) for at in ports(pid)]
outside = [a for a, _ in listening if not a.endswith("0100007F") and a != "00000000000000000000000001000000"]
answered = []
for _, port in listening:
    with socket.create_connection(("127.0.0.1", port), timeout=3) as connection:
        try:
            connection.sendall(b"r\\nu\\njava\\nrj\\ne\\n")  # Py4J: look up a package
            if connection.recv(100).startswith(b"!y"):
                answered.append(port)
        except OSError:
            pass

os.kill(helper, signal.SIGKILL)
time.sleep(0.5)
assert rows() == 20
after = told()
deadline = time.time() + 120
while told().files_opened != 1 and time.time() < deadline:
    time.sleep(1)
    assert rows() == 20
[another] = helpers()
again = told().files_opened
java = int(handle.current().pid())
os.kill(java, signal.SIGKILL)
for _ in range(100):
    if not os.path.exists(f"/proc/{another}") or open(f"/proc/{another}/stat").read().split()[2] == "Z":
        break
    time.sleep(0.1)
else:
    another = None
print(json.dumps([len(listening), outside, answered, after.files_opened, after.reason, again, another is not None]))
os._exit(0)
"""


@pytest.mark.spark
@pytest.mark.long
def test_its_python_process(things: str) -> None:
    listening, outside, answered, opened, reason, again, has_ended = run(SESSION, things, str(FILES))
    assert listening > 1 and outside == [] and answered == []
    assert opened == FILES and "has ended" in reason
    assert again == 1
    assert has_ended
