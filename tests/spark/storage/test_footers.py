"""What footers and dictionaries say of a column is what a pass over its rows finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hedgerow.core.predicates.nodes import Column
from hedgerow.core.pruning.block_stats import Stats, TermStats
from hedgerow.core.pruning.combine_stats import agree
from hedgerow.core.pruning.words import words_in_texts
from hedgerow.spark.compute.collect_stats import Entries, RowGroups, collect_files
from hedgerow.spark.start.session import configured
from hedgerow.spark.storage import footers as many
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.footer import UNREADABLE
from hedgerow.spark.storage.footers import Footers, footers_of
from hedgerow.spark.storage.source import schema_of

ROWS = 6_000
OF = "CAST(id * 7919 % {most} AS {type})"
MANY = {
    "whole": OF.format(most=ROWS, type="INT"),
    "long": "id * 1000003",
    "below_zero": "-id - 5",
    "cents": "CAST(id * 7919 % 5000 / 100 AS DECIMAL(12, 2))",
    "huge": "CAST(id * 7919 AS DECIMAL(30, 2))",
    "shipped": "date_add(DATE '1900-02-03', CAST(id * 7919 % 90000 AS INT))",
    "moment": "timestamp_micros(id * 7919999 - 1000)",
    "word": "concat('wört-', id * 7919 % 5003)",
    "tool": "IF(id % 7 = 0, NULL, concat('runner-', id % 100, IF(id % 2 = 0, '/gold', '/tin'), id div 2000))",
    "raw": "CAST(concat('x', id) AS BINARY)",
    "holes": "IF(id % 3 = 0, NULL, id)",
    "odd": "IF(id % 5 = 0, CAST('NaN' AS DOUBLE), -id / 3)",
    "mostly_null": "IF(id % 700 = 0, id, NULL)",
    "far": "IF(id = 17, DATE '+12345-01-01', date_add(DATE '2000-01-01', CAST(id AS INT)))",
}
FEW = {
    "digit": OF.format(most=10, type="INT"),
    "just_few": OF.format(most=64, type="BIGINT"),
    "one": "7",
    "nothing": "CAST(NULL AS INT)",
    "flag": "id % 2 = 0",
    "mode": "element_at(array('AIR', 'RAIL', 'SHIP'), CAST(id % 3 + 1 AS INT))",
    "price": "CAST(id % 9 / 4 AS DECIMAL(12, 2))",
    "small_price": "CAST(-id % 9 / 4 AS DECIMAL(7, 3))",
    "tiny": "CAST(id % 5 - 2 AS TINYINT)",
    "clock": "timestamp_seconds(id % 24 * 3600 - 100)",
    "local_clock": "CAST(timestamp_seconds(id % 24 * 3600) AS TIMESTAMP_NTZ)",
    "code": "CAST(concat('x', id % 3) AS BINARY)",
    "half_null": "IF(id % 2 = 0, NULL, id % 7)",
    "few_days": "date_add(DATE '2020-01-01', CAST(id % 40 AS INT))",
}
WRITTEN = {
    "plain": {},
    "small_groups": {"parquet.block.size": "4096", "parquet.page.size": "1024"},
    "no_dictionary": {"parquet.enable.dictionary": "false"},
    "none_for_one": {"parquet.enable.dictionary#just_few": "false"},
    "uncompressed": {"compression": "uncompressed"},
    "gzip": {"compression": "gzip"},
    "zstd": {"compression": "zstd"},
    "version_2": {"parquet.writer.version": "v2"},
}


@pytest.mark.parametrize(
    ("how", "times"),
    [
        ("plain", "TIMESTAMP_MICROS"),
        ("none_for_one", "INT96"),
        *(pytest.param(how, "TIMESTAMP_MICROS", marks=pytest.mark.long) for how in WRITTEN if how != "plain"),
    ],
)
def test_footers_say_what_the_rows_say(spark: SparkSession, tmp_path: Path, how: str, times: str) -> None:
    from pyspark.sql import functions as f

    path = str(tmp_path / "t")
    frame = spark.range(ROWS).selectExpr("id", *(f"{e} AS {n}" for n, e in {**MANY, **FEW}.items()))
    with configured(spark, parquet__outputTimestampType=times):
        parts = frame.repartitionByRange(3, "id").sortWithinPartitions("whole")
        parts.union(parts.limit(0)).write.options(**WRITTEN[how]).parquet(path)
    read, sizes = spark.read.parquet(path), Folder(spark, path).sizes()
    files = sorted(n for n in sizes if n.endswith(".parquet"))
    schema = schema_of(read.schema)
    footers = footers_of(Folder(spark, path), {n: sizes[n] for n in files}, schema, {"mode", "tool", "word"})
    found = footers.known_terms(schema)

    wanted = [Column((name,)) for name in read.columns]
    asked, saved = (collect_files(read, wanted, schema, Entries(files), known).blocks for known in (None, found))
    assert agree(saved, asked).all()
    assert all(saved.terms[name] is found[name] for name in found)
    has_set = {name for name, term in asked.terms.items() if term.sets and (term.sets.set_of >= 0).all()}
    assert has_set == FEW.keys() | {"mostly_null"}  # whose few values do not repeat, so they are in no dictionary
    if how in ("plain", "uncompressed", "gzip", "zstd"):
        surely = {"whole", "long", "cents", "shipped", "word", "holes", *FEW}
        assert surely - ({"clock", "moment"} if times == "INT96" else set()) <= found.keys()
        assert all((found[name].sets.set_of >= 0).all() for name in found.keys() & FEW.keys())
        words = {name: words_by_file(found[name], files) for name in ("mode", "tool")}
        for row in read.groupBy("_metadata.file_name").agg(*(f.collect_set(n).alias(n) for n in words)).collect():
            for name, by_file in words.items():
                assert by_file[row.file_name] == words_in_texts(row[name])
    else:
        assert {"flag", "nothing"} <= found.keys()


def test_row_groups_say_what_their_rows_say(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    frame = spark.range(ROWS).selectExpr("id", *(f"{e} AS {n}" for n, e in {**MANY, **FEW}.items()))
    parts = frame.repartitionByRange(3, "id").sortWithinPartitions("whole")
    how = {"parquet.block.row.count.limit": str(ROWS // 10)}
    parts.union(parts.limit(0)).write.options(**how).parquet(path)
    read, sizes = spark.read.parquet(path), _files(spark, path)
    schema, wanted = schema_of(read.schema), [Column((name,)) for name in read.columns]
    whole, by_group = (footers_of(Folder(spark, path), sizes, schema, {"mode"}, by_group=by) for by in (False, True))
    groups = RowGroups.of_footers(by_group)
    assert groups is not None and len(by_group) > 3 * len(whole) - 3 and RowGroups.of_footers(whole) is None
    found, entries = by_group.known_terms(schema), Entries(list(sizes), groups)
    asked, saved = (collect_files(read, wanted, schema, entries, known) for known in (None, found))
    assert asked.groups is not None and saved.groups is not None
    assert found and agree(saved.groups.stats, asked.groups.stats).all() and agree(saved.blocks, asked.blocks).all()
    summed = by_group.of_whole_files(len(sizes))
    assert (summed.rows == whole.rows).all() and summed.terms.keys() >= whole.terms.keys()
    assert all((summed.columns[name] == of_files).all() for name, of_files in whole.columns.items())
    of_groups = {name: summed.terms[name] for name in whole.terms}
    assert agree(Stats(whole.rows, of_groups, {}), Stats(whole.rows, whole.terms, {})).all()


@pytest.mark.parametrize("how", ["plain", *(pytest.param(how, marks=pytest.mark.long) for how in WRITTEN)])
def test_tasks_say_what_the_driver_says(
    spark: SparkSession, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of files of one table, and with a file that is no Parquet, one of other types, and a long footer."""
    path = str(tmp_path / "t")
    frame = spark.range(ROWS).selectExpr("id", *(f"{e} AS {n}" for n, e in {**MANY, **FEW}.items()))
    parts = frame.repartitionByRange(5, "id").sortWithinPartitions("whole")
    parts.union(parts.limit(0)).write.options(**WRITTEN[how]).parquet(path)
    schema, files = schema_of(spark.read.parquet(path).schema), _files(spark, path)
    both_ways(spark, path, files, set(schema), monkeypatch)
    (tmp_path / "t" / "zz.parquet").write_bytes(b"no Parquet")
    (tmp_path / "t" / "zzz.parquet").write_bytes(b"")
    spark.range(9).selectExpr("CAST(id AS STRING) AS id", "id AS whole").coalesce(1).write.parquet(f"{path}-other")
    wide = spark.range(9).selectExpr("id", *(f"concat('{'x' * 200}', id) AS c{i}" for i in range(300)))
    wide.coalesce(1).write.parquet(f"{path}-wide")
    for end in ("other", "wide"):
        (written,) = _files(spark, f"{path}-{end}")
        (tmp_path / f"t-{end}" / written).rename(tmp_path / "t" / f"{end}.parquet")
    files = _files(spark, path)
    assert files["wide.parquet"] > 1 << 16
    one_by_one = both_ways(spark, path, files, {*schema, "c7"}, monkeypatch)
    assert sorted(one_by_one.rows.tolist())[:2] == [UNREADABLE, UNREADABLE] and not one_by_one.terms


