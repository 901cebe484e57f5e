"""Searches for a layout that pays, for some files of a table or for all, and decides."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter

import numpy as np

from hedgerow.core.arrays import Bools
from hedgerow.core.errors import HedgerowWarning, counted
from hedgerow.pilot.choose import choose
from hedgerow.pilot.decision import Decision
from hedgerow.pilot.look import Look, nothing
from hedgerow.pilot.small_files import worth_joining
from hedgerow.pipeline.learn import learn_layout
from hedgerow.pipeline.query_kinds import why_refused
from hedgerow.tables.formats import LacksCapability

_WAITING = "the files that a rewrite would pay for were rewritten lately"


def decide(look: Look, begun: float) -> tuple[Decision, Look | None]:
    """Return the decision, and the look with the candidate that it is about; None if no layout was learned.

    `begun`: the value of `perf_counter()` when the look began."""
    settings = look.request.settings
    movable, worth_any = look.worth_moving(), look.worth_moving(max_rewrites=np.inf)
    waiting = (_WAITING,) if worth_any.any() and not movable.any() else ()
    if not worth_any.any():  # Estimate the whole table instead, so that the reasons are about it.
        movable = look.files.all
    best_case = look.figures(movable, 0, 0.0, look.speed.query)
    if (hopeless := choose(best_case, settings)).action == "nothing":
        is_small = hopeless.gain < settings.margin * hopeless.cost and not waiting
        prefix = "too little to gain, even if queries found nothing to read: " if is_small else ""
        reasons = waiting or (prefix + "; ".join(hopeless.reasons),)
        return nothing(begun, *reasons, figures=best_case), None
    candidate = _learn(look, movable if movable.any() else look.files.all)
    if candidate is not None and movable.any():
        candidate = _with_replicas(_narrow(candidate))
    if candidate is None:
        return nothing(begun, "the queries' seconds in the layout cannot be estimated"), None
    kinds = () if candidate.learned is None else candidate.learned.kinds
    refused = why_refused(kinds, look.request.options.allow_slower)
    if refused is not None:  # no row may be moved, but new statistics may pay
        movable, waiting = np.zeros_like(movable), (*waiting, f"the layout makes queries {refused}")
    chosen = candidate.chosen if movable.any() else movable
    left, items = candidate.seconds_left, candidate.items
    figures = (candidate if movable.any() else look).figures(chosen, items, left)
    # Only a scan can measure how much new statistics help, so scan only if they might pay.
    hoped = replace(figures, seconds_described=figures.seconds_then if movable.any() else look.speed.query + left)
    if look.managed is not None and choose(hoped, settings).action == "statistics":
        figures = look.figures(chosen, items, left, look.described_seconds())
    decision = choose(figures, settings)
    remarks = (*waiting, *_copies(candidate))
    return _finish(decision, (*decision.reasons, *remarks), perf_counter() - begun), candidate


def decide_without_search(look: Look, reason: str) -> tuple[Decision, Look]:
    """Return the decision, and the look with new files as the candidate, when it is too soon to measure or learn.

    The candidate rewrites the new files in the newest layout. It pays only if queries open few files of that layout."""
    files = look.files
    share_left = files.share_opened_of_newest()
    chosen = look.worth_moving(share_left) & files.is_new
    opening = look.speed.file * int(files.newest.sum())  # seconds to open all files of the newest layout
    share_left *= 1 + opening / max(1e-9, float(look.file_seconds[chosen].sum()))
    candidate = replace(look, chosen=chosen, share_left=share_left)
    decision = choose(candidate.candidate_figures(), look.request.settings)
    return _finish(decision, (reason, *decision.reasons), 0.0), candidate


def or_small_files(look: Look, decision: Decision, candidate: Look | None) -> tuple[Decision, Look | None]:
    """Return the decision, or that to join small files, if nothing else is to be done and this pays."""
    settings = look.request.settings
    if decision.action != "nothing" or look.managed is None:
        return decision, candidate
    chosen, saved = worth_joining(look.files, look.speed, look.expected_queries, look.cost.rate(0), settings)
    if not chosen.any():
        return decision, candidate
    spent = float(look.file_seconds[chosen].sum())
    joined = replace(look, chosen=chosen, share_left=1 - saved / max(1e-9, spent), is_join=True)
    to_join = choose(joined.candidate_figures(), settings)
    if to_join.action == "nothing":
        return decision, candidate
    return _finish(to_join, (*decision.reasons, *to_join.reasons), decision.search_seconds), joined


def _finish(decision: Decision, reasons: tuple[str, ...], search_seconds: float) -> Decision:
    gain, cost, search_seconds = (round(value, 1) for value in (decision.gain, decision.cost, search_seconds))
    return replace(decision, reasons=reasons, gain=gain, cost=cost, search_seconds=search_seconds)


def _learn(look: Look, chosen: Bools, copies: int = 1) -> Look | None:
    """Learn a layout for the chosen files; return the look with this candidate, None if its seconds are unknown.

    `copies`: the number of full copies of the table, each in a layout of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HedgerowWarning)  # the decision says whether little is to be gained
        source, request, present = look.files.part(chosen), look.request, look.present_layout(chosen)
        learner = replace(request.learner, trees=copies)
        learned = learn_layout(
            source, look.queries, learner, request.options, speed=look.speed, present=present, joins=look.joins
        )
    if learned.estimate is None:
        return None
    now, left = (max(0.0, seconds - look.speed.query) for seconds in (learned.estimate.now, learned.estimate.then))
    if present is not None:
        look = look.with_seconds_at_most(now, chosen)
    share_left = left / max(1e-9, float(look.file_seconds[chosen].sum()))
    return replace(look, chosen=chosen, learned=learned, share_left=share_left)


def _narrow(candidate: Look) -> Look:
    """Return the better of the candidate and a smaller one, which has only the files that still pay.

    Such a file pays although queries keep spending the share `share_left` of their time in it. For far fewer files a
    new layout is learned, because this one's blocks would be too small."""
    chosen, sizes = candidate.worth_moving(candidate.share_left), candidate.files.sizes
    if not chosen.any() or (chosen == candidate.chosen).all():
        return candidate
    fewer: Look | None = replace(candidate, chosen=chosen)
    if sizes[chosen].sum() < candidate.request.settings.far_fewer * sizes[candidate.chosen].sum():
        fewer = _learn(candidate, chosen)
    return max((candidate, fewer), key=_worth) if fewer is not None else candidate


def _with_replicas(candidate: Look) -> Look:
    """Return the better of the candidate and one with replicas, if more than one copy may be stored."""
    copies, is_delta = candidate.request.options.storage, candidate.source.version is not None
    several = None if copies == 1 or is_delta else _learn(candidate, candidate.chosen, copies)
    return candidate if several is None else max((candidate, several), key=_worth)


def _copies(candidate: Look) -> Iterator[str]:
    """Yield a sentence about the copies of the table, if more than one may be stored."""
    if candidate.request.options.storage > 1:
        if candidate.source.version is not None:
            yield str(LacksCapability("replicas", candidate.source.origin))
        elif candidate.learned is not None:
            yield f"the layout is for {counted(len(candidate.learned.copies), 'copy', 'copies')} of the table"


def _worth(candidate: Look) -> tuple[bool, float]:
    """Return whether the candidate would be carried out, and the seconds that it saves beyond its cost."""
    decision = choose(candidate.candidate_figures(), candidate.request.settings)
    return decision.action != "nothing", decision.gain - decision.cost
