"""The commands say what the API says, on the right stream, and one line where the user can do something about it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import hedgerow
from hedgerow.core.errors import HedgerowError
from hedgerow.core.learning.seconds import Estimate
from hedgerow.core.predicates.sql_text import in_backticks
from hedgerow.spark.start.java import NO_JAVA, find_java
from hedgerow.tables.managed import ManagedTable
from tests.support.other_process import environment
from tests.support.things_table import by_id, write_things

Run = Callable[..., Any]
ROWS, BLOCK_ROWS = 4_000, 200


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, queries that fit it, and one that does not."""
    place = tmp_path_factory.mktemp("shop")
    orders = {
        "id": range(ROWS),
        "days": [i // 40 for i in range(ROWS)],
        "price": [i * 7919 % 1000 / 10 for i in range(ROWS)],
        "city": [None if i % 7 == 0 else ("Bern", "Graz [at]", "Ulm")[i % 3] for i in range(ROWS)],
    }
    (place / "orders").mkdir()
    pq.write_table(pa.table(orders), place / "orders" / "part-0.parquet")
    asked = [f"SELECT id FROM orders WHERE days BETWEEN {d} AND {d + 9} AND price > {d}" for d in range(0, 90, 10)]
    (place / "queries.sql").write_text(";\n".join(asked))
    (place / "misfit.sql").write_text(";\n".join([*asked, "SELECT id FROM orders WHERE colour = 'red'"]))
    (place / "text.txt").write_text("no layout, and no SELECT either")
    return place


@pytest.fixture(scope="module")
def queries(shop: Path) -> hedgerow.Workload:
    return hedgerow.Workload.from_file(shop / "queries.sql")


@pytest.fixture(scope="module")
def learned(spark: SparkSession, shop: Path, queries: hedgerow.Workload) -> hedgerow.Learned:
    found = hedgerow.learn(
        spark,
        str(shop / "orders"),
        queries,
        options=hedgerow.LearnOptions(block_rows=BLOCK_ROWS, sample_rows=2_000, seed=3),
    )
    found.save(shop / "layout.json")
    return found


@pytest.fixture(scope="module")
def table(spark: SparkSession, shop: Path, learned: hedgerow.Learned) -> ManagedTable:
    return hedgerow.apply(spark, str(shop / "orders"), learned, str(shop / "sorted"))


def answer(result: Any) -> Any:
    """The JSON on standard output, which holds nothing else."""
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def facts(result: Any) -> dict[str, str]:
    """The lines for people: a name, two spaces or more, and what is known."""
    assert result.exit_code == 0, result.output
    lines = [line.split("  ", 1) for line in result.stdout.splitlines()]
    return {name: rest.strip() for name, rest in lines}


@pytest.mark.long
def test_learn(run: Run, shop: Path, learned: hedgerow.Learned, tmp_path: Path) -> None:
    out = tmp_path / "layout.json"
    words = ["--block-rows", BLOCK_ROWS, "--sample-rows", 2_000, "--seed", 3]
    result = run("learn", shop / "orders", shop / "queries.sql", "--out", out, *words, "--json")
    found = answer(result)
    assert result.stderr.startswith("warning: little is to be gained: ") and result.stderr.count("\n") == 1
    assert hedgerow.Learned.load(out).to_json() == learned.to_json()
    assert found["layout"] == str(out)
    assert (found["blocks"], found["table"], found["kind"]) == (learned.blocks, "orders", learned.layout.kind)
    assert {key: found[key] for key in learned.provenance} == learned.provenance
    assert (found["sort_by"], found["seconds"], found["seconds_now"]) == (None, None, None)  # a toy


def test_learn_warns_in_one_line_and_passes_parameters(run: Run, shop: Path, tmp_path: Path) -> None:
    out = tmp_path / "layout.json"
    words = ["--learner", "zorder", "--param", "columns=price", "--param", "most=1", "--block-rows", BLOCK_ROWS]
    result = run("learn", shop / "orders", shop / "misfit.sql", "--out", out, *words)
    assert facts(result)["kind"] == "curve, by zorder"
    assert hedgerow.Learned.load(out).provenance["parameters"] == {"columns": ["price"], "most": 1}
    left_out, small = result.stderr.splitlines()
    assert left_out.startswith("warning: 1 of 10 queries is left out: ")
    assert "colour" in left_out and small.startswith("warning: little is to be gained: orders has less than 16 MB")


@pytest.mark.long
def test_score(
    run: Run,
    spark: SparkSession,
    shop: Path,
    queries: hedgerow.Workload,
    learned: hedgerow.Learned,
    table: ManagedTable,
) -> None:
    def as_plain(score: hedgerow.Score) -> Any:
        return json.loads(score.to_json())

    words = ["score", shop / "orders", shop / "queries.sql", "--layout", shop / "layout.json", "--exact"]
    what_if = hedgerow.score(spark, str(shop / "orders"), queries, learned, exact=True)
    assert answer(run(*words, "--json")) == as_plain(what_if)
    shown = facts(run(*words))
    assert shown["rows read"] == f"{100 * what_if.rows_read:.2f} %"
    assert shown["rows needed"] == f"{100 * what_if.selectivity:.2f} %"

    words = ["score", table.path, shop / "queries.sql"]
    assert answer(run(*words, "--json")) == as_plain(table.score(queries))
    assert "rows needed" not in facts(run(*words))


@pytest.mark.long
def test_apply_and_describe(run: Run, spark: SparkSession, shop: Path, learned: hedgerow.Learned) -> None:
    to = shop / "again"
    words = ["apply", shop / "orders", shop / "layout.json", "--to", to, "--max-block-rows", 300]
    found = answer(run(*words, "--sort-by", "price", "--sort-by", "id", "--compression", "gzip", "--json"))
    written = hedgerow.table(spark, str(to))
    assert found == written.describe() == answer(run("describe", to, "--json"))
    assert found["rows"] == ROWS
    assert all(".gz." in name for name in written.known.names)
    assert written.known.rows.max() <= 300
    assert written.newest.entry.writing.sort_by == ("price", "id")
    shown = facts(run("describe", to))
    assert shown["rows"] == "4,000"
    assert shown["files"].startswith(f"{found['files']}, ")

    refused = run(*words)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert run(*words, "--overwrite").exit_code == 0
    assert hedgerow.table(spark, str(to)).newest.entry.writing.sort_by == ()  # a block has fewer rows than a page


@pytest.mark.long
def test_rows_are_sorted_by_the_learned_column(
    run: Run, spark: SparkSession, shop: Path, learned: hedgerow.Learned
) -> None:
    to, saved = shop / "by_price", shop / "by_price.json"
    for column, kept in (("price", ("price",)), ("gone", ())):
        replace(learned, sort_by=column).save(saved)
        assert run("apply", shop / "orders", saved, "--to", to, "--overwrite").exit_code == 0
        assert hedgerow.table(spark, str(to)).newest.entry.writing.sort_by == kept
        in_order = [
            prices == sorted(prices)
            for prices in (pq.read_table(file)["price"].to_pylist() for file in sorted(to.glob("*.parquet")))
        ]
        assert all(in_order) is bool(kept)


def test_a_delta_table_in_place(
    run: Run, delta: SparkSession, shop: Path, learned: hedgerow.Learned, tmp_path: Path
) -> None:
    place = tmp_path / "orders"
    assert learned.layout.blocks > 1
    delta.read.parquet(str(shop / "orders")).repartition(4).write.format("delta").save(str(place))
    result = run("apply", place, shop / "layout.json", "--retries", 1, "--json")
    found = answer(result)
    assert found == hedgerow.table(delta, str(place)).describe()
    assert (found["rows"], found["version"], found["unknown_files"]) == (ROWS, 1, [])
    assert facts(run("verify", place))["rows"] == "4,000, all compared"
    sql = f"SELECT count(*) AS n FROM delta.`{place}` WHERE days < 5"
    assert answer(run("query", sql, "--json")) == {"n": 200}
    nowhere = run("apply", shop / "orders", shop / "layout.json")
    assert (nowhere.exit_code, nowhere.stdout) == (1, "") and len(nowhere.stderr.splitlines()) == 1
    # Delta itself would name only those files that its own statistics leave.
    (told,) = answer(run("query", sql, "--explain", "--json"))["tables"]
    assert len(told["opened"]) < told["files"] == found["files"]
    assert (
        run("rollback", place).stderr
        == "note: the files that the last rewrite replaced are back; those of the rewrite stay until VACUUM\n"
    )
    assert "no file of it is left, so it was rolled back" in facts(run("describe", place))["layout"]
    assert "holds no rows in files as Hedgerow wrote them" in facts(run("verify", place))["table"]


def test_a_delta_table_is_named_as_one(
    run: Run, delta: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As Parquet files it would be read with all rows that were ever deleted."""
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        delta.range(5).write.format("delta").mode("overwrite").save(str(tmp_path / "numbers"))
    told = f"error: {{}} is a Delta table: name it as delta.`{tmp_path}/numbers`\n"
    for kind, place in (("parquet", "numbers"), ("PARQUET", f"{tmp_path}/numbers")):
        for way in ((), ("--explain",), ("--compare",)):
            result = run("query", f"SELECT count(*) FROM {kind}.`{place}`", *way)
            assert (result.exit_code, result.stdout, result.stderr) == (1, "", told.format(place))
    for place in ("numbers", f"{tmp_path}/numbers"):
        assert answer(run("query", f"SELECT count(*) AS n FROM delta.`{place}`;", "--json")) == {"n": 5}
    assert answer(run("query", "SELECT count(*) AS n FROM them", "--table", "them=numbers", "--json")) == {"n": 5}


@pytest.mark.usefixtures("attached")  # the doctor attaches the command's session, which the tests share
def test_the_doctor_of_no_table(run: Run, tmp_path: Path) -> None:
    found = run("doctor", tmp_path / "nowhere")
    assert found.exit_code == 1 and "look" in found.stdout and "nowhere" in found.stdout


def test_describe_names_what_others_wrote(run: Run, spark: SparkSession, shop: Path, table: ManagedTable) -> None:
    place = shop / "mixed"
    hedgerow.apply(spark, str(shop / "orders"), table.layout, str(place))
    pq.write_table(pq.read_table(shop / "orders"), place / "mine.parquet")
    assert facts(run("describe", place))["not ours"] == "1 files, always opened: mine.parquet..."
    result = run("verify", place)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"error: {place} is not as it was written: the file mine.parquet is not Hedgerow's\n"


def test_verify(run: Run, table: ManagedTable) -> None:
    assert answer(run("verify", table.path, "--json")) == table.verify()
    assert facts(run("verify", table.path))["rows"] == "4,000, all compared"


def test_each_query_of_a_file(run: Run, shop: Path, table: ManagedTable) -> None:
    named = ("--table", f"orders={table.path}")
    result = run("query", shop / "queries.sql", *named)
    assert (result.exit_code, result.stderr) == (1, "error: a file of queries can only be compared: add --compare\n")
    listed = answer(run("query", shop / "misfit.sql", *named, "--compare", "--json"))["queries"]
    *fitting, misfit = listed
    assert all(found["skipping"]["files"] < found["plain"]["files"] for found in fitting) and len(fitting) == 9
    assert "colour" in misfit["error"]
    printed = run("query", shop / "queries.sql", *named, "--compare").stdout
    assert "all of them" in printed and printed.count("SELECT id FROM orders") == 9


def test_query(run: Run, spark: SparkSession, table: ManagedTable) -> None:
    sql = f"SELECT id, city, price FROM parquet.`{table.path}` WHERE days = 3 ORDER BY id"
    expected = [row.asDict() for row in spark.sql(sql).collect()]
    result = run("query", sql, "--limit", 0, "--json")
    assert [json.loads(line) for line in result.stdout.splitlines()] == expected
    assert result.stderr == ""

    result = run("query", sql, "--limit", 3, "--json")
    assert [json.loads(line) for line in result.stdout.splitlines()] == expected[:3]
    assert result.stderr == "note: there are more than 3 rows; --limit 0 shows all\n"
    assert run("query", sql, "--limit", len(expected)).stderr == ""

    lines = run("query", sql, "--limit", 2).stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["id", "city", "price"],
        ["─" * len(lines[1])],
        ["120", "Bern", str(expected[0]["price"])],
        ["121", "Graz", "[at]", str(expected[1]["price"])],
    ]


def test_query_shows_any_value(run: Run) -> None:
    sql = "SELECT '[red]' AS a, NULL AS a, 1.10 AS n, X'41' AS b, TIMESTAMP_NTZ '2024-05-01 10:00:00' AS t"
    lines = run("query", sql).stdout.splitlines()
    assert lines[-1].split("  ")[0] == "[red]"
    assert lines[-1].split() == ["[red]", "NULL", "1.10", "A", "2024-05-01", "10:00:00"]
    assert (
        run("query", sql, "--json").stdout
        == '{"a":"[red]","a":null,"n":1.10,"b":"QQ==","t":"2024-05-01T10:00:00.000"}\n'
    )


def test_a_statement_that_answers_nothing(run: Run, spark: SparkSession) -> None:
    result = run("query", "CREATE TEMPORARY VIEW of_the_cli AS SELECT 1 AS x")
    assert (result.exit_code, result.output) == (0, "")
    assert spark.catalog.dropTempView("of_the_cli")


def test_explain(run: Run, spark: SparkSession, shop: Path, table: ManagedTable) -> None:
    sql = f"SELECT count(*) FROM parquet.`{table.path}` WHERE days = 3"
    (found,) = answer(run("query", sql, "--explain", "--json"))["tables"]
    assert found["opened"] == table.files("days = 3")
    assert found["files"] == len(table.known) > len(found["opened"])
    assert run("query", sql, "--explain").stdout.split()[-3:] == [
        table.path,
        str(len(found["opened"])),
        str(found["files"]),
    ]
    none = f"SELECT count(*) FROM parquet.`{table.path}` WHERE days = 3000"
    assert answer(run("query", none, "--explain", "--json"))["tables"][0]["opened"] == []


def test_show_prices_queries(run: Run, shop: Path, table: ManagedTable, tmp_path: Path) -> None:
    words = ["show", table.path, "--workload", shop / "queries.sql", "--html", tmp_path / "page.html", "--json"]
    (kind,) = answer(run(*words, "--price-per-tb", "5000000"))["kinds"]
    size, price = kind["bytes"], kind["price"]
    assert size["before"] > size["now"] > 0 and size["known"] == "estimated"
    assert price == {**size, **{when: pytest.approx(5e-3 * size[when]) for when in ("before", "now")}}
    (kind,) = answer(run(*words, "--price", "9"))["kinds"]
    assert kind["price"]["now"] is kind["seconds"]["now"] is None  # the table is too small to say


def test_a_folder_whose_name_is_a_url(run: Run, spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "a%20b `w`=1, +#")
    table = by_id(spark, write_things(spark, str(tmp_path / "things")), place, ["id < 10"])
    sql = f"SELECT count(*) AS n FROM parquet.{in_backticks(place)} WHERE id < 10"
    (found,) = answer(run("query", sql, "--explain", "--json"))["tables"]
    assert found == {"path": place, "opened": table.files("id < 10"), "files": len(table.known)}
    assert answer(run("query", sql, "--json")) == {"n": 10}
    assert answer(run("describe", place, "--json"))["path"] == place
    assert "all compared" in facts(run("verify", place))["rows"]


def test_why_files_are_skipped(run: Run, table: ManagedTable) -> None:
    found = answer(run("explain", table.path, "days = 3", "--json"))
    assert found["opened"] == len(table.files("days = 3"))
    assert found["files"] == len(table.known)
    (skipped,) = (group for group in found["groups"] if not group["opened"])
    assert skipped["because"].startswith("no row satisfies days = 3")
    assert "1 of " in run("explain", table.path, "days = 3").stdout


def test_a_query_is_compared_with_itself(run: Run, spark: SparkSession, table: ManagedTable) -> None:
    sql = f"SELECT * FROM parquet.`{table.path}` WHERE days = 3"
    found = answer(run("query", sql, "--compare", "--json"))
    assert found["plain"]["files"] == len(table.known) > found["skipping"]["files"] == len(table.files("days = 3"))
    assert found["plain"]["rows"] == found["skipping"]["rows"] == spark.sql(sql).count() > 0
    sizes = table.known.sizes_by_name
    assert found["plain"]["bytes"] == sum(sizes.values())
    assert found["skipping"]["bytes"] == sum(sizes[name] for name in table.files("days = 3"))
    refused(run("query", "CREATE TEMPORARY VIEW never AS SELECT 1 AS x", "--compare"), "only a query")
    refused(run("query", f"SELECT rand() AS r FROM parquet.`{table.path}`", "--compare"), "differ")


def test_advise(run: Run, shop: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    words = ["advise", shop / "orders", shop / "queries.sql", "--learner", "range", "--block-rows", BLOCK_ROWS]
    found = answer(run(*words, "--columns", "days,price", "--json"))
    names = ["range", "sorted by days, price", "Z-order of days, price"]
    assert sorted(proposal["name"] for proposal in found["proposals"]) == sorted(names)
    assert found["best"] is None
    shown = run(*words, "--save", plan)
    assert shown.exit_code == 1  # there is no plan for a table so small
    assert "leave it as it is" in shown.output
    assert not plan.exists()


def test_apply_learns_where_there_is_no_layout(run: Run, shop: Path, tmp_path: Path) -> None:
    to = tmp_path / "by_range"
    words = ["apply", shop / "orders", "--workload", shop / "queries.sql", "--learner", "range", "--to", to]
    assert answer(run(*words, "--block-bytes", "5KB", "--json"))["learner"] == "range"
    (first,) = answer(run("history", to, "--json"))["history"]
    assert first["operation"] == "apply"
    assert "apply" in run("history", to).stdout
    refused(run("rollback", to), "keeps no replaced files")


def test_a_layout_that_gains_little_is_written_on_demand_only(
    run: Run, shop: Path, learned: hedgerow.Learned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    little = replace(learned, usual=Estimate(1.0, 0.9))
    monkeypatch.setattr(hedgerow, "learn", lambda *_: little, raising=False)
    words = ["apply", shop / "orders", "--workload", shop / "queries.sql", "--to", tmp_path / "sorted"]
    refused(run(*words), "--anyway writes it all the same")
    assert not (tmp_path / "sorted").exists()
    assert run(*words, "--anyway").exit_code == 0


def test_a_full_disk_is_one_line(run: Run, shop: Path) -> None:
    result = run("learn", shop / "orders", shop / "queries.sql", "--out", "/dev/full")
    assert result.exit_code == 1 and result.stderr.splitlines()[-1].endswith("No space left on device")


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing(
    shop: Path, learned: hedgerow.Learned, tmp_path: Path, number: signal.Signals
) -> None:
    words = ["apply", str(shop / "orders"), str(shop / "layout.json"), "--to", str(tmp_path / "x")]
    command = [sys.executable, "-m", "hedgerow", *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment(), start_new_session=True)
    while not any(tmp_path.glob(".x.hedgerow-partial-*")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    told = process.communicate(timeout=120)[1]
    assert process.returncode == 130 and "Traceback" not in told
    assert told.splitlines()[-1] == "error: interrupted"
    assert list(tmp_path.iterdir()) == []


def test_debug_shows_where_an_error_came_from(run: Run, shop: Path) -> None:
    result = run("--debug", "describe", shop / "none")
    assert isinstance(result.exception, HedgerowError)


BAD = {
    "advise {shop}/orders {shop}/queries.sql --learner magic": "no learner 'magic'",
    "advise {shop}/orders {shop}/queries.sql --columns colour --learner range": "colour",
    "advise {shop}/orders {shop}/queries.sql --budget 0": "budget",
    "explain {shop}/orders days=3": "no table that Hedgerow wrote",
    "apply {shop}/orders --to {tmp}/x": "were logged",
    "learn {shop}/none {shop}/queries.sql --out {tmp}/l.json": "cannot be read",
    "learn {shop}/orders {shop}/none.sql --out {tmp}/l.json": "cannot be read",
    "learn {shop}/orders {shop}/text.txt --out {tmp}/l.json": "SQL",
    "learn {shop}/orders {shop}/queries.sql --out {tmp}/none/l.json": "no such directory",
    "learn {shop}/orders {shop}/queries.sql --out {tmp}": "cannot be written",
    "learn {shop}/orders {shop}/queries.sql --out {tmp}/l.json --learner magic": "no learner 'magic'",
    "learn {shop}/orders {shop}/queries.sql --out {tmp}/l.json --learner random --param most=3": "takes no parameters",
    "learn {shop}/orders {shop}/queries.sql --out {tmp}/l.json --param most": "KEY=VALUE",
    "learn {shop}/orders {shop}/queries.sql --out {tmp}/l.json --block-rows 0": "at least 1",
    "learn {shop} {shop}/queries.sql --out {tmp}/l.json --both-directions --table orders": "--both-directions for several",
    "learn {shop}/orders {shop}/queries.sql --out {tmp}/l.json --block-bytes many": "64MB",
    "score {shop}/orders {shop}/queries.sql": "no table that Hedgerow wrote",
    "score {shop}/orders {shop}/queries.sql --layout {shop}/none.json": "cannot be read",
    "score {shop}/orders {shop}/queries.sql --layout {shop}/text.txt": "no layout",
    "apply {shop}/none {shop}/layout.json --to {tmp}/x": "cannot be read",
    "apply {shop}/orders {shop}/layout.json --to {tmp}/x --sort-by colour": "colour",
    "apply {shop}/orders {shop}/layout.json --to {shop}/orders": "not empty",
    "apply {shop}/orders {shop}/layout.json --to /proc/x": "could not be written",  # who may not write there
    "show {shop}/orders --html {tmp}/page.html": "no table that Hedgerow wrote",
    "verify {shop}/orders": "no table that Hedgerow wrote",
    "describe {shop}/none": "nothing at that path",
    "--conf spark.ui.enabled describe {shop}/none": "--conf takes KEY=VALUE",
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_one_line(run: Run, shop: Path, learned: hedgerow.Learned, tmp_path: Path, words: str) -> None:
    refused(run(*(word.format(shop=shop, tmp=tmp_path) for word in words.split())), BAD[words])


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELECT * FROM (", "SYNTAX"),
        ("SELECT 1 / (id - id) FROM range(3)", "DIVIDE_BY_ZERO"),
    ],
)
def test_what_spark_refuses_is_one_line(run: Run, sql: str, told: str) -> None:
    refused(run("query", sql), told)


def test_explain_runs_no_statement(run: Run, spark: SparkSession) -> None:
    refused(run("query", "CREATE TEMPORARY VIEW never AS SELECT 1 AS x", "--explain"), "only a query")
    assert not spark.catalog.tableExists("never")


def refused(result: Any, told: str) -> None:
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert told in line


@pytest.mark.long
def test_from_end_to_end(shop: Path, tmp_path: Path) -> None:
    """As a user starts it: its own session, data on one stream and the rest on the other."""
    if find_java() is None:
        pytest.skip(NO_JAVA)

    def hedgerow_(*words: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "hedgerow", "--master", "local[2]", "--memory", "1g", *map(str, words)]
        return subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=False)

    words = ("learn", shop / "orders", shop / "queries.sql", "--out", "layout.json", "--block-rows", BLOCK_ROWS)
    made = hedgerow_(*words, "--json")
    assert (made.returncode, made.stderr.count("\n")) == (0, 1)
    assert made.stderr.startswith("warning: little is to be gained: ")
    assert json.loads(made.stdout)["blocks"] > 1
    made = hedgerow_("apply", shop / "orders", "layout.json", "--to", "out/orders")
    assert (made.returncode, made.stderr) == (0, "")
    made = hedgerow_("query", "SELECT count(*) AS n FROM parquet.`out/orders` WHERE days < 10", "--json")
    assert (made.returncode, made.stderr, made.stdout) == (0, "", '{"n":400}\n')
    for failed in (
        hedgerow_("query", "SELECT 1 / (id - id) FROM range(3)"),
        hedgerow_("--memory", "4x", "describe", "out/orders"),
        hedgerow_("--master", "nowhere", "describe", "out/orders"),
    ):
        assert (failed.returncode, failed.stdout) == (1, "")
        assert len(failed.stderr.splitlines()) == 1
        assert failed.stderr.startswith("error: ")