def both_ways(
    spark: SparkSession, path: str, files: dict[str, int], wanted: set[str], monkeypatch: pytest.MonkeyPatch
) -> Footers:
    """Read the footers on the driver and in tasks, and compare all that they say."""
    asked = (Folder(spark, path), files, wanted, {"mode", "tool", "word"}, {"whole"})
    for at_once, by_group in ((2, False), (32, False), (32, True)):
        by_driver = footers_of(*asked, by_group)
        with monkeypatch.context() as changed:
            changed.setattr(many, "MAX_ON_DRIVER", 0)
            changed.setattr(many, "_FILES_AT_ONCE", at_once)
            by_tasks = footers_of(*asked, by_group)
        assert by_tasks.file.tolist() == by_driver.file.tolist()
        assert by_tasks.start.tolist() == by_driver.start.tolist()
        assert by_tasks.rows.tolist() == by_driver.rows.tolist()
        for found, expected in ((by_tasks.columns, by_driver.columns), (by_tasks.unpacked, by_driver.unpacked)):
            assert {n: sizes.tolist() for n, sizes in found.items()} == {n: s.tolist() for n, s in expected.items()}
        assert by_tasks.terms.keys() == by_driver.terms.keys()
        for name, expected_term in by_driver.terms.items():
            assert facts(by_tasks.terms[name]) == facts(expected_term), name
    return footers_of(*asked)


