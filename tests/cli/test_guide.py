"""Every command on the guide's page runs, and prints what the page shows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from hedgerow.cli.commands import app

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guide/cli.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", GUIDE, re.S)


def commands() -> Iterator[tuple[str, str]]:
    """Each command with what the page shows below it; nothing where the page leaves it out."""
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown


def shape(text: str) -> str:
    """The words of an output: numbers, names of files and widths of columns may differ."""
    text = re.sub(r'[^\s"]*/shop/', "shop/", text)
    text = re.sub(r"part-[\w.-]+", "part", text)
    text = re.sub(r"\d[\w:,.+-]*", "0", text)
    return " ".join(re.sub("─+", "─", text).split())


def test_commands(run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (program,), (queries, history) = blocks("python"), blocks("sql")
    exec(compile(program, "cli.md", "exec"), {})
    Path("shop/queries.sql").write_text(queries)
    Path("shop/history.sql").write_text(history)
    for command, shown in commands():
        first, *words = shlex.split(command.replace("shop/", f"{tmp_path}/shop/"))  # Spark does not change directory
        assert first == "hedgerow"
        result = run(*words)
        assert result.exit_code == (1 if shown.startswith("error: ") else 0), (command, result.output)
        assert not shown or shape(result.output) == shape(shown), (command, result.output)


def test_nothing_is_left_out() -> None:
    group: Any = typer.main.get_command(app)
    for command in [group, *group.commands.values()]:
        assert f"`{command.name}`" in GUIDE or command is group
        for param in command.params:
            option = param.opts[-1]
            assert not option.startswith("--") or option in GUIDE, (command.name, option)
