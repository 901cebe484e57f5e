"""Hedgerow learns from your queries which rows belong in one file, so that every later query opens few of them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedgerow.core.cost import Score as Score
    from hedgerow.core.errors import HedgerowError as HedgerowError
    from hedgerow.core.errors import HedgerowWarning as HedgerowWarning
    from hedgerow.pipeline import Learned as Learned
    from hedgerow.pipeline import apply as apply
    from hedgerow.pipeline import attach as attach
    from hedgerow.pipeline import detach as detach
    from hedgerow.pipeline import last_query as last_query
    from hedgerow.pipeline import learn as learn
    from hedgerow.pipeline import open_table as table
    from hedgerow.pipeline import read as read
    from hedgerow.pipeline import route as route
    from hedgerow.pipeline import score as score
    from hedgerow.spark.session import local_session as local_session
    from hedgerow.spark.session import session as session
    from hedgerow.sql.workload import Workload as Workload

__version__ = "0.1.0"

# Public names and where they live: nothing heavy is imported before it is used.
_PUBLIC = {
    "HedgerowError": "hedgerow.core.errors:HedgerowError",
    "HedgerowWarning": "hedgerow.core.errors:HedgerowWarning",
    "Learned": "hedgerow.pipeline:Learned",
    "Score": "hedgerow.core.cost:Score",
    "Workload": "hedgerow.sql.workload:Workload",
    "apply": "hedgerow.pipeline:apply",
    "attach": "hedgerow.pipeline:attach",
    "detach": "hedgerow.pipeline:detach",
    "last_query": "hedgerow.pipeline:last_query",
    "learn": "hedgerow.pipeline:learn",
    "local_session": "hedgerow.spark.session:local_session",
    "read": "hedgerow.pipeline:read",
    "route": "hedgerow.pipeline:route",
    "score": "hedgerow.pipeline:score",
    "session": "hedgerow.spark.session:session",
    "table": "hedgerow.pipeline:open_table",
}
__all__ = [
    "HedgerowError",
    "HedgerowWarning",
    "Learned",
    "Score",
    "Workload",
    "__version__",
    "apply",
    "attach",
    "detach",
    "last_query",
    "learn",
    "local_session",
    "read",
    "route",
    "score",
    "session",
    "table",
]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        module, _, attribute = _PUBLIC[name].partition(":")
        return getattr(import_module(module), attribute)
    raise AttributeError(f"module 'hedgerow' has no attribute {name!r}")