def facts(term: TermStats) -> list[Any]:
    """All that is known of each file, as plain values."""

    def listed(sets: Any, values: Any, i: int) -> Any:
        codes = None if sets is None else sets.of(i)
        return None if codes is None else [values[c // 2] for c in codes.tolist()]

    bounds = zip(term.low.tolist(), term.high.tolist(), strict=True)
    return [
        str(term.type),
        [
            (term.values[low // 2], low % 2, term.values[high // 2], high % 2) if low <= high else None
            for low, high in bounds
        ],
        term.nulls.tolist(),
        term.nan.tolist(),
        [listed(term.sets, term.values, i) for i in range(len(term.low))],
        [term.words and listed(term.words.sets, term.words.values, i) for i in range(len(term.low))],
    ]


def _files(spark: SparkSession, path: str) -> dict[str, int]:
    return {n: size for n, size in sorted(Folder(spark, path).sizes().items()) if n.endswith(".parquet")}


def words_by_file(term: TermStats, files: list[str]) -> dict[str, set[Any]]:
    words = term.words
    assert words is not None and words.sets is not None
    codes = [words.sets.of(i) for i in range(len(files))]
    return {
        name: {words.values[c // 2] for c in own.tolist()}
        for name, own in zip(files, codes, strict=True)
        if own is not None
    }
