"""`python -m bench report`: write docs/results.md and docs/results/ from the lines in bench/results.

It first marks the lines whose learner's code has changed since. `--check` writes nothing, and fails if a mark is
missing, or if the pages do not agree with the lines.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from bench.report import older_code
from bench.report.lines import read
from bench.report.markdown import pages
from bench.report.page import page

ROOT = Path(__file__).parents[2]
LINES, PAGES = ROOT / "bench" / "results", ROOT / "docs"


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench report", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if the pages do not agree with the lines"
    )
    parser.add_argument(
        "--lines", type=Path, default=LINES, metavar="FOLDER", help="the folder of *.jsonl files (bench/results)"
    )
    parser.add_argument("--to", type=Path, default=PAGES, metavar="FOLDER", help="the folder of the pages (docs)")
    options = parser.parse_args(arguments)
    files = sorted(options.lines.glob("*.jsonl"))
    if options.check:
        _check(files, options.to)
        return
    for file in files:
        older_code.mark(file)
    texts = pages(page(read(files)))
    for path in _written(options.to) - set(texts):
        (options.to / path).unlink()
    for path, text in texts.items():
        (options.to / path).parent.mkdir(parents=True, exist_ok=True)
        (options.to / path).write_text(text, encoding="utf-8")


def _check(files: Sequence[Path], folder: Path) -> None:
    lines = read(files)
    unmarked = older_code.unmarked(lines)
    if unmarked:
        learners = ", ".join(sorted({line["learner"] for line in unmarked}))
        raise SystemExit(
            f"the code of {learners} has changed since {len(unmarked)} lines were measured: python -m bench report "
            "marks them"
        )
    texts = pages(page(lines))
    stale = sorted(_written(folder) - set(texts)) + [
        path
        for path, text in texts.items()
        if not (folder / path).exists() or (folder / path).read_text(encoding="utf-8") != text
    ]
    if stale:
        raise SystemExit(f"the lines in bench/results say otherwise: {', '.join(stale)}; run python -m bench report")


def _written(folder: Path) -> set[str]:
    """Return the paths of the pages and pictures of topics that are there."""
    return {
        path.relative_to(folder).as_posix()
        for pattern in ("*.md", "*/*.svg")
        for path in (folder / "results").glob(pattern)
    }
