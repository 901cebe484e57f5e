"""Programs that nobody attached skip files too: `spark-sql`, `spark-shell` and `spark-submit`, with the extension."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from hedgerow.spark.start.delta_jars import delta_settings
from scripts.build_jar import compiler
from tests.support.door import JOIN, JOIN_REPORT, LINES, QUERY, REPORT, SESSION, Door, classes, free_port
from tests.support.things_table import FILES


def test_spark_sql(things: str, tmp_path: Path) -> None:
    door, table = Door.made(tmp_path), f"parquet.`{things}`"
    (tmp_path / "queries.sql").write_text(SESSION.format(table=table))
    door.check(door.run("spark-sql", "-f", "queries.sql"), things)


@pytest.mark.long
def test_spark_sql_with_delta(delta_things: str, tmp_path: Path) -> None:
    door, table = Door.made(tmp_path, **delta_settings({}, fetch=False)), f"delta.`{delta_things}`"
    # Delta's own bounds skip no file for this list.
    queries = SESSION.format(table=table).replace("number < 20", "number IN (5, 1995)")
    (tmp_path / "queries.sql").write_text(queries)
    door.check(door.run("spark-sql", "-f", "queries.sql"), delta_things, numbers=(5, 1995), opened=2)


@pytest.mark.long
def test_spark_sql_with_each_mode_of_delta(delta_things: str, tmp_path: Path) -> None:
    """If Delta reads the table through DataSource V2, all files are opened, and the reason is reported."""
    door, query = Door.made(tmp_path, **delta_settings({}, fetch=False)), QUERY.format(table=f"delta.`{delta_things}`")
    modes = ("AUTO", "NONE", "STRICT")
    lines = [f"SET spark.databricks.delta.v2.enableMode={mode};\n{query};\n{REPORT};\n" for mode in modes]
    (tmp_path / "queries.sql").write_text("".join(lines))
    printed = [line.split("\t") for line in door.run("spark-sql", "-f", "queries.sql").splitlines()]
    rows = [line for line in printed if line[0] == "row"]
    assert len(rows) == 60 and sorted(rows[:20]) == sorted(rows[20:40]) == sorted(rows[40:])
    reports = [line[1:] for line in printed if line[0] == "report"]
    assert reports[:2] == [["things", str(FILES), "1", "NULL"]] * 2
    assert len(reports) == 3 and "DataSource V2" in reports[2][3], reports


SCALA = """
def show(query: String) = spark.sql(query).collect.foreach(row => println(row.mkString("\\t")))
show("{query}")
show("{report}")
spark.conf.set("hedgerow.runtimeBytes", 0)
show("{join}")
show("{join_report}")
spark.conf.set("hedgerow.enabled", false)
println(spark.table("{table}").where($"number" < 20).select(lit("row"), $"id", $"price", $"kind", $"word")
  .collect.map(_.mkString("\\t")).mkString("\\n"))
:quit
"""


@pytest.mark.long
def test_spark_shell(things: str, tmp_path: Path) -> None:
    door, table = Door.made(tmp_path), f"parquet.`{things}`"
    join = JOIN.format(table=table)
    snippet = SCALA.format(
        query=QUERY.format(table=table), report=REPORT, join=join, join_report=JOIN_REPORT, table=table
    )
    door.check(door.run("spark-shell", typed=snippet), things)


PYTHON = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for query in sys.argv[1:]:
    for row in spark.sql(query).collect():
        print(*row, sep="\\t")
spark.stop()
"""


def test_spark_submit_of_python(things: str, tmp_path: Path) -> None:
    door, lines = Door.made(tmp_path), [line.format(table=f"parquet.`{things}`") for line in LINES]
    (tmp_path / "program.py").write_text(PYTHON)
    door.check(door.run("spark-submit", "program.py", *lines), things)


JAVA = """
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

public class Program {
    public static void main(String[] queries) {
        SparkSession spark = SparkSession.builder().getOrCreate();
        for (String query : queries) {
            for (Row row : spark.sql(query).collectAsList()) {
                System.out.println(row.mkString("\\t"));
            }
        }
        spark.stop();
    }
}
"""


@pytest.mark.long
def test_spark_submit_of_java(things: str, tmp_path: Path) -> None:
    door, lines = Door.made(tmp_path), [line.format(table=f"parquet.`{things}`") for line in LINES]
    (tmp_path / "Program.java").write_text(JAVA)
    compiled = classes(tmp_path / "classes", tmp_path / "Program.java", compiler())
    with zipfile.ZipFile(tmp_path / "program.jar", "w") as jar:
        jar.write(compiled / "Program.class", "Program.class")
    door.check(door.run("spark-submit", "--class", "Program", "program.jar", *lines), things)


@pytest.mark.long
def test_a_standalone_cluster(things: str, tmp_path: Path) -> None:
    """A master and two workers, that know nothing of Hedgerow; the driver is outside."""
    port = free_port()
    door = Door.made(tmp_path, spark_master=f"spark://127.0.0.1:{port}", spark_executor_memory="512m")
    (tmp_path / "queries.sql").write_text(SESSION.format(table=f"parquet.`{things}`"))
    master = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    worker = [
        "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0", "-c", "1", "-m", "600m",
    ]  # fmt: skip
    with door.started("spark-class", *master, port=port):
        one, two = free_port(), free_port()
        with (
            door.started("spark-class", *worker, "--port", str(one), f"spark://127.0.0.1:{port}", port=one),
            door.started("spark-class", *worker, "--port", str(two), f"spark://127.0.0.1:{port}", port=two),
        ):
            door.check(door.run("spark-sql", "-f", "queries.sql"), things)
