"""Reads a session's settings: those that limit skipping, and the line by which an operator lifts a limit.

`spark.hedgerow.trusted` lists settings, extensions and plugins that the operator takes for harmless, with commas
between; `my.own.*` stands for every name that begins like that. In `spark-defaults.conf`, Spark only reads names that
begin with `spark.`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hedgerow.spark.extensions import ENGINES, HARMLESS_CODE, Engine
from hedgerow.spark.judged import NAMESPACES, ONLY_WITH_FIELD_IDS, is_in, kind_of_setting

TRUSTED = "spark.hedgerow.trusted"
_CODE = ("spark.sql.extensions", "spark.plugins")  # the settings that load code
_ENGINE = "engine"  # no setting of Spark: the engines beside it


@dataclass(frozen=True, slots=True)
class Limit:
    """An engine, extension, plugin or setting of a session that limits skipping; `trust`: the name that lifts it."""

    kind: str
    name: str
    effect: str
    trust: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.effect}"


def is_harmless_setting(key: str) -> bool:
    """True if a session may set it to anything without another answer, as long as no column has a field id."""
    return key in ONLY_WITH_FIELD_IDS or (key != TRUSTED and kind_of_setting(key) == "harmless")


def relevant_settings(changed: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that decide what expressions mean and what is read, of those that a session has changed.

    `engine` lists the engines that evaluate expressions in place of Spark."""
    trusted = _listed(changed.get(TRUSTED, ""))
    kept = {
        key: value
        for key, value in changed.items()
        if value and key not in _CODE and not is_harmless_setting(key) and not is_in(key, trusted)
    }
    engines: set[str] = set()
    unknown: dict[str, list[str]] = {key: [] for key in _CODE}
    for key in _CODE:
        for name in _listed(changed.get(key, "")):
            if is_in(name, (*HARMLESS_CODE, *trusted)):
                continue
            if engine := _engine(name):
                engines.add(engine.name)
            else:
                unknown[key].append(name)
    if not any(unknown.values()):
        kept = {key: value for key, value in kept.items() if not _is_foreign(key)}
    kept |= {key: ",".join(sorted(of)) for key, of in unknown.items() if of}
    return kept | ({_ENGINE: ",".join(sorted(engines))} if engines else {})


def engines_of(settings: Mapping[str, str]) -> list[Engine]:
    """Return the engines in relevant settings, those that forbid any skipping first."""
    names = _listed(settings.get(_ENGINE, ""))
    found = {engine.name: engine for engine in ENGINES.values() if engine.name in names}
    return sorted(found.values(), key=lambda engine: (engine.kind != "reading", engine.name))


def without_engines(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings as if Spark itself evaluated all expressions, as it does for our own jobs."""
    return {key: value for key, value in settings.items() if key != _ENGINE}


def limits(settings: Mapping[str, str]) -> list[Limit]:
    """Return what limits skipping in a session of these relevant settings, whatever table it reads.

    Settings that are judged are left out: their effect depends on those that a table was written under."""
    found = []
    for engine in engines_of(settings):
        effect = f"{engine.reason}, so {_EFFECTS[engine.kind]}"
        names = [name for name, own in ENGINES.items() if own.name == engine.name]
        found.append(Limit("engine", engine.name, effect, ",".join(names)))
    for key, kind in zip(_CODE, ("extension", "plugin"), strict=True):
        for name in _listed(settings.get(key, "")):
            found.append(Limit(kind, name, f"its effect is unknown, so {_EFFECTS['meaning']}", name))
    is_theirs = any(key in settings for key in _CODE)  # to trust the code lifts its settings too
    for key in sorted(settings):
        if kind_of_setting(key) == "unknown" and key != _ENGINE and not (is_theirs and _is_foreign(key)):
            effect = "its effect is unknown, so tables that were written without it open all files"
            found.append(Limit("setting", key, effect, key))
    return found


def sentences(settings: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each limit of a session, and the line that lifts them all; nothing without limits."""
    found = limits(settings)
    yield from map(str, found)
    if found:
        yield f"to skip files all the same, at your own risk: {trust_line(found, settings)}"


def trust_line(found: Sequence[Limit], settings: Mapping[str, str]) -> str:
    """Return the command that adds the names of these limits to the session's trusted ones."""
    names = [*_listed(settings.get(TRUSTED, "")), *(limit.trust for limit in found)]
    return f"SET {TRUSTED}={','.join(names)}"


_EFFECTS = {"meaning": "only conditions on plain columns skip files", "reading": "no file is skipped"}


def _engine(name: str) -> Engine | None:
    return next((engine for own, engine in ENGINES.items() if is_in(name, [own])), None)


def _is_foreign(key: str) -> bool:
    """True if neither Spark's scans and expressions nor another engine read the setting."""
    return kind_of_setting(key) == "unknown" and key != TRUSTED and not key.startswith(NAMESPACES)


def _listed(value: str) -> list[str]:
    return [name for name in re.split("[,\\s]+", value) if name]
