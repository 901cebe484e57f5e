"""What `advise` says of a partitioned table: what Delta skips now, and what a rewrite in place will write."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from hedgerow import advise
from hedgerow.pipeline import estimate_seconds
from hedgerow.pipeline.advice import Advice
from hedgerow.pipeline.apply import apply
from hedgerow.pipeline.inputs import opened_with_queries
from hedgerow.pipeline.learn import learn
from hedgerow.pipeline.learn_options import LearnOptions
from hedgerow.pipeline.reads_now import reads_now
from hedgerow.sql.workload import Workload
from tests.support.answers import answers, ask
from tests.support.events_table import conditions, write_events

ROWS, DAYS = 6_000, 5
SEEN = LearnOptions(block_rows=400, recurrence=1)  # the advice is then about the same literals
ASKED = [
    "day = DATE '2024-01-02'", "day >= DATE '2024-01-04' AND Number < 100", "Number BETWEEN 200 AND 260", "id < 500",
    "id BETWEEN 3000 AND 3400 AND word LIKE 'ab%'", "price > 99.5", "ratio > 120 OR ratio IS NULL", "odd = 33.0",
    "at < TIMESTAMP '2024-01-01 00:20:00'", "word = 'ab7'", "id = -5",
]  # fmt: skip


@pytest.fixture(scope="module")
def events(delta: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    path = write_events(delta, str(tmp_path_factory.mktemp("plain") / "events"), ROWS)
    return delta.read.parquet(path).withColumn("day", by_day()).sortWithinPartitions("id")


def by_day() -> object:
    from pyspark.sql import functions as f

    return f.expr(f"IF(id % 91 = 0, NULL, date_add(DATE '2024-01-01', CAST(id * {DAYS} / {ROWS} AS INT)))")


@pytest.fixture(scope="module")
def place(events: DataFrame, tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("delta") / "events")
    events.drop("a b").repartitionByRange(3, "id").write.format("delta").partitionBy("day").save(place)
    return place


@pytest.fixture(scope="module")
def workload() -> Workload:
    return Workload.from_sql([f"SELECT id FROM events WHERE {c}" for c in ASKED])


@pytest.fixture(scope="module")
def advice(delta: SparkSession, place: str, workload: Workload) -> Advice:
    return advise(delta, place, workload, ["qdtree", "range"], options=SEEN, budget=600)


def test_what_delta_skips_is_not_read_now(delta: SparkSession, place: str, workload: Workload, advice: Advice) -> None:
    source, queries, _ = opened_with_queries(delta, place, workload, "events")
    files, rows = len(source.files), delta.read.format("delta").load(place)
    now = reads_now(source, queries)
    assert now.blocks == files
    for c, query in zip(ASKED, now.queries, strict=True):
        _, scans = ask(rows.where(c))
        opened = sum(scan.files for scan in scans)
        assert round(query.blocks_read * files) == opened, c
    assert advice.rows_read == pytest.approx(now.rows_read)
    assert advice.rows_read < 0.6


@pytest.mark.parametrize("name", ["qdtree", pytest.param("range", marks=pytest.mark.long)])
def test_a_rewrite_in_place_reads_what_was_advised(
    delta: SparkSession, events: DataFrame, place: str, workload: Workload, advice: Advice, name: str, tmp_path: Path
) -> None:
    (option,) = (option for option in advice.proposals if option.name == name)
    assert option.learned and option.score
    copy = str(tmp_path / "events")
    delta.read.format("delta").load(place).write.format("delta").partitionBy("day").save(copy)
    written = apply(delta, copy, option.learned)
    measured = written.score(workload)
    assert option.score.blocks == measured.blocks
    assert option.score.rows_read == pytest.approx(measured.rows_read, rel=1e-6)
    again = advise(delta, copy, workload, ["range"], options=SEEN)
    assert again.rows_read == pytest.approx(measured.rows_read, rel=1e-6)


def test_learn_counts_the_files_in_partitions(
    delta: SparkSession, place: str, workload: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimate_seconds, "SMALL_TABLE_BYTES", 0)
    learned = learn(delta, place, workload, "range", SEEN)
    copy = str(tmp_path / "events")
    delta.read.format("delta").load(place).write.format("delta").partitionBy("day").save(copy)
    measured = apply(delta, copy, learned).score(workload)
    files = sum(kind.queries * kind.files_then for kind in learned.kinds) / len(workload)
    assert files == pytest.approx(measured.blocks_read * measured.blocks, rel=0.02)


@pytest.mark.parametrize("form", ["delta", "delta with other names in the files", "parquet"])
def test_what_is_not_read_now_does_not_match(delta: SparkSession, events: DataFrame, form: str, tmp_path: Path) -> None:
    place, some = str(tmp_path / "events"), [*ASKED, *conditions(7, 40)]
    options = {"delta.columnMapping.mode": "name"} if "other" in form else {}
    if form == "delta":  # which refuses names with blanks
        events, some = events.drop("a b"), [c for c in some if "a b" not in c]
    form = form.split()[0]
    events.repartitionByRange(3, "id").write.format(form).options(**options).partitionBy("day").save(place)
    workload = Workload.from_sql([f"SELECT id FROM events WHERE {c}" for c in some])
    rows = delta.read.format(form).load(place)
    source, asked, _ = opened_with_queries(delta, place, workload, "events")
    matching = [found.rows for found in answers(rows, some)]
    scores = [(int(score.id[1:]) - 1, score) for score in reads_now(source, asked).queries]
    assert len(scores) == len(asked)
    for i, score in scores:
        assert round(score.rows_read * ROWS) >= matching[i], some[i]
        assert score.blocks_read > 0 or not matching[i], some[i]
    assert sum(score.rows_read < 1 for _, score in scores) >= len(ASKED) // 2


def test_each_kind_names_its_means(delta: SparkSession, place: str, tmp_path: Path) -> None:
    asked = ["SELECT count(*) FROM events", "SELECT * FROM events ORDER BY id DESC LIMIT 20"]
    asked += [f"SELECT * FROM events WHERE Number = {i}" for i in range(0, 900, 100)]
    workload, options = Workload.from_sql(asked), LearnOptions(block_rows=400)
    before = advise(delta, place, workload, ["range"], options=options)
    kinds = {kind.text: kind for kind in before.kinds}
    assert set(kinds) == {"count(*)", "ORDER BY id DESC LIMIT 20", "Number = 0"}
    count, newest = kinds["count(*)"], kinds["ORDER BY id DESC LIMIT 20"]
    assert (count.means, newest.means) == (("aggregates",), ("top-k",))
    assert "where" in kinds["Number = 0"].means
    assert (count.rows_now, count.files_now, count.rows_then, count.files_then) == (0.0, 0.0, 0.0, 0.0)  # by the log
    assert newest.rows_now == pytest.approx(1.0)
    copy = str(tmp_path / "events")
    delta.read.format("delta").load(place).write.format("delta").partitionBy("day").save(copy)
    assert before.proposals[0].learned
    apply(delta, copy, before.proposals[0].learned)
    for kind in advise(delta, copy, workload, ["range"], options=options).kinds:
        assert kind.rows_now == pytest.approx(kinds[kind.text].rows_then), kind.text
