"""Terms and predicates as columns that Spark computes, and back as rows that core can reason about.

Core compares plain columns by itself; what only Spark understands (LIKE, functions, UDFs) becomes a column here. An
expression that is not steady may fail on a row that its query would never have shown it, so it travels in a struct:

    {value}    the value, which may be NULL        NULL    the expression failed on this row
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.core.index.session_safe import steady
from hedgerow.core.layouts.base import sql_of
from hedgerow.core.predicates.nodes import Column, Expr, Opaque, Predicate, SemiJoin, Term, atoms, terms
from hedgerow.core.predicates.sql_text import term_text, text
from hedgerow.core.predicates.types import OTHER, Type
from hedgerow.core.pruning.block_stats import ANY, F_BIT, N_BIT, T_BIT, Bits
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.spark.start.session import first_line, spark_errors

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

Item = Term | Predicate
_NAME, _CALLED = re.compile(r"\w+"), re.compile(r"([\w.`]+)\s*\(")
_STRING = re.compile(r"'(?:[^'\\]|\\.)*'")
# Words that may stand before a bracket and are no functions.
_SYNTAX = frozenset(("and", "or", "not", "in", "like", "ilike", "rlike", "is", "case", "when", "then", "else", "as"))
_SYNTAX |= {"cast", "decimal", "between", "any", "all", "div"}
_VOID = re.compile(r"\bvoid\b(?!:)")
A_WORD = 20  # predicates whose outcomes fit a BIGINT
Computed = Mapping[str, Item]  # the name of a computed column, and what it holds


def needed(predicates: Iterable[Predicate], more: Iterable[Term] = ()) -> list[Item]:
    """Every term, and every atom that only Spark can evaluate, in the order of their texts."""
    found: dict[str, Item] = {term_text(t): t for t in more}
    for p in predicates:
        found.update({term_text(t): t for t in terms(p)})
        found.update({text(a): a for a in atoms(p) if isinstance(a, Opaque)})
    return [found[key] for key in sorted(found)]


def usable(frame: DataFrame, wanted: Iterable[Item], schema: Mapping[str, Type]) -> tuple[list[Item], list[str]]:
    """Those that Spark can analyse over this table and core can hold, and a sentence for each of the others."""
    listed = [item for item in wanted if isinstance(item, Predicate) or _comparable(item, schema)]
    try:  # all at once, for one analysis costs as much as a hundred expressions
        return _typed(frame, listed)
    except spark_errors():
        pass
    kept: list[Item] = []
    refused: list[str] = []
    for item in listed:
        try:
            typed, untyped = _typed(frame, [item])
            kept += typed
            refused += untyped
        except spark_errors() as error:
            refused.append(f"{sql_of(item)} is left out: {first_line(error)}")
    return kept, refused


def _typed(frame: DataFrame, items: Sequence[Item]) -> tuple[list[Item], list[str]]:
    """The items whose values have a type, and a sentence for each other one: `array()` has none, nor has Arrow."""
    fields = frame.select(*columns(computed(items))).schema.fields
    untyped = [i for i, f in zip(items, fields, strict=True) if _VOID.search(f.dataType.simpleString())]
    return [i for i in items if i not in untyped], [f"{sql_of(i)} is left out: it has no type" for i in untyped]


def _comparable(term: Term, schema: Mapping[str, Type]) -> bool:
    """A column of a known type, or an expression over columns without a collation, which it would inherit."""
    if isinstance(term, Column):
        return schema.get(term_text(term), Type(OTHER)).kind != OTHER
    inner = term.columns if isinstance(term, Expr) else (term.column,)
    return not any("collate" in schema.get(term_text(c), Type(OTHER)).name for c in inner)


def divided(items: Iterable[Item]) -> tuple[list[Predicate], list[Predicate]]:
    """The predicates that Spark has to evaluate, and those that core can from the terms among the items: hundreds
    of conditions in one query take Spark longer to compile than to evaluate."""
    held = {item for item in items if not isinstance(item, Predicate) and steady(item)}
    asked: list[Predicate] = []
    plain: list[Predicate] = []
    for p in (item for item in items if isinstance(item, Predicate)):
        by_core = terms(p) <= held and not any(isinstance(a, Opaque | SemiJoin) for a in atoms(p))
        (plain if by_core else asked).append(p)
    return asked, plain


def lasting(items: Iterable[Item]) -> list[Item]:
    """Without those that call a user's function: tomorrow its name may stand for another."""
    from pyspark.sql import SparkSession

    spark = SparkSession.active()
    jvm: Any = spark._jvm
    builtin = jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin().listFunction().mkString(" ")
    ours = spark._jsparkSession.sessionState().catalog().listTemporaryFunctions().mkString(" ")
    known = (set(_NAME.findall(builtin.lower())) | _SYNTAX) - set(_NAME.findall(ours.lower()))
    return [i for i in items if steady(i) or set(_CALLED.findall(_STRING.sub("", sql_of(i)).lower())) <= known]


