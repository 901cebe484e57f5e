"""Finds and marks the lines whose learner's code has changed since they were measured."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from bench.report.lines import Line, read
from hedgerow.pipeline.learner_names import LEARNERS

ROOT = Path(__file__).parents[2]
CODE = "src/hedgerow"


def unmarked(lines: Iterable[Line]) -> list[Line]:
    """Return the lines without a mark whose learner imports a file that changed after the line's commit.

    A commit that this clone does not have tells nothing.
    """
    return [line for line in lines if line.get("learner") in LEARNERS and not line.get("older") and _is_older(line)]


def mark(file: Path) -> None:
    """Mark these lines of a file."""
    texts = file.read_text(encoding="utf-8").splitlines()
    lines = read([file])
    older = {id(line) for line in unmarked(lines)}
    marked = [
        text.removesuffix("}") + ', "older": true}' if id(line) in older else text
        for text, line in zip(texts, lines, strict=True)
    ]
    if older:
        file.write_text("".join(f"{text}\n" for text in marked), encoding="utf-8")


def _is_older(line: Line) -> bool:
    then, now = _committed(line["commit"].removesuffix("+")), _present()
    return bool(then and now) and any(then.get(file) != now[file] for file in _files(line["learner"]))


@cache
def _files(learner: str) -> frozenset[str]:
    """Return the files of ours that a learner imports, in any number of steps."""
    reached: set[str] = set()
    left = [LEARNERS[learner].__module__]
    while left:
        file = _file(left.pop())
        if file and file not in reached:
            reached.add(file)
            left += _imports(file)
    return frozenset(reached)


@cache
def _imports(file: str) -> list[str]:
    nodes = ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
    names = [(node.module, alias.name) for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names]
    return [name for module, own in names if module for name in (module, f"{module}.{own}")]


def _file(module: str) -> str:
    path = f"src/{module.replace('.', '/')}.py"
    return path if module.startswith("hedgerow.") and (ROOT / path).exists() else ""


@cache
def _committed(commit: str) -> Mapping[str, str]:
    """Return the hash of each file of ours at a commit; nothing, if there is no such commit here."""
    entries = [entry.split("\t") for entry in _git("ls-tree", "-r", commit, "--", CODE)]
    return {path: about.split()[2] for about, path in entries}


@cache
def _present() -> Mapping[str, str]:
    paths = [str(path.relative_to(ROOT)) for path in sorted((ROOT / CODE).rglob("*.py"))]
    return dict(zip(paths, _git("hash-object", *paths), strict=False))


def _git(*arguments: str) -> list[str]:
    try:
        run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return []
    return [] if run.returncode else run.stdout.splitlines()
