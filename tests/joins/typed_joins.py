"""Random joins over keys of any type: `wide`, in its order, and `narrow`, with NULLs, repeated keys and strangers."""

from __future__ import annotations

from random import Random

# Columns of one number `v`, all in its order; some are of types in which different numbers are equal.
TYPED = {
    **{"y": "CAST(v % 100 AS TINYINT)", "h": "CAST(v AS SMALLINT)", "i": "CAST(v AS INT)", "l": "CAST(v AS BIGINT)"},
    **{"m": "CAST(v / 4 AS DECIMAL(10, 2))", "o": "CAST(v / 8 AS DECIMAL(12, 3))"},
    **{"w": "CAST(v / 4 AS DECIMAL(30, 6))", "g": "CAST(v AS FLOAT) / 4"},
    "f": "CASE WHEN v % 41 = 5 THEN DOUBLE('NaN') WHEN v % 43 = 0 THEN -0.0D ELSE CAST(v AS DOUBLE) / 2 END",
    **{"s": "lpad(CAST(v AS STRING), 4, '0')", "u": "concat(CAST(v DIV 7 AS STRING), ' ')"},
    **{"x": "CAST(lpad(CAST(v AS STRING), 4, '0') AS BINARY)", "b": "v % 5 = 1"},
    **{"d": "date_add(DATE '1999-12-01', v)", "t": "timestamp_seconds(CAST(v AS BIGINT) * 43200)"},
    **{"r": "hash(v)", "q": "md5(CAST(v AS STRING))"},  # in no order: only filters of look-ups tell files apart
    **{"n": "TIMESTAMP_NTZ '1970-01-01 00:00:00' + make_interval(0, 0, 0, 0, v * 12)"},
}
LOOKED_UP = ["r = 1607884268", "q = 'c4ca4238a0b923820dcc509a6f75849b'"]
NUMBERS, TIMES, TEXTS, WIDE_ROWS = "yhilmowgf", "dtn", "su", 1000
_COLUMNS = ", ".join(["id", *TYPED])
_KINDS = ["JOIN", "JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
_HINTS = ["BROADCAST(b)", "MERGE(b)", "SHUFFLE_HASH(b)", "BROADCAST(a)", "SHUFFLE_HASH(a)", "SHUFFLE_REPLICATE_NL(b)"]


def a_value(r: Random, table: str, i: int) -> int | None:
    """Return the number of which row i of a table is made."""
    if r.random() < 0.1:
        return None
    anywhere = r.random() < 0.15
    return i if table == "wide" else r.randrange(-50, WIDE_ROWS + 100) if anywhere else r.randrange(300, 320)


def _key(r: Random, a: str = "a", b: str = "b") -> str:
    """An equality of two columns, perhaps of different types, or of something made of them."""
    family = r.choice([NUMBERS, NUMBERS, NUMBERS, TIMES, TIMES, TEXTS, "r", "q", "x"])
    mine = r.choice(family)
    theirs = mine if r.random() < 0.5 else r.choice(family)
    ways = ["{a}.{0} = {b}.{1}"] * 6
    ways += ["CAST({a}.{0} AS STRING) = CAST({b}.{1} AS STRING)", "{a}.{0} <=> {b}.{1}", "{a}.{0} = {b}.{0}"]
    if family == NUMBERS:
        cast = "TRY_CAST" if {"f", "g"} & {mine, theirs} else "CAST"  # NaN is no integer
        ways += [f"{cast}({{a}}.{{0}} AS BIGINT) = {{b}}.{{1}}", f"{{a}}.{{0}} = {cast}({{b}}.{{1}} AS INT)"]
        ways += [f"{cast}({{a}}.{{0}} AS DECIMAL(20, 2)) = {{b}}.{{1}}", "{b}.{1} + 1 = {a}.{0}"]
        ways += ["{a}.{0} = coalesce({b}.{1}, 7)", "{a}.s = {b}.i"]
    if family == TIMES:
        ways += [
            "CAST({a}.{0} AS DATE) = {b}.d",
            "{a}.{0} = CAST({b}.{1} AS DATE)",
            "{a}.{0} = CAST({b}.{1} AS TIMESTAMP)",
        ]
    if family == TEXTS:
        ways += ["{a}.{0} COLLATE UTF8_LCASE = {b}.{1} COLLATE UTF8_LCASE", "upper({a}.{0}) = {b}.{1}"]
        ways += ["struct({a}.{0}, {a}.i) = struct({b}.{1}, {b}.i)", "array({a}.{0}) = array({b}.{1})"]
        ways += ["{a}.s = lpad({b}.l, 4, '0')"]
    return r.choice(ways).format(mine, theirs, a=a, b=b)


def _on(r: Random, a: str = "a", b: str = "b") -> str:
    """One equality or two, perhaps with a condition beside them."""
    keys = [_key(r, a, b) for _ in range(r.choice([1, 1, 1, 2]))]
    beside = [f"{a}.b = {b}.b", f"{a}.id < {b}.id + 300", f"{a}.y > 3", f"{b}.id > 5"]
    return " AND ".join([*keys, *([r.choice(beside)] if r.random() < 0.25 else [])])


def _where(r: Random, a: str, rows: int) -> str:
    low = r.randrange(rows)
    return r.choice(
        [
            *("TRUE", f"{a}.id < {low}", f"{a}.id BETWEEN {low} AND {low + rows // 5}", f"{a}.i IS NULL"),
            *(f"{a}.s LIKE '%{r.randrange(10)}'", f"{a}.l % {r.randrange(2, 9)} = 1", f"{a}.id = {low}"),
            *(f"{a}.b", f"{a}.id IN ({low}, 3, {low // 2})", f"{a}.d > DATE '2000-0{r.randrange(1, 9)}-01'"),
        ]
    )


def _side(r: Random, table: str) -> str:
    rows = WIDE_ROWS if table == "wide" else 60
    where = _where(r, table, rows)
    return r.choice(
        [
            *[f"(SELECT * FROM {table} WHERE {where})"] * 4,
            table,
            f"(SELECT DISTINCT {_COLUMNS} FROM {table} WHERE {where})",
            f"(SELECT {_COLUMNS} FROM {table} WHERE {where} UNION ALL SELECT {_COLUMNS} FROM {table} WHERE id = 7)",
            f"(SELECT {_COLUMNS} FROM {table} WHERE {where} {r.choice(['EXCEPT', 'INTERSECT', 'UNION'])} "
            f"SELECT {_COLUMNS} FROM {r.choice([table, 'narrow'])} WHERE id < 30)",
            f"(SELECT {_COLUMNS} FROM {table} WHERE {where} ORDER BY id LIMIT {r.randrange(1, rows)})",
            f"(SELECT {_COLUMNS} FROM {table} WHERE {where} ORDER BY id DESC LIMIT {r.randrange(1, 30)} OFFSET 2)",
            f"(SELECT max(id) AS id, {', '.join(TYPED)} FROM {table} GROUP BY {', '.join(TYPED)})",
            f"(SELECT {_COLUMNS} FROM (SELECT *, row_number() OVER (PARTITION BY i ORDER BY id) AS nth FROM {table}) "
            f"WHERE nth = 1)",
        ]
    )


def _sides(r: Random) -> tuple[str, str]:
    two = _side(r, "wide"), _side(r, r.choice(["narrow", "narrow", "narrow", "wide"]))
    return two if r.random() < 0.7 else two[::-1]


def _joined(r: Random) -> str:
    """A join of any kind, perhaps with a third side, an aggregate, or a limit above."""
    (mine, theirs), kind = _sides(r), r.choice(_KINDS)
    hint = f"/*+ {r.choice(_HINTS)} */" if r.random() < 0.4 else ""
    values = "a.id" if kind in ("LEFT SEMI JOIN", "LEFT ANTI JOIN") else "a.id, b.id AS other"
    third = ""
    if r.random() < 0.3:
        third = f" {r.choice(_KINDS)} {_side(r, r.choice(['narrow', 'narrow', 'wide']))} c ON {_on(r, 'c', 'a')}"
    sql = f"SELECT {hint} {values} FROM {mine} a {kind} {theirs} b ON {_on(r)}{third}"
    return r.choice([sql, f"SELECT count(*), sum(hash(*)) FROM ({sql})", f"SELECT DISTINCT * FROM ({sql})"])


def _plain(r: Random) -> str:
    """A join by equal columns of one type, whose small side may choose files of the large one."""
    key, kind = r.choice("ilsdtmqr"), r.choice(["JOIN", "JOIN", "JOIN", "LEFT SEMI JOIN", "RIGHT JOIN"])
    values = "a.id" if kind == "LEFT SEMI JOIN" else "a.id, b.id AS other"
    hint = f"/*+ {r.choice([*_HINTS, 'BROADCAST(b)', 'BROADCAST(b)', 'BROADCAST(b)'])} */" if r.random() < 0.5 else ""
    also = f" AND {_key(r)}" if r.random() < 0.2 else ""
    mine = f"(SELECT * FROM wide WHERE {_where(r, 'wide', WIDE_ROWS)})" if r.random() < 0.3 else "wide"
    theirs = f"(SELECT * FROM narrow WHERE {_where(r, 'narrow', 60)})" if r.random() < 0.5 else _side(r, "narrow")
    sql = f"SELECT {hint} {values} FROM {mine} a {kind} {theirs} b ON a.{key} = b.{key}{also}"
    return r.choice([sql, f"SELECT count(*), sum(hash(*)) FROM ({sql})"])


def _listed(r: Random) -> str:
    (mine, theirs), column = _sides(r), r.choice("ilsdtmq")
    text = f"a.{column} {r.choice(['IN', 'IN', 'NOT IN'])} (SELECT {column} FROM {theirs} b WHERE {_where(r, 'b', 60)})"
    return f"SELECT count(*), sum(a.id) FROM {mine} a WHERE {text}"


def _correlated(r: Random) -> str:
    """A subquery that names columns of the query around it."""
    mine, theirs = _sides(r)
    inner = f"FROM {theirs} b WHERE {_on(r)}"
    exists = f"{r.choice(['', 'NOT '])}EXISTS (SELECT 1 {inner})"
    column = r.choice("ilsdtmw")
    equal = f"a.{column} = b.{column}"
    return r.choice(
        [
            f"SELECT count(*), sum(a.id) FROM {mine} a WHERE {exists}",
            f"SELECT count(*), sum(a.id) FROM {mine} a WHERE {exists} OR {_where(r, 'a', WIDE_ROWS)}",
            f"SELECT a.id, (SELECT max(b.id) FROM {theirs} b WHERE {equal}) AS m FROM {mine} a",
            f"SELECT a.id FROM {mine} a WHERE a.l < (SELECT count(*) + min(b.id) FROM {theirs} b WHERE {equal})",
            f"SELECT a.id, c.id AS other FROM {mine} a, LATERAL (SELECT b.id {inner}) c",
            f"SELECT a.id FROM {mine} a WHERE a.id >= (SELECT min(b.id) FROM {theirs} b) AND {exists}",
        ]
    )


def _union(r: Random) -> str:
    """A join above or below a union, and one subquery that is used twice."""
    mine, theirs = _sides(r)
    both = f"(SELECT {_COLUMNS} FROM {mine} UNION ALL SELECT {_COLUMNS} FROM {_side(r, 'wide')})"
    return r.choice(
        [
            f"SELECT a.id, b.id AS other FROM {both} a {r.choice(_KINDS[:7])} {theirs} b ON {_on(r)}",
            f"SELECT a.id FROM {mine} a JOIN {theirs} b ON {_on(r)} UNION ALL SELECT id FROM wide WHERE id < 9",
            f"WITH c AS (SELECT * FROM {mine}) SELECT count(*), sum(c.id), (SELECT count(*) FROM c a JOIN narrow b ON "
            f"{_on(r)}) FROM c JOIN {theirs} b ON {_on(r, 'c')}",
            f"WITH c AS (SELECT a.* FROM {mine} a LEFT SEMI JOIN {theirs} b ON {_on(r)}) "
            f"SELECT a.id, b.id AS other FROM c a JOIN c b ON {_on(r)}",
        ]
    )


def a_typed_query(r: Random) -> str:
    """A join of two tables over keys of any types, written in any way."""
    return r.choice([*[_plain] * 6, _joined, _joined, _listed, _correlated, _union])(r)
