"""A simulated filter opens every file that holds a value, and few others; a column without use for it gets none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates.nodes import Compare, col, lit
from hedgerow.core.pruning.evaluator import may_match
from hedgerow.pipeline.simulate_lookups import ExpectedFilter, _distinct_in_files, expected_filters
from hedgerow.tables.lookups import files_let_pass

ROWS, FILES = 4_000, 20
FILE = np.arange(ROWS) % FILES
TABLE = pa.table(
    {
        "id": [f"{n * 7919 % ROWS:05d}" for n in range(ROWS)],  # in every file from the first to the last
        "user": [n % 10 for n in range(ROWS)],  # each is in two files, but the sets of values say so
        "place": [n % FILES for n in range(ROWS)],
        "kind": [n % 3 for n in range(ROWS)],  # each is in every file
    }
)
SAMPLE = Sample.of_table(TABLE)
ASKED = [
    *(Compare(col("id"), "=", lit(f"{n:05d}")) for n in range(1000, 1010)),
    *(Compare(col(name), "=", lit(n)) for name in ("user", "place", "kind") for n in range(3)),
]


def filters(max_bytes: float) -> dict[str, ExpectedFilter]:
    stats = SAMPLE.rows.stats(FILE, FILES)
    passed = files_let_pass(ASKED, stats, SAMPLE.schema)
    return expected_filters(passed, SAMPLE, SAMPLE.rows, FILE, stats, max_bytes)


def test_only_columns_that_gain_get_a_filter() -> None:
    assert filters(1e6).keys() == {"id"}
    assert not filters(4095)
    assert filters(4200)["id"].false_positives > 2 * filters(1e6)["id"].false_positives


def test_a_filter_opens_the_file_with_the_value_and_few_others() -> None:
    (found,) = filters(8000).values()
    assert 0 < found.false_positives < 0.3
    opened = []
    for n in range(0, ROWS, 7):
        value = TABLE["id"][n].as_py()
        may_hold = found.may_hold("string", [value])
        assert may_hold[FILE[n]]
        assert may_hold.tolist() == found.may_hold("string", [value]).tolist()
        opened.append(int(may_hold.sum()) - 1)
    expected = found.false_positives * (FILES - 1)
    assert abs(np.mean(opened) - expected) < 0.2 * expected + 0.05
    assert found.may_hold("int", [5]).all()  # of another kind


def test_the_index_skips_by_it() -> None:
    stats = SAMPLE.rows.stats(FILE, FILES)
    p = Compare(col("id"), "=", lit(TABLE["id"][33].as_py()))
    assert may_match(p, stats).sum() > FILES / 2
    found = filters(1e6)["id"]
    skipped = may_match(p, type(stats)(stats.rows, stats.terms, {}, {"id": found}))
    assert skipped[FILE[33]] and skipped.sum() <= 2


@pytest.mark.parametrize(
    "rows_of_value, spread", [(1, FILES), (25, FILES), (25, 3), (200, 5), (5, FILES), (30, 2 * FILES)]
)
def test_a_filter_of_a_part_of_the_rows_opens_as_many_files_as_one_of_all(rows_of_value: int, spread: int) -> None:
    random, rows = np.random.default_rng(rows_of_value), 200_000
    values = np.arange(rows) // rows_of_value
    file = (values * 7 + random.integers(0, spread, rows)) % FILES
    if spread > FILES:  # of one half of the files, which have a half of the values
        file = random.integers(0, FILES // 2, rows) + np.where(values < values[-1] // 2, 0, FILES // 2)
    part = random.permutation(rows)[: rows // 20]
    table = pa.table({"key": values[part]})
    sample = replace(Sample.of_table(table), table_rows=rows)
    asked = [Compare(col("key"), "=", lit(int(values[n]))) for n in part[:10]]
    stats = sample.rows.stats(file[part], FILES)
    passed = files_let_pass(asked, stats, sample.schema)
    (found,) = expected_filters(passed, sample, sample.rows, file[part], stats, 1e7).values()
    index = type(stats)(stats.rows, stats.terms, {}, {"key": found})
    opened = np.mean([may_match(Compare(col("key"), "=", lit(int(values[n]))), index).sum() for n in part[:400]])
    real = np.mean([len(np.unique(file[values == values[n]])) for n in part[:400]])
    assert real / 1.3 - 0.3 < opened < 1.3 * real + 0.3, (real, opened, found.spread)


@pytest.mark.parametrize("rows_of_value", [1, 4])
def test_a_value_that_no_row_in_memory_has_is_in_some_file(rows_of_value: int) -> None:
    """A query names it, so it exists; a tenth of the rows seldom shows it."""
    random, rows = np.random.default_rng(rows_of_value), 100_000
    values, file = np.arange(rows) // rows_of_value, random.integers(0, FILES, rows)
    is_known = random.random(rows) < 0.1
    sample = replace(Sample.of_table(pa.table({"key": values[is_known]})), table_rows=rows)
    asked = [Compare(col("key"), "=", lit(n)) for n in range(1000, 1010)]
    stats = sample.rows.stats(file[is_known], FILES)
    passed = files_let_pass(asked, stats, sample.schema)
    (found,) = expected_filters(passed, sample, sample.rows, file[is_known], stats, 1e7).values()
    unknown = np.setdiff1d(values, values[is_known])[:400].tolist()
    opened = np.mean([found.may_hold("int", [value]).sum() for value in unknown])
    real = np.mean([len(np.unique(file[values == value])) for value in unknown])
    assert real / 1.3 < opened < 1.3 * real + 0.3, (real, opened)


def test_a_filter_holds_the_rows_that_queries_look_up_beside_the_drawn_ones() -> None:
    """Else it would deny the file that the noted outcome of a look-up names."""
    rows, drawn = 100_000, 10_000
    values, file = np.random.default_rng(0).permutation(rows), np.arange(rows) % FILES
    in_memory = Sample.of_table(pa.table({"key": values[: drawn + 50]})).rows
    sample = replace(Sample.of_table(pa.table({"key": values[:drawn]})), table_rows=rows)
    asked = [Compare(col("key"), "=", lit(int(value))) for value in values[drawn : drawn + 50]]
    of_memory = file[: drawn + 50]
    stats = in_memory.stats(of_memory, FILES)
    passed = files_let_pass(asked, stats, sample.schema)
    (found,) = expected_filters(passed, sample, in_memory, of_memory, stats, 1e7).values()
    for p, own in zip(asked, of_memory[drawn:], strict=True):
        assert found.may_hold("int", [p.literal.value])[own]


@pytest.mark.parametrize("rows_of_value", [1, 6, 40])
def test_values_of_a_file_are_guessed_from_a_part_of_its_rows(rows_of_value: int) -> None:
    random, rows = np.random.default_rng(rows_of_value), 300_000
    values, file = np.arange(rows) // rows_of_value, random.integers(0, FILES, rows)
    part = random.permutation(rows)[: rows // 3]
    sample = replace(Sample.of_table(pa.table({"key": values[part]})), table_rows=rows)
    ranked = sample.rows.ranks(col("key"))
    sizes = np.bincount(file, minlength=FILES)
    guessed = _distinct_in_files(ranked, rows / rows_of_value, file[part], sizes, sample.fraction)
    real = np.array([len(np.unique(values[file == i])) for i in range(FILES)])
    assert (np.abs(guessed / real - 1) < 0.2).all()
