"""What every test can use: a Spark session, and Hypothesis in a quick and a full measure."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

import hedgerow
from hedgerow.spark.start.java import NO_JAVA, find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile("quick", max_examples=50, deadline=None)
settings.register_profile("full", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HEDGEROW_HYPOTHESIS") or "quick")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what takes the `spark` fixture, so that `-m "not spark"` can be relied on."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")


@pytest.fixture(scope="session")
def delta(spark: SparkSession) -> SparkSession:
    """The session, if it reads Delta tables."""
    from tests.support.laid_tables import needs_delta

    needs_delta(spark)
    return spark


@pytest.fixture(autouse=True)
def _active(request: pytest.FixtureRequest) -> None:
    """Make the shared session the active one: `createDataFrame` of another session leaves that one active.

    Spark parses the text of `where("clock < TIME'05:00:00'")` under the settings of the active session."""
    if "spark" in request.fixturenames:
        spark = request.getfixturevalue("spark")
        spark._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)


@pytest.fixture
def attached(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, in which every query skips files."""
    hedgerow.attach(spark)
    yield spark
    hedgerow.detach(spark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[SparkSession]:
    """One small local session for the whole run, with Delta where its jars are; skipped where there is no Java."""
    home = find_java()
    if home is None:
        pytest.skip(NO_JAVA)
    os.environ["JAVA_HOME"] = str(home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

    from hedgerow.spark.start.session import session as start
    from tests.support.light_session import LIGHT, drop_service_settings, keep_java_names

    keep_java_names()
    is_quick = pytestconfig.getoption("markexpr") == "not long"
    own = {
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        **(LIGHT if is_quick else {}),
    }
    session = start("4g", "local[2]", **own)
    if is_quick:
        drop_service_settings(session)
    yield session
    session.stop()
