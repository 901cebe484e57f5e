"""The command line in this process, on the session that all tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from hedgerow.cli import app as shared_by_commands
from hedgerow.cli.commands import app


@pytest.fixture
def run(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs `hedgerow` with these words, and leaves the session alive."""

    @contextmanager
    def shared(options: shared_by_commands.Options) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(shared_by_commands, "_session", shared)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words], prog_name="hedgerow")
