"""Hedgerow learns from your queries which rows belong in one file, so that every later query opens few of them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedgerow.core.cost import Score as Score
    from hedgerow.core.errors import HedgerowError as HedgerowError
    from hedgerow.sql.workload import Workload as Workload

__version__ = "0.1.0"

# Public names and where they live: nothing heavy is imported before it is used.
_PUBLIC = {
    "HedgerowError": "hedgerow.core.errors",
    "Score": "hedgerow.core.cost",
    "Workload": "hedgerow.sql.workload",
}
__all__ = ["HedgerowError", "Score", "Workload", "__version__"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'hedgerow' has no attribute {name!r}")
