"""Prints an advice: a table of the proposals, and for each kind of query what the best one does."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import typer

from hedgerow.cli.output import Output, share
from hedgerow.core.errors import shortened

if TYPE_CHECKING:
    from hedgerow.pipeline.advice import Advice
    from hedgerow.pipeline.proposals import Proposal

_MIN_WIDTH, _REASON_WIDTH, _BETWEEN = 30, 90, 3  # columns of the terminal; between two columns of a table
Columns = Sequence[tuple[str, bool]]  # see `Output.table`


def show_advice(advice: Advice, output: Output) -> None:
    if output.as_json:
        output.answer(advice.to_dict(), {})
        return
    from hedgerow.pipeline.query_kinds import FIGURES, in_groups

    now = ["as it is", share(advice.rows_read), "", _seconds(advice.now), "", ""]
    rows = [now, *map(_row, advice.proposals)]
    if advice.bound is not None:
        rows.append(["rows needed", share(advice.bound), "", "", "", "no layout reads less"])
    numbers = [(title, True) for title in ("rows read", "files", "s a query", "learned in")]
    output.table(*_without_empty([("layout", False), *numbers, ("", False)], rows))
    titles = [("queries", True), *((figure, True) for figure in FIGURES), ("by", False)]
    for change, kinds in in_groups(advice.kinds).items():
        figures = [[f"{kind.queries:,}", *kind.figures(), ", ".join(kind.means)] for kind in kinds]
        columns, figures = _without_empty(titles, figures)
        widths = (max(map(len, cells)) for cells in zip([name for name, _ in columns], *figures, strict=True))
        left = get_terminal_size().columns - sum(width + _BETWEEN for width in widths)
        rows = [[_short(kind.text, left), *cells] for kind, cells in zip(kinds, figures, strict=True)]
        output.table([(f"{change} with {advice.proposals[0].name}", False), *columns], rows)
    output.answer({}, {"advice": advice.sentence, "rests on": "\n".join(advice.rests_on)})


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
        return [proposal.name, "", "", "", "", shortened(proposal.why_not or "", _REASON_WIDTH)]
    seconds = None if proposal.estimate is None else proposal.estimate.then
    facts = [share(score.rows_read), f"{score.blocks:,}", _seconds(seconds), f"{learned.fit_seconds:,.0f} s"]
    return [proposal.name, *facts, shortened(proposal.why_not or "", _REASON_WIDTH)]


def _without_empty(columns: Columns, rows: Sequence[Sequence[str]]) -> tuple[Columns, list[list[str]]]:
    """Return a table without the columns that have no value, for it should fit into a line of the terminal."""
    filled = [i for i in range(len(columns)) if any(row[i] for row in rows)]
    return [columns[i] for i in filled], [[row[i] for i in filled] for row in rows]


def _short(text: str, width: int) -> str:
    """Return the text if it goes into a file or a pipe; else what fits into so many columns of the terminal."""
    return shortened(text, max(_MIN_WIDTH, width)) if sys.stdout.isatty() else text


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"
