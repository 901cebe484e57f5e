"""A small star of tables, with keys that are NULL or lead nowhere, and random queries that join them in many ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hedgerow import Workload

SCHEMAS: dict[str, str] = {
    "lines": "id INT, okey BIGINT, pkey INT, psup INT, qty INT, day DATE, note STRING",
    "orders": "okey BIGINT, ckey INT, total INT, day DATE, status STRING",
    "customers": "ckey INT, nkey INT, seg STRING, balance DOUBLE",
    "nations": "nkey INT, name STRING",
    "parts": "pkey INT, psup INT, brand STRING, size INT",
    "suppliers": "psup INT, city STRING, rating INT",
}
KEYS = [
    ("lines.okey", "orders.okey"),
    (("lines.pkey", "lines.psup"), ("parts.pkey", "parts.psup")),
    ("orders.ckey", "customers.ckey"),
    ("customers.nkey", "nations.nkey"),
    ("parts.psup", "suppliers.psup"),
]
ROWS = {"lines": 1500, "orders": 300, "customers": 60, "nations": 8, "parts": 50, "suppliers": 4}
_ON = {
    ("lines", "orders"): "{0}.okey = {1}.okey",
    ("lines", "parts"): "{0}.pkey = {1}.pkey AND {0}.psup = {1}.psup",
    ("orders", "customers"): "{0}.ckey = {1}.ckey",
    ("customers", "nations"): "{0}.nkey = {1}.nkey",
    ("parts", "suppliers"): "{0}.psup = {1}.psup",
}
TOP = {
    **{"lines": "qty", "orders": "total", "customers": "ckey", "nations": "nkey"},
    **{"parts": "size", "suppliers": "rating"},
}


def rows_of(table: str, r: Random, first: int = 0, n: int | None = None) -> list[tuple[Any, ...]]:
    """Rows with keys from `first` on; foreign keys may be NULL, or lead to nothing."""

    def key(of: str) -> int | None:
        return None if r.random() < 0.05 else r.randrange(int(ROWS[of] * 1.1))

    def day() -> str:
        return f"19{r.randrange(92, 99)}-{r.randrange(1, 13):02d}-{r.randrange(1, 29):02d}"

    def pair() -> tuple[int | None, int]:
        return (None if r.random() < 0.05 else r.randrange(14)), r.randrange(5)

    def word() -> str | None:
        return r.choice(["quick fox", "slow fox", "lazy dog", None, ""])

    makers: dict[str, Callable[[int], tuple[Any, ...]]] = {
        "lines": lambda i: (i, key("orders"), *pair(), r.randrange(50), day(), word()),
        "orders": lambda i: (i, key("customers"), r.randrange(1000), day(), r.choice("FOP")),
        "customers": lambda i: (i, key("nations"), r.choice(["AUTO", "BUILD", None]), r.uniform(-9, 9)),
        "nations": lambda i: (i, r.choice(["FRANCE", "GERMANY", "CHINA", "PERU"]) + str(i % 2)),
        "parts": lambda i: (i // 5, i % 5, f"Brand#{r.randrange(1, 6)}", r.choice([r.randrange(50), None])),
        "suppliers": lambda i: (i, r.choice(["LIMA", "PARIS", None]), r.randrange(9)),
    }
    count = ROWS[table] if n is None else n
    return [makers[table](i) for i in range(first, first + count)]


def frame(spark: SparkSession, table: str, rows: Sequence[tuple[Any, ...]]) -> DataFrame:
    plain = SCHEMAS[table].replace("DATE", "STRING")
    made = spark.createDataFrame(list(rows), plain)
    return made.withColumn("day", made["day"].cast("date")) if "DATE" in SCHEMAS[table] else made


def a_condition(r: Random, table: str, alias: str) -> str:
    """A condition on one table, with up to three atoms."""
    atoms = [_atom(r, table, alias) for _ in range(r.choice([1, 1, 1, 2, 3]))]
    text = f" {r.choice(['AND', 'OR'])} ".join(atoms)
    return f"NOT ({text})" if r.random() < 0.15 else f"({text})"


def _atom(r: Random, table: str, a: str) -> str:
    op = r.choice(["<", "<=", ">", ">=", "="])
    day = f"DATE '19{r.randrange(92, 99)}-{r.randrange(1, 13):02d}-01'"
    return r.choice(
        {
            "lines": [f"{a}.qty {op} {r.randrange(50)}", f"{a}.day {op} {day}", f"{a}.note LIKE '%fox%'"],
            "orders": [
                *(f"{a}.day {op} {day}", f"{a}.day {op} {day}", f"{a}.status = '{r.choice('FOP')}'"),
                *(f"{a}.total {op} {r.randrange(1000)}", f"year({a}.day) = {r.randrange(1992, 1999)}"),
                f"{a}.okey BETWEEN {r.randrange(300)} AND {r.randrange(300)}",
            ],
            "customers": [
                *(f"{a}.seg = '{r.choice(['AUTO', 'BUILD'])}'", f"{a}.balance {op} {r.randrange(-9, 9)}"),
                *(f"{a}.seg IS NULL", f"coalesce({a}.balance, 0) > {r.randrange(-9, 9)}"),
            ],
            "nations": [
                f"{a}.name = '{r.choice(['FRANCE0', 'PERU1', 'CHINA0'])}'",
                f"{a}.name LIKE '%{r.choice('AEU')}%1'",
            ],
            "parts": [
                *(f"{a}.brand = 'Brand#{r.randrange(1, 6)}'", f"{a}.size {op} {r.randrange(50)}"),
                *(f"{a}.size IS NULL", f"{a}.brand LIKE '%{r.randrange(1, 6)}'"),
            ],
            "suppliers": [f"{a}.city = '{r.choice(['LIMA', 'PARIS'])}'", f"{a}.city IS NULL", f"{a}.rating {op} 4"],
        }[table]
    )


def workload(r: Random, n: int = 30, also: Sequence[str] = ()) -> Workload:
    """Inner joins with conditions on tables that foreign keys lead to."""
    return Workload.from_sql([*(_inner(r) for _ in range(n)), *also], {t: _types(s) for t, s in SCHEMAS.items()})


def _types(schema: str) -> dict[str, str]:
    return dict(column.split() for column in schema.split(", "))


def _inner(r: Random) -> str:
    tables = [
        "lines",
        "orders",
        *r.choice([[], ["customers"], ["customers", "nations"], ["parts"], ["parts", "suppliers"]]),
    ]
    where = [on.format(a, b) for (a, b), on in _ON.items() if a in tables and b in tables]
    where += [a_condition(r, t, t) for t in tables if r.random() < 0.7]
    return f"SELECT count(*), sum(lines.qty) FROM {', '.join(tables)} WHERE {' AND '.join(where)}"


def a_query(r: Random) -> str:
    """A query over some of the tables, joined in any way that Spark knows."""
    return r.choice(_SHAPES)(r)


def _pair(r: Random) -> tuple[str, str, str, str]:
    """Two tables that a key joins, in any order, the join's condition, and one on each of them."""
    (a, b), on = r.choice(list(_ON.items()))
    text = on.format("a", "b")
    if r.random() < 0.4:
        a, b, text = b, a, on.format("b", "a")
    return a, b, text, ""


