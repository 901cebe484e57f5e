"""Prints the command line's answers, as JSON or as text, and single lines of notes, warnings and errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from hedgerow.core.byte_text import byte_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from rich.table import Table

_NUMBER_TYPES = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_UNLIMITED_WIDTH = 1 << 20  # a table that is printed into a file or a pipe is never cut


@dataclass(frozen=True)
class Output:
    """Prints one command's answer, as JSON or as text, and single lines beside it."""

    as_json: bool

    @staticmethod
    def line(kind: str, sentence: str) -> None:
        """Print `error: ...`, `warning: ...` or `note: ...` to standard error; a list stays in lines."""
        first, *rest = (" ".join(line.split()) for line in sentence.split("\n"))
        typer.echo("\n  ".join([f"{kind}: {first}", *rest]), err=True)

    def answer(self, document: Mapping[str, Any], facts: Mapping[str, str | None]) -> None:
        """Print one JSON document, or one line per fact; facts that are None are left out."""
        if self.as_json:
            typer.echo(json.dumps(document, indent=2))
            return
        from rich.table import Table

        grid = Table.grid(padding=(0, 2))
        for name, fact in facts.items():
            if fact is not None:
                grid.add_row(name, fact)
        self._draw(grid)

    def rows(self, frame: DataFrame, limit: int) -> None:
        """Print the first rows of a frame, all if `limit` is 0. Spark formats the values, by their types and zone."""
        if not frame.columns:
            return  # a statement without a result
        from pyspark.sql import functions as f

        if self.as_json:
            frame = frame.select(f.to_json(f.struct("*"), {"ignoreNullFields": "false"}))
        else:
            columns = [(name, kind.startswith(_NUMBER_TYPES)) for name, kind in frame.dtypes]
            places = [f"c{i}" for i in range(len(columns))]  # two columns may have one name
            frame = frame.toDF(*places).select(*(f.col(place).cast("string") for place in places))
        fetched = frame.take(limit + 1) if limit else frame.collect()
        shown = fetched[:limit] if limit else fetched
        if self.as_json:
            for row in shown:
                typer.echo(row[0])
        else:
            self.table(columns, [["NULL" if value is None else value for value in row] for row in shown])
        if len(fetched) > len(shown):
            self.line("note", f"there are more than {limit:,} rows; --limit 0 shows all")

    def table(self, columns: Sequence[tuple[str, bool]], rows: Sequence[Sequence[str]]) -> None:
        """Print a table; `columns`: each name, and whether its values are numbers, which are aligned right."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        drawn = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for name, is_number in columns:
            drawn.add_column(name, justify="right" if is_number else "left")
        for row in rows:
            drawn.add_row(*row)
        self._draw(drawn)

    def _draw(self, table: Table) -> None:
        from rich.console import Console

        width = None if sys.stdout.isatty() else _UNLIMITED_WIDTH
        # Without markup, the text [red] in a row is printed as it is.
        console = Console(file=sys.stdout, width=width, markup=False, emoji=False, highlight=False)
        with console.capture() as drawn:
            console.print(table)
        typer.echo("\n".join(line.rstrip() for line in drawn.get().splitlines()))


def summary(facts: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the answer of `describe` as lines of text."""
    rows, versions = facts["rows_per_block"], facts.get("versions", {})
    unknown, missing, copied = facts["unknown_files"], facts["missing_files"], facts.get("copied_rows")
    left = facts["layout_files_left"] if facts["format"] == "delta" else None  # others may compact its files
    return {
        "table": f"{facts['table']} in {facts['path']}" + (f", version {facts['version']}" if left is not None else ""),
        "source": facts.get("source"),
        "written": f"{facts['created']} by hedgerow {versions['hedgerow']}" if "created" in facts else None,
        "layout": facts["layout"]
        + (f", by {facts['learner']}" if "learner" in facts else "")
        + ("" if facts["blocks"] else ": no file of it is left, so it was rolled back or replaced"),
        "rows": f"{facts['rows']:,}" + (f", and copies of {copied:,}" if copied else ""),
        "blocks": None
        if not facts["blocks"]
        else f"{facts['blocks']:,}, of {rows['least']:,} to {rows['most']:,} rows, half below {rows['median']:,}",
        "files": f"{facts['files']:,}, {byte_text(facts['bytes'])}",
        "not ours": f"{len(unknown):,} files, always opened: {unknown[0]}..." if unknown and facts["blocks"] else None,
        "missing": f"{len(missing):,} files: {missing[0]}..." if missing and left is None else None,
        "last write": f"{left:,} of its {facts['layout_files']:,} files are left" if left is not None else None,
        "statistics": ", ".join(facts["statistics"]) or None,
        "conditions": f"{facts['features']:,}" if facts["features"] else None,
        "look-ups": ", ".join(map(_lookup, facts.get("lookups", ()))) or None,
        "replicas": ", ".join(map(_replica, facts.get("replicas", ()))) or None,
        "settings": facts["settings"],
    }


def _lookup(facts: Mapping[str, Any]) -> str:
    damaged = "; damaged, so not read" if facts["damaged"] else ""
    return f"{facts['column']} ({byte_text(facts['bytes'])} for {facts['files']:,} files{damaged})"


def _replica(facts: Mapping[str, Any]) -> str:
    origin = f"{facts['layout']}, by {facts['learner']}" if "learner" in facts else facts["layout"]
    behind = "" if facts["up_to_date"] else "; behind, so not read"
    return f"{facts['name']} ({origin}, {byte_text(facts['bytes'])}{behind})"


def paired_share(given: Mapping[str, Any] | None) -> str | None:
    """Return the shares of rows that queries read in the given tables, without and with the learned layout."""
    if given is None:
        return None
    return f"{share(given['alone']).strip()} of what is given, {share(given['together']).strip()} with this beside it"


def copies_share(copies: int, shares: Mapping[str, Any] | None) -> str | None:
    """Return the shares of rows that queries read of several copies of a table, and of one."""
    if shares is None:
        return None
    together, alone = share(shares["together"]).strip(), share(shares["alone"]).strip()
    return f"{copies:,}: queries read {together} of the rows, and {alone} with one copy"


def all_or(some: int, rows: int) -> str:
    return "all" if some == rows else "none" if not some else f"{some:,}"


def share(value: float) -> str:
    """
    >>> share(0.04567)
    '  4.57 %'
    """
    return f"{100 * value:6.2f} %"


def seconds_shown(then: float | None, now: float | None) -> str | None:
    """
    >>> seconds_shown(0.41, 2.5)
    '  0.41, now 2.50, estimated'
    """
    return None if then is None or now is None else f"{then:6.2f}, now {now:.2f}, estimated"
