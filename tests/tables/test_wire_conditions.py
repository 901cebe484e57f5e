"""Conditions of a plan become the predicates that they are, or nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hedgerow.core.predicates.nodes import Expr, Like, col
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import Stats, collect
from hedgerow.core.pruning.evaluator import may_match
from hedgerow.spark import wire
from hedgerow.spark.compute.assign_blocks import BLOCK
from hedgerow.spark.write.partition_files import _ROWS, FILE, numbered
from hedgerow.tables.wire_conditions import ConditionReader
from tests.support.workload_conditions import where

SCHEMA = {
    **{"x": Type("int"), "price": Type("decimal", 8, 2), "ratio": Type("double"), "word": Type("string")},
    **{"`day`": Type("date"), "`at`": Type("timestamp"), "flag": Type("boolean"), "parts.x": Type("bigint")},
}


def c(name: str, kind: str) -> wire.Column:
    return wire.Column(name.split("."), kind)


ITEMS = [where("length(word) = 3"), Expr("length(word)", (col("word"),)), Like(col("word"), "%ab")]


def _read(where: Any) -> Any:
    return normalise(ConditionReader(SCHEMA, ITEMS).read(wire.read(wire.write(where))))


def read(where: Any) -> str:
    return predicate_text(_read(where))


X, V, Cmp = c("x", "int"), wire.Value, wire.Compare
WORD, AB = c("word", "string"), V("ab", "string")
LONG = wire.Expression(1, "int")
READ = [
    (Cmp(X, "<", V("5", "int")), "x < 5"),
    (Cmp(V("5", "int"), "<", c("X", "int")), "x >= 6"),
    (wire.And([wire.Not(wire.IsNull(X)), wire.Not(Cmp(X, ">", V("5", "int")))]), "x < 6 AND x IS NOT NULL"),
    (wire.Or([wire.IsNull(X), wire.In(X, "int", ["2", "7"])]), "x IN (2, 7) OR x IS NULL"),
    (Cmp(X, "<=>", V("5", "int")), "x = 5 AND x IS NOT NULL"),
    (Cmp(X, "=", c("parts.x", "bigint")), "parts.x = x"),
    (Cmp(c("price", "decimal(8,2)"), ">=", V("12.50", "decimal(8,2)")), "price >= 12.5"),
    (Cmp(c("ratio", "double"), "=", V("NaN", "double")), "ratio = double('NaN')"),
    (Cmp(c("day", "date"), "<", V("19723", "date")), "`day` < DATE '2024-01-01'"),
    (Cmp(c("at", "timestamp"), "=", V("1704067200000000", "timestamp")), "`at` = TIMESTAMP_LTZ '2024-01-01 00:00:00 UTC'"),
    (Cmp(c("flag", "boolean"), "=", V("true", "boolean")), "flag = TRUE"),
    (Cmp(WORD, "starts", AB), "startswith(word, 'ab')"),
    (Cmp(WORD, "contains", V("a%b", "string")), "(word LIKE '%a\\\\%b%')"),
    (Cmp(wire.Column(["x"], "int", "bigint"), "<", V("5", "bigint")), "x < 5"),
    (wire.Not(wire.Indexed(2)), "NOT ((word LIKE '%ab'))"),
    (Cmp(LONG, ">", V("3", "int")), "length(word) >= 4"),
    (wire.Constant(False), "FALSE"),
]  # fmt: skip


@pytest.mark.parametrize("where, expected", READ, ids=[expected for _, expected in READ])
def test_read(where: Any, expected: str) -> None:
    assert read(where) == expected


UNKNOWN = [
    wire.Unknown(),
    Cmp(c("x", "bigint"), "<", V("5", "bigint")),  # the query reads it as another type
    Cmp(c("y", "int"), "<", V("5", "int")),
    Cmp(AB, "starts", WORD),
    wire.Indexed(1),  # a term is no condition
    Cmp(wire.Expression(2, "boolean"), "<", V("true", "boolean")),
    Cmp(LONG, "contains", AB),
    Cmp(V("5", "int"), "=", V("5", "int")),
    Cmp(X, "!", X),
]


@pytest.mark.parametrize("where", UNKNOWN, ids=[str(where) for where in UNKNOWN])
def test_unknown_prunes_nothing_under_not_either(where: Any) -> None:
    stats = collect({col("x"): pa.array([1, 2, 3, 4], pa.int32())}, entry=[0, 0, 1, 1], entries=2)
    for form in (
        where,
        wire.Not(where),
        wire.And([where, wire.Not(where)]),
        wire.Or([wire.Not(wire.Not(where)), wire.Constant(False)]),
    ):
        assert may_match(_read(form), stats).all(), form
    few = Cmp(X, "<", V("3", "int"))
    assert may_match(_read(wire.And([where, few])), stats).tolist() == [True, False]
    assert may_match(_read(wire.Or([where, few])), Stats(stats.rows, stats.terms, {})).all()


def test_files_of_partitions() -> None:
    """Neighbouring blocks of a partition share a file until it is full; partitions never do."""
    rows = [("b", 3, 900), ("a", 1, 10), ("b", 4, 50), ("b", 9, 80), (None, 1, 5), ("b", 12, 1200), ("a", 0, 5000)]
    counts = pa.table({"p": [r[0] for r in rows], BLOCK: [r[1] for r in rows], _ROWS: [r[2] for r in rows]})
    files = numbered(counts, ["p"], 1000)
    of = {(p, b): int(f) for (p, b, _), f in zip(rows, files, strict=True)}
    assert of["b", 3] == of["b", 4] == of["b", 9] != of["b", 12]
    assert of["a", 0] != of["a", 1]
    assert sorted(set(files.tolist())) == list(range(5))
    assert FILE and np.all(files >= 0)
