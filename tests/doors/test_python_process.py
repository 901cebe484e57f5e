"""The Python process that the extension starts: it begins when it is needed, begins again, and ends with its JVM."""

from __future__ import annotations

import pytest

from tests.support.other_process import run
from tests.support.things_table import FILES

START = """
import json, os, signal, sys, time
from pyspark.sql import SparkSession
from hedgerow.spark.start.jar import conf_lines
from tests.support.processes import helpers

path = sys.argv[1]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
own = {"spark.hedgerow.startTimeout": "120s", "spark.hedgerow.timeout": "20s", "spark.driver.host": "127.0.0.1"}
for key, value in {**conf_lines(), **own}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
java = int(spark._jvm.java.lang.ProcessHandle.current().pid())

def rows(spark=spark):
    return spark.sql(f"SELECT count(*) FROM parquet.`{path}` WHERE number < 20").head()[0]
"""

SESSION = """

def told():
    [row] = spark.sql("SELECT files_opened, reason FROM hedgerow_last_query()").collect()
    return row

assert helpers(java) == []  # nothing is started before it is needed
assert rows() == 20 and told() == (1, None), told()
[helper] = helpers(java)

os.kill(helper, signal.SIGKILL)
time.sleep(0.5)
assert rows() == 20
after = told()
deadline = time.time() + 120
while told().files_opened != 1 and time.time() < deadline:
    time.sleep(1)
    assert rows() == 20
[another] = helpers(java)
again = told().files_opened
os.kill(java, signal.SIGKILL)
for _ in range(100):
    if not os.path.exists(f"/proc/{another}") or open(f"/proc/{another}/stat").read().split()[2] == "Z":
        break
    time.sleep(0.1)
else:
    another = None
print(json.dumps([after.files_opened, after.reason, again, another is not None]))
os._exit(0)
"""


@pytest.mark.spark
@pytest.mark.long
def test_its_python_process(things: str) -> None:
    opened, reason, again, has_ended = run(START + SESSION, things)
    assert opened == FILES and "has ended" in reason
    assert again == 1
    assert has_ended


DETACHED = """
import hedgerow as hr

def opened(spark):
    assert rows(spark) == 20
    return spark.sql("SELECT files_opened FROM hedgerow_last_query()").collect()

hr.detach(spark)
detached = [opened(spark), helpers(java)]
other = spark.newSession()
others = opened(other)[0][0]
hr.detach(other)
hr.attach(spark)
again = opened(spark)[0][0]
last = [scan.files_opened for scan in hr.last_query(spark)]
print(json.dumps([detached, others, opened(other), again, last]))
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.long
def test_detach_lasts(things: str) -> None:
    """Before a session's first query too, when the extension has not attached it yet."""
    detached, others, others_detached, again, last = run(START + DETACHED, things)
    assert detached == [[], []]  # no scan was looked at, and no process was started
    assert others == 1 and others_detached == []
    assert again == 1 and last == [1]


TOLD = """
def told():
    return [row.files_opened for row in spark.sql("SELECT * FROM hedgerow_last_query()").collect()]

assert rows(spark) == 20
once, twice = told(), told()
spark.sql("SELECT * FROM hedgerow_last_query()").show()
shown = told()
spark.sql("SELECT 1").collect()
print(json.dumps([once, twice, shown, told()]))
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.long
def test_to_ask_about_the_last_query_is_not_the_last_query(things: str) -> None:
    assert run(START + TOLD, things) == [[1], [1], [1], []]
