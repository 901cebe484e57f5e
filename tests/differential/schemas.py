"""Random tables as data: columns with small pools of interesting values, and the SQL that makes their rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

# Names that Hedgerow, Delta or Spark use for columns of their own, and names that are awkward to write.
OWN_NAMES = ("_hedgerow_hash", "_HEDGEROW_HASH", "_hedgerow_block", "_hedgerow_copy", "_hedgerow_row", "_metadata")
ODD_NAMES = ("a b", "select", "ä", "x.y", "it's", "q`q", "C0", "_file", "count", "where-", "{t0}", "a%20b", "NULL")


@dataclass(frozen=True, slots=True)
class Kind:
    """A type with literals of it that no session setting changes; `group` names the terms it can stand in."""

    type: str
    group: str
    literals: tuple[str, ...]
    delta: bool = True
    weight: int = 1


_DECIMALS = ["-999.99", "-1.00", "0.00", "0.01", "1.50", "2.00", "7.25", "10.00", "99.99", "12345.67"]
_WIDE = [
    "-3.7", "0", "0.3333333333", "1.9999999999", "2.5", "7.1234567891", "123456789.123456789",
    "99999999999.9999999999", "10000000000",
]  # fmt: skip
_STRINGS = ("", "a", "A", "b1", "B1", "ab", "abc", "a ", "%", "a_c", "5", "05", "5.0", "100", "-1", "ß", "SS", "ı", "I",
            "é", "e\u0301", "zz", "2024-02-01", "2024-01-02", "true", "NaN", "null", "\\\\", "a\\nb", "\U0001f600")  # fmt: skip
_DATES = [
    "0001-01-01", "0999-02-03", "1582-10-04", "1582-10-15", "1900-01-01", "1970-01-01", "2000-02-29", "2020-01-01",
    "2024-01-02", "2024-02-01", "2024-03-31", "9999-12-31",
]  # fmt: skip
_STAMPS = (
    "1582-10-04 12:00:00", "1883-11-18 17:00:00", "1900-01-01 00:00:00", "1930-05-05 00:19:32",
    "1937-07-01 00:00:00.5", "1942-05-01 12:34:56.123456", "1969-12-31 23:59:59.999999", "1996-10-27 01:30:00",
    "2019-03-31 01:30:00", "2020-01-01 00:00:00", "2020-01-01 00:00:00.000001", "2024-02-01 05:45:00",
    "2024-11-03 05:30:00",
)  # fmt: skip


def _ints(type_: str, most: int) -> tuple[str, ...]:
    return tuple(
        f"CAST({n} AS {type_})" for n in (-most - 1, -most, -100, -56, -7, -1, 0, 1, 2, 3, 5, 7, 20, 100, most)
    )


def _floats(type_: str) -> tuple[str, ...]:
    values = [
        "NaN", "Infinity", "-Infinity", "-0.0", "0.0", "0.1", "1", "1.5", "2", "5", "-3.25", "1e20", "1e-20",
        "16777217", "0.30000000000000004",
    ]  # fmt: skip
    return tuple(f"CAST('{v}' AS {type_})" for v in values)


def _texts(suffix: str = "") -> tuple[str, ...]:
    return tuple(f"'{v}'{suffix}" for v in _STRINGS)


KINDS = (
    Kind("TINYINT", "int", _ints("TINYINT", 127), weight=3),
    Kind("SMALLINT", "int", _ints("SMALLINT", 32767)),
    Kind("INT", "int", _ints("INT", 2147483647), weight=4),
    Kind("BIGINT", "int", (*_ints("BIGINT", 9007199254740993), "9223372036854775807L"), weight=2),
    Kind("FLOAT", "float", _floats("FLOAT"), weight=2),
    Kind("DOUBLE", "float", _floats("DOUBLE"), weight=3),
    Kind("DECIMAL(10,2)", "decimal", tuple(f"CAST('{v}' AS DECIMAL(10,2))" for v in _DECIMALS), weight=2),
    Kind("DECIMAL(30,10)", "decimal", tuple(f"CAST('{v}' AS DECIMAL(30,10))" for v in _WIDE), weight=3),
    Kind("DECIMAL(38,18)", "decimal", tuple(f"CAST('{v}' AS DECIMAL(38,18))" for v in _WIDE), weight=2),
    Kind("DECIMAL(5,0)", "decimal", tuple(f"CAST({v} AS DECIMAL(5,0))" for v in (-99999, -1, 0, 1, 2, 5, 10, 99999))),
    Kind("STRING", "string", _texts(), weight=6),
    Kind("STRING", "string", (*_texts()[:8], "CAST(X'ff41' AS STRING)", "CAST(X'c3' AS STRING)"), weight=1),
    Kind("STRING COLLATE UTF8_LCASE", "string", _texts(" COLLATE UTF8_LCASE"), delta=False),
    Kind("STRING COLLATE UNICODE_CI", "string", _texts(" COLLATE UNICODE_CI"), delta=False),
    Kind("STRING COLLATE UTF8_BINARY_RTRIM", "string", _texts(" COLLATE UTF8_BINARY_RTRIM"), delta=False),
    Kind("CHAR(5)", "string", tuple(t for t in _texts() if len(t) < 8)),
    Kind("VARCHAR(12)", "string", _texts()),
    Kind("BINARY", "binary", ("X''", "X'00'", "X'41'", "X'61'", "X'ff'", "X'4142'", "X'c3a9'")),
    Kind("BOOLEAN", "bool", ("true", "false"), weight=2),
    Kind("DATE", "date", tuple(f"DATE'{d}'" for d in _DATES), weight=4),
    Kind("TIMESTAMP", "ts", tuple(f"TIMESTAMP_LTZ'{t} UTC'" for t in _STAMPS), weight=5),
    Kind("TIMESTAMP_NTZ", "ntz", tuple(f"TIMESTAMP_NTZ'{t}'" for t in _STAMPS)),
    Kind("TIME(6)", "time", ("TIME'00:00:00'", "TIME'01:30:00.5'", "TIME'12:34:56.123456'", "TIME'23:59:59.999999'"), delta=False),
    Kind("INTERVAL YEAR TO MONTH", "ym", ("INTERVAL '0-0' YEAR TO MONTH", "INTERVAL '-1-2' YEAR TO MONTH", "INTERVAL '1-1' YEAR TO MONTH"), delta=False),
    Kind("INTERVAL DAY TO SECOND", "dt", ("INTERVAL '0 00:00:00' DAY TO SECOND", "INTERVAL '1 02:03:04.5' DAY TO SECOND", "INTERVAL '-3 00:00:01' DAY TO SECOND"), delta=False),
    Kind("ARRAY<INT>", "ints", ("array()", "array(1)", "array(1, 2, 3)", "array(CAST(NULL AS INT))", "array(5, NULL)", "array(-1, 100)"), weight=3),
    Kind("ARRAY<STRING>", "strings", ("array()", "array('a')", "array('A', 'b1')", "array(CAST(NULL AS STRING), 'x')")),
    Kind("MAP<STRING,INT>", "map", ("map()", "map('a', 1)", "map('a', 2, 'b', NULL)", "map('A', 100)")),
    Kind("STRUCT<a: INT, b: STRING, c: STRUCT<d: DOUBLE>>", "struct", (
        "named_struct('a', 1, 'b', 'x', 'c', named_struct('d', 1.5D))", "named_struct('a', NULL, 'b', 'A', 'c', NULL)",
        "named_struct('a', 7, 'b', NULL, 'c', named_struct('d', CAST('NaN' AS DOUBLE)))",
        "named_struct('a', -1, 'b', '', 'c', named_struct('d', NULL))"), weight=2),
    Kind("VARIANT", "variant", ("""parse_json('{"a": 1, "b": "x"}')""", "parse_json('[1, 2]')", "parse_json('5')", """parse_json('{"a": 7.5}')""", "parse_json('null')", """parse_json('"b1"')"""), weight=2),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """A column; its values are drawn from `pool`, `nulls` more places in it are NULL."""

    name: str
    kind: Kind
    pool: tuple[str, ...]
    nulls: int
    salt: int
    noise: int = 40  # of so many rows, one has a value of its own

    @property
    def quoted(self) -> str:
        return quoted(self.name)

    @property
    def ddl(self) -> str:
        return f"{self.quoted} {self.kind.type}"

    @property
    def cells(self) -> str:
        """The SQL of its value in the row `id`; most neighbours share theirs in all columns, so that files differ."""
        places = len(self.pool) + self.nulls
        seed = f"if(pmod(xxhash64(id, {self.salt}), {self.noise}) = 0, id, -(id DIV 12) - 1)"
        return f"CAST(get(array({', '.join(self.pool)}), CAST(pmod(xxhash64({seed}, {self.salt}), {places}) AS INT)) AS {self.kind.type})"


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def a_schema(random: Random, delta: bool, odd: float = 0.25) -> tuple[Column, ...]:
    """Five to nine columns, the first of which is an INT without surprises."""
    kinds = [k for k in KINDS if k.delta or not delta]
    # Most tables hold several columns of one theme: only then do their features meet in one condition.
    theme = random.choice(("decimal", "string", "ts", "int", "float", "date", None, None))
    chosen = [KINDS[2], *random.choices(kinds, [k.weight for k in kinds], k=random.randint(3, 6))]
    alike = [k for k in kinds if theme in (None, k.group)]
    chosen += random.choices(alike, [k.weight for k in alike], k=2)
    names = [f"c{i}" for i in range(len(chosen))]
    if random.random() < odd:
        own, at = random.choice((OWN_NAMES, ODD_NAMES)), random.randrange(1, len(names))
        names[at] = random.choice([n for n in own if not (delta and set(" ,;{}()\n\t=") & set(n))])
    first, *others = (a_column(random, name, kind) for name, kind in zip(names, chosen, strict=True))
    return (_with_many_values(first) if random.random() < 0.4 else first, *others)


def _with_many_values(column: Column) -> Column:
    """An INT with more values than an index lists for a block, so that it notes the outcomes of equalities."""
    return replace(column, pool=tuple(f"CAST({i} AS INT)" for i in range(90)), noise=1)


def scattered(column: Column) -> Column:
    """The column with all values that its kind has, so that most files let most values pass by their bounds."""
    return replace(column, pool=column.kind.literals, noise=1)


def a_column(random: Random, name: str, kind: Kind) -> Column:
    size = min(len(kind.literals), random.randint(3, 12))
    pool = tuple(random.sample(kind.literals, size))
    return Column(
        name, kind, pool, random.choice((0, 0, 1, 2, size)), random.randrange(1000), random.choice((6, 60, 1000, 1000))
    )


def rows_sql(columns: tuple[Column, ...], rows: int) -> str:
    cells = ", ".join(f"{c.cells} AS {c.quoted}" for c in columns)
    return f"SELECT {cells} FROM range(0, {rows}, 1, 1)"


def table_ddl(columns: tuple[Column, ...]) -> str:
    return ", ".join(c.ddl for c in columns)


def fingerprint(columns: tuple[Column, ...]) -> str:
    """An expression that is the same text for the same row, whatever the types; for a session in UTC."""
    parts = [f"coalesce({_text_of(c)}, 'NULL')" for c in columns]
    return f"concat_ws('|', {', '.join(parts)})"


def _text_of(c: Column) -> str:
    match c.kind.group:
        case "string" | "binary":
            return f"hex(CAST({c.quoted} AS BINARY))"
        case "variant":
            return f"to_json({c.quoted})"
    return f"CAST({c.quoted} AS STRING)"
