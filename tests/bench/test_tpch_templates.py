"""The templates ask what TPC-H asks: their answers over the wide table beside those of TPC-H's own texts."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import date
from typing import Any

import duckdb
import pytest

from bench.data import tpch_templates
from bench.data.duck import texts
from bench.data.tpch_templates import TEMPLATES, conditions, queries
from bench.data.tpch_wide import WIDE
from tests.support import tpc_data as duck
from tests.support.digest import digest

# The literals of the specification's validation runs, which DuckDB's texts have.
VALIDATION: dict[int, dict[str, Any]] = {
    1: {"day": date(1998, 9, 2)},
    3: {"segment": "BUILDING", "day": date(1995, 3, 15)},
    4: {"start": date(1993, 7, 1), "end": date(1993, 10, 1)},
    5: {"region": "ASIA", "start": date(1994, 1, 1), "end": date(1995, 1, 1)},
    6: {"start": date(1994, 1, 1), "end": date(1995, 1, 1), "low": "0.05", "high": "0.07", "quantity": 24},
    7: {"one": "FRANCE", "other": "GERMANY"},
    8: {"nation": "BRAZIL", "region": "AMERICA", "type": "ECONOMY ANODIZED STEEL"},
    9: {"colour": "green"},
    10: {"start": date(1993, 10, 1), "end": date(1994, 1, 1)},
    12: {"one": "MAIL", "other": "SHIP", "start": date(1994, 1, 1), "end": date(1995, 1, 1)},
    14: {"start": date(1995, 9, 1), "end": date(1995, 10, 1)},
    18: {"quantity": 300},
    19: {
        **{"brand1": "Brand#12", "low1": 1, "high1": 11, "brand2": "Brand#23", "low2": 10, "high2": 20},
        **{"brand3": "Brand#34", "low3": 20, "high3": 30},
    },
}

# FROM and WHERE of TPC-H's texts, what looks at the table again left out, for the templates without an answer above.
JOINED = {
    17: """FROM lineitem, part WHERE p_partkey = l_partkey AND p_brand = '{brand}' AND p_container = '{container}'""",
    21: """FROM supplier, lineitem l1, orders, nation WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey
        AND o_orderstatus = 'F' AND l1.l_receiptdate > l1.l_commitdate AND s_nationkey = n_nationkey
        AND n_name = '{nation}'""",
}


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    con = duck.with_data("tpch", 0.01)
    con.execute(f"CREATE TABLE tpch AS {WIDE}")
    yield con
    con.close()


def test_the_texts_stay_the_same() -> None:
    """A recorded run is only repeated by the same queries."""
    listed = "\n".join(f"{template} {text}" for template, text in queries(0, 10) + queries(1, 10))
    assert digest(listed) == "68564ec917aa68f8"


def test_more_of_a_seed_begin_with_the_same() -> None:
    assert queries(3, 20)[:150] == queries(3, 10)
    assert len(set(queries(3, 20)) & set(queries(4, 20))) < 150
    assert [template for template, _ in queries(3, 1)] == [str(n) for n in TEMPLATES]


def test_conditions_are_what_stands_behind_where() -> None:
    for (_, text), condition in zip(queries(5, 4), conditions(5, 4), strict=True):
        assert condition == "TRUE" if " WHERE " not in text else f" WHERE {condition}" in text


def test_the_wide_table_has_every_line_once(con: duckdb.DuckDBPyConnection) -> None:
    keys = "SELECT l_orderkey, l_linenumber FROM"
    assert con.sql(f"{keys} tpch ORDER BY ALL").fetchall() == con.sql(f"{keys} lineitem ORDER BY ALL").fetchall()
    assert len(con.sql("FROM tpch").columns) == 68


@pytest.mark.parametrize("n", VALIDATION)
def test_answers_of_the_validation_run(con: duckdb.DuckDBPyConnection, n: int) -> None:
    text = re.sub(r"(?i)\blimit\s+\d+", "", texts("tpch")[n])
    assert _sorted(con, TEMPLATES[n].text(VALIDATION[n])) == _sorted(con, text)


@pytest.mark.parametrize("n", JOINED)
def test_rows_of_the_joined_tables(con: duckdb.DuckDBPyConnection, n: int) -> None:
    """With drawn literals, the wide table's rows are those of the join."""
    r, some = random.Random(n), 0
    for _ in range(10):
        literals = TEMPLATES[n].draw(r)
        (joined,) = con.sql(f"SELECT count(*) {JOINED[n].format(**literals)}").fetchall()
        assert con.sql(f"SELECT count(*) FROM tpch WHERE {TEMPLATES[n].condition(literals)}").fetchall() == [joined]
        some += joined[0]
    assert some


@pytest.mark.parametrize(
    ("column", "domain"),
    [
        ("c_mktsegment", tpch_templates.SEGMENTS),
        ("l_shipmode", tpch_templates.MODES),
        ("c_nation", tpch_templates.NATIONS),
        ("s_region", tpch_templates.REGIONS),
        ("p_type", tpch_templates.TYPES),
        ("p_container", tpch_templates.CONTAINERS),
        ("p_brand", tpch_templates.BRANDS),
        ("unnest(string_split(p_name, ' '))", tpch_templates.COLOURS),
    ],
)
def test_domains_are_the_generators(con: duckdb.DuckDBPyConnection, column: str, domain: Any) -> None:
    assert [value for (value,) in con.sql(f"SELECT DISTINCT {column} FROM tpch ORDER BY 1").fetchall()] == sorted(
        domain
    )


def _sorted(con: duckdb.DuckDBPyConnection, text: str) -> list[tuple[str, ...]]:
    """Rows in any order, columns too, numbers as far as sums in any order agree."""
    return sorted(tuple(sorted(map(_shown, row))) for row in con.sql(text).fetchall())


def _shown(value: object) -> str:
    try:
        return f"{float(value):.6g}"  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return str(value)
