"""What the command line prints: answers as JSON or for people, and single lines beside them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from rich.table import Table

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_ANY_WIDTH = 1 << 20  # a table that goes into a file or a pipe is never cut


@dataclass(frozen=True)
class Output:
    """All that is ever printed: an answer as JSON or for people, and single lines beside it."""

    as_json: bool

    @staticmethod
    def tell(kind: str, sentence: str) -> None:
        typer.echo(f"{kind}: {' '.join(sentence.split())}", err=True)

    def answer(self, document: Mapping[str, Any], facts: Mapping[str, str | None]) -> None:
        """One JSON document, or one line a fact; a fact that is None is not worth a line."""
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
        """The first rows of a frame, all if `limit` is 0. Spark makes the texts: it knows its types and time zone."""
        if not frame.columns:
            return  # a statement that answers nothing
        from pyspark.sql import functions as f

        if self.as_json:
            frame = frame.select(f.to_json(f.struct("*"), {"ignoreNullFields": "false"}))
        else:
            columns = [(name, kind.startswith(_NUMBERS)) for name, kind in frame.dtypes]
            places = [f"c{i}" for i in range(len(columns))]  # two columns may have one name
            frame = frame.toDF(*places).select(*(f.col(place).cast("string") for place in places))
        found = frame.take(limit + 1) if limit else frame.collect()
        shown = found[:limit] if limit else found
        if self.as_json:
            for row in shown:
                typer.echo(row[0])
        else:
            self.table(columns, [["NULL" if value is None else value for value in row] for row in shown])
        if len(found) > len(shown):
            self.tell("note", f"there are more than {limit:,} rows; --limit 0 shows all")

    def table(self, columns: Sequence[tuple[str, bool]], rows: Sequence[Sequence[str]]) -> None:
        """Columns by name; those of numbers stand on the right."""
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

        width = None if sys.stdout.isatty() else _ANY_WIDTH
        # Data is no markup: [red] in a row is the text [red].
        console = Console(file=sys.stdout, width=width, markup=False, emoji=False, highlight=False)
        with console.capture() as drawn:
            console.print(table)
        typer.echo("\n".join(line.rstrip() for line in drawn.get().splitlines()))


def summary(found: Mapping[str, Any]) -> dict[str, str | None]:
    """What `describe` knows, for people."""
    rows, versions = found["rows_per_block"], found.get("versions", {})
    strange, missing, copied = found["unknown_files"], found["missing_files"], found.get("copied_rows")
    kept = found.get("layout_files_left")  # of a Delta table, whose files others may compact
    return {
        "table": f"{found['table']} in {found['path']}" + (f", version {found['version']}" if kept is not None else ""),
        "source": found.get("source"),
        "written": f"{found['created']} by hedgerow {versions['hedgerow']}" if "created" in found else None,
        "layout": found["layout"] + (f", by {found['learner']}" if "learner" in found else ""),
        "rows": f"{found['rows']:,}" + (f", and copies of {copied:,}" if copied else ""),
        "blocks": f"{found['blocks']:,}, of {rows['least']:,} to {rows['most']:,} rows, half below {rows['median']:,}",
        "files": f"{found['files']:,}, {_size(found['bytes'])}",
        "not ours": f"{len(strange):,} files, always opened: {strange[0]}..." if strange else None,
        "missing": f"{len(missing):,} files: {missing[0]}..." if missing and kept is None else None,
        "in place": f"{kept:,} of the layout's {found['layout_files']:,} files" if kept is not None else None,
        "statistics": ", ".join(found["statistics"]) or None,
        "conditions": f"{found['features']:,}" if found["features"] else None,
        "replicas": ", ".join(map(_replica, found.get("replicas", ()))) or None,
        "settings": "not those it was written under: a part of the index is of use" if found["steady_only"] else None,
    }


def _replica(found: Mapping[str, Any]) -> str:
    made = f"{found['layout']}, by {found['learner']}" if "learner" in found else found["layout"]
    return f"{found['name']} ({made}, {_size(found['bytes'])}{'' if found['up_to_date'] else '; behind, so not read'})"


def beside(given: Mapping[str, Any] | None) -> str | None:
    if given is None:
        return None
    return f"{share(given['alone']).strip()} of what is given, {share(given['together']).strip()} with this beside it"


def all_or(some: int, rows: int) -> str:
    return "all" if some == rows else f"{some:,}"


def share(value: float) -> str:
    """
    >>> share(0.04567)
    '  4.57 %'
    """
    return f"{100 * value:6.2f} %"


def _size(count: int) -> str:
    """
    >>> _size(900), _size(5_400_000), _size(7 << 40)
    ('900 B', '5.1 MB', '7,168.0 GB')
    """
    for unit, one in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if count >= one:
            return f"{count / one:,.1f} {unit}"
    return f"{count} B"
