"""Curves on Spark: unequal bits give the blocks that numpy gives, and rows of a file follow the curve."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.curve import Axis, CurveLayout
from hedgerow.core.predicates.nodes import col
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.learners.curves.zorder_learned import interleaved
from hedgerow.pipeline.apply import apply
from hedgerow.pipeline.learn import learn
from hedgerow.pipeline.learn_options import LearnOptions
from hedgerow.pipeline.write_options import WriteOptions
from hedgerow.spark.compute.assign_blocks import BLOCK, with_block
from hedgerow.spark.storage.source import open_source, schema_of
from hedgerow.sql.workload import Workload
from hedgerow.tables.managed import ManagedTable
from tests.support.events_table import conditions, write_events

NUMBER, ODD, WORD = col("Number"), col("odd"), col("word")


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_events(spark, str(tmp_path_factory.mktemp("source") / "events.parquet"), 2_000)


@pytest.mark.parametrize("curve", ["bits", "snake"])
@pytest.mark.parametrize("allocation", [(6, 1, 3), (1, 5, 2), (3, 0, 9)])
def test_unequal_bits_mean_the_same_in_sql_and_in_numpy(
    spark: SparkSession, source: str, allocation: tuple[int, ...], curve: str
) -> None:
    """NULL, NaN and strings among the values; a column may have fewer bits than it could give, or more."""
    r = Random(sum(allocation))
    axes = (
        Axis(NUMBER, "int", tuple(sorted(r.sample(range(1000), 60)))),
        Axis(ODD, "float", tuple(sorted(r.sample(range(100), 20)))),
        Axis(WORD, "string", tuple(sorted(f"{a}{b}" for a in "bdfh" for b in "cegi"))),
    )
    pattern = interleaved(allocation)
    bounds = sorted(r.sample(range(1, 1 << len(pattern)), 12))
    layout = CurveLayout(axes, pattern, tuple(bounds), curve)
    assert layout.assign_sql() is not None
    opened = open_source(spark, source)
    found = with_block(opened.frame, layout, opened.schema).select("Number", "odd", "word", BLOCK).toArrow()
    expected = layout.assign(Rows.of_table(found.drop_columns([BLOCK])))
    assert found[BLOCK].to_pylist() == expected.tolist()
    assert len(set(expected.tolist())) > 4


def test_a_column_of_another_type_is_refused(spark: SparkSession) -> None:
    """As after DROP COLUMN and ADD COLUMN of the same name."""
    layout = CurveLayout((Axis(WORD, "string", ("b", "f")),), (0,), (1,))
    frame = spark.sql("SELECT id AS Number, map('a', id) AS word FROM range(9)")
    with pytest.raises(LayoutError, match="does not fit the table: word has values that cannot be compared"):
        with_block(frame, layout, schema_of(frame.schema))


@pytest.mark.long
@pytest.mark.parametrize("learner", ["range", "zorder", "zorder_learned"])
def test_rows_of_a_file_follow_the_curve(spark: SparkSession, source: str, learner: str, tmp_path: Path) -> None:
    """So that Parquet's own bounds of a row group are narrow; unless another order is asked for."""
    workload = Workload.from_sql([f"SELECT id FROM events WHERE {c}" for c in conditions(1, 30)])
    learned = learn(spark, source, workload, learner, LearnOptions(block_rows=400))
    assert isinstance(learned.layout, CurveLayout)
    assert learned.layout.key_sql() is not None

    def in_order(table: ManagedTable) -> list[bool]:
        """Of each file, whether its keys never fall."""
        found = []
        for file in sorted(Path(table.path).glob("part-*.parquet")):
            rows = pq.read_table(file)
            named = {t: _micros(rows[t.path[0]]) for t in learned.layout.features}  # type: ignore[union-attr, index]
            keys = learned.layout.keys(Rows(named))  # type: ignore[attr-defined]
            found.append(bool((keys[:-1] <= keys[1:]).all()))
        return found

    followed = in_order(apply(spark, source, learned, str(tmp_path / "followed")))
    assert len(followed) > 2
    assert all(followed)
    assert not all(in_order(apply(spark, source, learned, str(tmp_path / "by_id"), WriteOptions(sort_by=["id"]))))


def _micros(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Arrow reads Spark's older timestamps as nanoseconds."""
    return column.cast(pa.timestamp("us", column.type.tz)) if pa.types.is_timestamp(column.type) else column
