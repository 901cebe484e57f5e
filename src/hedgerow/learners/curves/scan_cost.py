"""Compute the rows that queries scan if a sample is in a given order: it is cut into blocks, and bounds skip blocks.

A search computes this for thousands of orders of one sample, so all work that does not depend on the order is done
once: values become small integers, and a query becomes boxes (alternatives) of conditions (all must hold in a block).

    day >= 5 AND day < 9 AND (lang = 'de' OR size > 3)      box 1   day 5..8   lang {de}
                                                            box 2   day 5..8   size 4..

For a column of few values, a block has a list of its values, as in the index; for other columns it has bounds.
Conditions on several columns are assumed to hold, so a cost is never too low.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hedgerow.core.arrays import Floats, Ints
from hedgerow.core.layouts.curve import Keys
from hedgerow.core.learning.curve_order import block_starts
from hedgerow.core.learning.problem import Problem
from hedgerow.core.predicates.nodes import And, Const, Or, Predicate
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.step_functions import Stepwise, stepwise
from hedgerow.core.predicates.types import FLOAT
from hedgerow.core.predicates.values import NAN, Value
from hedgerow.core.pruning.value_codes import NAN_CODE, NULL_CODE, RankedColumn
from hedgerow.learners.curves.scan_kernels import scanned, zone_maps

Box = tuple[Stepwise, ...]
Span = tuple[int, int]  # a range of codes, both ends included
Condition = tuple[str, tuple[Span, ...]]  # a column must have a value in one of the spans
MAX_BOXES = 32  # boxes of one query; an OR that would make more is assumed to hold
MAX_LISTED_VALUES = 62  # of a column whose values blocks list: with NaN and NULL, one for each bit of a word


class Conditions(NamedTuple):
    """The conditions of all boxes, as arrays. A condition needs a value of its column in one of its spans of codes."""

    column: Ints
    values: Keys  # the codes in the spans of each condition, as bits
    span_starts: Ints  # the first span of each condition, then the number of all spans


@dataclass(frozen=True)
class Zones:
    """A sample and its queries, prepared to compute the cost of an order.

    `codes` is an array (rows, columns). Blocks have bounds for the first `wide` columns, and list the values of the
    others. `boxes` has the first condition of each box, then the number of conditions; `queries` has the first box of
    each query, then the number of boxes.
    """

    codes: npt.NDArray[np.int32]
    wide: int
    spans: npt.NDArray[np.int32]
    conditions: Conditions
    boxes: Ints
    queries: Ints
    weights: Floats
    least: int

    @staticmethod
    def of(problem: Problem, weights: Sequence[float] | None = None, listed: int = MAX_LISTED_VALUES) -> Zones:
        """Prepare the sample and the queries of a problem.

        `weights`: the cost of a row for each query. `listed`: blocks list the values of columns of at most so many.
        """
        columns = {term_text(t): _SampledColumn.of(r, listed) for t, r in problem.sample.rows.ranked.items()}
        queries = [list(_conditions(boxes_of(normalise(p)), columns)) for p in problem.predicates]
        boxes = [box for query in queries for box in query]
        conditions = [condition for box in boxes for condition in box]
        names = sorted({name for name, _ in conditions}, key=lambda name: (_is_listed(name, columns), name))
        place = {name: i for i, name in enumerate(names)}
        codes = np.array([_codes(name, columns) for name in names], np.int32).reshape(len(names), len(problem.sample))
        return Zones(
            np.ascontiguousarray(codes.T),
            sum(not _is_listed(name, columns) for name in names),
            np.array([span for _, spans in conditions for span in spans], np.int32).reshape(-1, 2),
            Conditions(
                np.array([place[name] for name, _ in conditions], np.int64),
                np.array([_bits(spans) for _, spans in conditions], np.uint64),
                _starts([len(spans) for _, spans in conditions]),
            ),
            _starts([len(box) for box in boxes]),
            _starts([len(query) for query in queries]),
            np.array(problem.weights if weights is None else weights, float).reshape(-1),
            problem.sample_block_rows,
        )

    def cost(self, keys: Keys) -> float:
        """Return the weighted sum of the rows that the queries scan in the order of these keys."""
        return float(self.weights @ self.reads(keys))

    def reads(self, keys: Keys) -> Ints:
        """Return the number of rows that each query scans."""
        order = np.argsort(keys)
        in_order = keys[order]
        ends = np.append(np.flatnonzero(in_order[1:] != in_order[:-1]) + 1, len(keys))  # ends of runs of equal keys
        starts = np.concatenate([[0], ends[block_starts(ends, self.least) - 1]])
        low, high, have = zone_maps(self.codes, order, starts, self.wide)
        rows = np.diff(np.append(starts, len(keys)))
        rows_scanned: Ints = scanned(low, high, have, rows, self.spans, self.conditions, self.boxes, self.queries)
        return rows_scanned


def boxes_of(p: Predicate) -> list[Box]:
    """Return alternatives, one of which must hold; each is a tuple of step functions that must all hold."""
    function = stepwise(p)
    if function is not None:
        return [(function,)]
    match p:
        case And(kids):
            boxes: list[Box] = [()]
            for boxes_of_kid in map(boxes_of, kids):
                if len(boxes) * len(boxes_of_kid) <= MAX_BOXES:
                    boxes = [a + b for a in boxes for b in boxes_of_kid]
            return boxes
        case Or(kids):
            boxes = [box for kid in kids for box in boxes_of(kid)]
            return boxes if len(boxes) <= MAX_BOXES else [()]
        case Const(value):
            return [()] if value else []
    return [()]


@dataclass(frozen=True, slots=True)
class _SampledColumn:
    """A column of the sample with its sorted values, including NaN."""

    rows: RankedColumn
    values: Sequence[Value]
    is_listed: bool  # whether blocks list its values

    @staticmethod
    def of(rows: RankedColumn, listed: int) -> _SampledColumn:
        values = [*rows.values, NAN] if rows.type.kind == FLOAT else rows.values
        return _SampledColumn(rows, values, len(values) <= listed)


def _conditions(boxes: Sequence[Box], columns: dict[str, _SampledColumn]) -> Iterator[list[Condition]]:
    """Yield the boxes as conditions on the sample's columns, the most selective first.

    Step functions that do not fit a column are left out. A box is split in two where NULL is an alternative.
    """
    for box in boxes:
        alternatives = [list(_alternatives(s, columns)) for s in box if _is_comparable(s, columns)]
        for conditions in product(*alternatives):
            yield sorted(conditions, key=lambda condition: _share_of_values(condition, columns))


def _share_of_values(condition: Condition, columns: dict[str, _SampledColumn]) -> float:
    """Return the share of the column's values that meet the condition."""
    name, spans = condition
    return sum(b + 1 - a for a, b in spans) / (2 if name.startswith(_IS_NULL) else len(columns[name].values) + 1)