def _joined(r: Random) -> str:
    a, b, on, _ = _pair(r)
    kind = r.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"])
    extra = "".join(f" AND {a_condition(r, t, n)}" for t, n in ((a, "a"), (b, "b")) if r.random() < 0.5)
    one_sided = kind.startswith("LEFT S") or kind.startswith("LEFT A")
    names = [(a, "a")] if one_sided else [(a, "a"), (b, "b")]
    where = " AND ".join(a_condition(r, t, n) for t, n in names if r.random() < 0.5) or "TRUE"
    output = f"count(*), sum(a.{TOP[a]})" + ("" if one_sided else f", sum(b.{TOP[b]})")
    return f"SELECT {output} FROM {a} a {kind} {b} b ON {on}{extra} WHERE {where}"


def _subquery(r: Random) -> str:
    a, b, on, _ = _pair(r)
    inner = f"SELECT 1 FROM {b} b WHERE {on} AND {a_condition(r, b, 'b')}"
    exists = f"{r.choice(['', 'NOT '])}EXISTS ({inner})"
    if r.random() < 0.3:
        exists = f"({exists} OR {a_condition(r, a, 'a')})"
    return f"SELECT count(*), max(a.{TOP[a]}) FROM {a} a WHERE {exists} AND {a_condition(r, a, 'a')}"


