"""Makes a failing case smaller: first the condition and the settings, then the table under it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.differential.cases import Case, replay
from tests.differential.sessions import Sessions


def shorter(case: Case, fails: Callable[[Case], bool], most: int = 24) -> Case:
    """The shortest part of the condition that still fails in the world as it is."""
    if " WHERE " not in case.sql:
        return case
    head, condition = case.sql.split(" WHERE ", 1)
    tries = 0
    seen = {condition}
    while True:
        for part in where_conjuncts(condition):
            if part in seen or len(part) > len(condition) or tries >= most:
                continue
            seen.add(part)
            tries += 1
            if fails(replace(case, sql=f"{head} WHERE {part}")):
                condition = part
                break
        else:
            return replace(case, sql=f"{head} WHERE {condition}")


def where_conjuncts(condition: str) -> Iterator[str]:
    """What stands between matching parentheses at the outermost level, alone and negated; the longest last."""
    spans: list[str] = []
    depth, start = 0, 0
    text = re.sub(r"'(?:[^'\\]|\\.)*'", lambda m: "\0" * len(m[0]), condition)
    for i, c in enumerate(text):
        if c == "(":
            depth, start = depth + 1, i + 1 if depth == 0 else start
        elif c == ")":
            depth -= 1
            if depth == 0:
                spans.append(condition[start:i])
    found = re.fullmatch(r"if\((.*)\)", condition, re.DOTALL)
    if found and " AND " not in condition[:2]:
        spans += found[1].split(", ")
    for span in sorted(set(spans), key=len):
        yield span
        yield f"NOT ({span})"
        yield f"({span}) IS NULL"


def shrunk(sessions: Sessions, case: Case, most: int = 14) -> Case:
    """The same difference with fewer settings, columns, queries, events: each step is the whole case, run anew."""
    tries = 0
    again = True
    while again:
        again = False
        for smaller in _smaller(case):
            tries += 1
            if tries > most:
                return case
            if replay(sessions, smaller):
                case, again = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    plan, phase = case.plan, case.phase
    if plan.history:
        yield replace(case, plan=replace(plan, history=(), converted=False))
    text = " ".join([case.sql, *(phase.relation.once if phase else ()), *plan.history])
    if phase is not None or len(plan.columns) > 2:
        kept = tuple(
            c
            for i, c in enumerate(plan.columns)
            if i == 0 or (c.name in text if phase else not re.fullmatch(r"c\d", c.name))
        )
        workload = tuple(sql for sql in plan.workload if all(c in kept or c.name not in sql for c in plan.columns))
        if len(kept) < len(plan.columns):
            for queries in dict.fromkeys(
                (workload or ("SELECT * FROM t WHERE c0 > 1",), ("SELECT * FROM t WHERE c0 > 1",))
            ):
                yield replace(case, plan=replace(plan, columns=kept, workload=queries))
    if len(plan.write) > 1:
        yield replace(case, plan=replace(plan, write={}))
    for key in plan.write:
        yield replace(case, plan=replace(plan, write={k: v for k, v in plan.write.items() if k != key}))
    if phase is not None:
        for key in phase.settings:
            fewer = {k: v for k, v in phase.settings.items() if k != key}
            yield replace(case, phase=replace(phase, settings=fewer))
        if phase.variables:
            yield replace(case, phase=replace(phase, variables=()))
    if len(plan.workload) > 1:
        yield replace(case, plan=replace(plan, workload=plan.workload[: len(plan.workload) // 2]))
        yield replace(case, plan=replace(plan, workload=plan.workload[len(plan.workload) // 2 :]))
    if plan.trees > 1:
        yield replace(case, plan=replace(plan, trees=1))
    if plan.learner != "range":
        yield replace(case, plan=replace(plan, learner="range"))
