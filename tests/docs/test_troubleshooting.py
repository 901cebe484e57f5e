"""Every message that the page on troubleshooting explains is one that Hedgerow prints."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/guide/troubleshooting.md").read_text(encoding="utf-8")
MIN_WORDS = 4  # shorter texts in backticks are names
PARTS = r"…|, so |, and |: |; |makes queries "  # a message is put together of texts and values


def source() -> str:
    """All texts in the code, those of several lines joined."""
    files = [*ROOT.glob("src/hedgerow/**/*.py"), *ROOT.glob("java/src/**/*.java")]
    text = "\n".join(file.read_text(encoding="utf-8") for file in sorted(files))
    return re.sub(r'"\s*\+?\s*f?"', "", text)


def messages() -> list[str]:
    """The first column of the page's tables, and bold sentences with a message."""
    cells = re.findall(r"^\| `([^|]+)` \|", PAGE, re.M) + re.findall(r"^\*\*It raises `(.+)`\.\*\*", PAGE, re.M)
    return [cell for cell in cells if len(cell.split()) >= MIN_WORDS]


def test_messages_are_those_of_the_code() -> None:
    code, shown = source(), messages()
    assert len(shown) > 35
    parts = {part.strip(" ,.") for cell in shown for part in re.split(PARTS, cell)}
    missing = [part for part in parts if part not in code]
    assert not missing, missing