def _is_comparable(s: Stepwise, columns: dict[str, _SampledColumn]) -> bool:
    column = columns.get(term_text(s.term))
    return column is not None and s.kind in (None, column.rows.type.kind)


def _alternatives(s: Stepwise, columns: dict[str, _SampledColumn]) -> Iterator[Condition]:
    """Yield the alternatives under which a step function is TRUE: the value is NULL, or it is in one of its spans."""
    name = term_text(s.term)
    values = columns[name].values
    spans = [(a, b - 1) for a, b in s.steps.where_true(values)]
    if s.steps.on_null is True and _is_listed(name, columns):
        spans.append((len(values), len(values)))
    elif s.steps.on_null is True:
        yield _IS_NULL + name, ((1, 1),)
    if spans:
        yield name, tuple(spans)


_IS_NULL = "\0"  # prefix of the name of a column that is 1 where the original column is NULL


def _codes(name: str, columns: dict[str, _SampledColumn]) -> npt.NDArray[np.int32]:
    """Return the code of each row's value. If values are listed, NULL has the code after the last; else it has -1."""
    if name.startswith(_IS_NULL):
        null: npt.NDArray[np.int32] = (columns[name.removeprefix(_IS_NULL)].rows.places == NULL_CODE).astype(np.int32)
        return null
    column = columns[name]
    n = len(column.values)
    code_of_place = np.arange(len(column.rows.values) + 2, dtype=np.int32)
    code_of_place[NAN_CODE], code_of_place[NULL_CODE] = n - 1, n if _is_listed(name, columns) else -1
    codes: npt.NDArray[np.int32] = code_of_place[column.rows.places]
    return codes


def _is_listed(name: str, columns: dict[str, _SampledColumn]) -> bool:
    return name.startswith(_IS_NULL) or columns[name].is_listed


def _bits(spans: Sequence[Span]) -> int:
    """Return the codes below 64 that are in one of the spans, as bits."""
    return sum(1 << code for code in {c for a, b in spans for c in range(a, min(b, 63) + 1)})


def _starts(sizes: Sequence[int]) -> Ints:
    return np.cumsum([0, *sizes], dtype=np.int64)
