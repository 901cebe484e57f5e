"""Where no size was asked for, blocks are smaller if queries take fewer seconds so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from hedgerow.core.layouts.layout_json import layout_to_json
from hedgerow.core.learning.block_counter import RowCounter
from hedgerow.core.learning.seconds import Speed
from hedgerow.pipeline import block_sizes, learn_options
from hedgerow.pipeline.block_sizes import DISK, in_best_blocks, usual_speed
from hedgerow.pipeline.inputs import opened_with_queries
from hedgerow.pipeline.learn_options import LearnOptions
from hedgerow.pipeline.learner_names import NamedLearner
from hedgerow.pipeline.table_problem import TableProblem
from hedgerow.sql.workload import Workload
from tests.support.events_table import conditions, write_events

BYTES_ARE_SLOW, FILES_ARE_SLOW = Speed(0.1, 1e-9, 1e-3), Speed(0.1, 1.0, 1e-9)
MEASURED = Speed(0.2, 0.03, 1e-8)
LONG = pytest.mark.long
SEVERAL = ["qdtree", *(pytest.param(name, marks=LONG) for name in ("hilbert", "auto", "zorder_learned"))]


@pytest.fixture(scope="module", params=["counts in memory", pytest.param("Spark counts", marks=LONG)])
def posed(request: pytest.FixtureRequest, spark: SparkSession, events: str) -> Iterator[TableProblem]:
    """Of a table so small that blocks of a few KB are usual."""
    workload = Workload.from_sql([f"SELECT id FROM events WHERE {c}" for c in conditions(1, 24)])
    source, queries, _ = opened_with_queries(spark, events, workload, "events")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learn_options, "_LEAST_BLOCK_BYTES", 1 << 10)
        yield TableProblem.of(
            source, queries, LearnOptions(), finer=True, in_memory=request.param == "counts in memory"
        )


@pytest.fixture(scope="module")
def events(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_events(spark, str(tmp_path_factory.mktemp("source") / "events.parquet"), rows=4_000)


@pytest.fixture
def usual(monkeypatch: pytest.MonkeyPatch) -> Callable[[Speed], None]:
    """Make the speed of the place another one."""
    return lambda speed: monkeypatch.setattr(block_sizes, "usual_speed", lambda source: speed)


@pytest.mark.parametrize("learner", SEVERAL)
def test_blocks_get_smaller_where_reading_costs_more_than_files(
    posed: TableProblem, learner: str, usual: Callable[[Speed], None]
) -> None:
    usual(BYTES_ARE_SLOW)
    largest, *smaller = posed.options.sizes(posed.source)
    found = in_best_blocks(posed, NamedLearner(learner), MEASURED).problem.block_rows
    assert posed.problem.block_rows == largest and found in smaller


# Here bottom_up reads 8 % less in smaller blocks: too little for so many files.
@pytest.mark.parametrize("learner", [*SEVERAL, pytest.param("bottom_up", marks=LONG)])
def test_blocks_stay_large_where_files_cost_more_than_reading(
    posed: TableProblem, learner: str, usual: Callable[[Speed], None]
) -> None:
    usual(FILES_ARE_SLOW)
    assert in_best_blocks(posed, NamedLearner(learner), MEASURED).problem.block_rows == posed.problem.block_rows


def test_measured_seconds_do_not_change_the_blocks(posed: TableProblem) -> None:
    """They differ from run to run."""
    speeds = (BYTES_ARE_SLOW, FILES_ARE_SLOW, MEASURED)
    assert len({in_best_blocks(posed, NamedLearner("qdtree"), s).problem.block_rows for s in speeds}) == 1
    assert usual_speed(posed.source) == DISK


def test_nothing_is_tried_where_nothing_is_known(posed: TableProblem, usual: Callable[[Speed], None]) -> None:
    assert in_best_blocks(posed, NamedLearner("qdtree"), None) is posed
    usual(BYTES_ARE_SLOW)
    assert in_best_blocks(posed, NamedLearner("random"), MEASURED).problem.block_rows == posed.problem.block_rows


def test_a_size_that_was_asked_for_is_not_changed(posed: TableProblem) -> None:
    for options in (LearnOptions(block_rows=77), LearnOptions(block_bytes="8KB")):
        asked = replace(posed, options=options)
        assert len(options.sizes(posed.source)) == 1
        assert in_best_blocks(asked, NamedLearner("qdtree"), BYTES_ARE_SLOW) is asked
    assert LearnOptions(block_rows=77).sizes(posed.source) == [77]


@pytest.mark.parametrize("learner", ["qdtree", *(pytest.param(name, marks=LONG) for name in ("hilbert", "bottom_up"))])
def test_a_problem_with_other_blocks_is_as_if_posed_so(posed: TableProblem, learner: str) -> None:
    """With the trial of queries held out, which the qdtree asks."""
    rows = posed.options.sizes(posed.source)[-1]
    options, in_memory = replace(posed.options, block_rows=rows), isinstance(posed.counter, RowCounter)
    alone = TableProblem.of(posed.source, posed.queries, options, in_memory=in_memory)
    assert posed.problem.trial is not None
    made, same = (p.learned(NamedLearner(learner)) for p in (posed.with_block_rows(rows), alone))
    assert layout_to_json(made.layout) == layout_to_json(same.layout)
    assert (made.sort_by, made.provenance) == (same.sort_by, same.provenance)