def settings_of(items: Iterable[Item]) -> dict[str, int | bool]:
    """With which `configured` lets Spark evaluate many expressions, fast and each by itself.

    Spark makes one Java method of a whole stage, and Java never compiles one of more than 8000 bytes. What several
    expressions share Spark would evaluate before any of them, outside of the TryEval where it may fail.
    """
    shared = {} if all(map(steady, items)) else {"subexpressionElimination__enabled": False}
    return {"codegen__hugeMethodLimit": 8000, **shared}


def computed(items: Iterable[Item]) -> dict[str, Item]:
    return {f"_h{i}": item for i, item in enumerate(items)}


def columns(items: Computed) -> list[SparkColumn]:
    from pyspark.sql import functions as f

    return [
        (f.expr(sql_of(item)) if steady(item) else tried(f"named_struct('v', {sql_of(item)})")).alias(name)
        for name, item in items.items()
    ]


def tried(sql: str) -> SparkColumn:
    """The expression, or NULL on rows where it fails: what is inside Spark's `try_` functions."""
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import SparkSession

    spark = SparkSession.active()
    jvm: Any = spark._jvm
    parsed = spark._jsparkSession.sessionState().sqlParser().parseExpression(sql)
    whole = jvm.org.apache.spark.sql.catalyst.expressions.TryEval(parsed)
    return SparkColumn(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(whole))


def outcomes(predicates: Sequence[Predicate]) -> list[SparkColumn]:
    """The outcome bits of many predicates on a row, three bits each, `A_WORD` of them to a BIGINT.

    To hand a hundred columns to Python would take longer than to evaluate them.
    """
    from pyspark.sql import functions as f

    words = [predicates[i : i + A_WORD] for i in range(0, len(predicates), A_WORD)]
    codes = [[f.shiftleft(_outcome(p).cast("bigint"), 3 * i) for i, p in enumerate(word)] for word in words]
    return [reduce(lambda a, b: a.bitwiseOR(b), word).alias(f"_o{k}") for k, word in enumerate(codes)]


def _outcome(p: Predicate) -> SparkColumn:
    """FALSE 1, TRUE 2, NULL 4; where it fails, all three."""
    from pyspark.sql import functions as f

    if steady(p):
        return f.coalesce(f.expr(text(p)).cast("int") + T_BIT - 1, f.lit(N_BIT))
    found = tried(f"named_struct('v', {text(p)})")
    return f.when(found.isNull(), ANY).otherwise(f.coalesce(found["v"].cast("int") + T_BIT - 1, f.lit(N_BIT)))


def seen(batch: pa.RecordBatch, predicates: Sequence[Predicate]) -> list[int]:
    """The outcomes that each predicate has on some row of the batch, from the columns that `outcomes` made."""
    count = -(-len(predicates) // A_WORD)
    words = [int(np.bitwise_or.reduce(batch.column(f"_o{k}").to_numpy())) for k in range(count)]
    return [words[i // A_WORD] >> 3 * (i % A_WORD) & ANY for i in range(len(predicates))]


def bits_of(batch: pa.Table, predicates: Sequence[Predicate]) -> dict[Predicate, Bits]:
    """Each predicate's outcome on each row, from the same columns."""
    words = [batch.column(f"_o{k}").to_numpy() for k in range(-(-len(predicates) // A_WORD))]
    return {p: (words[i // A_WORD] >> 3 * (i % A_WORD) & ANY).astype(np.uint8) for i, p in enumerate(predicates)}


def rows_of(batch: pa.Table | pa.RecordBatch, items: Computed) -> Rows:
    """The computed columns of an Arrow batch as core's rows; NULL where an expression failed, or bytes are no text."""
    values: dict[Term, pa.Array | pa.ChunkedArray] = {}
    truths: dict[Predicate, Bits] = {}
    for name, item in items.items():
        value = _value(batch.column(name), item)
        if isinstance(item, Predicate):
            truths[item] = _bits(value)
        else:
            values[item] = value if _is_text(value) else pa.nulls(len(value), value.type)
    return Rows(values, truths)


def failing(batch: pa.RecordBatch | pa.Table, items: Computed) -> list[Item]:
    """Those of which nothing can be said: they failed on some row, or hold bytes that are no UTF-8, which Python cannot
    order as Spark does."""
    return [
        item
        for name, item in items.items()
        if (not steady(item) and batch.column(name).null_count) or not _is_text(_value(batch.column(name), item))
    ]


def _value(column: pa.Array | pa.ChunkedArray, item: Item) -> pa.Array | pa.ChunkedArray:
    return column if steady(item) else pc.struct_field(column, [0])


def _is_text(array: pa.Array | pa.ChunkedArray) -> bool:
    """False only of strings that are no UTF-8."""
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return True
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _bits(array: pa.Array | pa.ChunkedArray) -> Bits:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    truth = array.fill_null(False).to_numpy(zero_copy_only=False)
    null = array.is_null().to_numpy(zero_copy_only=False)
    return np.where(null, N_BIT, np.where(truth, T_BIT, F_BIT)).astype(np.uint8)
