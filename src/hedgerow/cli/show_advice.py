"""Prints an advice: a table of the proposals, and what the best one does for each kind of query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

from hedgerow.cli.output import Output, share

if TYPE_CHECKING:
    from hedgerow.pipeline.advice import Advice, Template
    from hedgerow.pipeline.proposals import Proposal

_TEMPLATES = 10  # that are printed
_WIDTH = 70  # of a template's text


def show_advice(advice: Advice, output: Output) -> None:
    if output.as_json:
        output.answer(advice.to_dict(), {})
        return
    now = ["as it is", share(advice.rows_read), "", _seconds(advice.now), "", ""]
    rows = [now, *map(_row, advice.proposals)]
    if advice.bound is not None:
        rows.append(["rows that match", share(advice.bound), "", "", "", "no layout reads less"])
    titles = (
        ("layout", False),
        ("rows read", True),
        ("blocks", True),
        ("s a query", True),
        ("learned in", True),
        ("", False),
    )
    output.table(titles, rows)
    shown = advice.templates[:_TEMPLATES]
    if shown:
        numbers = [(title, True) for title in ("queries", "s now", "s then")]
        title = f"queries like these, with {advice.proposals[0].name}"
        output.table([(title, False), *numbers], [_line(t) for t in shown])
    if len(advice.templates) > len(shown):
        output.line("note", f"{len(advice.templates) - len(shown):,} more kinds of queries; --json lists all")
    output.answer(
        {},
        {
            "advice": advice.sentence,
            "slower": "\n".join(_short(t.example) for t in advice.slower) or None,
            "rests on": "\n".join(advice.rests_on),
        },
    )


def show_each(advices: Mapping[str, Advice | str], output: Output) -> None:
    """Print a line for each table, those with most seconds to save first; exit code 1 if there is no advice at all."""
    if output.as_json:
        output.answer({name: {"error": a} if isinstance(a, str) else a.to_dict() for name, a in advices.items()}, {})
    else:
        titles = (("table", False), ("rows", True), ("rows read", True), ("best", True), ("s a query", True))
        rows = [
            [name, "", "", "", "", "", advice] if isinstance(advice, str) else _of_table(name, advice)
            for name, advice in sorted(advices.items(), key=lambda item: -_saved(item[1]))
        ]
        output.table([*titles, ("best", True), ("advice", False)], rows)
    if all(isinstance(advice, str) for advice in advices.values()):
        raise typer.Exit(1)


def _saved(advice: Advice | str) -> float:
    """Return the seconds that a query saves."""
    if isinstance(advice, str) or advice.best is None or advice.best.estimate is None:
        return 0.0
    return advice.best.estimate.now - advice.best.estimate.then


def _of_table(name: str, advice: Advice) -> list[str]:
    first = advice.proposals[0]
    then = "" if first.score is None else share(first.score.rows_read)
    seconds = _seconds(advice.now), _seconds(None if first.estimate is None else first.estimate.then)
    return [name, f"{advice.rows:,}", share(advice.rows_read), then, *seconds, advice.sentence]


def _row(proposal: Proposal) -> list[str]:
    score, learned = proposal.score, proposal.learned
    if score is None or learned is None:
        return [proposal.name, "", "", "", "", proposal.why_not or ""]
    seconds = None if proposal.estimate is None else proposal.estimate.then
    facts = [share(score.rows_read), f"{score.blocks:,}", _seconds(seconds), f"{learned.fit_seconds:,.0f} s"]
    return [proposal.name, *facts, ""]


def _line(template: Template) -> list[str]:
    return [_short(template.example), f"{template.queries:,}", _seconds(template.now), _seconds(template.then)]


def _short(text: str) -> str:
    """
    >>> _short("x" * 99) == "x" * 67 + "..."
    True
    """
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"
