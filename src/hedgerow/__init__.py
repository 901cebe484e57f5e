"""Hedgerow learns from your queries which rows belong in one file, so that every later query opens few of them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedgerow.core.errors import HedgerowError as HedgerowError
    from hedgerow.core.errors import HedgerowWarning as HedgerowWarning
    from hedgerow.core.workload.score import Score as Score
    from hedgerow.picture.show import show as show
    from hedgerow.pilot.autopilot import autopilot as autopilot
    from hedgerow.pilot.calibrate import calibrate as calibrate
    from hedgerow.pilot.decision_notes import decisions as decisions
    from hedgerow.pilot.decision_table import decision_table as decision_table
    from hedgerow.pilot.settings import AutopilotSettings as AutopilotSettings
    from hedgerow.pipeline.advice import Advice as Advice
    from hedgerow.pipeline.advise import advise as advise
    from hedgerow.pipeline.advise import advise_each as advise_each
    from hedgerow.pipeline.apply import apply as apply
    from hedgerow.pipeline.apply_partitions import apply_partitions as apply_partitions
    from hedgerow.pipeline.apply_tables import apply_tables as apply_tables
    from hedgerow.pipeline.doctor import Finding as Finding
    from hedgerow.pipeline.doctor import doctor as doctor
    from hedgerow.pipeline.explain import explain as explain
    from hedgerow.pipeline.import_log import import_log as import_log
    from hedgerow.pipeline.learn import learn as learn
    from hedgerow.pipeline.learn_options import LearnOptions as LearnOptions
    from hedgerow.pipeline.learn_partitions import learn_partitions as learn_partitions
    from hedgerow.pipeline.learn_tables import learn_tables as learn_tables
    from hedgerow.pipeline.learned import Learned as Learned
    from hedgerow.pipeline.learned_partitions import LearnedPartitions as LearnedPartitions
    from hedgerow.pipeline.learned_tables import LearnedTables as LearnedTables
    from hedgerow.pipeline.log import Log as Log
    from hedgerow.pipeline.log import log as log
    from hedgerow.pipeline.logged import logged as logged
    from hedgerow.pipeline.logged_tables import logged_tables as logged_tables
    from hedgerow.pipeline.open import open_table
    from hedgerow.pipeline.open import read as read
    from hedgerow.pipeline.route import attach as attach
    from hedgerow.pipeline.route import detach as detach
    from hedgerow.pipeline.route import last_query as last_query
    from hedgerow.pipeline.route import route as route
    from hedgerow.pipeline.score import score as score
    from hedgerow.pipeline.score_tables import score_tables as score_tables
    from hedgerow.pipeline.stable import stable as stable
    from hedgerow.pipeline.write_options import WriteOptions as WriteOptions
    from hedgerow.spark.start.session import session as session
    from hedgerow.sql.workload import Workload as Workload

    table = open_table

__version__ = "0.1.0"

# Public names and where they live: nothing heavy is imported before it is used.
_PUBLIC = {
    "Advice": "hedgerow.pipeline.advice:Advice",
    "AutopilotSettings": "hedgerow.pilot.settings:AutopilotSettings",
    "Finding": "hedgerow.pipeline.doctor:Finding",
    "HedgerowError": "hedgerow.core.errors:HedgerowError",
    "HedgerowWarning": "hedgerow.core.errors:HedgerowWarning",
    "LearnOptions": "hedgerow.pipeline.learn_options:LearnOptions",
    "Learned": "hedgerow.pipeline.learned:Learned",
    "LearnedPartitions": "hedgerow.pipeline.learned_partitions:LearnedPartitions",
    "LearnedTables": "hedgerow.pipeline.learned_tables:LearnedTables",
    "Log": "hedgerow.pipeline.log:Log",
    "Score": "hedgerow.core.workload.score:Score",
    "Workload": "hedgerow.sql.workload:Workload",
    "WriteOptions": "hedgerow.pipeline.write_options:WriteOptions",
    "advise": "hedgerow.pipeline.advise:advise",
    "advise_each": "hedgerow.pipeline.advise:advise_each",
    "apply": "hedgerow.pipeline.apply:apply",
    "apply_partitions": "hedgerow.pipeline.apply_partitions:apply_partitions",
    "apply_tables": "hedgerow.pipeline.apply_tables:apply_tables",
    "attach": "hedgerow.pipeline.route:attach",
    "autopilot": "hedgerow.pilot.autopilot:autopilot",
    "calibrate": "hedgerow.pilot.calibrate:calibrate",
    "decision_table": "hedgerow.pilot.decision_table:decision_table",
    "decisions": "hedgerow.pilot.decision_notes:decisions",
    "detach": "hedgerow.pipeline.route:detach",
    "doctor": "hedgerow.pipeline.doctor:doctor",
    "explain": "hedgerow.pipeline.explain:explain",
    "import_log": "hedgerow.pipeline.import_log:import_log",
    "last_query": "hedgerow.pipeline.route:last_query",
    "learn": "hedgerow.pipeline.learn:learn",
    "learn_partitions": "hedgerow.pipeline.learn_partitions:learn_partitions",
    "learn_tables": "hedgerow.pipeline.learn_tables:learn_tables",
    "log": "hedgerow.pipeline.log:log",
    "logged": "hedgerow.pipeline.logged:logged",
    "logged_tables": "hedgerow.pipeline.logged_tables:logged_tables",
    "read": "hedgerow.pipeline.open:read",
    "route": "hedgerow.pipeline.route:route",
    "score": "hedgerow.pipeline.score:score",
    "score_tables": "hedgerow.pipeline.score_tables:score_tables",
    "session": "hedgerow.spark.start.session:session",
    "show": "hedgerow.picture.show:show",
    "stable": "hedgerow.pipeline.stable:stable",
    "table": "hedgerow.pipeline.open:open_table",
}
__all__ = ["__version__", *_PUBLIC]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        module, _, attribute = _PUBLIC[name].partition(":")
        return getattr(import_module(module), attribute)
    raise AttributeError(f"module 'hedgerow' has no attribute {name!r}")
