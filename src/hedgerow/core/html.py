"""Small tables of HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(rows: Iterable[Sequence[object]], titles: Sequence[str] = ()) -> str:
    """Return an HTML table with all texts escaped.

    >>> html_table([("a<b", None)], ["name", "share"])
    '<table><thead><tr><th>name</th><th>share</th></tr></thead><tbody><tr><td>a&lt;b</td><td></td></tr></tbody></table>'
    """
    head = f"<thead><tr>{''.join(f'<th>{escape(title)}</th>' for title in titles)}</tr></thead>" if titles else ""
    cells = ("".join(f"<td>{'' if cell is None else escape(str(cell))}</td>" for cell in row) for row in rows)
    return f"<table>{head}<tbody>{''.join(f'<tr>{row}</tr>' for row in cells)}</tbody></table>"
