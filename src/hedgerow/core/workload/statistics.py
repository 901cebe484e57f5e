"""Statistics of the filters of a table's queries: columns, their frequency, and the number of different literals.

They help to decide whether another layout would pay off, and of which kind, as in chapter 2 of the thesis.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from hedgerow.core.predicates.nodes import (
    Column,
    Compare,
    Const,
    In,
    IsNull,
    Predicate,
    Prefix,
    Term,
    atoms_of,
    columns_in,
    terms_of,
)
from hedgerow.core.predicates.sql_text import predicate_text, term_text
from hedgerow.core.workload.queries import Query

_FREQUENT = 4  # the number of terms in `frequent`


@dataclass(frozen=True)
class WorkloadStatistics:
    """Numbers about the queries on a table, as shares of all queries; a query counts as often as it ran.

    `simple` queries filter only by comparisons of columns with literals; `complex` ones have another condition too.
    `frequent` has the terms that most queries filter on, with their share. `points` has, for each term, the number of
    different literals that it was compared with.
    """

    queries: float
    filtered: float
    simple: float
    complex: float
    on_partitions: float
    conditions: int
    frequent: dict[str, float]
    points: dict[str, int]


def statistics(queries: Iterable[Query], table: str, partitions: Collection[str] = ()) -> WorkloadStatistics:
    """Compute the statistics of the queries on a table; `partitions`: the columns that it is partitioned by.

    >>> from hedgerow.core.predicates.nodes import Compare, col, lit
    >>> from hedgerow.core.workload.queries import Workload
    >>> s = statistics(Workload.of("t", [Compare(col("x"), "<", lit(n)) for n in (5, 6)]), "t")
    >>> s.simple, s.conditions, s.frequent, s.points
    (1.0, 2, {'x': 1.0}, {'x': 2})
    """
    total = filtered = simple = on_partitions = 0.0
    conditions: set[str] = set()
    shares: dict[str, float] = {}
    atoms_seen: list[Predicate] = []
    divided = {name.lower() for name in partitions}
    for query in queries:
        atoms = [atom for atom in atoms_of(query.predicate(table)) if not isinstance(atom, Const)]
        total += query.weight
        filtered += query.weight * bool(atoms)
        simple += query.weight * (bool(atoms) and all(map(_is_simple, atoms)))
        columns = {column.path[0].lower() for atom in atoms for column in columns_in(atom)}
        on_partitions += query.weight * bool(columns & divided)
        conditions.update(map(predicate_text, atoms))
        for name in {term_text(term) for atom in atoms for term in _filtered_on(atom)}:
            shares[name] = shares.get(name, 0.0) + query.weight
        atoms_seen += atoms
    points = {name: len(values) for name, values in comparison_points(atoms_seen).items()}
    n = total or 1.0
    often = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    return WorkloadStatistics(
        total,
        filtered / n,
        simple / n,
        (filtered - simple) / n,
        on_partitions / n,
        len(conditions),
        {name: share / n for name, share in often[:_FREQUENT]},
        dict(sorted(points.items(), key=lambda item: (-item[1], item[0]))),
    )


def comparison_points(predicates: Iterable[Predicate]) -> dict[str, set[object]]:
    """Return the different literals that each term is compared with, by the term's text."""
    points: dict[str, set[object]] = {}
    for atom in (a for p in predicates for a in atoms_of(p)):
        match atom:
            case Compare(term, _, literal):
                points.setdefault(term_text(term), set()).add(literal.value)
            case In(term, literals):
                points.setdefault(term_text(term), set()).update(x.value for x in literals)
            case Prefix(term, prefix):
                points.setdefault(term_text(term), set()).add(prefix)
    return points


def _is_simple(atom: Predicate) -> bool:
    """True if the minimum and maximum of a column can exclude the atom."""
    return isinstance(atom, Compare | In | IsNull | Prefix) and all(isinstance(t, Column) for t in terms_of(atom))


def _filtered_on(atom: Predicate) -> Collection[Term]:
    return terms_of(atom) or columns_in(atom)
