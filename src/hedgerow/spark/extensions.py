"""Lists extensions (`spark.sql.extensions`) and plugins (`spark.plugins`) by their effect on skipping, by class.

A name that ends in a star stands for all classes that begin like it. A class on no list is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

# They leave the expressions and scans of Parquet and Delta tables as they are.
HARMLESS_CODE: frozenset[str] = frozenset(
    (
        "hedgerow.HedgerowExtensions",
        # commands, functions and plans for their own tables
        "io.delta.sql.DeltaSparkSessionExtension",
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        # functions over geometry, joins by them, and filters of GeoParquet
        "org.apache.sedona.*",
        # reports: they watch plans, or wrap physical operators to time them
        *("com.datadog.*", "datadog.*", "io.dataflint.*", "io.openlineage.*", "org.apache.spark.dataflint.*"),
        "org.apache.spark.sql.connect.SparkConnectPlugin",
    )
)


@dataclass(frozen=True, slots=True)
class Engine:
    """Code that evaluates expressions in place of Spark; `kind`: the kind of setting that it counts as."""

    name: str
    kind: Literal["meaning", "reading"]
    reason: str


_COMET = Engine("Comet", "meaning", "Comet evaluates some expressions otherwise than Spark, by its own documentation")
_RAPIDS = Engine("RAPIDS", "reading", "RAPIDS compares floats and parses texts unlike Spark, and was not tested")
_GLUTEN = Engine("Gluten", "reading", "Gluten reads files and evaluates conditions in native code, and was not tested")
_AURON = Engine("Auron", "reading", "Auron reads files and evaluates conditions in native code, and was not tested")
ENGINES: Mapping[str, Engine] = MappingProxyType(
    {
        "org.apache.comet.*": _COMET,
        "org.apache.spark.CometPlugin": _COMET,
        "com.nvidia.spark.*": _RAPIDS,
        "io.glutenproject.*": _GLUTEN,
        "org.apache.gluten.*": _GLUTEN,
        "org.apache.spark.sql.auron.*": _AURON,
        "org.apache.spark.sql.blaze.*": _AURON,
    }
)
# Spark itself evaluates what an index stores, for sessions with and without such an engine read the table.
ENGINES_OFF: Mapping[str, str] = MappingProxyType(
    {
        "spark.comet.enabled": "false",
        "spark.rapids.sql.enabled": "false",
        "spark.gluten.enabled": "false",
        "spark.auron.enable": "false",
    }
)
