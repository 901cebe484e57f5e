"""`hedgerow demo`, on small tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hedgerow.demo import story

OTHERS = {story.AS_IT_CAME, story.BY_ZORDER, story.BY_CLUSTERING}


@pytest.mark.long  # `make wheel` runs the demo too
@pytest.mark.parametrize("is_delta", [True, False])
def test_the_shop(
    run: Callable[..., Any],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_delta: bool,
) -> None:
    request.getfixturevalue("delta" if is_delta else "spark")
    monkeypatch.setattr(story, "has_delta", lambda spark: is_delta)
    page = tmp_path / "page.html"
    answer = run("demo", "--rows", 60_020, "--html", page, "--json")
    assert answer.exit_code == 0, answer.output
    told = json.loads(answer.stdout)
    assert told["rows"] == 60_000  # as many for each of 30 days
    assert set(told["files"]) == {*(OTHERS if is_delta else {story.AS_IT_CAME}), story.BY_HEDGEROW}
    kinds = {kind["kind"]: kind for kind in told["kinds"]}
    assert len(kinds) == 9 and sum(kind["queries"] for kind in kinds.values()) == 12
    for kind in ("an id", "column against column", "the newest 100 errors", "OR across columns"):
        files = {name: run["files"] for name, run in kinds[kind]["runs"].items()}
        assert files[story.BY_HEDGEROW] < min(files[name] for name in files if name != story.BY_HEDGEROW), kind
    assert "<h2>The tree</h2>" in page.read_text()


def _users_table(folder: Path, is_partitioned: bool) -> tuple[Path, Path]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = {"day": [i % 4 for i in range(4000)], "price": [i * 31 % 997 for i in range(4000)], "id": range(4000)}
    place = folder / "sales"
    if is_partitioned:
        pq.write_to_dataset(pa.table(rows), place, ["day"])
    else:
        place.mkdir()
        pq.write_table(pa.table(rows), place / "0.parquet")
    queries = folder / "queries.sql"
    asked = [f"SELECT sum(id) FROM sales WHERE price BETWEEN {p} AND {p + 50} AND day = 1" for p in range(0, 900, 100)]
    queries.write_text(";\n".join([*asked, "SELECT max(id) FROM sales WHERE day > 2"]))
    return place, queries


@pytest.mark.long
@pytest.mark.parametrize("is_partitioned", [True, False])
@pytest.mark.usefixtures("delta")
def test_a_users_table(run: Callable[..., Any], tmp_path: Path, is_partitioned: bool) -> None:
    place, queries = _users_table(tmp_path, is_partitioned)
    before = {file: file.read_bytes() for file in place.rglob("*") if file.is_file()}
    options = "--your-table", place, "--queries", queries, "--rows", 1_000, "--html", tmp_path / "page.html"
    answer = run("demo", *options, "--json")
    assert answer.exit_code == 0, answer.output
    told = json.loads(answer.stdout)
    assert 800 < told["rows"] < 1_200
    assert [kind["queries"] for kind in told["kinds"]] == [1, 1]
    assert told["kinds"][0]["kind"].startswith("sales: ")
    assert {file: file.read_bytes() for file in place.rglob("*") if file.is_file()} == before


@pytest.mark.usefixtures("spark")
def test_what_a_users_table_needs(run: Callable[..., Any], tmp_path: Path) -> None:
    place, queries = _users_table(tmp_path, is_partitioned=False)

    def error(*words: object) -> str:
        answer = run("demo", *words)
        assert answer.exit_code == 1
        return str(answer.stderr).splitlines()[-1]

    def error_of(sql: str) -> str:
        queries.write_text(sql)
        return error("--your-table", place, "--queries", queries)

    assert error("--your-table", place) == "error: --your-table and --queries are given together"
    assert error("--your-table", place, "--queries", tmp_path / "none.sql").endswith("No such file or directory")
    nowhere = error("--your-table", tmp_path / "none", "--queries", queries)
    assert nowhere.startswith(f"error: the table {tmp_path}/none cannot be read: ")
    joined = error_of("SELECT * FROM sales JOIN shops ON sales.day = shops.day")
    assert joined.endswith("the queries have to read one table, by a name without dots, and not sales, shops")
    unread = error_of("SELEC * FORM sales")
    assert unread.startswith(f"error: {queries} has no query that reads a table: query q1 is left out: ")
    unknown = error_of("SELECT * FROM sales WHERE colour = 'red'")
    assert unknown.startswith("error: no query of the workload fits the tables sales: ") and "colour" in unknown
    nothing = "error: no query has a condition on a column that Delta can cluster by"
    assert error_of("SELECT count(*) FROM sales") == nothing
    assert "UNRESOLVED_ROUTINE" in error_of("SELECT no_such_function(id) FROM sales WHERE day = 1")
