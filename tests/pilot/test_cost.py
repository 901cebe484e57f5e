"""The seconds of a rewrite: what runs of a known cost teach, and what strange runs do not break."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hedgerow.core.learning.seconds import RewriteCost
from hedgerow.pilot.cost import Run, corrected_cost, fitted_cost

parts = st.tuples(st.floats(0.1, 60), st.floats(1e-9, 1e-6), st.floats(0, 1e-8))
runs = st.lists(
    st.builds(Run, st.floats(0, 1e13), st.integers(0, 500), st.sampled_from([0.0, 0.1, 7.0, 1e6])),
    min_size=0,
    max_size=6,
)


@given(parts)
def test_a_grid_of_runs_gives_the_cost(cost: tuple[float, float, float]) -> None:
    true = RewriteCost(*cost)
    grid = [Run(size, items, true.seconds(size, items)) for size in (3e7, 1.2e8) for items in (0, 100)]
    found = fitted_cost(grid)
    assert found is not None
    assert found.seconds(1e11, 50) == pytest.approx(true.seconds(1e11, 50), rel=1e-3)


@given(runs, runs)
@example([Run(551980.0, 2, 7.0), Run(782109.0, 1, 0.1)], [Run(1.0, 0, 0.1)])
def test_nothing_is_below_zero(small: list[Run], real: list[Run]) -> None:
    found = corrected_cost(fitted_cost(small), real)
    if found is None:
        assert not any(run.size >= 1 and run.seconds > 0 for run in (*small, *real))
    else:
        assert min(found.fixed, found.byte, found.item) >= 0
        assert found.seconds(1e12, 300) >= found.seconds(1e9, 300) >= found.seconds(1e9, 3) >= 0


def test_real_rewrites_correct_small_ones() -> None:
    """The small runs say 100 s for ten GB, the real one took 300."""
    small = fitted_cost([Run(size, items, 1e-8 * size) for size in (3e7, 1.2e8) for items in (0, 100)])
    before, after = corrected_cost(small, []), corrected_cost(small, [Run(1e10, 50, 300.0)] * 3)
    assert before is not None and after is not None
    assert before.seconds(1e10, 50) == pytest.approx(100)
    assert after.seconds(1e10, 50) == pytest.approx(300)
    alone = corrected_cost(None, [Run(1e10, 50, 300.0)])
    assert alone is not None and alone.seconds(2e10, 80) == pytest.approx(600)


def test_a_few_real_ones_show_a_fixed_part() -> None:
    """Without small runs: a small rewrite takes longer than its bytes would, and a large one is not taken for cheap."""
    large, small = Run(8e8, 20, 65.0), Run(1e8, 20, 17.0)
    found = corrected_cost(None, [large, small])
    assert found is not None and found.seconds(1e8, 20) > 0.8 * 17.0 and found.seconds(8e8, 20) > 0.8 * 65.0
    assert found.fixed > 0
    alike = corrected_cost(None, [Run(1e8, 0, 17.0), Run(1.1e8, 0, 17.0)])
    assert alike is not None and alike.fixed == 0 and alike.seconds(8e8, 0) > 100
    odd = corrected_cost(None, [Run(1e8, 0, 20.0), Run(4e8, 0, 20.0)])
    assert odd is not None and odd.seconds(8e8, 0) > 30
