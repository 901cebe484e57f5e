"""Turns terms and predicates into columns that Spark computes, and these columns into core's `Rows`.

Core compares plain columns itself. Expressions that only Spark understands, such as functions, become columns here. An
expression that is not session-safe may fail on rows that its query never evaluates, so its value comes in a struct:

    {value}    the value, which may be NULL        NULL    the expression failed on this row
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.core.arrays import Bits
from hedgerow.core.index.session_safe import is_session_safe
from hedgerow.core.predicates.called_functions import called_functions
from hedgerow.core.predicates.nodes import (
    Column,
    Expr,
    Feature,
    Predicate,
    Term,
    atoms_of,
    is_evaluated_by_spark,
    terms_of,
)
from hedgerow.core.predicates.sql_text import feature_text, predicate_text, term_text
from hedgerow.core.predicates.types import OTHER, Type
from hedgerow.core.pruning.block_stats import ANY, F_BIT, N_BIT, T_BIT
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.spark.start.session import first_line, spark_errors

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

_IDENTIFIER = re.compile(r"\w+")
_VOID = re.compile(r"\bvoid\b(?!:)")
OUTCOMES_PER_WORD = 8  # the code of a word is one Java method, and Java never compiles long methods
Computed = Mapping[str, Feature]  # the items by the names of their computed columns


def needed(predicates: Iterable[Predicate], more: Iterable[Term] = ()) -> list[Feature]:
    """Return every term, and every atom that only Spark can evaluate, in the order of their texts."""
    items: dict[str, Feature] = {term_text(t): t for t in more}
    for p in predicates:
        items.update({term_text(t): t for t in terms_of(p)})
        items.update({predicate_text(a): a for a in atoms_of(p) if is_evaluated_by_spark(a)})
    return [items[text] for text in sorted(items)]


def analysable(
    frame: DataFrame, wanted: Iterable[Feature], schema: Mapping[str, Type]
) -> tuple[list[Feature], list[str]]:
    """Return the items that Spark can analyse and core can compare, and a sentence for each of the others."""
    listed = [item for item in wanted if isinstance(item, Predicate) or _is_comparable(item, schema)]
    try:  # all at once: one analysis costs as much as a hundred expressions
        return _split_by_type(frame, listed)
    except spark_errors():
        pass
    usable: list[Feature] = []
    refused: list[str] = []
    for item in listed:
        try:
            typed, untyped = _split_by_type(frame, [item])
            usable += typed
            refused += untyped
        except spark_errors() as error:
            refused.append(f"{feature_text(item)} is left out: {first_line(error)}")
    return usable, refused


def _split_by_type(frame: DataFrame, items: Sequence[Feature]) -> tuple[list[Feature], list[str]]:
    """Return the items whose values have a type, and a sentence for each of the others, such as `array()`."""
    fields = frame.select(*spark_columns(computed(items))).schema.fields
    untyped = [i for i, f in zip(items, fields, strict=True) if _VOID.search(f.dataType.simpleString())]
    return [i for i in items if i not in untyped], [f"{feature_text(i)} is left out: it has no type" for i in untyped]


def _is_comparable(term: Term, schema: Mapping[str, Type]) -> bool:
    """True if the term is a column of a known type, or an expression that inherits no collation from its columns."""
    if isinstance(term, Column):
        return schema.get(term_text(term), Type(OTHER)).kind != OTHER
    inner = term.columns if isinstance(term, Expr) else (term.column,)
    return not any("collate" in schema.get(term_text(c), Type(OTHER)).name for c in inner)


def split_by_evaluator(items: Iterable[Feature]) -> tuple[list[Predicate], list[Predicate]]:
    """Return the predicates that only Spark can evaluate, and the predicates that core can evaluate from other items.

    Spark takes longer to compile hundreds of conditions in one query than to evaluate them."""
    safe_terms = {item for item in items if not isinstance(item, Predicate) and is_session_safe(item)}
    predicates = [item for item in items if isinstance(item, Predicate)]

    def suits_core(p: Predicate) -> bool:
        return terms_of(p) <= safe_terms and not is_evaluated_by_spark(p)

    return [p for p in predicates if not suits_core(p)], [p for p in predicates if suits_core(p)]


def without_user_functions(items: Iterable[Feature], stable: Collection[str] = ()) -> list[Feature]:
    """Return the items that call only built-in functions; a user's function of the same name may change later.

    `stable`: the names of users' functions that are allowed as well."""
    from pyspark.sql import SparkSession

    spark = SparkSession.active()
    jvm: Any = spark._jvm
    builtin = jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin().listFunction().mkString(" ")
    users = spark._jsparkSession.sessionState().catalog().listTemporaryFunctions().mkString(" ")
    allowed = (set(_IDENTIFIER.findall(builtin.lower())) - set(_IDENTIFIER.findall(users.lower()))) | set(stable)
    return [item for item in items if is_session_safe(item) or called_functions(feature_text(item)) <= allowed]


