"""TPC-DS's templates with redrawn literals are the same everywhere, run, and ask for what occurs."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from bench.data import tpcds_tables
from bench.data.duck import connection, texts
from bench.data.tpcds_texts import TEMPLATES, Values, drawn, queries
from bench.several import schemas_of
from hedgerow.core.predicates.nodes import TRUE
from hedgerow.sql.workload import Workload
from tests.support.digest import digest


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEDGEROW_BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        return tpcds_tables.tables(0.01)


@pytest.fixture(scope="module")
def values(folder: Path) -> Values:
    return tpcds_tables.values_of(folder)


@pytest.mark.long
def test_the_same_everywhere(values: Values) -> None:
    asked = queries(values, 0, 2)
    assert len(TEMPLATES) == 46 and len(asked) == 92
    assert asked[:46] == queries(values, 0, 1)
    assert sum(a != b for a, b in zip(asked[:46], asked[46:], strict=True)) > 40
    assert digest("\n".join(asked)) == "3ca3b8eda5a11bc2"


def test_the_same_rows_everywhere(folder: Path) -> None:
    first = [ds.dataset(folder / name).head(3).to_pylist() for name in ("store_sales", "item", "date_dim")]
    assert digest(first) == "9bd7de89313a3655"


def test_ranges_stay_as_wide() -> None:
    some: Values = {"d_year": [1998, 2001], "d_moy": [3], "i_manufact_id": [77], "ss_quantity": [10]}
    for n in (3, 9):
        asked = drawn(n, some, random.Random(0))
        assert asked != texts("tpcds")[n]
    assert "i_manufact_id = 77 AND dt.d_moy = 3" in drawn(3, some, random.Random(0))
    for low, high in ((10, 29), (30, 49), (50, 69), (70, 89), (90, 109)):
        assert f"ss_quantity BETWEEN {low} AND {high}" in drawn(9, some, random.Random(0))
    assert "> 74129" in drawn(9, some, random.Random(0)), "only what columns are compared with is drawn"


def test_they_run_and_are_understood(folder: Path, values: Values) -> None:
    asked = queries(values, 3, 1)
    with connection("tpcds") as con:
        for table in folder.iterdir():
            con.execute(f"CREATE VIEW {table.name} AS FROM '{table}/*.parquet'")
        for sql in asked:
            con.execute(sql).fetchall()
    workload = Workload.from_sql(asked, schemas_of(folder), "duckdb")
    assert not workload.skipped
    assert sum(q.predicate("date_dim") != TRUE for q in workload if q.reads("date_dim")) > 30
