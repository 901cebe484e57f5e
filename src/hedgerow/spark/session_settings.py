"""Reads a session's settings: which of them limit skipping, and the line by which an operator lifts a limit.

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
LOOKUPS = "hedgerow.lookups"  # the one setting of Hedgerow's own on which answers of Python depend
STABLE = "hedgerow.stable."  # before the name of a function: the version that is declared in the session
# All switches are true by default. Any other value holds back this:
SWITCHES = {
    LOOKUPS: "= and IN skip files by bounds and listed values, but not by filters",
    "hedgerow.topk": "ORDER BY with LIMIT opens all files of its WHERE",
    "hedgerow.limit": "LIMIT opens all files of its WHERE",
    "hedgerow.aggregates": "count, sum, avg, min, max and GROUP BY open all files of their WHERE",
    "hedgerow.joins": "conditions on joined tables skip no file",
    "hedgerow.partners": "ranges of the keys in joined tables skip no file",
}
# The same for Delta's own switch, where Delta is at hand.
DELTA_SWITCHES = {
    "spark.databricks.delta.stats.skipping": "only partitions skip files of Delta tables",
}
_CODE = {"spark.sql.extensions": "extension", "spark.plugins": "plugin"}  # the settings that load code
_ENGINE = "engine"  # no setting of Spark: the engines that are loaded into it
# How far Hedgerow skips files beside an engine or a setting of this kind. Delta still skips by its own bounds.
EFFECTS = {
    "meaning": "only comparisons of plain columns, and LIKE over text, skip files",
    "reading": "Hedgerow skips no file, so only Delta's own bounds do",
}


@dataclass(frozen=True, slots=True)
class Limit:
    """An engine, extension, plugin or setting that limits skipping; to trust the names in `trust` lifts the limit."""

    kind: str
    name: str
    effect: str
    trust: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.effect}"


def is_harmless_setting(key: str) -> bool:
    """True if a session may set it to anything without another answer, as long as no column has a field id."""
    is_ours = key in (TRUSTED, LOOKUPS) or key.startswith(STABLE)
    return key in ONLY_WITH_FIELD_IDS or (not is_ours and kind_of_setting(key) == "harmless")


def relevant_settings(changed: Mapping[str, str]) -> dict[str, str]:
    """Return the changed settings that decide what expressions mean and what is read.

    Extensions and plugins are left out if they are harmless. `engine` lists the engines among them."""
    trusted = _listed(changed.get(TRUSTED, ""))
    relevant = {
        key: value
        for key, value in changed.items()
        if value and key not in _CODE and not is_harmless_setting(key)
        if key.startswith(STABLE) or not is_in(key, trusted)
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
        relevant = {key: value for key, value in relevant.items() if not _is_read_by_none(key)}
    relevant |= {key: ",".join(sorted(names)) for key, names in unknown.items() if names}
    return relevant | ({_ENGINE: ",".join(sorted(engines))} if engines else {})


def changed_functions(written: Mapping[str, str], now: Mapping[str, str]) -> set[str]:
    """Return the functions that are not declared in the same version under both settings, in lower case.

    >>> sorted(changed_functions({"hedgerow.stable.f": "1", "hedgerow.stable.g": "1"}, {"hedgerow.stable.f": "1"}))
    ['g']
    """
    return {key.removeprefix(STABLE) for key, _ in written.items() ^ now.items() if key.startswith(STABLE)}


def with_stable(written: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a part whose index is described again: functions have the versions declared now.

    >>> with_stable({"hedgerow.stable.f": "1", "hedgerow.stable.g": "1"}, {"hedgerow.stable.f": "2", "x": "y"})
    {'hedgerow.stable.f': '2', 'hedgerow.stable.g': '1'}
    """
    return {**written, **{key: value for key, value in now.items() if key.startswith(STABLE)}}


def engines_of(settings: Mapping[str, str]) -> list[Engine]:
    """Return the engines in relevant settings; first come engines beside which no file is skipped."""
    names = _listed(settings.get(_ENGINE, ""))
    engines = {engine.name: engine for engine in ENGINES.values() if engine.name in names}
    return sorted(engines.values(), key=lambda engine: (engine.kind != "reading", engine.name))


def without_engines(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that hold for our own jobs, for which engines are switched off."""
    return {key: value for key, value in settings.items() if key != _ENGINE}


def limits(settings: Mapping[str, str]) -> list[Limit]:
    """Return what limits skipping in a session of these relevant settings, whatever table it reads.

    Judged settings are not among them: they only matter for tables that were written under other ones."""
    limiting = []
    for engine in engines_of(settings):
        classes = [name for name, own in ENGINES.items() if own.name == engine.name]
        effect = f"{engine.reason}, so {EFFECTS[engine.kind]}"
        limiting.append(Limit("engine", engine.name, effect, ",".join(classes)))
    for key, kind in _CODE.items():
        effect = f"its effect is unknown, so {EFFECTS['meaning']}"
        limiting += [Limit(kind, name, effect, name) for name in _listed(settings.get(key, ""))]
    has_unknown_code = any(key in settings for key in _CODE)  # whoever trusts the code trusts its settings
    for key in sorted(settings):
        is_of_code = has_unknown_code and _is_read_by_none(key)
        if kind_of_setting(key) == "unknown" and key != _ENGINE and not is_of_code:
            effect = "its effect is unknown, so Hedgerow skips no file of a table that was written without it"
            limiting.append(Limit("setting", key, effect, key))
    return limiting


def sentences(settings: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each limit of a session, and the line that lifts them all; nothing without limits."""
    limiting = limits(settings)
    yield from map(str, limiting)
    if limiting:
        yield f"to skip files all the same, at your own risk: {trust_line(limiting, settings)}"


def trust_line(limiting: Sequence[Limit], settings: Mapping[str, str]) -> str:
    """Return the command that adds the names of these limits to the session's trusted ones."""
    names = [*_listed(settings.get(TRUSTED, "")), *(limit.trust for limit in limiting)]
    return f"SET {TRUSTED}={','.join(names)}"


def _engine(name: str) -> Engine | None:
    return next((engine for pattern, engine in ENGINES.items() if is_in(name, [pattern])), None)


def _is_read_by_none(key: str) -> bool:
    """True if no scan and no expression reads the setting, neither in Spark nor in a known engine."""
    return kind_of_setting(key) == "unknown" and not key.startswith(NAMESPACES)


def _listed(value: str) -> list[str]:
    return [name for name in re.split(r"[,\s]+", value) if name]
