"""An example for each command, which `--help` shows; a test parses each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typer.core import TyperCommand

PROGRAM = ("hedgerow --memory 8g advise lake/orders queries.sql",)
EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "learn": ("hedgerow learn lake/orders queries.sql --out layout.json",),
    "advise": (
        "hedgerow advise lake/orders queries.sql --save plan.json",
        "hedgerow advise lake/orders queries.sql --columns day,city --learner qdtree",
    ),
    "score": (
        "hedgerow score lake/orders queries.sql --layout layout.json",
        "hedgerow score lake/by_hedgerow queries.sql",
    ),
    "apply": (
        "hedgerow apply lake/orders plan.json --to lake/by_hedgerow",
        "hedgerow apply sales.orders plan.json",
    ),
    "query": ("hedgerow query 'SELECT count(*) FROM parquet.`lake/by_hedgerow` WHERE day >= 350' --compare",),
    "demo": (
        "hedgerow demo --rows 2000000 --html demo.html",
        "hedgerow demo --your-table lake/orders --queries queries.sql",
    ),
    "verify": ("hedgerow verify lake/by_hedgerow",),
    "describe": ("hedgerow describe lake/by_hedgerow",),
    "show": ("hedgerow show lake/by_hedgerow --workload queries.sql --html orders.html",),
    "explain": ("hedgerow explain lake/by_hedgerow 'day >= 350 AND price > 90'",),
    "files": ("hedgerow files lake/by_hedgerow --where 'day >= 350' --json",),
    "doctor": ("hedgerow doctor lake/by_hedgerow", "hedgerow doctor --conf"),
    "history": ("hedgerow history sales.orders",),
    "rollback": ("hedgerow rollback sales.orders",),
    "repair": ("hedgerow repair by_hedgerow/lineitem",),
    "relearn": ("hedgerow relearn lake/by_hedgerow queries.sql",),
    "log": ("hedgerow log lake/orders --since 2026-11-01",),
    "import-log": ("hedgerow import-log lake/orders history.sql --table orders",),
    "auto": ("hedgerow auto sales.orders --dry-run", "hedgerow auto lake/orders --to lake/orders_2"),
    "calibrate": ("hedgerow calibrate sales.orders queries.sql --price 12",),
    "jar": ("spark-sql --driver-class-path $(hedgerow jar) --conf spark.sql.extensions=hedgerow.HedgerowExtensions",),
}


def epilog(examples: tuple[str, ...]) -> str:
    """Return the end of a help text. Indented lines are code in the reference of commands, too.

    >>> print(epilog(("hedgerow verify lake/orders",)))
    Example:
    <BLANKLINE>
        hedgerow verify lake/orders
    """
    title = "Example" if len(examples) == 1 else "Examples"
    return "\n    ".join([f"{title}:\n", *examples])


def write_epilog(text: str | None, formatter: Any) -> None:
    """Write the end of a help text in its own lines, so that an example can be copied."""
    if text:
        formatter.write(f"\n{text}\n")


class Command(TyperCommand):
    """A sub-command whose help ends with its examples."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        write_epilog(self.epilog, formatter)
