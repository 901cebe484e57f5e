"""PySpark's own log of errors: silent while a verb runs, as ever for the user's queries."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

import hedgerow as hr


def test_failed_analysis_is_not_logged(spark: SparkSession, tmp_path: Path) -> None:
    """The verbs say in a sentence what Spark refuses; PySpark's own log stays as it is for the user's queries."""
    records: list[logging.LogRecord] = []

    class Listing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    spark.range(100).write.parquet(str(tmp_path / "t"))
    asked = ["id < 5", "no_such_function(id) > 3", "size(id) > 1", "id + INTERVAL '1' DAY > 3"]
    workload = hr.Workload.from_sql([f"SELECT * FROM t WHERE {c}" for c in asked])
    loggers = [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("SQL", "DataFrame")]
    listing = Listing()
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)  # other tests may have silenced it
        logger.addHandler(listing)
    try:
        with pytest.warns(hr.HedgerowWarning, match=r"cannot be evaluated|left out"):
            learned = hr.learn(spark, str(tmp_path / "t"), workload, options=hr.LearnOptions(block_rows=10), table="t")
        hr.apply(spark, str(tmp_path / "t"), learned, str(tmp_path / "out"))
        assert not records
        with pytest.raises(AnalysisException):
            spark.sql("SELECT no_such_function(1)").collect()
        assert records
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
            logger.removeHandler(listing)
