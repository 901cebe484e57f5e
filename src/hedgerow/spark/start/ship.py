"""Sends Hedgerow's own modules to the executors of a cluster, so that they need not be installed there.

Tasks also need numpy and pyarrow, as all of PySpark's tasks on Arrow data do. They work without numba, but assign rows
to curves more slowly.
"""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_PACKAGE = Path(__file__).parents[2]
_served: WeakSet[SparkContext] = WeakSet()


def ship_modules(spark: SparkSession) -> None:
    """Make the modules importable in tasks; in a local session they are already."""
    context = spark.sparkContext
    if is_local(context) or context in _served:
        return
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-"))  # Spark reads the file again for each new executor
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    context.addPyFile(str(_archive(folder)))
    _served.add(context)


def is_local(context: SparkContext) -> bool:
    """Return whether tasks run in the driver's process, on its machine."""
    return re.fullmatch(r"local(\[.*\])?", context.master or "") is not None


def _archive(folder: Path) -> Path:
    archive = folder / "hedgerow.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as written:
        for module in sorted(_PACKAGE.rglob("*.py")):
            written.write(module, module.relative_to(_PACKAGE.parent))
    return archive
