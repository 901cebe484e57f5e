"""One small managed table of each format for all doors."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.support import delta_tables
from tests.support.things_table import by_id, write_things


@pytest.fixture(scope="session")
def things(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a Parquet table by `id`."""
    source = write_things(spark, str(tmp_path_factory.mktemp("plain") / "things.parquet"))
    return by_id(spark, source, str(tmp_path_factory.mktemp("ours") / "things"), ["number < 100"]).path


@pytest.fixture(scope="session")
def delta_things(delta: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a Delta table by `number`."""
    path = delta_tables.write(delta, str(tmp_path_factory.mktemp("delta") / "things"))
    return delta_tables.by_number(delta, path).path
