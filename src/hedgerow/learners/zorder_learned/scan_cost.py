"""What queries scan of a sample in some order: it is cut into blocks, and their least and greatest values say the rest.

A search asks this thousands of times of one sample, so all that does not depend on the order is done once: values
become small integers, and each query becomes boxes (alternatives) of conditions (each has to hold somewhere).

    day >= 5 AND day < 9 AND (lang = 'de' OR size > 3)      box 1   day 5..8   lang {de}
                                                            box 2   day 5..8   size 4..

A column of few values is known by which of them a block has, as the index will know it; any other by its bounds. What
is no condition on single columns is taken to hold, so a cost is never too low.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from hedgerow.core.learning.curves.kernels import block_starts, changes, radix_order, scanned, zone_maps
from hedgerow.core.learning.problem import Problem
from hedgerow.core.predicates.nodes import And, Const, Or, Predicate
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.step_functions import Stepwise, stepwise
from hedgerow.core.predicates.types import FLOAT
from hedgerow.core.predicates.values import NAN, Value
from hedgerow.core.pruning.block_stats import Ints
from hedgerow.core.pruning.value_codes import NAN_CODE, NULL_CODE, RankedColumn

Keys = npt.NDArray[np.uint64]
Box = tuple[Stepwise, ...]
Span = tuple[int, int]  # codes, both ends included
Part = tuple[str, tuple[Span, ...]]  # a column has to have a value in one of the spans
MOST_BOXES = 32  # of one query; an OR that would make more is taken to hold
FEW = 62  # values of a column that are known one by one: with NaN and NULL as many as a word has bits


@dataclass(frozen=True)
class Zones:
    """`codes` are rows x columns, the first `wide` of them known by bounds, the others value by value.

    `conditions` are column, values (as bits) and where the own spans begin; `spans` their ends. `boxes` and `queries`
    are where the own conditions and boxes of each begin.
    """

    codes: npt.NDArray[np.int32]
    wide: int
    spans: npt.NDArray[np.int32]
    conditions: tuple[Ints, Keys, Ints]
    boxes: Ints
    queries: Ints
    weights: npt.NDArray[np.float64]
    least: int

    @staticmethod
    def of(problem: Problem, weights: Sequence[float] | None = None) -> Zones:
        """A query's weight is for each row that it scans; by default what the problem says."""
        known = {term_text(t): _Known.of(r) for t, r in problem.sample.rows.ranked.items()}
        queries = [list(_parts(boxes_of(normalise(p)), known)) for p in problem.predicates]
        boxes = [box for own in queries for box in own]
        conditions = [part for box in boxes for part in box]
        names = sorted({name for name, _ in conditions}, key=lambda name: (_is_few(name, known), name))
        place = {name: i for i, name in enumerate(names)}
        codes = np.array([_codes(name, known) for name in names], np.int32).reshape(len(names), len(problem.sample))
        return Zones(
            np.ascontiguousarray(codes.T),
            sum(not _is_few(name, known) for name in names),
            np.array([span for _, spans in conditions for span in spans], np.int32).reshape(-1, 2),
            (
                np.array([place[name] for name, _ in conditions], np.int64),
                np.array([_bits(spans) for _, spans in conditions], np.uint64),
                _starts([len(spans) for _, spans in conditions]),
            ),
            _starts([len(box) for box in boxes]),
            _starts([len(own) for own in queries]),
            np.array(problem.weights if weights is None else weights, float).reshape(-1),
            problem.sample_block_rows,
        )

    def cost(self, keys: Keys, bits: int = 64) -> float:
        """What the queries scan, weighted, when rows are in the order of these keys of so many bits."""
        return float(self.weights @ self.reads(keys, bits))

    def reads(self, keys: Keys, bits: int = 64) -> Ints:
        """How many rows each query scans."""
        order = radix_order(keys, bits)
        ends = changes(keys, order)
        starts = np.concatenate([[0], ends[block_starts(ends, self.least) - 1]])
        low, high, have = zone_maps(self.codes, order, starts, self.wide)
        rows = np.diff(np.append(starts, len(keys)))
        found: Ints = scanned(low, high, have, rows, self.spans, self.conditions, self.boxes, self.queries)
        return found


