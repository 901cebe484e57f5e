"""Conditions of joined tables, as conditions on the columns of the table whose keys lead there."""

from __future__ import annotations

import pytest

from hedgerow.core.errors import WorkloadError
from hedgerow.core.predicates.nodes import TRUE, Column, Opaque, atoms_of, columns_of
from hedgerow.core.predicates.schema import as_schema
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.workload.references import Joined, references
from hedgerow.core.workload.summaries import Summary
from hedgerow.sql.joined_conditions import below, outside, struct_of, with_joined
from hedgerow.sql.workload import Workload

SCHEMAS = {
    "lines": {"okey": "bigint", "pkey": "int", "psup": "int", "qty": "int", "day": "date"},
    "orders": {"okey": "bigint", "ckey": "int", "day": "date", "note": "string"},
    "customers": {"ckey": "int", "seg": "string", "boss": "int"},
    "parts": {"pkey": "int", "psup": "int", "size": "int"},
}
KEYS = references(
    [
        ("lines.okey", "orders.okey"),
        ("orders.ckey", "customers.ckey"),
        (("lines.pkey", "lines.psup"), ("parts.pkey", "parts.psup")),
    ]
)


def carried(sql: str, table: str = "lines", steps: int = 4) -> str:
    (query,) = Workload.from_sql(sql, SCHEMAS)
    return predicate_text(with_joined(query, table, KEYS, steps)[0].predicate(table))


@pytest.mark.parametrize(
    ("sql", "condition"),
    [
        (
            "SELECT * FROM lines l JOIN orders o ON l.okey = o.okey WHERE o.day < DATE '1995-01-01' AND qty > 3",
            "`okey->orders`.`day` < DATE '1995-01-01' AND qty >= 4",
        ),
        ("SELECT * FROM lines WHERE okey IN (SELECT okey FROM orders WHERE ckey = 5)", "`okey->orders`.ckey = 5"),
        (
            "SELECT * FROM lines l WHERE EXISTS (SELECT 1 FROM orders o WHERE o.okey = l.okey AND o.note LIKE '%x%')",
            "(`okey->orders`.note LIKE '%x%')",
        ),
        (
            "SELECT * FROM lines l, orders o, customers c WHERE l.okey = o.okey AND o.ckey = c.ckey AND seg = 'A'",
            "`okey->orders/ckey->customers`.seg = 'A'",
        ),
        (
            "SELECT * FROM lines l, parts p WHERE l.pkey = p.pkey AND l.psup = p.psup AND size < 5",
            "`pkey,psup->parts`.size < 5",
        ),
        (
            "SELECT * FROM (SELECT okey AS k FROM lines UNION ALL SELECT ckey FROM orders) u, orders o "
            "WHERE u.k = o.okey AND o.ckey = 5",
            "`okey->orders`.ckey = 5",
        ),
        # Nothing is carried over half a key, a LEFT JOIN to the other table, or a join that is not on the key.
        ("SELECT * FROM lines l, parts p WHERE l.pkey = p.pkey AND size < 5", "TRUE"),
        ("SELECT * FROM lines l LEFT JOIN orders o ON l.okey = o.okey AND o.ckey = 5", "TRUE"),
        ("SELECT * FROM lines l JOIN orders o ON l.qty = o.okey WHERE o.ckey = 5", "TRUE"),
        # Two uses of the table: a row matters if it does in one of them.
        (
            "SELECT * FROM lines a, orders o, lines b WHERE a.okey = o.okey AND o.ckey = 5 AND b.qty = 7",
            "`okey->orders`.ckey = 5 OR qty = 7",
        ),
    ],
)
def test_conditions(sql: str, condition: str) -> None:
    assert carried(sql) == condition


ALL = "SELECT * FROM lines l, orders o, customers c, parts p WHERE l.okey = o.okey AND o.ckey = c.ckey"
TO_PARTS = "l.pkey = p.pkey AND l.psup = p.psup"


@pytest.mark.parametrize(
    ("sql", "condition"),
    [
        (f"{ALL} AND {TO_PARTS} AND c.boss = p.size", "`okey->orders/ckey->customers`.boss = `pkey,psup->parts`.size"),
        ("SELECT * FROM lines l JOIN orders o ON l.okey = o.okey AND o.day = l.day", "`day` = `okey->orders`.`day`"),
        (
            "SELECT * FROM lines l WHERE EXISTS (SELECT 1 FROM orders o WHERE o.okey = l.okey AND o.day = l.day)",
            "`day` = `okey->orders`.`day`",
        ),
        # Keys are equal anyway. A row joins another one than that of its key, or none. Types differ.
        (f"{ALL} AND {TO_PARTS} AND p.pkey = l.pkey", "TRUE"),
        (f"{ALL} AND c.boss = p.size", "TRUE"),
        ("SELECT * FROM lines l LEFT JOIN orders o ON l.okey = o.okey AND o.day = l.day", "TRUE"),
        ("SELECT * FROM lines l JOIN orders o ON l.okey = o.okey AND l.qty = o.okey", "TRUE"),
    ],
)
def test_columns_of_two_tables(sql: str, condition: str) -> None:
    (query,) = Workload.from_sql(sql, SCHEMAS)
    schemas = {table: as_schema(schema) for table, schema in SCHEMAS.items()}
    own, used = with_joined(query, "lines", KEYS, schemas=schemas)
    names = {column.path[0] for column in columns_of(own.predicate("lines")) if len(column.path) > 1}
    assert predicate_text(own.predicate("lines")) == condition and names <= set(used)
    assert with_joined(query, "lines", KEYS, known=(), schemas=schemas)[0].predicate("lines") == TRUE


