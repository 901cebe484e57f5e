"""Modules never import each other in a circle: not at the top, not inside a function, not for types only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import hedgerow

ROOT = Path(__file__).parents[2]
PACKAGES = {"hedgerow": ROOT / "src" / "hedgerow", "bench": ROOT / "bench"}


def modules(package: str) -> dict[str, Path]:
    folder = PACKAGES[package]
    named = {(package, *file.relative_to(folder).with_suffix("").parts): file for file in folder.rglob("*.py")}
    return {".".join(p for p in parts if p != "__init__"): file for parts, file in named.items()}


def imported(file: Path, known: set[str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in known else node.module


@pytest.mark.parametrize("package", PACKAGES)
def test_no_circles(package: str) -> None:
    files = modules(package)
    graph = {name: {other for other in imported(file, set(files)) if other in files} for name, file in files.items()}
    # The public names of the package are lazy: its `__init__` names modules for type checkers only.
    graph.pop(package, None)
    try:
        TopologicalSorter({name: others - {package} for name, others in graph.items()}).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_no_package_has_the_name_of_a_public_function() -> None:
    """Once such a package is imported, it would hide the function."""
    assert not set(hedgerow.__all__) & {name.split(".")[1] for name in modules("hedgerow") if "." in name}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_relative_imports(package: str) -> None:
    for file in modules(package).values():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            assert not (isinstance(node, ast.ImportFrom) and node.level), file
