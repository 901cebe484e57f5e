"""The Python process that the extension starts: it begins when it is needed, begins again, and ends with its JVM."""

from __future__ import annotations

import pytest

from tests.support.other_process import run
from tests.support.things_table import FILES

SESSION = """
import json, os, signal, sys, time
from pyspark.sql import SparkSession
from hedgerow.spark.start.jar import conf_lines
from tests.support.processes import helpers

path, files = sys.argv[1], int(sys.argv[2])
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
own = {"spark.hedgerow.startTimeout": "120s", "spark.hedgerow.timeout": "20s", "spark.driver.host": "127.0.0.1"}
for key, value in {**conf_lines(), **own}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
java = int(spark._jvm.java.lang.ProcessHandle.current().pid())

def rows():
    return spark.sql(f"SELECT count(*) FROM parquet.`{path}` WHERE number < 20").head()[0]

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
    opened, reason, again, has_ended = run(SESSION, things, str(FILES))
    assert opened == FILES and "has ended" in reason
    assert again == 1
    assert has_ended
