"""Random changes of Delta tables: rows with new keys and with old ones, deleted rows, values moved between columns."""

from __future__ import annotations

from random import Random

from pyspark.sql import SparkSession

import hedgerow as hr


def change(spark: SparkSession, table: str, r: Random, again: bool = False) -> str:
    """One change of a table of the catalog, mostly of neighbouring keys; returns what was done.

    `again`: perhaps a few rows are inserted once more, so that keys are not unique."""
    columns = [(f.name, f.dataType.simpleString()) for f in spark.table(table).schema.fields]
    first = columns[0][0]
    is_number = columns[0][1] in ("int", "bigint")
    some = f"pmod(hash({first}), 40) = {r.randrange(40)}"
    if is_number and r.random() < 0.8:
        low, high = spark.sql(f"SELECT min({first}), max({first}) FROM {table}").collect()[0]
        start, width = r.uniform(low or 0, high or 0), ((high or 0) - (low or 0)) / 50
        some = f"{first} BETWEEN {start} AND {start + width}"
    match r.choice(["insert", "insert", "delete", "update", "update", *(["again"] * again)]):
        case "insert":
            new = f"CAST({first} + {r.randrange(1, 9) * 10_000_000} AS {columns[0][1]})" if is_number else first
            rest = ", ".join(name for name, _ in columns[1:])
            done = f"INSERT INTO {table} SELECT {new}, {rest} FROM {table} WHERE {some}"
        case "delete":
            done = f"DELETE FROM {table} WHERE {some}"
        case "again":
            done = f"INSERT INTO {table} SELECT * FROM {table} WHERE {some} LIMIT 3"
        case _:
            pairs = [(a, b) for a, kind in columns[1:] for b, other in columns[1:] if kind == other and a != b] or [
                (first, first)
            ]
            to, of = r.choice(pairs)
            done = f"UPDATE {table} SET {to} = {of} WHERE {some}"
    spark.sql(done)
    return done


def repair(spark: SparkSession, place: str) -> bool:
    """Whether the table could be repaired: not if a key of another table is not unique any more."""
    try:
        hr.table(spark, place).repair()
    except hr.HedgerowError as error:
        assert "leads to several rows" in str(error), error
        return False
    return True
