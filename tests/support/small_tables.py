"""Small tables do what otherwise only large ones do: queries look for a threshold, and files have several row groups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from hedgerow.core.index import top_k


@contextmanager
def as_if_large() -> Iterator[None]:
    with (
        patch.multiple(top_k, _FEWEST=1, _FEWEST_IF_SURE=1, _FEWEST_ROWS=1),
        patch("hedgerow.pipeline.apply._LEAST_GROUP_ROWS", 5),
    ):
        yield
