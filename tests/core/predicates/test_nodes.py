"""The canonical text: Spark SQL, and the identity of a predicate."""

from __future__ import annotations

from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any

import pytest

from hedgerow.core.predicates.nodes import (
    And,
    Cast,
    Column,
    Compare,
    Const,
    Expr,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Prefix,
    atoms_of,
    col,
    columns_of,
    lit,
    terms_of,
    walk,
)
from hedgerow.core.predicates.sql_text import literal_text, predicate_text, term_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import NAN, canonical

x, y = col("x"), col("y")
LESS, LIKE = Compare(x, "<", lit(5)), Like(col("note"), "%a%")


@pytest.mark.parametrize(
    ("value", "sql"),
    [
        (-5, "-5"),
        (Decimal("2.500"), "2.5"),
        (Decimal("1E+3"), "1000BD"),
        (Decimal("9" * 38), f"{'9' * 38}BD"),
        (Decimal("-0." + "9" * 38), f"-0.{'9' * 38}"),
        (time(23, 59, 59, 5), "TIME '23:59:59.000005'"),
        (1.5, "1.5D"),
        (-0.0, "0.0D"),
        (float("nan"), "double('NaN')"),
        (float("-inf"), "double('-Infinity')"),
        ("it's a \\ 'test'", r"'it\'s a \\ \'test\''"),
        (b"\x00\xff", "X'00FF'"),
        (True, "TRUE"),
        (date(1995, 3, 1), "DATE '1995-03-01'"),
        (datetime(1995, 3, 1, 12, 0, 0, 5), "TIMESTAMP_NTZ '1995-03-01 12:00:00.000005'"),
        (datetime(1995, 3, 1, tzinfo=timezone.utc), "TIMESTAMP_LTZ '1995-03-01 00:00:00 UTC'"),
    ],
    ids=str,
)
def test_literals(value: object, sql: str) -> None:
    assert literal_text(lit(value)) == sql


@pytest.mark.parametrize(
    ("path", "sql"),
    [
        (("price",), "price"),
        (("order",), "`order`"),
        (("2nd",), "`2nd`"),
        (("address", "zip code"), "address.`zip code`"),
        (("a.b",), "`a.b`"),
        (("a`b",), "`a``b`"),
        (("größe",), "`größe`"),
    ],
)
def test_names(path: tuple[str, ...], sql: str) -> None:
    assert term_text(Column(path)) == sql


@pytest.mark.parametrize(
    ("p", "sql"),
    [
        (And((LESS, Or((LIKE, IsNull(y))))), "x < 5 AND ((note LIKE '%a%') OR y IS NULL)"),
        (Or((And((LESS, LIKE)), Not(IsNull(y)))), "(x < 5 AND (note LIKE '%a%')) OR y IS NOT NULL"),
        (Not(In(x, (lit(1), lit(2)))), "x NOT IN (1, 2)"),
        (Not(Prefix(y, "a")), "NOT (startswith(y, 'a'))"),
        (In(x, ()), "x <> x"),
        (And(()), "TRUE"),
        (Or(()), "FALSE"),
        (Const(None), "CAST(NULL AS BOOLEAN)"),
        (Compare(Cast(x, Type.parse("decimal(10,2)")), ">", lit(1)), "CAST(x AS DECIMAL(10,2)) > 1"),
    ],
    ids=str,
)
def test_predicates(p: And, sql: str) -> None:
    assert predicate_text(p) == sql


def test_walking() -> None:
    month = Expr("month(d)", (col("d"),))
    p = And((Or((LESS, LIKE)), Not(Compare(month, "=", lit(3)))))
    assert [type(node).__name__ for node in walk(p)] == ["And", "Or", "Compare", "Like", "Not", "Compare"]
    assert list(atoms_of(p)) == [LESS, LIKE, Compare(month, "=", lit(3))]
    assert terms_of(p) == {x, month}
    assert columns_of(p) == {x, col("note"), col("d")}


@pytest.mark.parametrize(
    ("kind", "value"),
    [("int", 1.5), ("int", True), ("date", datetime(2024, 1, 1)), ("decimal", Decimal("NaN")), ("string", b"a")],
)
def test_a_value_of_another_kind_is_refused(kind: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"kind|date"):
        canonical(kind, value)


def test_nan_is_one_value_above_all_others() -> None:
    assert lit(float("nan")) == lit(-float("nan"))
    values: list[Any] = [NAN, 1.0, float("inf"), NAN, -1.0]
    assert sorted(values) == [-1.0, 1.0, float("inf"), NAN, NAN]


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("LONG", Type("bigint")),
        ("decimal", Type("decimal", 10, 0)),
        ("numeric(12,2)", Type("decimal", 12, 2)),
        ("varchar(10)", Type("string")),
        ("timestamp_ltz", Type("timestamp")),
    ],
)
def test_types(name: str, type_: Type) -> None:
    assert Type.parse(name) == type_
    assert Type.parse(str(type_)) == type_


@pytest.mark.parametrize("name", ["char(5)", "array<int>", "string collate UTF8_LCASE", "interval day"])
def test_types_whose_order_we_do_not_know(name: str) -> None:
    assert Type.parse(name).kind == "other"
