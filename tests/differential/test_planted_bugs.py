"""Every planted bug still has its place in the code: one that has none would seem to be missed by the comparisons."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from hedgerow.core.index import any_rows
from scripts import build_jar
from tests.differential.planted_bugs import CONDITIONS, RULE, WHOLE_QUERIES, WHOLE_QUERY_RULE, Mutant
from tests.property.whole_match_mutants import MUTANTS as OF_STATISTICS
from tests.support.wrong_source import wrong_source

BUGS = (*CONDITIONS, *RULE, *WHOLE_QUERIES, *WHOLE_QUERY_RULE)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_bug_can_be_planted(bug: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("compile_into", "pack"):
        monkeypatch.setattr(build_jar, name, lambda *_: None)
    with ExitStack() as stack:
        bug.plant(stack)


def test_bugs_of_statistics_can_be_planted() -> None:
    for bug in OF_STATISTICS:
        with wrong_source(bug.module, bug.right, bug.wrong):
            pass


def test_functions_are_wrong_only_for_a_while() -> None:
    function = any_rows.any_rows
    right = function.__code__
    with wrong_source(any_rows, "k <= 0 or ", ""):
        assert function.__code__ != right
    assert function.__code__ is right
    with pytest.raises(LookupError, match="0 times"), wrong_source(any_rows, "no such text", ""):
        pass
