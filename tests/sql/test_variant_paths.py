"""Paths into variants, which sqlglot does not read in Spark's dialect: they mean what they mean to Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from hedgerow.core.errors import WorkloadError
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.sql.workload import Workload

JSON = """concat('{"a": ', id % 5, ', "b": [0, ', id % 7, '], "c d": {"A": "x', id % 3, '"}}')"""
CONDITIONS = [
    "j:a::int = 3", "CAST(j:b[1] AS DOUBLE) > 3.5 AND v < 4", "t.j:`c d`.A::string = 'x1' OR j:a::int IS NULL",
    "NOT j:['c d']:A::string LIKE '%2'", "m['k']:a::int + 1 = 3",
]  # fmt: skip


@pytest.mark.parametrize("condition", CONDITIONS)
def test_spark_reads_the_same(spark: SparkSession, condition: str) -> None:
    j = f"IF(id % 9 = 8, NULL, parse_json({JSON}))"
    rows = spark.range(60).selectExpr("id", "id % 8 AS v", f"{j} AS j", f"map('k', {j}) AS m")
    rows.createOrReplaceTempView("t")
    expected = spark.sql(f"SELECT id FROM t WHERE {condition}").collect()
    [query] = Workload.from_sql(f"SELECT id FROM t WHERE {condition}")
    text = predicate_text(query.predicate("t"))
    assert ":" not in text and 0 < len(expected) < 60
    assert rows.where(text).select("id").collect() == expected


@pytest.mark.parametrize("sql", ["SELECT * FROM t WHERE j:", "SELECT * FROM t WHERE j:(a)", "SELECT j:a FROM"])
def test_texts_that_are_wrong(sql: str) -> None:
    with pytest.raises(WorkloadError, match="is not spark SQL"):
        Workload.from_sql(sql)
