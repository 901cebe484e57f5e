"""Each flag reaches the option of its name, and the others keep their defaults."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from hedgerow.cli.flags import AdviseFlags, LearnFlags, WriteFlags
from hedgerow.pipeline.learn_options import LearnOptions
from hedgerow.pipeline.write_options import WriteOptions

OTHERS: dict[str, Any] = {
    "block_rows": 7,
    "block_bytes": "3MB",
    "sample_rows": 11,
    "regions": 3,
    "seed": 5,
    "cuts": "atoms+subtrees",
    "recurrence": 0.25,
    "exact": True,
    "effort": "quick",
    "allow_slower": 0.5,
}


@pytest.mark.parametrize("name", OTHERS)
def test_learn(name: str) -> None:
    given = {name: str(OTHERS[name]) if name == "recurrence" else OTHERS[name]}
    assert LearnFlags(**given).options() == LearnOptions(**{**asdict(LearnOptions()), name: OTHERS[name]})


@pytest.mark.parametrize("name", ["block_rows", "block_bytes", "storage", "allow_slower"])
def test_advise(name: str) -> None:
    given = {name: {**OTHERS, "storage": 2}[name]}
    assert AdviseFlags(**given).options() == LearnOptions(**{**asdict(LearnOptions()), **given})


WRITING: dict[str, Any] = {
    "max_block_rows": 7,
    "sort_by": ["day"],
    "statistics": 5,
    "retries": 2,
    "lookup_share": 0.25,
    "wave_bytes": "3MB",
    "file_bytes": "5MB",
}


@pytest.mark.parametrize("name", WRITING)
def test_apply(name: str) -> None:
    given = {name: WRITING[name]}
    assert WriteFlags(**given).options() == WriteOptions(**{**asdict(WriteOptions()), **given})
