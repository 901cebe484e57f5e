"""Three words for how much is learned from."""

import pytest

from hedgerow.core.effort import amounts_of
from hedgerow.core.errors import LayoutError


def test_more_effort_is_more_of_each() -> None:
    quick, normal, thorough = map(amounts_of, ("quick", "normal", "thorough"))
    for less, more in ((quick, normal), (normal, thorough)):
        assert (less.draws, less.rows) < (more.draws, more.rows)
        assert less.cuts <= more.cuts


def test_other_words() -> None:
    with pytest.raises(LayoutError, match="effort must be quick, normal, thorough, not 'best'"):
        amounts_of("best")  # type: ignore[arg-type]
