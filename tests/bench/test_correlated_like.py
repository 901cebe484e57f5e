"""Searches overlap as they should, the same everywhere, and a tree makes something of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest

from bench.options import Options
from bench.suites import correlated_like
from bench.suites.correlated_like import FORMS, SUBJECTS, conditions, rows_of, words
from tests.support.digest import digest


def test_rows_and_queries_are_the_same_everywhere() -> None:
    assert digest(rows_of(1000, 0, 1000).slice(0, 5).to_pylist()) == "bf2445b7652ec26f"
    assert digest(conditions(0, 20)) == "c8d253f9b57fa5d1"
    assert conditions(0, 5) == conditions(0, 20)[:5]


def test_matches_in_one_column_are_mostly_matches_in_another() -> None:
    table = rows_of(20_000, 0, 20_000)
    one, other = (pc.match_substring(table[name], words()[0][0]) for name in ("tool", "error"))
    both = pc.sum(pc.and_(one, other)).as_py()
    assert 0.6 < both / pc.sum(one).as_py() < 0.95  # .85 of .85, and a little by chance
    assert pc.sum(one).as_py() > 2 * 20_000 / SUBJECTS


def test_a_word_is_in_no_other_word() -> None:
    said = [w for some in words() for w in some]
    assert len({w for w in said if not any(w in v for v in said if v != w)}) == len(said)
    assert all("{word}" in form for form in FORMS.values())


@pytest.mark.long
def test_the_quick_form_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGEROW_BENCH_CACHE", str(tmp_path))
    monkeypatch.setitem(correlated_like.ROWS, "quick", 10_000)
    monkeypatch.setitem(correlated_like.BLOCKS, "quick", 25)
    lines = list(correlated_like.run(Options("quick")))  # what must hold is checked there
    learners = [line["learner"] for line in lines]
    assert learners == ["random", "range", *["pando"] * 4, "qdtree", "pando", "qdtree", "pando"]
    _, by_range, mto, two_trees, *_ = (line["rows_read"] for line in lines)  # both by their trees
    assert two_trees < mto < by_range  # the order of the paper
    assert len({line["bound"] for line in lines}) == 1 and 0.001 < lines[0]["bound"] < 0.1
