"""Binding: what Spark's casts make of a comparison, said about the bare column; tried against a slow model of Spark."""

from __future__ import annotations

from datetime import date, datetime, time, timezone
from decimal import Decimal
from fractions import Fraction
from random import Random

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hedgerow.core.errors import SchemaError
from hedgerow.core.predicates.binding import bind
from hedgerow.core.predicates.nodes import (
    Cast,
    Column,
    Compare,
    CompareTerms,
    Expr,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Opaque,
    Predicate,
    Prefix,
    atoms_of,
    col,
    lit,
    terms_of,
)
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.row_truth import truth
from hedgerow.core.predicates.schema import Session, as_schema
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.predicates.types import Type
from tests.support.spark_comparisons import (
    NEW_YORK,
    OPS,
    SCHEMA,
    UTC,
    a_bind_literal,
    a_bind_term,
    a_column_value,
    is_about_columns,
    model,
    spark_double,
)


def said(p: Predicate, zone: str | None = UTC) -> str:
    return predicate_text(bind(p, SCHEMA, Session(zone)))


def local(*parts: int) -> Literal:
    return lit(datetime(*parts), "timestamp_local")  # type: ignore[arg-type]


# --- type by type ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "op", "literal", "bound"),
    [
        # integers and dates: half open, whatever the literal
        ("l", "<=", lit(5), "l < 6"),
        ("l", ">", lit(5), "l >= 6"),
        ("l", ">", lit(Decimal("2.5")), "l >= 3"),
        ("l", "<=", lit(Decimal("2.5")), "l < 3"),
        ("l", "=", lit(Decimal("2.5")), "l <> l"),
        ("l", "<>", lit(Decimal("2.5")), "NOT (l <> l)"),
        ("l", "=", lit(Decimal("2.0")), "l = 2"),
        ("l", "<", lit(2.5), "l < 3"),
        ("l", "=", lit(2.0), "l >= 2 AND l < 3"),
        ("l", "=", lit(2.0**53), "l >= 9007199254740992 AND l < 9007199254740994"),
        ("l", "<", lit(float("nan")), "NOT (l <> l)"),
        ("l", ">", lit("5"), "l >= 6"),
        ("dt", "<=", lit("1995-03-31"), "dt < DATE '1995-04-01'"),
        ("dt", "=", lit("1995-03-31"), "dt = DATE '1995-03-31'"),
        ("dt", "<", local(1995, 3, 31), "dt < DATE '1995-03-31'"),
        ("dt", "<=", local(1995, 3, 31, 12), "dt < DATE '1995-04-01'"),
        ("dt", "=", local(1995, 3, 31, 12), "dt >= DATE '1995-04-01' AND dt < DATE '1995-04-01'"),
        # 64 bits and no more: beyond them Spark answers for NULL, too
        ("l", "<=", lit(2**63 - 1), "NOT (l <> l)"),
        ("l", ">", lit(2**63 - 1), "l <> l"),
        ("l", "<", lit(2**63), "(l < 9223372036854775808)"),
        ("l", "=", lit(2**63), "l <> l"),
        ("l", "<", lit(1e30), "NOT (l <> l)"),
        # 38 digits and no more: Spark rounds both sides to them, so that 0 = 1e-19 is TRUE for a bigint
        ("l", "=", lit(Decimal("1e-18")), "l <> l"),
        ("l", "=", lit(Decimal("1e-19")), "(l = 0.0000000000000000001)"),
        ("i", "=", lit(Decimal("1e-28")), "i <> i"),
        ("i", "=", lit(Decimal("1e-29")), "(i = 0.00000000000000000000000000001)"),
        # decimals and doubles
        ("d", "=", lit(Decimal("2.505")), "d = 2.505"),
        ("d", "<", lit(3), "d < 3BD"),
        ("d", ">=", lit(0.1), "d >= 0.1"),
        ("d", ">=", lit("0.1"), "d >= 0.1"),
        ("d", "=", lit("0.1"), "(d = '0.1')"),
        ("e", "<", lit(Decimal("1e-30")), "(e < 0.000000000000000000000000000001)"),
        ("x", "<", lit(Decimal("0.1")), "x < 0.1D"),
        ("x", "=", lit(-0.0), "x = 0.0D"),
        ("x", "=", lit("0.1"), "x = 0.1D"),
        ("x", "=", lit("1e3"), "(x = '1e3')"),
        ("f", "<", lit(5), "f < 5.0D"),
        ("f", "<", lit(2**24 + 1), "(f < 16777217)"),
        # instants
        ("ts", "<", lit("1995-03-31"), "ts < TIMESTAMP_LTZ '1995-03-31 00:00:00 UTC'"),
        ("ts", "<", lit(date(1995, 3, 31)), "ts < TIMESTAMP_LTZ '1995-03-31 00:00:00 UTC'"),
        ("ts", "<", lit("yesterday"), "(ts < 'yesterday')"),
        ("ntz", "<", lit("1995-03-31 12:30"), "ntz < TIMESTAMP_NTZ '1995-03-31 12:30:00'"),
        (
            "ntz",
            "<",
            lit(datetime(1995, 3, 31, tzinfo=timezone.utc)),
            "(ntz < TIMESTAMP_LTZ '1995-03-31 00:00:00 UTC')",
        ),
        # the rest
        ("b", "=", lit("TRUE"), "b = TRUE"),
        ("s", "=", lit("a"), "s = 'a'"),
        ("s", "=", lit(5), "(s = 5)"),
        ("raw", "=", lit(b"a"), "raw = X'61'"),
        ("fixed", "=", lit("a"), "(fixed = 'a')"),
        ("dt", "=", lit("1995-02-30"), "(dt = '1995-02-30')"),
        ("dt", "=", lit("31.3.1995"), "(dt = '31.3.1995')"),
    ],
)
def test_type_pairs(name: str, op: str, literal: Literal, bound: str) -> None:
    assert said(Compare(col(name), op, literal)) == bound


