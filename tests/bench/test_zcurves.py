"""The generated tables and queries stay what they are; the quick form shows that learning pays."""

from __future__ import annotations

import numpy as np
import pytest

from bench.data.zcurves_tables import MOST, SHAPES, queries, table_of
from bench.options import Options
from bench.suites import zcurves
from hedgerow.core.learning.sample import Sample
from hedgerow.sql.workload import Workload
from tests.support.digest import digest

PINNED = {
    "contributions": ("8f7d22c3c8290abc", "b7e69c63e84a9f62"),
    "flights": ("f6935086cd0b8184", "ca80dcda6c8844fc"),
    "taxi": ("9b69dbf535f6924f", "e20ea342f40089dc"),
    "tweets": ("c8075352741bf40c", "e9c98198cb14cbef"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_generators_are_pinned(name: str) -> None:
    """First rows and query texts; and the shape that the paper tells of."""
    table = table_of(name, 5_000)
    asked = queries(name, table, 40, 0)
    assert (digest(table.slice(0, 3).to_pylist()), digest(asked)) == PINNED[name]
    columns = {"contributions": 9, "flights": 21, "taxi": 13, "tweets": 16}
    filtered = {"contributions": 7, "flights": 5, "taxi": 5, "tweets": 10}
    assert table.num_columns == columns[name]
    assert len({a.column for a in SHAPES[name].queried}) == filtered[name]
    assert queries(name, table, 5, ~0) != asked[:5], "unseen queries are others"


@pytest.mark.parametrize("name", SHAPES)
def test_queries_match_few_rows(name: str) -> None:
    sample = Sample.of_table(table_of(name, 20_000))
    bound = Workload.from_sql(queries(name, table_of(name, 20_000), 60, 1)).bind({name: sample.schema})
    assert len(bound) == 60
    shares = [sample.selectivity(q.predicate(name)) for q in bound]
    assert min(s or 0.0 for s in shares) > 0
    assert max(s or 0.0 for s in shares) <= MOST


def test_how_many_columns_are_asked_about() -> None:
    """Flights: two to four of five; contributions: four or more in most; tweets: one column in nearly all."""
    asked = {name: queries(name, table_of(name, 5_000), 300, 2) for name in SHAPES}
    n = {
        name: np.array([sql.replace(" AND ", "&").count("BETWEEN") + sql.count(" = ") for sql in asked[name]])
        for name in asked
    }
    assert (n["flights"] >= 2).all()
    assert (n["flights"] <= 4).all()
    assert (n["contributions"] >= 4).mean() > 0.5
    assert np.mean(["created" in sql for sql in asked["tweets"]]) > 0.9


@pytest.mark.long
def test_learning_pays() -> None:
    """Quality, never time: on each shape the learned order reads least, on unseen queries too."""
    lines = list(zcurves.run(Options("quick")))
    better = 0
    for name in SHAPES:
        own = {found["learner"]: found for found in lines if found["params"]["shape"] == name}
        learned = own.pop("zorder_learned")
        assert learned["rows_read"] < min(found["rows_read"] for found in own.values())
        least = min(found["rows_read_unseen"] for found in own.values())
        assert learned["rows_read_unseen"] < 1.02 * least
        better += learned["rows_read_unseen"] < least / 1.1
    assert better >= 2
