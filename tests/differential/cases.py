"""A comparison that may fail, as plain data; as a script; and run again, to shrink it."""

from __future__ import annotations

import glob
import pathlib
import re
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import hedgerow as hr
from tests.differential.schemas import fingerprint
from tests.differential.sessions import Sessions
from tests.differential.worlds import HEAD, Phase, Plan, made

IMPORTS = "from collections import Counter\nfrom tests.differential.ranked import is_right\n"
DOORS = ("attach", "route", "read")
RAW_ERROR = re.compile(r"\[[A-Z_]+(\.[A-Z_]+)*\]|Exception\b|SQLSTATE|Traceback|\b[A-Z]\w+Error: ")


@dataclass(frozen=True)
class Case:
    """`sql` has `{t}` for the table; without it the question is whether the table is made and holds what its source does."""

    plan: Plan
    door: str
    phase: Phase | None = None
    sql: str = ""
    args: tuple[tuple[str, object], ...] = ()
    ranked: str = ""

    def script(self) -> str:
        return "\n".join([HEAD.replace("import glob", "import glob, re", 1), *self.lines(), "", self.verdict()])

    def lines(self) -> list[str]:
        plan = self.plan
        before = [] if self.phase else [_expected(plan)]
        making = made(plan)
        if not self.phase:  # what the source holds is read before the table takes its place
            at = next(i for i, line in enumerate(making) if line.startswith("spark.conf.unset"))
            making[at:at] = before
        return [*making, *plan.history, *(phase_lines(self.phase) if self.phase else [])]

    def verdict(self) -> str:
        if self.phase is None:
            return f"found = {_held(self.plan)}\nprint(len(expected), len(found), [(a, b) for a, b in zip(expected, found) if a != b][:3])\ndifferent = expected != found"
        sql = self.sql.replace("{t}", self.phase.relation.sql)
        args = f", args={dict(self.args)!r}" if self.args else ""
        door = {
            "attach": f"attached.sql(sql{args})",
            "route": "hr.route(spark, sql)",
            "read": "hr.table(spark, table).read(where=sql.split(' WHERE ', 1)[1])",
        }[self.door]
        ranked = self.ranked.replace("{t}", self.phase.relation.sql)
        different = "expected != found"
        if ranked:
            ranked_rows = f"plain.sql({ranked!r}.replace('{{table}}', table_glob)).collect()"
            different += f" and not is_right(Counter(found), Counter(expected), {ranked_rows})"
        return (
            f"sql = {sql!r}.replace('{{table}}', table_glob)\n"
            "def ask(run):\n    try:\n        return sorted(map(str, run().collect()))\n"
            "    except Exception as error:\n        return [type(error).__name__ + ': ' + str(error)[:300]]\n"
            f"expected, found = ask(lambda: plain.sql(sql{args})), ask(lambda: {door})\n"
            f"print('plain', len(expected), expected[:3])\nprint({self.door!r}, len(found), found[:3])\n"
            f"{IMPORTS if ranked else ''}different = {different}"
        )


def phase_lines(phase: Phase) -> list[str]:
    lines = [
        f"for key, value in {dict(phase.settings)!r}.items():",
        "    for s in (plain, attached, spark): s.conf.set(key, value)",
    ]
    lines = ["\n".join(lines)]
    for statement in phase.relation.once:
        lines.append(once_line(statement, phase))
    lines += phase.functions
    for line in (*phase.relation.lines, *(f"s.sql({v[1]!r})" for v in phase.variables)):
        lines.append(f"for s in (plain, attached, spark): {line}")
    return lines


def once_line(statement: str, phase: Phase) -> str:
    if statement.startswith("SETTINGS "):
        return (
            "import json\nfor key in json.loads(" + repr(statement[9:]) + "): plain.conf.set(key, json.loads("
            + repr(statement[9:]) + ")[key])"
        )  # fmt: skip
    after = f"\nfor key in {list(_view_settings(phase))!r}: plain.conf.unset(key)\nfor key, value in {dict(phase.settings)!r}.items(): plain.conf.set(key, value)"
    return f"plain.sql({statement!r}.replace('{{table}}', table_glob)){after}"


def _view_settings(phase: Phase) -> Sequence[str]:
    import json

    return [k for s in phase.relation.once if s.startswith("SETTINGS ") for k in json.loads(s[9:])]


def _expected(plan: Plan) -> str:
    return f"expected = {_read(plan, plan.format, 'source')}"


def _held(plan: Plan) -> str:
    return _read(plan, plan.read_format, "table_glob")


def _read(plan: Plan, format_: str, place: str) -> str:
    return f"sorted(r[0] for r in plain.read.format({format_!r}).load({place}).selectExpr({fingerprint(plan.columns)!r}).collect())"


# --- running ---


class Refused(Exception):
    """Spark itself does not make such a table: there is nothing to compare."""


@dataclass
class Failed(Exception):
    """A line of the making failed that should not have."""

    line: str
    error: Exception


def namespace(sessions: Sessions) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    place = tempfile.mkdtemp(prefix="world-")
    return {"spark": sessions.routed, "plain": sessions.plain, "attached": sessions.attached, "place": place, "hr": hr,
            "glob": glob, "pathlib": pathlib, "shutil": shutil, "re": re, "tempfile": tempfile}  # fmt: skip


def run(lines: Sequence[str], names: dict[str, Any]) -> None:
    for line in lines:
        try:
            exec(line, names)  # the very lines that the script of a failing case has
        except (AttributeError, ImportError, NameError):
            raise  # a line names what the code no longer has
        except Exception as error:
            if not line.startswith(("learned", "hr.apply", "workload")):
                raise Refused(f"{line[:200]}: {error}") from error
            raise Failed(line, error) from error


def is_fair(error: Exception) -> bool:
    """Our own error, in a sentence of ours."""
    return isinstance(error, hr.HedgerowError) and not RAW_ERROR.search(str(error))


def forget(sessions: Sessions, names: dict[str, Any], plan: Plan, phases: Sequence[Phase]) -> None:
    sessions.configure({}, sorted({k for p in phases for k in (*p.settings, *_view_settings(p))} | set(plan.write)))
    sessions.plain.sql(f"DROP TABLE IF EXISTS source_{plan.number}")
    for phase in phases:
        for statement in phase.relation.once:
            if statement.startswith("CREATE"):
                word = statement.split()[1]
                sessions.plain.sql(f"DROP {word} IF EXISTS {phase.relation.sql}")
    shutil.rmtree(names["place"], ignore_errors=True)


def replay(sessions: Sessions, case: Case) -> bool:
    """Whether the case still shows a difference."""
    names = namespace(sessions)
    try:
        run(case.lines(), names)
        exec(case.verdict().replace("print(", "(lambda *_: None)("), names)
        return bool(names["different"])
    except Refused:
        return False
    except Failed as failed:
        return case.phase is None and not is_fair(failed.error)
    except Exception:
        return case.phase is None
    finally:
        forget(sessions, names, case.plan, [case.phase] if case.phase else [])
