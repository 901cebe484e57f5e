"""auto: runs the autopilot once, or follows a table."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

import hedgerow
from hedgerow.cli.app import JsonOption, SourceArgument, spark_of, with_flags
from hedgerow.cli.flags import AutoFlags
from hedgerow.cli.output import Output

if TYPE_CHECKING:
    from hedgerow.pilot.autopilot import Mode
    from hedgerow.pilot.decision import Decision


def auto(
    ctx: typer.Context,
    source: SourceArgument,
    flags: AutoFlags,
    to: Annotated[str | None, typer.Option(help="Where a Parquet table's new generation goes.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide, and write nothing at all.")] = False,
    shadow: Annotated[bool, typer.Option("--shadow", help="Decide and note it, but rewrite nothing.")] = False,
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
        Output(as_json).answer({**asdict(decision), "done": decision.done}, _facts(ctx, decision))

    with spark_of(ctx) as spark:
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
