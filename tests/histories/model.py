"""What a table must hold, in plain Python, and random conditions and queries over it.

    Field   a column: its name and its kind, which is a Spark type as SQL writes it
    Row     a dict from names to values; `id` is unique and never changes its name
    Twin    the rows as a local relation of Spark, without a file: it answers a query as the table must

The same `random.Random` gives the same values, conditions and queries.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Field:
    name: str
    kind: str


FIELDS = (
    Field("id", "bigint"),
    Field("number", "int"),
    Field("other", "int"),
    Field("word", "string"),
    Field("text", "string"),
    Field("day", "date"),
    Field("price", "decimal(8,2)"),
    Field("at", "timestamp"),
    Field("ratio", "double"),
    Field("part", "string"),
)
ARROW = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "string": pa.string(),
    "date": pa.date32(),
    "decimal(8,2)": pa.decimal128(8, 2),
    "decimal(12,2)": pa.decimal128(12, 2),
    "timestamp": pa.timestamp("us", "UTC"),
    "double": pa.float64(),
}
WIDER = {"int": "bigint", "decimal(8,2)": "decimal(12,2)"}
EPOCH = datetime(2024, 1, 1, tzinfo=timezone.utc)
WORDS = ("", "a", "ab", "abc", "b", "5", "50%", "a_b", "zebra", "Zebra", "éa", "it's", "x" * 12, "long word", " 7")


# --- values ---------------------------------------------------------------------------------------


def a_value(r: Random, kind: str, number: int) -> Any:
    """Values follow `number` about, so that blocks differ, and are NULL now and then."""
    if r.random() < 0.08:
        return None
    near = number + r.randrange(-3, 4)
    match kind:
        case "bigint" | "int":
            return near
        case "string":
            return r.choice(WORDS) if r.random() < 0.6 else f"w{near % 40}"
        case "date":
            return (EPOCH + timedelta(days=near)).date()
        case "decimal(8,2)" | "decimal(12,2)":
            return Decimal(near * 25 + r.randrange(25)).scaleb(-2)
        case "timestamp":
            return EPOCH + timedelta(minutes=37 * near, microseconds=r.choice((0, 0, 1, 999_999)))
        case "double":
            return r.choice((near / 4, near / 4, near / 4, 0.0, -0.0, math.nan, math.inf))
    raise ValueError(kind)


def a_row(r: Random, fields: Sequence[Field], own: int) -> Row:
    number = own % 300 + r.randrange(0, 20)
    row = {f.name: a_value(r, f.kind, number) for f in fields}
    is_parted = any(f.name == "part" and f.kind == "string" for f in fields)  # another column may have got the name
    return row | {"id": own} | ({"part": r.choice(("a", "b", "x y=z", None))} if is_parted else {})


def rows_of(r: Random, fields: Sequence[Field], first: int, n: int) -> list[Row]:
    return [a_row(r, fields, own) for own in range(first, first + n)]


def without_nan(rows: Sequence[Row]) -> list[Row]:
    """For other writers: they leave NaN out of a footer's bounds, and then Spark itself loses rows of `x > Infinity`."""
    return [{k: 1.5 if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()} for row in rows]


def arrow(fields: Sequence[Field], rows: Sequence[Row]) -> pa.Table:
    return pa.table({f.name: pa.array([row[f.name] for row in rows], ARROW[f.kind]) for f in fields})


def frame(spark: SparkSession, fields: Sequence[Field], rows: Sequence[Row]) -> DataFrame:
    return spark.createDataFrame(arrow(fields, rows))


# --- answers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """Columns and rows in any order, or the kind of error that the query ended with."""

    columns: tuple[str, ...] = ()
    rows: Counter[tuple[Any, ...]] | None = None
    error: str | None = None
    told: str = ""

    def same(self, other: Answer) -> bool:
        return (self.error, self.columns, self.rows) == (other.error, other.columns, other.rows)

    def __str__(self) -> str:
        if self.rows is None:
            return f"error {self.error}: {self.told}"
        return f"{self.rows.total()} rows of {len(self.columns)} columns"


