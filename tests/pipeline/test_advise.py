"""What `advise` says of a table is what the written table then is."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from hedgerow import advise
from hedgerow.core.errors import HedgerowError, HedgerowWarning, LayoutError, SchemaError
from hedgerow.pipeline import table_problem
from hedgerow.pipeline.advice import Advice
from hedgerow.pipeline.apply import apply
from hedgerow.pipeline.learn import learn
from hedgerow.pipeline.learn_options import LearnOptions
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.learner_names import AUTO
from hedgerow.pipeline.proposals import ADVISED
from hedgerow.sql.workload import Workload
from tests.support.events_table import conditions, write_events

BLOCK_ROWS = 500
LEARNERS = ("qdtree", "range", "sop_zorder")
SEEN = LearnOptions(block_rows=BLOCK_ROWS, recurrence=1)  # the advice is then about the same literals


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_events(spark, str(tmp_path_factory.mktemp("source") / "events.parquet"), rows=8_000)


@pytest.fixture(scope="module")
def workload() -> Workload:
    asked = [*conditions(1, 30), *(f"id = {i}" for i in Random(0).sample(range(10_000), 10)), "word LIKE '%a%'"]
    return Workload.from_sql([f"SELECT id FROM events WHERE {c}" for c in asked])


@pytest.fixture(scope="module")
def advice(spark: SparkSession, source: str, workload: Workload) -> Advice:
    return advise(spark, source, workload, LEARNERS, [("id", "Number")], options=SEEN, budget=600)


def test_the_best_comes_first_between_the_table_as_it_is_and_the_bound(advice: Advice) -> None:
    read = [option.score.rows_read for option in advice.proposals if option.score]
    assert read == sorted(read)
    assert len(read) == len(LEARNERS) + 2
    assert advice.bound is not None
    assert advice.bound < read[0] < advice.rows_read <= 1.0 + 1e-9
    assert f"<td>{advice.proposals[0].name}</td><td>{read[0]:.1%}</td>" in advice._repr_html_()


def test_every_kind_of_query_is_listed(advice: Advice, workload: Workload) -> None:
    assert sum(kind.queries for kind in advice.kinds) == len(workload)
    assert [kind.change for kind in advice.kinds] == sorted(kind.change for kind in advice.kinds)
    best = advice.proposals[0].score
    assert best
    by_kind = sum(kind.queries * kind.rows_then for kind in advice.kinds) / len(workload)
    assert by_kind == pytest.approx(best.rows_read)
    told = advice.to_dict()["kinds"]
    assert "id = " in " ".join(kind["text"] for kind in told)
    for kind in told:
        assert kind["text"] in str(advice)


def test_a_small_table_is_left_as_it_is(advice: Advice, tmp_path: Path) -> None:
    assert advice.best is None
    assert "no time" in advice.sentence
    with pytest.raises(HedgerowError, match="leave it as it is"):
        advice.save(tmp_path / "plan.json")


@pytest.mark.parametrize(
    "name",
    ["range", *(pytest.param(n, marks=pytest.mark.long) for n in ("qdtree", "sop_zorder", "sorted by id, Number"))],
)
def test_a_table_that_is_judged_by_all_rows_is_written_as_advised(
    spark: SparkSession, source: str, workload: Workload, advice: Advice, name: str, tmp_path: Path
) -> None:
    (option,) = (option for option in advice.proposals if option.name == name)
    assert option.learned
    assert option.score
    written = apply(spark, source, option.learned, str(tmp_path / "events")).score(workload)
    assert option.score.rows_read == pytest.approx(written.rows_read, rel=1e-6)
    assert option.score.blocks == written.blocks


@pytest.mark.long
def test_estimates_from_a_tenth_of_the_rows(
    spark: SparkSession, source: str, workload: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_problem, "_MIN_SCORED_ROWS", 1000)
    monkeypatch.setattr(table_problem, "_SCORED_ROWS_PER_BLOCK", 50)
    found = advise(spark, source, workload, ["qdtree", "hilbert"], options=SEEN)
    for option in found.proposals:
        assert option.learned
        assert option.score
        written = apply(spark, source, option.learned, str(tmp_path / option.name)).score(workload)
        assert option.score.rows_read == pytest.approx(written.rows_read, rel=0.15)


def test_a_plan_fits_later_rows_but_not_other_columns(delta: SparkSession, tmp_path: Path) -> None:
    asked = Workload.from_sql([f"SELECT * FROM numbers WHERE id BETWEEN {i} AND {i + 50}" for i in range(0, 5000, 500)])
    place, other = str(tmp_path / "numbers"), str(tmp_path / "other")
    delta.range(5000).write.format("delta").save(place)
    found = advise(delta, place, asked, ["range"], options=LearnOptions(block_rows=BLOCK_ROWS))
    assert found.proposals[0].learned
    found.proposals[0].learned.save(tmp_path / "plan.json")
    plan = Learned.load(tmp_path / "plan.json")
    delta.range(9000, 9100).write.format("delta").mode("append").save(place)
    table = apply(delta, place, plan)
    assert table.read(where="id >= 9000").count() == 100
    delta.range(100).withColumnRenamed("id", "number").write.format("delta").save(other)
    with pytest.raises(HedgerowError, match="the layout does not fit the table, which has no column id"):
        apply(delta, other, plan)


def test_a_budget_that_is_used_up(spark: SparkSession, source: str, workload: Workload) -> None:
    found = advise(
        spark, source, workload, ["range", "hilbert"], options=LearnOptions(block_rows=BLOCK_ROWS), budget=1e-6
    )
    first, second = found.proposals
    assert (first.name, first.why_not) == ("range", None)
    assert second.why_not
    assert "used up" in second.why_not


def test_what_cannot_be_tried_is_refused(spark: SparkSession, source: str, workload: Workload) -> None:
    with pytest.raises(LayoutError, match="there is no learner 'tree'"):
        advise(spark, source, workload, ["tree"])
    with pytest.raises(SchemaError, match="no column nmuber: did you mean Number"):
        advise(spark, source, workload, [], [["nmuber"]])
    with pytest.raises(LayoutError, match="name a learner or a design"):
        advise(spark, source, workload, [])
    with pytest.raises(LayoutError, match="budget"):
        advise(spark, source, workload, budget=0)
    with pytest.raises(LayoutError, match="there is no learner 'tree'"):
        learn(spark, "nowhere", workload, "tree")
    with pytest.raises(HedgerowError, match="nowhere cannot be read: no table of the catalog and no folder"):
        learn(spark, "db.nowhere", workload)
    with pytest.raises(SchemaError, match="no column nmuber: did you mean Number"):
        learn(spark, source, workload, "range", columns=["nmuber"])


def test_each_query_left_out_is_named(spark: SparkSession, source: str) -> None:
    """The one that cannot be read counts, too, and is not the reason why another one does not fit."""
    bad = ["SELECT FROM WHERE", "SELECT * FROM events WHERE nmuber = 3"]
    with pytest.warns(HedgerowWarning, match=r"2 of 3 queries are left out:\n  query q1 .*\n  query q2 .*nmuber"):
        advise(spark, source, Workload.from_sql([*bad, "SELECT * FROM events WHERE Number = 3"]), ["range"])
    with pytest.raises(HedgerowError, match=r"no query of the workload fits the table events: .*no column nmuber"):
        advise(spark, source, Workload.from_sql([*bad, "SELECT * FROM other"]), ["range"], table="events")


@pytest.mark.long
def test_auto_takes_the_best(spark: SparkSession, source: str, workload: Workload, advice: Advice) -> None:
    """It tries more learners than the advice of this test, so it reads no more than the best one there."""
    learned = learn(spark, source, workload, AUTO, SEEN)
    best = advice.proposals[0].score
    assert best
    assert learned.provenance["learner"] in ADVISED
    assert sum(kind.queries * kind.rows_then for kind in learned.kinds) / len(workload) <= best.rows_read + 1e-9