def _listed(r: Random) -> str:
    a, b, key = r.choice([("lines", "orders", "okey"), ("orders", "lines", "okey"), ("orders", "customers", "ckey")])
    inner = f"SELECT b.{key} FROM {b} b WHERE {a_condition(r, b, 'b')}"
    return f"SELECT count(*) FROM {a} a WHERE a.{key} {r.choice(['', 'NOT '])}IN ({inner}) AND {a_condition(r, a, 'a')}"


def _scalar(r: Random) -> str:
    inner = f"SELECT max(o.total) FROM orders o WHERE o.okey = l.okey AND {a_condition(r, 'orders', 'o')}"
    return f"SELECT l.id, ({inner}) AS m FROM lines l WHERE {a_condition(r, 'lines', 'l')} ORDER BY l.id LIMIT 40"


def _grouped(r: Random) -> str:
    grouped = (
        f"SELECT okey, sum(qty) AS q, count(*) AS n FROM lines l WHERE {a_condition(r, 'lines', 'l')} GROUP BY okey"
    )
    kind = r.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN"])
    return (
        f"SELECT o.status, sum(g.q), count(*) FROM orders o {kind} ({grouped}) g ON o.okey = g.okey "
        f"WHERE {a_condition(r, 'orders', 'o')} GROUP BY o.status"
    )


def _twice(r: Random) -> str:
    first = a_condition(r, "orders", "o")
    return (
        f"SELECT count(*), sum(l2.qty) FROM lines l1, lines l2, orders o WHERE l1.okey = l2.okey AND l1.okey = o.okey "
        f"AND l1.id < l2.id AND {first} AND {a_condition(r, 'lines', 'l2')}"
    )


def _union(r: Random) -> str:
    return (
        f"SELECT l.id, o.total FROM lines l JOIN orders o ON l.okey = o.okey WHERE {a_condition(r, 'orders', 'o')} "
        f"UNION ALL SELECT l.id, l.qty FROM lines l WHERE {a_condition(r, 'lines', 'l')}"
    )


def _union_below(r: Random) -> str:
    both = r.choice(["UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT"])
    other = r.choice(
        ["SELECT okey, total FROM orders", "SELECT okey, qty FROM lines WHERE qty < 9", "SELECT id, qty FROM lines"]
    )
    return (
        f"SELECT count(*), sum(u.q) FROM (SELECT okey AS k, qty AS q FROM lines {both} {other}) u "
        f"{r.choice(['JOIN', 'LEFT JOIN', 'RIGHT JOIN'])} orders o ON u.k = o.okey WHERE {a_condition(r, 'orders', 'o')}"
    )


def _shared(r: Random) -> str:
    return (
        f"WITH c AS (SELECT * FROM lines l WHERE {a_condition(r, 'lines', 'l')}) "
        f"SELECT (SELECT count(*) FROM c), count(*), sum(c.qty) FROM c JOIN orders o ON c.okey = o.okey "
        f"WHERE {a_condition(r, 'orders', 'o')}"
    )


def _ordered(r: Random) -> str:
    inner = r.choice(
        [
            "SELECT okey, qty, row_number() OVER (PARTITION BY pkey ORDER BY qty, id) AS n FROM lines",
            "SELECT okey, qty, id AS n FROM lines ORDER BY qty, id LIMIT 200",
            "SELECT DISTINCT okey, qty, 1 AS n FROM lines",
            "SELECT okey, qty, explode(sequence(1, 2)) AS n FROM lines",
            "SELECT okey, max(qty) AS qty, 2 AS n FROM lines GROUP BY ROLLUP (okey, note)",
        ]
    )
    return (
        f"SELECT sum(l.qty), sum(l.n), count(*) FROM ({inner}) l JOIN orders o ON l.okey = o.okey "
        f"WHERE {a_condition(r, 'orders', 'o')} AND l.n > {r.choice([0, 1, 1, 2, 20])}"
    )


def _unusual(r: Random) -> str:
    on = r.choice(
        [
            *("l.okey <=> o.okey", "l.okey + 0 = o.okey", "l.okey = o.okey OR l.qty = o.total"),
            *("CAST(l.okey AS INT) = CAST(o.okey AS INT)", "l.okey = o.okey AND l.day < o.day", "l.id = o.okey"),
            "l.okey = o.ckey AND l.pkey = o.okey",
        ]
    )
    where = f"{a_condition(r, 'orders', 'o')} AND {a_condition(r, 'lines', 'l')}"
    return f"SELECT count(*), sum(l.qty), sum(o.total) FROM lines l JOIN orders o ON {on} WHERE {where}"


