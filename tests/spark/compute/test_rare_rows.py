"""Rows on which a rare condition is TRUE are all fetched; what fails or is frequent is left to the sample."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import SparkSession

from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates.nodes import Compare, Like, Opaque, Predicate, col, lit
from hedgerow.core.pruning.block_stats import T_BIT
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.spark.compute.sample import draw, with_rare_rows
from hedgerow.spark.storage.source import Source, open_source

ROWS, FEW = 20_000, 50
RARE = Compare(col("id"), "=", lit(777))
FREQUENT = Compare(col("id"), "<", lit(15_000))
FAILS = Opaque("1 / (id - 5) > 0.9 AND id < 7", (col("id"),))


@pytest.fixture(scope="module")
def source(spark: SparkSession) -> Source:
    frame = spark.range(ROWS).selectExpr("id", "concat('w', id % 5000) AS word")
    return open_source(spark, frame, "numbers")


def drawn(source: Source, *predicates: Predicate) -> Sample:
    return draw(source, predicates, ROWS // 20, 1)[0]


def trues(rows: Rows, p: Predicate) -> int:
    return int((rows.evaluate(p) == T_BIT).sum())


def test_all_rows_of_a_rare_condition_follow_the_sample(source: Source) -> None:
    word = Like(col("word"), "%4321%")
    sample = drawn(source, RARE, FREQUENT, word)
    rows = with_rare_rows(source, sample, [RARE, FREQUENT, word], FEW, ROWS)
    assert len(rows) - len(sample) == 1 + ROWS // 5000
    found = rows.take(np.arange(len(sample), len(rows)))
    assert trues(found, RARE) == 1
    assert trues(found, word) == ROWS // 5000
    assert rows.take(np.arange(len(sample))).evaluate(FREQUENT).tolist() == sample.rows.evaluate(FREQUENT).tolist()


def test_no_more_rows_than_wanted(source: Source) -> None:
    sample = drawn(source, RARE)
    assert with_rare_rows(source, sample, [RARE], FEW, 0) is sample.rows


def test_thousands_of_conditions(source: Source) -> None:
    many = [Compare(col("id"), "=", lit(i)) for i in range(3000)]
    sample = drawn(source, RARE)
    assert 0 < len(with_rare_rows(source, sample, many, FEW, 100 * ROWS)) - len(sample) < 1000


def test_a_condition_that_fails_on_some_rows(source: Source) -> None:
    sample = drawn(source, RARE, FAILS)
    rows = with_rare_rows(source, sample, [RARE, FAILS], FEW, ROWS)
    assert trues(rows.take(np.arange(len(sample), len(rows))), RARE) == 1


def test_nothing_is_added_to_a_whole_table(source: Source) -> None:
    sample = draw(source, [RARE], ROWS, 1)[0]
    assert with_rare_rows(source, sample, [RARE], FEW, ROWS) is sample.rows