def settings_of(items: Iterable[Feature]) -> dict[str, int | bool]:
    """Return settings for `configured`, with which Spark evaluates many expressions fast, and each by itself.

    Spark turns a whole stage into one Java method, and Java never compiles a method of more than 8000 bytes. Spark
    also evaluates a common part of several expressions, or a part that NULLIF needs twice, once before them, outside of
    the TryEval that guards it.
    """
    alone = {"subexpressionElimination__enabled": False, "alwaysInlineCommonExpr": True}
    return {"codegen__hugeMethodLimit": 8000, **({} if all(map(is_session_safe, items)) else alone)}


def computed(items: Iterable[Feature]) -> dict[str, Feature]:
    """Return the items by the names of their computed columns."""
    return {f"_h{i}": item for i, item in enumerate(items)}


def spark_columns(items: Computed) -> list[SparkColumn]:
    """Return the items as columns for `select`, under their names."""
    from pyspark.sql import functions as f

    return [
        (f.expr(feature_text(item)) if is_session_safe(item) else struct_or_null(feature_text(item))).alias(name)
        for name, item in items.items()
    ]


def value_or_null(sql: str) -> SparkColumn:
    """Return the value of the expression, NULL where it is NULL or fails."""
    return _tried(lambda expressions, parse: parse(sql))


def struct_or_null(sql: str) -> SparkColumn:
    """Return a struct with the value of the expression as `v`; NULL on rows where the expression fails."""

    def in_struct(expressions: Any, parse: Callable[[str], Any]) -> Any:
        # Arrow refuses a NULL struct around a field that is never NULL.
        fields = [parse("'v'"), expressions.KnownNullable(parse(sql))]
        jvm: Any = SparkSession.active()._jvm
        return expressions.CreateNamedStruct(jvm.org.apache.spark.api.python.PythonUtils.toSeq(fields))

    from pyspark.sql import SparkSession

    return _tried(in_struct)


def _tried(made: Callable[[Any, Callable[[str], Any]], Any]) -> SparkColumn:
    """Return an expression inside Spark's own TryEval, which turns failures into NULL."""
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import SparkSession

    spark = SparkSession.active()
    sql: Any = spark._jvm.org.apache.spark.sql  # type: ignore[union-attr]
    expressions = sql.catalyst.expressions
    whole = expressions.TryEval(made(expressions, spark._jsparkSession.sessionState().sqlParser().parseExpression))
    return SparkColumn(sql.classic.ExpressionUtils.column(whole))


def outcome_columns(predicates: Sequence[Predicate]) -> list[SparkColumn]:
    """Return BIGINT columns with the outcomes of many predicates: three bits each, `OUTCOMES_PER_WORD` in a column.

    Sending a hundred columns to Python would take longer than evaluating them.
    """
    words = [predicates[i : i + OUTCOMES_PER_WORD] for i in range(0, len(predicates), OUTCOMES_PER_WORD)]
    codes = [[_outcome_column(p, 3 * i) for i, p in enumerate(word)] for word in words]
    return [reduce(lambda a, b: a.bitwiseOR(b), word).alias(f"_o{k}") for k, word in enumerate(codes)]


