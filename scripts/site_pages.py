"""A hook of MkDocs: the pages that are made of the README and of the code, and the links that leave the site."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import hedgerow

_FOLDERS = "guide|concepts|learners|decisions|results"
_OUTSIDE = rf"(?:\.\./)+(?!(?:{_FOLDERS})/|[\w-]+\.md)[^)]*|(?:CONTRIBUTING|CHANGELOG|SECURITY)\.md"


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    made = {"index.md": _start(), "reference/python.md": _python(), "reference/commands.md": _commands()}
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Name a file that the site does not have instead of linking to it."""
    return re.sub(rf"\[([^\]]+)\]\((?:{_OUTSIDE})\)", r"\1", markdown)


def _start() -> str:
    return Path("README.md").read_text(encoding="utf-8").replace("](docs/", "](")


def _python() -> str:
    names = sorted(name for name in hedgerow.__all__ if name != "__version__")
    return "\n\n".join(("# Python", *(f"::: hedgerow.{name}" for name in names)))


def _commands() -> str:
    from typer.cli import get_docs_for_click
    from typer.main import get_command
    from typer.models import Context

    program = get_command(import_module("hedgerow.cli.commands").app)
    return get_docs_for_click(obj=program, ctx=Context(program, info_name="hedgerow"), name="hedgerow")