BACKWARDS = KEYS[0].backwards((Summary("min", Column(("qty",))), Summary("any", Opaque("f(day)", (Column(("day",)),)))))
GROUP = "`okey<-lines.okey`"


@pytest.mark.parametrize(
    ("sql", "condition"),
    [
        (
            "SELECT * FROM lines l JOIN orders o ON l.okey = o.okey WHERE qty < 5 AND ckey = 3",
            f"{GROUP}.`min(qty)` < 5 AND ckey = 3",
        ),
        ("SELECT * FROM orders WHERE okey IN (SELECT okey FROM lines WHERE qty = 5)", f"{GROUP}.`min(qty)` <= 5"),
        # Customers have no summaries, only rows that join the order itself.
        (
            "SELECT * FROM lines l, orders o, customers c WHERE l.okey = o.okey AND o.ckey = c.ckey AND seg = 'A' AND qty < 5",
            f"`ckey->customers`.seg = 'A' AND {GROUP}.`min(qty)` < 5",
        ),
        # Other lines of the same order; a line that need not be there; columns of two tables.
        ("SELECT * FROM lines l, lines m, orders o WHERE l.okey = o.okey AND l.okey = m.okey AND m.qty < 5", "TRUE"),
        ("SELECT * FROM orders o LEFT JOIN lines l ON l.okey = o.okey AND qty < 5", "TRUE"),
        ("SELECT * FROM orders o JOIN lines l ON l.okey = o.okey AND l.day = o.day", "TRUE"),
    ],
)
def test_backwards(sql: str, condition: str) -> None:
    (query,) = Workload.from_sql(sql, SCHEMAS)
    schemas = {table: as_schema(schema) for table, schema in SCHEMAS.items()}
    own, used = with_joined(query, "orders", (*KEYS, BACKWARDS), schemas=schemas)
    assert predicate_text(own.predicate("orders")) == condition
    assert ("okey<-lines.okey" in used) == (GROUP in condition)
    assert GROUP not in predicate_text(with_joined(query, "lines", (*KEYS, BACKWARDS))[0].predicate("lines"))


def test_steps() -> None:
    sql = "SELECT * FROM lines l, orders o, customers c WHERE l.okey = o.okey AND o.ckey = c.ckey AND seg = 'A'"
    assert carried(sql, steps=1) == carried(sql, steps=0) == "TRUE"
    assert carried(sql, "orders", steps=1) == "`ckey->customers`.seg = 'A'"
    assert carried(sql, "customers") == "seg = 'A'"


def test_rows_on_the_way() -> None:
    sql = "SELECT * FROM lines l, orders o, customers c WHERE l.okey = o.okey AND o.ckey = c.ckey AND seg = 'A'"
    (query,) = Workload.from_sql(sql, SCHEMAS)
    _, found = with_joined(query, "lines", KEYS)
    assert set(found) == {"okey->orders", "okey->orders/ckey->customers"}
    far = found["okey->orders/ckey->customers"]
    assert (far.table, far.key_of(0).path, far.key_of(1).path) == ("customers", ("okey",), ("okey->orders", "ckey"))


def test_there_and_back() -> None:
    sql = "SELECT * FROM orders WHERE upper(substring(note, 1, 2)) = 'AB' AND note LIKE '%x%' AND note IN ('a', 'b') OR day IS NULL"
    (query,) = Workload.from_sql(sql, SCHEMAS)
    p = query.predicate("orders")
    moved = below(p, "okey->orders")
    assert {struct_of(atom) for atom in atoms_of(moved)} == {"okey->orders"}
    assert outside(moved) == p and struct_of(p) is None
    assert predicate_text(moved) != predicate_text(p)


def test_keys() -> None:
    with pytest.raises(WorkloadError, match="two keys lead from the same columns to orders"):
        references([("lines.okey", "orders.okey"), ("lines.okey", "orders.ckey")])
    assert len(references([("a.b.okey", "a.orders.okey")] * 2)) == 1
    assert references([("a.b.okey", "a.orders.okey")])[0].table == "a.b"
    assert Joined(KEYS[:1]).name == "okey->orders"
