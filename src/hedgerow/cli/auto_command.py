"""auto: runs the autopilot once, or follows a table, or shows the figures of its last decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

import hedgerow
from hedgerow.cli.app import JsonOption, SourceArgument, spark_of, with_flags
from hedgerow.cli.flags import AutoFlags
from hedgerow.cli.output import Output, share
from hedgerow.core.byte_text import byte_text
from hedgerow.core.errors import HedgerowError

if TYPE_CHECKING:
    from hedgerow.pilot.autopilot import Mode
    from hedgerow.pilot.decision import Decision, Figures


def auto(
    ctx: typer.Context,
    source: SourceArgument,
    flags: AutoFlags,
    to: Annotated[str | None, typer.Option(help="Where a Parquet table's new generation goes.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide, and write nothing at all.")] = False,
    shadow: Annotated[bool, typer.Option("--shadow", help="Decide and note it, but rewrite nothing.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Only show the figures of the last decision.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Rewrite SOURCE if its logged queries say that this saves more than it costs.

    Made to be run by cron, as often as you like: most runs decide to do nothing.
    """
    from hedgerow.pipeline.learn_options import QUICK

    settings = hedgerow.AutopilotSettings(
        horizon=flags.horizon, price=flags.price, seconds_per_hour=flags.seconds_per_hour
    )
    options = replace(QUICK, block_bytes=flags.block_bytes, storage=flags.storage, allow_slower=flags.allow_slower)
    mode: Mode = "dry_run" if dry_run else "shadow" if shadow else "run"

    def tell(decision: Decision) -> None:
        Output(as_json).answer(_document(decision), _facts(ctx, decision))

    with spark_of(ctx) as spark:
        if explain:
            past = hedgerow.decisions(spark, source)
            if not past:
                raise HedgerowError(f"the autopilot has decided nothing about {source} yet")
            _explain(ctx, past, Output(as_json))
            return
        decision = hedgerow.autopilot(
            spark,
            source,
            to=to,
            mode=mode,
            settings=settings,
            learner=flags.learner,
            options=options,
            follow=flags.follow,
            tell=tell,
        )
    if not flags.follow:
        tell(decision)


def _facts(ctx: typer.Context, decision: Decision) -> dict[str, str | None]:
    outcome = decision.outcome
    return {
        "decision": decision.action + ("" if decision.done or decision.action == "nothing" else ", not done"),
        "because": "\n".join(with_flags(ctx.command, reason) for reason in decision.reasons),
        "took": None if outcome is None else f"{outcome.seconds:,.1f} s, estimated {decision.cost:,.1f} s",
        "written": None if outcome is None else outcome.path,
    }


def _document(decision: Decision) -> dict[str, Any]:
    return {**asdict(decision), "done": decision.done}


def _explain(ctx: typer.Context, past: Sequence[Decision], output: Output) -> None:
    """Print the last decision with its figures. If it has none, print an earlier decision with figures too."""
    last, estimated = past[0], next((d for d in past if d.figures is not None), None)
    facts = {**_facts(ctx, last), "decided": last.at, **_search(last)}
    if estimated is not None and estimated is not last:
        facts |= {"before that": f"{estimated.action}, {estimated.at}", **_search(estimated)}
    if estimated is not None and estimated.figures is not None:
        facts |= _estimates(estimated, estimated.figures)
    before = None if estimated is None or estimated is last else _document(estimated)
    output.answer({**_document(last), "before": before}, facts)


def _search(decision: Decision) -> dict[str, str | None]:
    return {"searched": f"{decision.search_seconds:,.1f} s for a layout"} if decision.search_seconds else {}


def _estimates(decision: Decision, figures: Figures) -> dict[str, str | None]:
    described = figures.seconds_described
    return {
        "queries": f"{figures.queries:,.0f} expected",
        "a query": f"{figures.seconds_now:,.2f} s now, {figures.seconds_then:,.2f} s after the rewrite"
        + ("" if described is None else f", {described:,.2f} s with new statistics"),
        "rewrite": f"{byte_text(figures.candidate_bytes)} of {byte_text(figures.table_bytes)}, "
        f"{figures.fixed_seconds:,.1f} s and {figures.seconds_per_byte * (1 << 30):,.0f} s for each GB",
        "gain": f"{decision.gain:,.0f} s, for {decision.cost:,.0f} s" if decision.cost else None,
        "lately": f"{share(figures.bytes_rewritten / max(1.0, figures.table_bytes)).strip()} of the table rewritten",
    }