def _outcome_column(p: Predicate, shift: int) -> SparkColumn:
    """Return the predicate's outcome as shifted bits: FALSE 1, TRUE 2, NULL 4, and all three where it fails.

    Java compiles hundreds of these expressions in one method, so each is short, and has its predicate only once: a
    predicate that occurs twice would be evaluated twice."""
    from pyspark.sql import functions as f

    one_bit = f"shiftleft({F_BIT << shift}L, coalesce(CAST(({predicate_text(p)}) AS INT), 2))"
    if is_session_safe(p):
        return f.expr(one_bit)
    return f.coalesce(value_or_null(one_bit), f.lit(ANY << shift).cast("bigint"))


def batch_outcomes(batch: pa.RecordBatch, predicates: Sequence[Predicate]) -> list[int]:
    """Return for each predicate all its outcomes on the rows of a batch, from the columns of `outcome_columns`."""
    count = -(-len(predicates) // OUTCOMES_PER_WORD)
    words = [int(np.bitwise_or.reduce(batch.column(f"_o{k}").to_numpy())) for k in range(count)]
    return [words[i // OUTCOMES_PER_WORD] >> 3 * (i % OUTCOMES_PER_WORD) & ANY for i in range(len(predicates))]


def row_outcomes(batch: pa.Table, predicates: Sequence[Predicate]) -> dict[Predicate, Bits]:
    """Return each predicate's outcome on each row, from the columns of `outcome_columns`."""
    words = [batch.column(f"_o{k}").to_numpy() for k in range(-(-len(predicates) // OUTCOMES_PER_WORD))]
    return {
        p: (words[i // OUTCOMES_PER_WORD] >> 3 * (i % OUTCOMES_PER_WORD) & ANY).astype(np.uint8)
        for i, p in enumerate(predicates)
    }


def rows_of(batch: pa.Table | pa.RecordBatch, items: Computed) -> Rows:
    """Return the computed columns of an Arrow batch as core's rows.

    A value is NULL where its expression failed; a column with a text that is not UTF-8 is NULL everywhere."""
    values: dict[Term, pa.Array | pa.ChunkedArray] = {}
    truths: dict[Predicate, Bits] = {}
    for name, item in items.items():
        value = _value_of_struct(batch.column(name), item)
        if isinstance(item, Predicate):
            truths[item] = _outcome_bits(value)
        else:
            values[item] = value if _is_text(value) else pa.nulls(len(value), value.type)
    return Rows(values, truths)


def failing_items(batch: pa.RecordBatch | pa.Table, items: Computed) -> list[Feature]:
    """Return the items that failed on some row of this batch, or have a text that is not UTF-8.

    They get no statistics. Python cannot order such texts as Spark does."""
    return [
        item
        for name, item in items.items()
        if (not is_session_safe(item) and batch.column(name).null_count)
        or not _is_text(_value_of_struct(batch.column(name), item))
    ]


def _value_of_struct(column: pa.Array | pa.ChunkedArray, item: Feature) -> pa.Array | pa.ChunkedArray:
    return column if is_session_safe(item) else pc.struct_field(column, [0])


def _is_text(array: pa.Array | pa.ChunkedArray) -> bool:
    """True if the values can be read as text, or are no strings; False for strings that are not UTF-8."""
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return True
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _outcome_bits(array: pa.Array | pa.ChunkedArray) -> Bits:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    truth = array.fill_null(False).to_numpy(zero_copy_only=False)
    null = array.is_null().to_numpy(zero_copy_only=False)
    return np.where(null, N_BIT, np.where(truth, T_BIT, F_BIT)).astype(np.uint8)