@pytest.mark.parametrize(
    ("name", "literal", "zone", "bound"),
    [
        ("ts", local(2024, 1, 15), NEW_YORK, "ts < TIMESTAMP_LTZ '2024-01-15 05:00:00 UTC'"),
        ("ts", local(2024, 7, 15), NEW_YORK, "ts < TIMESTAMP_LTZ '2024-07-15 04:00:00 UTC'"),
        ("ts", local(2024, 3, 10, 2, 30), NEW_YORK, "(ts < TIMESTAMP '2024-03-10 02:30:00')"),  # never on a clock
        ("ts", local(2024, 11, 3, 1, 30), NEW_YORK, "(ts < TIMESTAMP '2024-11-03 01:30:00')"),  # twice on a clock
        ("ts", local(2024, 1, 15), None, "(ts < TIMESTAMP '2024-01-15 00:00:00')"),
        ("ts", local(2024, 1, 15), "Mars/Olympus", "(ts < TIMESTAMP '2024-01-15 00:00:00')"),
        ("ts", lit("2024-01-15"), NEW_YORK, "ts < TIMESTAMP_LTZ '2024-01-15 05:00:00 UTC'"),
        ("ts", lit(datetime(2024, 1, 15)), NEW_YORK, "ts < TIMESTAMP_LTZ '2024-01-15 05:00:00 UTC'"),
        ("ntz", local(2024, 1, 15), NEW_YORK, "(ntz < TIMESTAMP '2024-01-15 00:00:00')"),
        ("ntz", lit("2024-01-15"), None, "ntz < TIMESTAMP_NTZ '2024-01-15 00:00:00'"),
        ("dt", local(2024, 1, 15, 1), NEW_YORK, "dt < DATE '2024-01-16'"),
        ("dt", lit("2024-01-15"), None, "dt < DATE '2024-01-15'"),
    ],
)
def test_zones(name: str, literal: Literal, zone: str | None, bound: str) -> None:
    assert said(Compare(col(name), "<", literal), zone) == bound