def _chain(r: Random) -> str:
    kinds = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "JOIN", "LEFT SEMI JOIN"]
    text = "lines l"
    names = [("lines", "l")]
    far = (
        ("orders", "o", "l.okey = o.okey"),
        ("customers", "c", "o.ckey = c.ckey"),
        ("nations", "n", "c.nkey = n.nkey"),
    )
    near = (("parts", "p", "l.pkey = p.pkey AND l.psup = p.psup"), ("suppliers", "s", "p.psup = s.psup"))
    for table, name, on in r.choice([far, near]):
        kind = r.choice(kinds)
        if kind == "LEFT SEMI JOIN":
            text += f" LEFT SEMI JOIN {table} {name} ON {on} AND {a_condition(r, table, name)}"
            break
        text += f" {kind} {table} {name} ON {on}"
        names.append((table, name))
    where = " AND ".join(a_condition(r, t, n) for t, n in names if r.random() < 0.6) or "TRUE"
    return f"SELECT count(*), sum(l.qty) FROM {text} WHERE {where}"


_ALL = "lines l, orders o, customers c, parts p, suppliers s"
_KEYS = "l.okey = o.okey AND l.pkey = p.pkey AND l.psup = p.psup AND p.psup = s.psup"
_TO_CUSTOMERS = "o.ckey = c.ckey"
_EQUAL = ("l.day = o.day", "l.qty = p.size", "o.total = p.size", "l.qty = s.rating", "c.nkey = s.rating")


def comparing(r: Random) -> str:
    """An inner join that compares columns of two tables, beside the keys."""
    equal = r.choice(_EQUAL[3:]) if r.random() < 0.7 else r.choice(_EQUAL)
    where = f"{_KEYS} AND {_TO_CUSTOMERS} AND {equal} AND {a_condition(r, 'orders', 'o')}"
    return f"SELECT count(*), sum(l.qty) FROM {_ALL} WHERE {where}"


def _compared(r: Random) -> str:
    """Two equalities of columns of a customer and of the lines' other rows, at various places of the plan."""
    lines = f"lines l, orders o, parts p, suppliers s WHERE {_KEYS}"
    on = "{0}.ckey = c.ckey AND c.nkey = {0}.rating"
    columns = "o.ckey, s.rating, l.qty"
    if r.random() < 0.3:
        lines += f" AND {r.choice(_EQUAL[:4])}"
    if r.random() < 0.5:
        lines += f" AND {a_condition(r, 'orders', 'o')}"
    inner = r.choice(
        [
            f"SELECT {columns} FROM {lines}",
            f"SELECT DISTINCT {columns} FROM {lines}",
            f"SELECT o.ckey, s.rating, sum(l.qty) AS qty FROM {lines} GROUP BY o.ckey, s.rating",
            f"SELECT o.ckey, max(s.rating) AS rating, sum(l.qty) AS qty FROM {lines} GROUP BY o.ckey",
            f"SELECT {columns} FROM {lines} UNION ALL SELECT ckey, nkey, 1 FROM customers",
        ]
    )
    match r.randrange(4):
        case 0:
            kind = r.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
            return f"SELECT count(*), sum(g.qty), sum(c.ckey) FROM customers c {kind} ({inner}) g ON {on.format('g')}"
        case 1:
            exists = f"{r.choice(['', 'NOT '])}EXISTS (SELECT 1 FROM ({inner}) g WHERE {on.format('g')})"
            return (
                f"SELECT count(*), sum(c.ckey) FROM customers c WHERE {exists} AND {a_condition(r, 'customers', 'c')}"
            )
        case 2:
            kind = r.choice(["LEFT SEMI JOIN", "LEFT ANTI JOIN", "JOIN"])
            return f"SELECT count(*), sum(g.qty) FROM ({inner}) g {kind} customers c ON {on.format('g')}"
    return comparing(r)


_SHAPES = [_inner, _inner, _joined, _joined, _joined, _subquery, _subquery, _listed, _scalar, _grouped, _twice, _union]
_SHAPES += [_union_below, _union_below, _shared, _ordered, _ordered, _unusual, _chain, _chain, _compared, _compared]
