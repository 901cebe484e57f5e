"""The beginning of the page of results: five sentences, and a picture of seconds."""

from __future__ import annotations

from statistics import median

from bench.report.page import Page
from bench.report.plots import Bar, bars
from bench.report.rows import OTHER_WAYS, Race, raced

OF_60_MILLION = {  # on smaller tables a query's fixed part hides what a layout saves
    "engines": "ranges on lineitem",
    "selective-lineitem": "dashboards on lineitem",
    "selective": "dashboards on a web log",
}
SHOWN = {**OTHER_WAYS, "attached": "Hedgerow"}


def sentences(contents: Page) -> list[str]:
    """Return what the lines say in all, as far as there are lines."""
    return [
        *_of_seconds(contents),
        *_of_rows(contents),
        *_of_cost(contents),
        *_of_peers(contents),
        *_of_papers(contents),
    ]


def _of_seconds(contents: Page) -> list[str]:
    races = large(contents)
    ours = _listed([f"{race.ours:.1f}" for race in races])
    others = _listed([f"{race.best:.1f}" for race in races])
    sentence = (
        f"On 60 million rows each, queries that no layout was learned from take {ours} s with Hedgerow, and {others} s "
        "on the best other layout."
    )
    return [sentence] if races else []


def _of_rows(contents: Page) -> list[str]:
    gains = contents.gains
    plain = [gain.plain.read / gain.ours.read for gain in gains if gain.plain] or [1.0]
    times = [gain.times for gain in gains] or [1.0]
    sentence = (
        f"Hedgerow reads {median(plain):.1f} times fewer rows than the best order without learning, and "
        f"{median(times):.2f} times fewer than the best of all other methods (medians of {len(gains)} tables)."
    )
    return [sentence] if gains else []


def _of_cost(contents: Page) -> list[str]:
    rows = [row for section in contents.sections if section.suite == "apply" for row in section.rows]
    ratios = [row.value for row in rows if row.value is not None] or [1.0]
    took = f"{min(ratios):.1f} to {max(ratios):.1f} times as long as Spark takes to sort and write it"
    return [f"To write a table so takes {took}."] if rows else []


def _of_peers(contents: Page) -> list[str]:
    races = raced(contents)
    lost = [race.table for race in races if race.ours > race.best]
    names = f": {'; '.join(lost)}" if lost else ""
    return (
        [f"In {len(lost)} of {len(races)} runs over written tables another layout is faster{names}."] if races else []
    )


def _of_papers(contents: Page) -> list[str]:
    pairs = [beside for _, beside in contents.papers]
    compared = [pair for pair in pairs if pair.value is not None and pair.theirs.figure != "bound"]
    reached = sum(pair.worse == 0 for pair in compared)
    sentence = (
        f"Of {len(compared)} figures of the papers, whose data are not public, {reached} are reached on other data."
    )
    return [sentence] if compared else []


def picture(contents: Page) -> str:
    """Draw the seconds of each layout of the large tables; nothing, if there are no such lines."""
    drawn = []
    for race in large(contents):
        for way, name in SHOWN.items():
            if way in race.seconds:
                took = race.seconds[way]
                kind = "ours" if way == "attached" else "theirs"
                table = f"{OF_60_MILLION[race.suite]}: " if way == "source" else ""
                drawn.append(Bar(f"{table}{name}", took, f"{took:.1f} s", kind))
    return bars("Seconds of all queries on 60 million rows: shorter is better", drawn) if drawn else ""


def large(contents: Page) -> list[Race]:
    """Return the races over large tables, by Spark itself."""
    races = {race.suite: race for race in raced(contents) if race.row.params.get("engine") == "spark"}
    return [races[suite] for suite in OF_60_MILLION if suite in races]


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