@pytest.mark.parametrize(
    ("cast", "op", "literal", "bound"),
    [
        (("i", "bigint"), "<", lit(5), "i < 5"),
        (("i", "decimal(10,0)"), "<", lit(5), "i < 5"),
        (("d", "decimal(10,4)"), "<", lit(5), "d < 5BD"),
        (("f", "double"), "<", lit(0.5), "f < 0.5D"),
        (("l", "double"), "<", lit(2.5), "l < 3"),
        (("ntz", "date"), "=", lit("2024-01-15"), "ntz >= TIMESTAMP_NTZ '2024-01-15 00:00:00' AND ntz < TIMESTAMP_NTZ '2024-01-16 00:00:00'"),
        (("ts", "date"), "<=", lit(date(2024, 1, 15)), "ts < TIMESTAMP_LTZ '2024-01-16 00:00:00 UTC'"),
        # what may fail, round or wrap keeps its cast: its values are not those of the column
        (("l", "int"), "<", lit(5), "CAST(l AS INT) < 5"),
        (("d", "decimal(6,1)"), "<", lit(5), "CAST(d AS DECIMAL(6,1)) < 5BD"),
        (("x", "float"), "<", lit(0.5), "CAST(x AS FLOAT) < 0.5D"),
        (("x", "bigint"), "<", lit(5), "CAST(x AS BIGINT) < 5"),
        (("s", "int"), "<", lit(5), "CAST(s AS INT) < 5"),
        (("i", "string"), "<", lit("5"), "CAST(i AS STRING) < '5'"),
    ],
)  # fmt: skip
def test_casts(cast: tuple[str, str], op: str, literal: Literal, bound: str) -> None:
    assert said(Compare(Cast(col(cast[0]), Type.parse(cast[1])), op, literal)) == bound


@pytest.mark.parametrize(
    ("p", "bound"),
    [
        (In(col("l"), (lit(1), lit(Decimal("2.5")), lit(3))), "l = 1 OR l <> l OR l = 3"),
        (In(col("l"), ()), "l <> l"),
        (In(col("t"), (lit(1), lit(Decimal("1e-28")))), "t = 1 OR t <> t"),
        (In(col("t"), (lit(1), lit(Decimal("1e-29")))), "(t IN (1, 0.00000000000000000000000000001))"),
        (In(col("d"), (lit(10**9), lit(Decimal("1e-28")))), "d IN (0.0000000000000000000000000001, 1000000000BD)"),
        (In(col("d"), (lit(10**10), lit(Decimal("1e-28")))), "(d IN (10000000000, 0.0000000000000000000000000001))"),
        (In(col("l"), (lit(1), lit("2"))), "(l IN (1, '2'))"),
        (In(col("l"), (lit("1"), lit("2"))), "l IN (1, 2)"),
        (In(col("x"), (lit("5"),)), "(x IN ('5'))"),  # text against text where ANSI mode is off: '5.0' is not '5'
        (In(col("ts"), (lit("2024-01-15"),)), "(ts IN ('2024-01-15'))"),
        (In(col("dt"), (lit("2024-01-15"),)), "dt = DATE '2024-01-15'"),
        (Prefix(col("s"), "ab"), "startswith(s, 'ab')"),
        (Prefix(col("i"), "1"), "(startswith(i, '1'))"),
        (IsNull(Cast(col("i"), Type.parse("bigint"))), "i IS NULL"),
        (IsNull(Cast(col("s"), Type.parse("int"))), "CAST(s AS INT) IS NULL"),
        (CompareTerms(col("i"), "<", col("l")), "i < l"),
        (CompareTerms(col("i"), "<", col("d")), "(i < d)"),
        (CompareTerms(col("big"), "<", col("e")), "(big < e)"),  # no 38 digits hold both
        (CompareTerms(col("f"), "<", col("x")), "f < x"),
        (CompareTerms(col("dt"), "<", col("ts")), "(dt < ts)"),
        (CompareTerms(col("list"), "=", col("list")), "(list = list)"),
        (Not(Like(col("X"), "a")), "NOT ((x LIKE 'a'))"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)  # fmt: skip
def test_other_predicates(p: Predicate, bound: str) -> None:
    found = bind(p, SCHEMA, Session(UTC))
    assert bound in (predicate_text(found), predicate_text(normalise(found)))


def test_equal_sets_of_integers_have_one_text() -> None:
    x = col("l")
    same: list[Predicate] = [
        *(Compare(x, "<=", v) for v in (lit(5), lit(Decimal("5.5")), lit(5.5), lit("5"))),
        *(Compare(x, "<", v) for v in (lit(6), lit(Decimal("5.01")), lit(5.5))),
        Not(Compare(x, ">", lit(5))),
        Not(Compare(x, ">=", lit(6))),
    ]
    assert {predicate_text(normalise(bind(p, SCHEMA))) for p in same} == {"l < 6"}


# --- names ----------------------------------------------------------------------------------------

NESTED = as_schema(
    pa.schema(
        [
            ("Price", pa.int64()),
            ("Address", pa.struct([("Zip", pa.string()), ("geo", pa.struct([("lat", pa.float64())]))])),
            ("a.b", pa.int32()),
            ("wierd `name`", pa.int32()),
        ]
    )
)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (("PRICE",), "Price"),
        (("address", "zip"), "Address.Zip"),
        (("ADDRESS", "GEO", "LAT"), "Address.geo.lat"),
        (("A.B",), "`a.b`"),
        (("wierd `NAME`",), "`wierd ``name```"),
        (("address", "unlisted"), "Address.unlisted"),  # fields that the schema does not list stay as they are
    ],
)
def test_names_take_the_spelling_of_the_schema(path: tuple[str, ...], found: str) -> None:
    bound = bind(IsNull(Column(path)), NESTED)
    assert predicate_text(bound) == f"{found} IS NULL"


