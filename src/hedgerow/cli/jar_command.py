"""`hedgerow jar` and `hedgerow doctor --conf`: what Spark needs so that every session skips files."""

from __future__ import annotations

import typer

from hedgerow.cli.app import JsonOption
from hedgerow.cli.output import Output
from hedgerow.spark.start.jar import conf_lines, jar_path


def jar(as_json: JsonOption = False) -> None:
    """Print the path of the jar that makes Spark skip files."""
    path = str(jar_path())
    if as_json:
        Output(as_json).answer({"jar": path}, {})
    else:
        typer.echo(path)


def show_conf(as_json: bool) -> None:
    """Print the lines for spark-defaults.conf; other extensions go on the same line, with commas between."""
    lines = conf_lines()
    if as_json:
        Output(as_json).answer(lines, {})
        return
    width = max(map(len, lines))
    for key, value in lines.items():
        typer.echo(f"{key.ljust(width)}  {value}")