def boxes_of(p: Predicate) -> list[Box]:
    """Alternatives of which one has to hold, each of step functions of single terms that all have to hold."""
    one = stepwise(p)
    if one is not None:
        return [(one,)]
    match p:
        case And(kids):
            found: list[Box] = [()]
            for own in map(boxes_of, kids):
                if len(found) * len(own) <= MOST_BOXES:
                    found = [a + b for a in found for b in own]
            return found
        case Or(kids):
            found = [box for kid in kids for box in boxes_of(kid)]
            return found if len(found) <= MOST_BOXES else [()]
        case Const(value):
            return [()] if value else []
    return [()]


@dataclass(frozen=True, slots=True)
class _Known:
    """A column of the sample, and its values in order, NaN among them."""

    rows: RankedColumn
    values: list[Value]

    @staticmethod
    def of(rows: RankedColumn) -> _Known:
        return _Known(rows, [*rows.values, NAN] if rows.type.kind == FLOAT else rows.values)


def _parts(boxes: Sequence[Box], known: dict[str, _Known]) -> Iterator[list[Part]]:
    """The boxes over the sample's columns, without what cannot be compared with them; NULL may make two of one."""
    for box in boxes:
        either = [list(_either(s, known)) for s in box if _comparable(s, known)]
        yield from (sorted(parts, key=lambda part: _width(part, known)) for parts in product(*either))


def _width(part: Part, known: dict[str, _Known]) -> float:
    """The share of the values that pass: what lets few blocks pass is looked at first."""
    name, spans = part
    return sum(b + 1 - a for a, b in spans) / (2 if name.startswith(_IS_NULL) else len(known[name].values) + 1)


def _comparable(s: Stepwise, known: dict[str, _Known]) -> bool:
    column = known.get(term_text(s.term))
    return column is not None and s.kind in (None, column.rows.type.kind)


def _either(s: Stepwise, known: dict[str, _Known]) -> Iterator[Part]:
    """One of the spans of values on which a step function is TRUE, or NULL."""
    name = term_text(s.term)
    values = known[name].values
    spans = [(a, b - 1) for a, b in s.steps.where_true(values)]
    if s.steps.on_null is True and _is_few(name, known):
        spans.append((len(values), len(values)))
    elif s.steps.on_null is True:
        yield _IS_NULL + name, ((1, 1),)
    if spans:
        yield name, tuple(spans)


_IS_NULL = "\0"  # before the name of a column that is 1 where the other is NULL


def _codes(name: str, known: dict[str, _Known]) -> npt.NDArray[np.int32]:
    """The place of each row's value. NULL comes after all values of a column of few; in others it is -1, no value."""
    if name.startswith(_IS_NULL):
        null: npt.NDArray[np.int32] = (known[name.removeprefix(_IS_NULL)].rows.places == NULL_CODE).astype(np.int32)
        return null
    column = known[name]
    n = len(column.values)
    table = np.arange(len(column.rows.values) + 2, dtype=np.int32)
    table[NAN_CODE], table[NULL_CODE] = n - 1, n if _is_few(name, known) else -1
    found: npt.NDArray[np.int32] = table[column.rows.places]
    return found


def _is_few(name: str, known: dict[str, _Known]) -> bool:
    return name.startswith(_IS_NULL) or len(known[name].values) <= FEW


def _bits(spans: Sequence[Span]) -> int:
    """The codes below 64 that lie in a span, as bits."""
    return sum(1 << code for code in {c for a, b in spans for c in range(a, min(b, 63) + 1)})


def _starts(sizes: Sequence[int]) -> Ints:
    return np.cumsum([0, *sizes], dtype=np.int64)