def test_a_column_the_schema_lacks() -> None:
    with pytest.raises(SchemaError, match="there is no column nothing"):
        bind(Compare(col("nothing"), "=", lit(1)), SCHEMA)
    with pytest.raises(SchemaError, match="there is no column gone"):
        bind(Like(col("gone"), "x"), SCHEMA)


def test_expressions_name_their_columns() -> None:
    month = Expr("month(Dt)", (col("DT"),), Type("int"))
    bound = bind(Compare(month, "<=", lit(3)), SCHEMA)
    assert predicate_text(bound) == "month(Dt) < 4"
    assert next(iter(terms_of(bound))) == Expr("month(Dt)", (col("dt"),))


@pytest.mark.parametrize(
    ("type_", "sql", "literal", "bound"),
    [
        ("map<string,string>", "M['a b']", lit("x"), "M['a b'] < 'x'"),
        ("map<string,string>", "m['a']", lit(3), "(m['a'] < 3)"),
        ("map<string,string>", "concat(m['a'], m['b'])", lit("x"), "(concat(m['a'], m['b']) < 'x')"),
        ("map<string,string>", "mm['a']", lit("x"), "(mm['a'] < 'x')"),
        ("map<string,map<string,string>>", "m['a']['b']", lit("x"), "(m['a']['b'] < 'x')"),
        ("map<string,string collate UNICODE>", "m['a']", lit("x"), "(m['a'] < 'x')"),
        ("map<string,char(3)>", "m['a']", lit("x"), "(m['a'] < 'x')"),
        ("map<string,int>", "m['a']", lit(3), "(m['a'] < 3)"),
        ("map<int,string>", "m['1']", lit("x"), "(m['1'] < 'x')"),
        ("array<string>", "m['1']", lit("x"), "(m['1'] < 'x')"),
    ],
)
def test_texts_in_maps_are_compared(type_: str, sql: str, literal: Literal, bound: str) -> None:
    """Values of other types are not: Spark casts them, and the casts around an expression are not seen through."""
    found = normalise(bind(Compare(Expr(sql, (col("m"),)), "<", literal), as_schema({"m": type_})))
    assert predicate_text(found) == bound
    other = normalise(bind(Compare(Expr(sql, (col("m"),)), "<", literal), as_schema({"m": "map<string,double>"})))
    assert isinstance(other, Opaque)  # whatever was bound before


def test_a_schema_by_names() -> None:
    schema = as_schema({"a.b": "int", "`c.d`": "string", "order": "date"})
    assert [
        predicate_text(bind(IsNull(c), schema)) for c in (Column(("A", "B")), Column(("C.D",)), Column(("Order",)))
    ] == ["a.b IS NULL", "`c.d` IS NULL", "`order` IS NULL"]


