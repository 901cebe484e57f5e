"""Settings of a session with which files get exactly the values that are written, and readers find all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hedgerow.core.predicates.schema import path_of
from hedgerow.core.predicates.types import FLOAT, Type
from hedgerow.spark.judged import WRITING
from hedgerow.spark.start.session import temporary_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def exact_writing(
    spark: SparkSession, schema: Mapping[str, Type], physical: Mapping[str, str] | None = None, group_rows: int = 0
) -> Iterator[None]:
    """Set these settings while the body runs.

    `group_rows`: see `Writing`. Delta's writer takes the limit only from the session.

    Columns that may have -0.0 are written without a dictionary. In a dictionary, Parquet treats -0.0 and 0.0 as
    different values: a query for one of them would skip a file whose dictionary has only the other.

    `physical`: the names of top-level columns in the files, if they differ from the schema's.
    """
    paths = [path_of(name) for name, type_ in schema.items() if type_.kind == FLOAT]
    names = physical or {}
    stored = [(names.get(top, top), *rest) for top, *rest in paths]
    is_ambiguous = any("." in part for path in stored for part in path) or any(names and len(p) > 1 for p in stored)
    keys = [""] if is_ambiguous else ["#" + ".".join(path) for path in stored]  # "": no column has a dictionary
    without_dictionary = {f"parquet.enable.dictionary{key}": "false" for key in keys}
    limit = {"parquet.block.row.count.limit": str(group_rows)} if group_rows else {}
    with temporary_settings(spark, {**WRITING, **without_dictionary, **limit}):
        yield
