"""What an order is said to cost, against the one evaluator on the blocks that it makes."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.core.learning.curve_order import bounds_of
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates.nodes import (
    And,
    Compare,
    CompareTerms,
    In,
    IsNull,
    Not,
    Or,
    Predicate,
    col,
    columns_of,
    lit,
)
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.pruning.block_stats import collect
from hedgerow.core.pruning.evaluator import may_match
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.learners.curves.scan_cost import Zones
from tests.support.random_cases import a_predicate, a_table, bits, seeds

few, wide, real = col("few"), col("wide"), col("real")


def a_problem(columns: dict[str, pa.Array], asked: list[Predicate], least: int) -> Problem:
    sample = Sample(Rows({col(name): array for name, array in columns.items()}), len(columns["wide"]), {})
    return Problem.build(sample, tuple(asked), least)


def in_blocks(keys: np.ndarray, problem: Problem) -> tuple[np.ndarray, int]:
    bounds = bounds_of(keys, problem.sample_block_rows)
    return np.searchsorted(np.array(bounds, np.uint64), keys, side="right"), len(bounds) + 1


def by_index(keys: np.ndarray, problem: Problem, max_distinct: int) -> list[int]:
    """Rows in blocks that the evaluator does not skip, by bounds and the values of columns of so few."""
    of, n = in_blocks(keys, problem)
    stats = collect(problem.sample.rows.ranked, None, of, n, max_distinct)
    return [int(stats.rows[may_match(p, stats)].sum()) for p in problem.predicates]


def an_atom(random: Random) -> Predicate:
    term, literal = random.choice([(few, random.randint(-1, 9)), (wide, random.randint(-5, 320))])
    match random.randint(0, 4):
        case 0:
            return IsNull(term)
        case 1:
            return In(term, tuple(lit(literal + 3 * k) for k in range(random.randint(1, 3))))
        case 2:
            return Compare(real, random.choice(("<", ">=", "=")), lit(random.choice((0.5, 99.0, float("nan")))))
    return Compare(term, random.choice(("<", "<=", "=", "<>", ">", ">=")), lit(literal))


def a_query(random: Random, depth: int) -> Predicate:
    if not depth:
        atom = an_atom(random)
        return Not(atom) if random.random() < 0.2 else atom
    kids = tuple(a_query(random, random.randrange(depth)) for _ in range(random.randint(2, 3)))
    return random.choice((And, Or))(kids)


@given(st.integers(0, 2**32))
def test_rows_scanned_are_those_of_the_blocks_that_the_index_opens(seed: int) -> None:
    """No fewer than if all values were known, no more than by bounds alone; a NaN counts as a bound."""
    random = Random(seed)
    n = random.randint(1, 400)
    null = random.choice((0.0, 0.3, 1.0))

    def column(values: list[float]) -> pa.Array:
        return pa.array([None if random.random() < null else random.choice(values) for _ in range(n)])

    columns = {
        "few": column(list(range(8))),
        "wide": column(list(range(300))),
        "real": column([0.0, 1.5, 99.0, float("nan")]),
    }
    asked = [a_query(random, random.choice((0, 0, 1, 2))) for _ in range(12)]
    problem = a_problem(columns, asked, random.randint(1, 40))
    keys = np.array([random.randrange(50) for _ in range(n)], np.uint64)
    found = Zones.of(problem).reads(keys).tolist()
    least, most = by_index(keys, problem, 1000), by_index(keys, problem, 0)
    for p, read, low, high in zip(asked, found, least, most, strict=True):
        assert low <= read, predicate_text(p)
        assert read <= high or real in columns_of(p), predicate_text(p)


def test_bounds_and_values() -> None:
    """`wide` is known by bounds, which a value in between does not leave; `few` by its values."""
    columns = {"wide": pa.array([0, 200, 100, *range(300)]), "few": pa.array([1, 5, None] + [3] * 300)}
    asked = [
        Compare(wide, "=", lit(150)),
        Compare(few, "=", lit(4)),
        IsNull(few),
        And((Compare(wide, "<", lit(100)), Compare(few, "=", lit(5)))),
        Or((Compare(few, "=", lit(4)), Compare(wide, ">", lit(298)))),
        CompareTerms(few, "<", wide),
    ]
    problem = a_problem(columns, asked, 3)
    keys = np.array([0, 0, 0] + [1 + i // 3 for i in range(300)], np.uint64)
    assert Zones.of(problem).reads(keys).tolist() == [6, 0, 3, 3, 3, 303]


def test_without_lists_of_values_bounds_alone_skip() -> None:
    """A block of 1, 5 and NULL may hold a 3, by its bounds; whether it has a NULL is always known."""
    problem = a_problem(
        {"wide": pa.array([0] * 9), "few": pa.array([1, 5, None, 3, 3, 3, 5, 5, 5])},
        [Compare(few, "=", lit(3)), IsNull(few), Compare(few, ">", lit(4))],
        3,
    )
    keys = np.repeat(np.arange(3, dtype=np.uint64), 3)
    assert Zones.of(problem).reads(keys).tolist() == [3, 3, 6]
    assert Zones.of(problem, listed=0).reads(keys).tolist() == [6, 3, 6]


def test_weights_count() -> None:
    problem = a_problem({"wide": pa.array(range(100))}, [Compare(wide, "<", lit(10)), Compare(wide, ">=", lit(50))], 10)
    zones = Zones.of(problem, (1.0, 10.0))
    assert zones.cost(np.arange(100, dtype=np.uint64)) == 10 + 10 * 50
    assert zones.cost(np.zeros(100, np.uint64)) == 11 * 100


def test_never_too_low_on_tables_of_any_kind() -> None:
    for random in seeds(3, 40):
        table = a_table(random)
        asked = [normalise(a_predicate(random, table)) for _ in range(8)]
        truths = {p: bits(p, table) for p in table.opaque}
        problem = Problem.build(Sample(Rows(table.columns, truths), len(table), {}), tuple(asked), 1)
        keys = np.array([random.randrange(4) for _ in range(len(table))], np.uint64)
        of, n = in_blocks(keys, problem)
        rows = np.bincount(of, minlength=n)
        for p, read in zip(asked, Zones.of(problem).reads(keys).tolist(), strict=True):
            holding = np.bincount(of, weights=bits(p, table) == 2, minlength=n) > 0
            assert read >= rows[holding].sum()
