"""What another Python needs to run Spark as this one does."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from hedgerow.spark.start.java import NO_JAVA, find_java

CHECKOUT = Path(__file__).parents[2]


def environment() -> dict[str, str]:
    import pyspark

    home = find_java()
    if home is None:
        pytest.skip(NO_JAVA)
    own = {"JAVA_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(Path(pyspark.__file__).parent)}
    paths = os.pathsep.join([str(CHECKOUT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, **own, "PYTHONPATH": paths, "SPARK_LOCAL_IP": "127.0.0.1"}
