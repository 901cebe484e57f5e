"""All that lies in a folder: names, bytes and where links lead; and folders of small tables of every kind."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

import hedgerow as hr
from tests.support.lay_out import by_ranges

ROWS = 60
KINDS = ("plain", "partitioned", "managed", "with a replica", "delta", "managed delta", "of two tables")


def contents(folder: Path) -> dict[str, bytes | str]:
    """The bytes of each file below the folder, the target of each link, and '/' for each folder, by path."""
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        else:
            found[name] = "/" if path.is_dir() else path.read_bytes()
    return found


def outside(found: Mapping[str, bytes | str], folder: str) -> dict[str, bytes | str]:
    """What lies elsewhere than in a folder of these contents."""
    return {name: what for name, what in found.items() if name != folder and not name.startswith(f"{folder}/")}


def write_kinds(spark: SparkSession, folder: Path, has_delta: bool) -> hr.Learned:
    """Writes a table of each kind into a folder of its name; returns the layout that they are all written in."""
    rows = spark.range(ROWS).selectExpr("id", "id % 6 AS v").coalesce(1)
    places = {kind: str(folder / kind) for kind in KINDS}
    rows.write.parquet(places["plain"])
    rows.write.partitionBy("v").parquet(places["partitioned"])
    rows.write.parquet(places["of two tables"])
    rows.selectExpr("id", "id AS other").write.mode("append").parquet(places["of two tables"])
    learned = by_ranges(spark, places["plain"], "v", ROWS // 3, ["v < 3"])
    hr.apply(spark, places["plain"], learned, places["managed"])
    shutil.copytree(places["managed"], places["with a replica"])
    hr.apply(spark, places["with a replica"], learned, places["with a replica"], replica="second")
    if has_delta:
        for kind in ("delta", "managed delta"):
            rows.write.format("delta").save(places[kind])
        hr.apply(spark, places["managed delta"], learned)
    return learned
