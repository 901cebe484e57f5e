"""Python hashes a literal as Spark hashes a column's values, and a filter that Spark built holds all of them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.spark_hash import hash_of, is_hashable
from hedgerow.core.pruning.value_filter import Shape
from hedgerow.spark.compute.collect_stats import Entries
from hedgerow.spark.start.session import spark_errors, temporary_settings
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.write.build_filter import build_filter, count_values, is_intact, numbered, values_of

FILES = Entries(())  # filters name files
MANY = 2000
_WORDS = (
    "",
    "a",
    "ä",
    "日本",
    "\U0001f600",
    " ",
    "a ",
    "\x00",
    "7f3a9c1e-0d4b-4e6a-9f55-0123456789ab",
    "x" * 31,
    "y" * 32,
    "z" * 100,
)


def _values(kind: Type, random: Random) -> list[Any]:
    """Values in canonical form."""
    bits = {"tinyint": 8, "smallint": 16, "int": 32, "date": 32, "bigint": 64, "timestamp": 64, "timestamp_ntz": 64}
    if kind.name in bits:
        n = bits[kind.name]
        edges = [0, 1, -1, 2 ** (n - 1) - 1, -(2 ** (n - 1))]
        return edges + [
            random.randint(-(2 ** random.randint(0, n - 1)), 2 ** random.randint(0, n - 1) - 1) for _ in range(MANY)
        ]
    if kind.name == "decimal":
        numbers = [0, 1, -1, 127, 128, -128, -129, 255, 256, 10**kind.precision - 1, 1 - 10**kind.precision]
        numbers = [n for n in numbers if abs(n) < 10**kind.precision]
        numbers += [
            random.randint(-(10 ** random.randint(1, kind.precision)) + 1, 10 ** random.randint(1, kind.precision) - 1)
            for _ in range(MANY)
        ]
        return [Decimal(f"{n}E-{kind.scale}") for n in numbers]
    texts = [
        *_WORDS,
        *("".join(random.choices("abcäß日\U0001f600-_0123456789", k=random.randint(0, 70))) for _ in range(MANY)),
    ]
    return texts if kind.name == "string" else [text.encode("utf-16") for text in texts]


@pytest.mark.parametrize(
    "name",
    [
        *("tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz", "string", "binary"),
        *("decimal(5,0)", "decimal(10,2)", "decimal(18,6)", "decimal(19,0)", "decimal(30,10)", "decimal(38,18)", "decimal(38,0)"),
    ],
)  # fmt: skip
def test_hashes_are_spark_s(spark: SparkSession, name: str) -> None:
    kind, random = Type.parse(name), Random(name)
    assert is_hashable(kind)
    values = _values(kind, random)
    given = [str(v) if kind.name == "decimal" else v for v in values]
    type_ = {"date": "int", "timestamp": "bigint", "timestamp_ntz": "bigint", "decimal": "string"}.get(kind.name, name)
    as_column = {
        "date": "date_from_unix_date(v)",
        "timestamp": "timestamp_micros(v)",
        "timestamp_ntz": "TIMESTAMP_NTZ'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, CAST(v AS DECIMAL(18, 0)) / 1000000)",
        "decimal": f"CAST(v AS {name})",
    }.get(kind.name, "v")
    if kind.name == "timestamp_ntz":
        given = values = [v for v in values if abs(v) < 10**17]
    frame = spark.createDataFrame([(v,) for v in given], f"v {type_}")
    hashed = [row[0] % 2**64 for row in frame.selectExpr(f"xxhash64({as_column})").collect()]
    wrong = [(v, h) for v, h in zip(values, hashed, strict=True) if hash_of(kind, v) != h]
    assert not wrong, wrong[:3]


@pytest.mark.parametrize(
    "name", ["float", "double", "boolean", "char(5)", "string collate utf8_lcase", "array<int>", "variant"]
)
def test_no_filter_of_types_whose_equal_values_may_differ(name: str) -> None:
    assert not is_hashable(Type.parse(name))


@pytest.mark.parametrize(
    ("hashes", "block_hashes", "low_bytes"),
    [(1, 1, 0), (50, 7, 0), (4000, 500, 0), (100_000, 9000, 0), (100_000, 9000, 1), (10**9, 10**9, 2), (10**12, 10**11, 4)],
)  # fmt: skip
def test_filters_hold_all_values(
    spark: SparkSession, tmp_path: Path, hashes: int, block_hashes: int, low_bytes: int
) -> None:
    made = spark.range(4000).selectExpr("id", "IF(id % 5 = 0, NULL, CAST(id * 7 % 19001 AS BIGINT)) AS v")
    made.repartitionByRange(5, "id").write.parquet(str(tmp_path / "rows"))
    frame = spark.read.parquet(str(tmp_path / "rows"))
    rows = numbered(frame, FILES)
    counted = count_values(rows, ["v"])
    assert counted.rows.sum() == 4000 and len(counted.entries) == 5
    assert np.allclose(counted.distinct["v"], 640, rtol=0.2) and abs(counted.in_all["v"] - 3200) < 600
    numbers = np.sort(np.append(counted.entries, 7))  # a file without rows
    shape = Shape(hashes, len(numbers), block_hashes, low_bytes)
    stored = build_filter(values_of(rows, "v"), shape, numbers, Folder(spark, str(tmp_path)), "lookup-1", 200_000)
    assert is_intact(stored)
    by_short_hash: dict[int, set[int]] = {}  # the places of the files with such a value
    for number, v in frame.selectExpr("crc32(CAST(_metadata.file_name AS BINARY))", "v").collect():
        if v is not None and (h := hash_of(Type("bigint"), v)) is not None:
            by_short_hash.setdefault(shape.short(h), set()).add(int(np.searchsorted(numbers, number)))
    blocks = stored.blocks(range(shape.blocks))
    assert sorted(blocks) == list(range(shape.blocks))
    for v in range(-100, 30_000, 7):
        h = hash_of(Type("bigint"), v)
        assert h is not None
        places = shape.places(blocks[shape.block(h)], h)
        assert set(places.tolist()) == by_short_hash.get(shape.short(h), set())


def test_settings_of_a_session_leave_a_filter_whole(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3000).coalesce(1).write.parquet(str(tmp_path / "rows"))
    frame, shape = spark.read.parquet(str(tmp_path / "rows")), Shape(30_000, 1, 3000, 1)
    numbers = count_values(numbered(frame, FILES), ["id"]).entries
    unusual = {"files.maxRecordsPerFile": "3", "function.concatBinaryAsString": "true", "shuffle.partitions": "1"}
    with temporary_settings(spark, {f"spark.sql.{key}": value for key, value in unusual.items()}):
        values = values_of(numbered(frame, FILES), "id")
        stored = build_filter(values, shape, numbers, Folder(spark, str(tmp_path)), "lookup-1", 6000)
    assert is_intact(stored)
    assert sum(len(shape.keys(block)) for block in stored.all_blocks()) > 2800


def test_a_file_that_cannot_be_read_is_not_left_out(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(100).repartition(2).write.parquet(str(tmp_path / "rows"))
    frame = spark.read.parquet(str(tmp_path / "rows"))
    numbers = count_values(numbered(frame, FILES), ["id"]).entries
    next((tmp_path / "rows").glob("part-*.parquet")).unlink()
    with (
        temporary_settings(spark, {"spark.sql.files.ignoreMissingFiles": "true"}),
        pytest.raises(spark_errors()),
    ):
        shape = Shape(1000, len(numbers), 1000, 0)
        build_filter(
            values_of(numbered(frame, FILES), "id"), shape, numbers, Folder(spark, str(tmp_path)), "lookup-1", 6000
        )
