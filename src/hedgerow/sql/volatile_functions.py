"""Functions and clauses that depend on more than the row: today's date, the user, a random number, a subquery.

A condition that contains one of them is not learned from, unless `open_values` has a value to put in its place.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import SqlglotError

from hedgerow.sql.parse import parse_one

_PARAMETERS = (exp.Placeholder, exp.Parameter, exp.SessionParameter)
# A condition with one of these has a value that depends on more than the row, or changes over time.
_UNSAFE = (*(exp.Query, exp.AggFunc, exp.Window, exp.UDTF, exp.Explode, exp.Star, exp.Lambda), *_PARAMETERS)
_UNSAFE_NAMES = frozenset(
    """
    rand random randn uuid now current_date current_time curdate current_timestamp localtimestamp current_timezone
    unix_timestamp input_file_name input_file_block_start input_file_block_length monotonically_increasing_id
    spark_partition_id current_user user session_user current_database current_catalog current_schema shuffle
    current_path version randstr uniform explode explode_outer posexplode posexplode_outer inline inline_outer stack
    grouping grouping_id raise_error assert_true reflect java_method try_reflect
    """.replace("_", "").split()
)
_CLOCK_NAMES = frozenset(["now", "currentdate", "curdate", "currenttimestamp", "localtimestamp"])
# The value of one of these for a row depends on the other rows that are read.
_BY_PLACE_NAMES = frozenset(
    """
    rand random randn uuid input_file_block_start input_file_block_length monotonically_increasing_id
    spark_partition_id shuffle randstr uniform reflect java_method try_reflect
    """.replace("_", "").split()
)


def depends_on_row_only(node: exp.Expr) -> bool:
    """True if the condition has the same value for a row at any time, for any user and in any query."""
    return not any(isinstance(n, _UNSAFE) or _function_names(n) & _UNSAFE_NAMES for n in node.walk())


def is_volatile(node: exp.Expr) -> bool:
    """True for a function that changes with time, user or chance, and for a parameter."""
    return is_parameter(node) or bool(_function_names(node) & _UNSAFE_NAMES)


def is_clock(node: exp.Expr) -> bool:
    """True for a function that returns the time or the date at which a query runs."""
    return bool(_function_names(node) & _CLOCK_NAMES)


def is_parameter(node: exp.Expr) -> bool:
    """True for a parameter of a prepared query, such as :uid or ?"""
    return isinstance(node, _PARAMETERS)


def part_by_place(sql: str) -> str | None:
    """Return a part of the query whose value depends on the rows that are read together; None if there is none.

    >>> part_by_place("SELECT a FROM t WHERE b = 1 AND rand(3) < 0.5"), part_by_place("SELECT a FROM t LIMIT 3")
    ('RAND(3)', None)
    """
    try:
        nodes = list(parse_one(sql).walk())
    except SqlglotError:
        return None
    samples = [n for n in nodes if isinstance(n, exp.TableSample) and n.args.get("size") is None]
    by_place = [*samples, *(n for n in nodes if _function_names(n) & _BY_PLACE_NAMES)]
    return by_place[0].sql("spark").strip() if by_place else None


def _function_names(node: exp.Expr) -> set[str]:
    """Return the names of a function, in the query and in sqlglot, in lower case and without underscores."""
    if not isinstance(node, exp.Func):
        return set()
    names = [node.name] if isinstance(node, exp.Anonymous) else [type(node).__name__, *node.sql_names()]
    return {name.lower().replace("_", "") for name in names}