# --- against a slow model of Spark ----------------------------------------------------------------


@given(random=st.integers(0, 2**64).map(Random))
def test_bound_predicates_mean_what_spark_means(random: Random) -> None:
    comparable = [name for name, type_ in SCHEMA.items() if type_.kind != "other"]
    for _ in range(20):
        name, zone = random.choice(comparable), random.choice((UTC, NEW_YORK))
        literal = a_bind_literal(random, SCHEMA[name].kind)
        p = Compare(a_bind_term(random, name), random.choice(list(OPS)), literal)
        bound = bind(p, SCHEMA, Session(zone))
        if not is_about_columns(bound):
            continue
        near = "NaN" if repr(literal.value) == "NaN" else literal.value
        for value in (None, *(a_column_value(random, SCHEMA[name], near) for _ in range(8))):
            row = {name: value}
            assert truth(bound, row) is model(p, value, zone), (
                f"{predicate_text(p)} became {predicate_text(bound)}, {row}, {zone}"
            )
            assert truth(normalise(bound), row) is truth(bound, row)


def test_most_comparisons_are_not_left_to_spark() -> None:
    """The property above must not hold by giving up."""
    random, known = Random(0), 0
    comparable = [name for name, type_ in SCHEMA.items() if type_.kind != "other"]
    for _ in range(1000):
        name = random.choice(comparable)
        p = Compare(col(name), random.choice(list(OPS)), a_bind_literal(random, SCHEMA[name].kind))
        known += is_about_columns(bind(p, SCHEMA, Session(UTC)))
    assert known > 750


@given(value=st.floats(-1e37, 1e37), beside=st.integers(-(2**70), 2**70), scale=st.sampled_from([0, 10]))
@example(value=1e30, beside=0, scale=0)
def test_38_digits_against_doubles_at_the_edge(value: float, beside: int, scale: int) -> None:
    """Neighbouring decimals share a double: the line is crossed exactly where the cast says so."""
    name = "e" if scale else "big"
    for op in ("<", ">=", "<=", "="):
        bound = bind(Compare(col(name), op, lit(value)), SCHEMA)
        edges = [a.literal.value for a in atoms_of(bound) if isinstance(a, Compare)]
        for edge in [*edges, Decimal(f"{int(value * 10**scale) + beside}E-{scale}")]:
            unscaled = int(Fraction(edge) * 10**scale)
            for n in (unscaled - 1, unscaled, unscaled + 1):
                d = Decimal(f"{n}E-{scale}")
                if abs(n) < 10**38:
                    assert truth(bound, {name: d}) is OPS[op](spark_double(d), spark_double(value)), (op, d)


@pytest.mark.parametrize(
    ("type_", "op", "literal", "bound"),
    [
        ("decimal(38,0)", ">=", lit(Decimal("9" * 38)), f"x >= {'9' * 38}BD"),
        ("decimal(38,0)", "<=", lit(1e38), "NOT (x <> x)"),
        ("decimal(38,0)", "<", lit(1e40), "NOT (x <> x)"),
        ("decimal(38,0)", ">", lit(float("inf")), "x <> x"),
        ("decimal(38,38)", ">=", lit(-1.5), "NOT (x <> x)"),
        ("bigint", "<=", lit(2**63 - 1), "NOT (x <> x)"),
        ("bigint", ">", lit(2**63 - 1), "x <> x"),
        ("date", "<=", lit(2**31 - 1, "date"), "NOT (x <> x)"),
        ("date", ">", lit(2**31 - 1, "date"), "x <> x"),
        ("date", ">=", lit(-(2**31), "date"), "x >= DATE '-5877641-06-23'"),
        ("time(6)", "<=", lit(time(23, 59, 59, 999_999)), "x <= TIME '23:59:59.999999'"),
        ("time(0)", "<", lit("05:00:00"), "(x < '05:00:00')"),
    ],
)
def test_ends_of_types(type_: str, op: str, literal: Literal, bound: str) -> None:
    """Every literal that is written is one that Spark has."""
    assert predicate_text(bind(Compare(col("x"), op, literal), as_schema({"x": type_}))) == bound