def answer_of(table: pa.Table) -> Answer:
    columns = [[_comparable(v) for v in column.to_pylist()] for column in table.columns]
    rows = zip(*columns, strict=True) if columns else ()
    return Answer(tuple(table.column_names), Counter(rows))


def difference(expected: Answer, found: Answer) -> str:
    """Which rows are missing or too many, a few of them."""
    if expected.rows is None or found.rows is None or expected.columns != found.columns:
        return f"expected {expected} {expected.columns}, found {found} {found.columns}"
    missing, extra = expected.rows - found.rows, found.rows - expected.rows
    shown = "; ".join(str(row)[:160] for row in [*list(missing)[:2], *list(extra)[:2]])
    return f"{missing.total()} rows missing, {extra.total()} too many of {expected.rows.total()}: {shown}"


def _comparable(value: Any) -> Any:
    """NaN equals NaN and -0.0 equals 0.0, as in Spark."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value.astimezone(timezone.utc) if isinstance(value, datetime) else value


# --- conditions -----------------------------------------------------------------------------------

OPS = ("=", "<>", "<", "<=", ">", ">=", "=", "<=>")


def literal(value: Any, kind: str) -> str:
    if value is None:
        return "NULL"
    match value:
        case bool() | int():
            return f"{value}L" if kind == "bigint" and value % 2 else str(value)
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case datetime():
            return f"TIMESTAMP '{value.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S.%f}'"
        case date():
            return f"DATE '{value}'"
        case Decimal():
            return str(value)
        case float():
            return (
                "DOUBLE('NaN')" if math.isnan(value) else "DOUBLE('Infinity')" if math.isinf(value) else f"{value!r}D"
            )
    raise ValueError(value)


def near(r: Random, f: Field, rows: Sequence[Row]) -> Any:
    """A value of the column, or one right beside it; never NULL."""
    found = r.choice(rows)[f.name] if rows and r.random() < 0.9 else None
    while found is None:
        found = a_value(r, f.kind, r.randrange(320))
    move = r.choice((-1, 0, 0, 0, 1))
    match f.kind:
        case "bigint" | "int":
            return found + move
        case "date":
            return found + timedelta(days=move)
        case "decimal(8,2)" | "decimal(12,2)":
            return found + Decimal(move).scaleb(-2)
        case "timestamp":
            return found + timedelta(microseconds=move)
    return found


def an_atom(r: Random, fields: Sequence[Field], rows: Sequence[Row]) -> str:
    f = r.choice(fields)
    name, op = f"`{f.name}`" if not f.name.isidentifier() else f.name, r.choice(OPS)

    def value() -> str:
        return literal(near(r, f, rows), f.kind)

    common = [
        f"{name} {op} {value()}",
        f"{name} {op} {value()}",
        f"{name} BETWEEN {value()} AND {value()}",
        f"{name} IN ({value()}, {value()}, {value()})",
        f"{name} IN ({value()}, {value()}, {value()})",
        f"{name} NOT IN ({value()}, NULL)" if r.random() < 0.3 else f"{name} NOT IN ({value()}, {value()})",
        f"{name} IS {r.choice(('NULL', 'NOT NULL'))}",
    ]
    same = [g.name for g in fields if g.kind == f.kind and g != f]
    common += [f"{name} {op} {r.choice(same)}"] if same else []
    return r.choice([*common, *_special(r, f.kind, name, op, value, near(r, f, rows))])


def _special(r: Random, kind: str, name: str, op: str, value: Callable[[], str], found: Any) -> list[str]:
    match kind:
        case "bigint" | "int":
            return [
                f"{name} % 7 {op} {r.randrange(7)}",
                f"abs({name}) + 1 {op} {value()}",
                f"{name} {op} {value()} + 0.5",
            ]
        case "string":
            part = found[: r.randrange(4)].replace("\\", "\\\\").replace("'", "\\'")
            return [
                f"{name} LIKE '{part}%'",
                f"{name} LIKE '%{part}%'",
                f"{name} NOT LIKE '%{part}'",
                f"length({name}) {op} {len(found)}",
                f"upper({name}) {op} upper({value()})",
                f"substring({name}, 1, 2) {op} {value()}",
                f"concat({name}, 'b') {op} {value()}",
            ]
        case "date":
            return [
                f"year({name}) {op} {found.year}",
                f"month({name}) {op} {found.month}",
                f"date_add({name}, 3) {op} {value()}",
            ]
        case "timestamp":
            return [f"hour({name}) {op} {found.hour}", f"CAST({name} AS DATE) {op} DATE '{found:%Y-%m-%d}'"]
        case "double":
            return [f"isnan({name})", f"{name} * 2 {op} {value()}"]
    return [f"{name} * 2 {op} {value()}", f"CAST({name} AS INT) {op} {int(found)}"]


def a_condition(r: Random, fields: Sequence[Field], rows: Sequence[Row], depth: int = 2) -> str:
    if depth == 0 or r.random() < 0.45:
        return an_atom(r, fields, rows)
    left, right = (a_condition(r, fields, rows, depth - 1) for _ in range(2))
    return r.choice((f"{left} AND {right}", f"({left} OR {right})", f"NOT ({left})", f"({left}) AND NOT ({right})"))


def a_sharp_condition(r: Random, fields: Sequence[Field], rows: Sequence[Row], column: str | None = None) -> str:
    """Few rows meet it, and those lie together when they are sorted: what files can be skipped by."""
    f = next((f for f in fields if f.name == column), None) or r.choice(fields)
    held = sorted((row[f.name] for row in rows if row[f.name] is not None and row[f.name] == row[f.name]), key=str)
    if f.kind != "string":
        held.sort()
    if not held:
        value = literal(near(r, f, rows), f.kind)
        return r.choice((f"{f.name} IS NULL", f"{f.name} IS NULL", f"{f.name} IS NOT NULL", f"{f.name} > {value}"))
    at = r.randrange(len(held))
    low, high = held[at], held[min(at + len(held) // 12, len(held) - 1)]
    few, most = held[len(held) // 10], held[-1 - len(held) // 10]
    found = [
        f"{f.name} = {literal(low, f.kind)}", f"{f.name} <=> {literal(low, f.kind)}",
        f"{f.name} IN ({literal(low, f.kind)}, {literal(high, f.kind)})",
        f"{f.name} BETWEEN {literal(low, f.kind)} AND {literal(high, f.kind)}",
        f"{f.name} >= {literal(low, f.kind)} AND {f.name} < {literal(high, f.kind)}",
        f"{f.name} <= {literal(few, f.kind)}", f"{f.name} > {literal(most, f.kind)}", f"{f.name} IS NULL",
    ]  # fmt: skip
    match f.kind:
        case "string":
            start = low[:2].replace("'", "\\'")
            found += [
                f"{f.name} LIKE '{start}%'",
                f"{f.name} LIKE '%{start}'",
                f"length({f.name}) = {len(low)}",
                f"upper({f.name}) = '{start.upper()}'",
            ]
        case "date":
            found += [f"month({f.name}) = {low.month}", f"date_add({f.name}, 1) <= {literal(few, f.kind)}"]
        case "timestamp":
            found += [f"CAST({f.name} AS DATE) = DATE '{low:%Y-%m-%d}'", f"hour({f.name}) = {low.hour}"]
        case "int" | "bigint":
            found += [f"{f.name} + 1 <= {literal(few, f.kind)}", f"{f.name} % 50 = {low % 50}"]
    return r.choice(found)


def a_raising_condition(r: Random, fields: Sequence[Field]) -> str:
    """ANSI mode raises on some rows: skipping these may spare the error, and must never bring one."""
    numbers = [f.name for f in fields if f.kind in ("int", "bigint")]
    strings = [f.name for f in fields if f.kind == "string"]
    found = [f"100 / {name} > 3" for name in numbers] + [f"CAST({name} AS INT) = 5" for name in strings]
    return r.choice(found)


# --- queries --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Query:
    """`sql` has {t} for the table; a simple one also says what `read` takes."""

    sql: str
    where: str | None = None
    columns: tuple[str, ...] | None = None


def a_query(
    r: Random, fields: Sequence[Field], rows: Sequence[Row], learned: Sequence[str], touched: Sequence[str] = ()
) -> Query:
    """About what a layout was `learned` for, about columns that were `touched` of late, or about anything."""
    c = a_condition(r, fields, rows)
    weights = (30, 25, 15, 3, 27, 80 if touched else 0)
    match r.choices(("learned", "sharp", "sharper", "raising", "any", "touched"), weights)[0]:
        case "learned" if learned:
            c = r.choice(learned)
        case "sharp" | "learned":
            c = a_sharp_condition(r, fields, rows)
        case "sharper":
            c = f"{a_sharp_condition(r, fields, rows)} AND {c}"
        case "touched":
            c = a_sharp_condition(r, fields, rows, r.choice(touched))
        case "raising":
            c = a_raising_condition(r, fields)
    match r.randrange(12):
        case 0:
            return Query(
                f"SELECT * FROM {{t}} WHERE id IN (SELECT id FROM {{t}} WHERE {a_condition(r, fields, rows)}) AND {c}"
            )
        case 1:
            f = r.choice(fields)
            return Query(f"SELECT count(*) AS n, min({f.name}) AS low, max({f.name}) AS high FROM {{t}} WHERE {c}")
        case 2:
            word = r.choice(("UNION ALL", "EXCEPT", "INTERSECT"))
            other = a_condition(r, fields, rows)
            return Query(f"SELECT * FROM {{t}} WHERE {c} {word} SELECT * FROM {{t}} WHERE {other}")
        case 3:
            a = r.choice(fields).name
            return Query(
                f"WITH q AS (SELECT * FROM {{t}} WHERE {c}) SELECT q.id, x.{a} FROM q JOIN {{t}} x ON q.id = x.id AND x.id > 20"
            )
        case 4 | 5:
            some = tuple(f.name for f in r.sample(list(fields), r.randrange(1, 4)))
            return Query(f"SELECT {', '.join(some)} FROM {{t}} WHERE {c}", c, some)
    return Query(f"SELECT * FROM {{t}} WHERE {c}", c)


# --- changes that SQL and Python both understand ---------------------------------------------------


@dataclass(frozen=True)
class Chosen:
    """Some rows, as a condition of SQL's and as a function of Python's."""

    sql: str
    matches: Callable[[Row], bool]


def some_rows(r: Random, fields: Sequence[Field], rows: Sequence[Row]) -> Chosen:
    ids = sorted(row["id"] for row in rows) or [0]
    low = r.choice(ids)
    high, k = low + r.randrange(1, 40), r.randrange(5)
    found = [
        Chosen(f"id BETWEEN {low} AND {high}", lambda row: low <= row["id"] <= high),
        Chosen(f"id % 5 = {k}", lambda row: row["id"] % 5 == k),
    ]
    for f in fields:
        if f.kind in ("int", "bigint") and f.name != "id":
            top, name = r.randrange(5, 60), f.name
            found.append(Chosen(f"{name} < {top}", lambda row, n=name, t=top: row[n] is not None and row[n] < t))  # type: ignore[misc]
        if f.kind == "string":
            word, name = r.choice(WORDS), f.name
            found.append(Chosen(f"{name} = {literal(word, 'string')}", lambda row, n=name, w=word: row[n] == w))  # type: ignore[misc]
            found.append(Chosen(f"{name} IS NULL", lambda row, n=name: row[n] is None))  # type: ignore[misc]
    return r.choice(found)
