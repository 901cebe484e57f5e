"""The keys that other tables have, as conditions of the queries that join these tables.

    SELECT ... FROM events JOIN users ON user_id = id WHERE plan = 'gold'
    users: id 17, 203 and 204 are gold          events: user_id IN (17, 203, 204); neighbours are ranges

A layout is learned from such conditions, and no query is answered by them: when it runs, it has keys of its own, and
these choose the files of an attached table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hedgerow.core.arrays import Bools
from hedgerow.core.errors import HedgerowError, LayoutError
from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates.nodes import (
    TRUE,
    Column,
    Compare,
    In,
    Literal,
    Predicate,
    Term,
    columns_of,
    conjunction,
    disjunction,
)
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.schema import Schema
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.core.predicates.values import Value
from hedgerow.core.pruning.block_stats import T_BIT
from hedgerow.core.workload.queries import Join, Query
from hedgerow.spark.compute.sample import draw
from hedgerow.spark.storage.source import Source

_MOST_ROWS, _SEED = 200_000, 0  # of another table; of a larger one only a sample
_MOST_LISTED, _MOST_RANGES = 100, 8  # keys in a list, ranges of keys


def with_keys(queries: Sequence[Query], table: Source, others: Mapping[str, Source]) -> tuple[Query, ...]:
    """Return the queries with conditions on keys in place of their joins with these other tables.

    `others`: by the names that the queries have for them. Joins whose keys are not known remain."""
    known = _Others({name.lower(): sample for name, sample in _samples(queries, others).items()})

    def widened(query: Query) -> Query:
        scans, keyed = list(query.scans), set[str]()
        for number, scan in enumerate(scans):
            if scan.table.lower() == table.name.lower():
                keys = {join: known.condition(query, join, number, table.schema) for join in scan.joins}
                found = [condition for condition in keys.values() if condition is not None]
                joins = tuple(join for join, condition in keys.items() if condition is None)
                predicate = normalise(conjunction(scan.predicate, *found))
                scans[number] = replace(scan, predicate=predicate, joins=joins)
                keyed |= {column.path[0] for condition in found for column in columns_of(condition)}
        return replace(query, scans=tuple(scans), keyed=query.unfiltered(table.name, keyed))

    return tuple(map(widened, queries))


def _samples(queries: Sequence[Query], others: Mapping[str, Source]) -> dict[str, Sample]:
    """Return the rows of the other tables, with the columns of joins and the outcomes of conditions."""
    samples = {}
    for name, source in others.items():
        scans = [scan for query in queries for scan in query.scans if scan.table.lower() == name.lower()]
        terms: list[Term] = [Column((key,)) for key in sorted({key for scan in scans for key in scan.keys})]
        if terms:
            try:
                samples[name], _ = draw(source, [scan.predicate for scan in scans], _MOST_ROWS, _SEED, terms)
            except HedgerowError:
                continue  # an empty table, or none of its columns can be compared
    return samples


@dataclass(frozen=True)
class _Keys:
    """The values of a key column in ascending order, and which of them the rows have that a query joins."""

    kind: str
    values: Sequence[Value]
    are_joined: Bools

    def condition(self, column: Column, may_list: bool) -> Predicate:
        """Return a condition that holds on these keys: a few ranges without other keys, else a list, else ranges."""
        places = np.flatnonzero(self.are_joined)
        literals = [Literal(self.kind, self.values[place]) for place in places.tolist()]
        gaps = np.diff(places)
        is_scattered = np.count_nonzero(gaps > 1) >= min(_MOST_RANGES, len(literals) - 1)
        if may_list and is_scattered and len(literals) <= _MOST_LISTED:
            return In(column, tuple(literals))
        widest = np.sort(np.argsort(-gaps, kind="stable")[: _MOST_RANGES - 1])
        ends = [*widest[gaps[widest] > 1].tolist(), len(literals) - 1]
        starts = [0, *(end + 1 for end in ends[:-1])]
        return disjunction(
            *(
                conjunction(Compare(column, ">=", literals[start]), Compare(column, "<=", literals[end]))
                for start, end in zip(starts, ends, strict=True)
            )
        )


@dataclass(frozen=True)
class _Others:
    """Rows of the other tables, by their names in lower case."""

    samples: Mapping[str, Sample]

    def condition(self, query: Query, join: Join, number: int, schema: Schema) -> Predicate | None:
        """Return the condition that the column of a join has one of the keys; None if these are not known.

        `number`: of the scan that has the join."""
        type_, keys = schema.get(quote_name(join.columns[0])), self._keys(query, join, (number,))
        if keys is None or type_ is None or type_.kind != keys.kind or not keys.are_joined.any():
            return None
        sample = self.samples[query.scans[join.other].table.lower()]
        return TRUE if keys.are_joined.all() else keys.condition(Column(join.columns), sample.fraction == 1)

    def _keys(self, query: Query, join: Join, passed: tuple[int, ...]) -> _Keys | None:
        scan = query.scans[join.other]
        sample = self.samples.get(scan.table.lower())
        if sample is None or join.other in passed:
            return None
        try:
            ranked = sample.rows.ranks(Column(join.other_columns))
        except LayoutError:
            return None
        rows = _outcomes(sample, scan.predicate)
        for further in scan.joins:
            rows = rows & self._joined(query, further, (*passed, join.other), sample)
        places = ranked.places[rows]
        are_joined = np.zeros(len(ranked.values), bool)
        are_joined[places[places >= 0]] = True
        return _Keys(ranked.type.kind, ranked.values, are_joined)

    def _joined(self, query: Query, join: Join, passed: tuple[int, ...], sample: Sample) -> Bools:
        """Return which rows of a sample have a partner over a join, as far as that is known."""
        other = self.samples.get(query.scans[join.other].table.lower())
        keys = None if other is None or other.fraction < 1 else self._keys(query, join, passed)
        if keys is None or keys.are_joined.all():
            return np.ones(len(sample), bool)
        ranked = sample.rows.ranks(Column(join.columns))
        wanted = {keys.values[place] for place in np.flatnonzero(keys.are_joined).tolist()}
        has_partner: Bools = np.array([value in wanted for value in ranked.values] + [False] * 2)  # NULL and NaN: none
        partners: Bools = has_partner[ranked.places]
        return partners


def _outcomes(sample: Sample, p: Predicate) -> Bools:
    """Return on which rows the predicate is TRUE; on all, if that is not known."""
    try:
        return np.equal(sample.rows.evaluate(p), T_BIT)
    except LayoutError:
        return np.ones(len(sample), bool)
