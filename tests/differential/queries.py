"""Random whole queries around random conditions: joins, set operations, CTEs, pipes, windows, subqueries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.differential.conditions import OPS, Maker


@dataclass(frozen=True, slots=True)
class Question:
    """A query over `{t}`; `args` are its parameters, as SQL; `ranked`: all rows that it may answer with, see `ranked`."""

    kind: str
    sql: str
    args: tuple[tuple[str, object], ...] = ()
    ranked: str = ""


def texts_of(question: Question) -> dict[str, str]:
    """Return a question's queries with each row as one text, so that many questions fit into one plan."""
    sql = f"SELECT CAST(struct(*) AS STRING) AS row__ FROM (\n{question.sql}\n)"
    ranked = f"SELECT CAST(struct(* EXCEPT (rank__)) AS STRING) AS row__, rank__ FROM (\n{question.ranked}\n)"
    return {"sql": sql, "ranked": ranked if question.ranked else ""}


def union_of(queries: Sequence[str]) -> str:
    """Return queries over `{t}` as one that names it once: Spark reads the schema of a path each time it is named."""
    shared = [sql.replace("{t}", "seen__") for sql in queries]
    union = "\nUNION ALL\n".join(f"SELECT {i} AS mark__, row__ FROM (\n{sql}\n)" for i, sql in enumerate(shared))
    return f"WITH seen__ AS (SELECT * FROM {{t}})\n{union}"


def a_question(random: Random, maker: Maker, conditions: list[str], of: Sequence[str] = ()) -> Question:
    """One of the forms below; conditions are drawn from those that are known to run."""
    kind = random.choice(of or [*FORMS, *WHOLE_QUESTIONS])
    if kind in WHOLE_QUESTIONS:
        return WHOLE_QUESTIONS[kind](random, maker, conditions)
    return Question(kind, FORMS[kind](random, maker, conditions))


def _p(random: Random, conditions: list[str]) -> str:
    return random.choice(conditions)


def _key(random: Random, maker: Maker) -> str:
    groups = ("int", "string", "date", "bool", "decimal", "float", "ts")
    return random.choice([s.sql for s in maker.sources if s.group in groups])


def _rows(random: Random, maker: Maker, conditions: list[str]) -> str:
    return f"SELECT * FROM {{t}} WHERE {_p(random, conditions)}"


def _counts(random: Random, maker: Maker, conditions: list[str]) -> str:
    p, q, r = (_p(random, conditions) for _ in range(3))
    return f"SELECT count(*), count_if({p}), count(*) FILTER (WHERE {q}) FROM {{t}} WHERE {r}"


def _join(random: Random, maker: Maker, conditions: list[str]) -> str:
    how = random.choice(("", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI", "CROSS"))
    p, q, k = _p(random, conditions), _p(random, conditions), _key(random, maker)
    a, b = f"(SELECT * FROM {{t}} WHERE {p})", f"(SELECT {k} AS k2, count(*) AS n FROM {{t}} WHERE {q} GROUP BY 1)"
    on = "" if how == "CROSS" else f"ON a.{k} {random.choice(('=', '<=>'))} b.k2 AND {_p(random, conditions)}"
    tail = "" if "SEMI" in how or "ANTI" in how else ", sum(n), max(k2)"
    where = f"WHERE {_p(random, conditions)}" if random.random() < 0.6 else ""
    return f"SELECT count(*), max(a.{k}){tail} FROM {a} a {how} JOIN {b} b {on} {where}"


def _set_operation(random: Random, maker: Maker, conditions: list[str]) -> str:
    """Branches of different types, and a condition above that speaks of the common one."""
    word = random.choice(("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL", "MINUS"))
    pairs = (
        ("string", "int"),
        ("date", "ts"),
        ("int", "float"),
        ("int", "decimal"),
        ("string", "date"),
        ("float", "decimal"),
        ("string", "float"),
    )
    groups = {source.group for source in maker.sources}
    one, other = random.choice([pair for pair in pairs if groups.issuperset(pair)] or pairs)
    if random.random() < 0.5:
        one, other = other, one
    left = maker.term(one, 0) or maker.literal(one)
    right = (maker.term(other, 0) if random.random() < 0.6 else None) or maker.literal(other)
    where = f" WHERE {_p(random, conditions)}" if random.random() < 0.4 else ""
    group = random.choice((one, other))
    condition = random.choice(
        (
            *[f"x {random.choice(('=', *OPS))} {maker.literal(group)}"] * 6,
            f"x LIKE '%{random.choice('05a')}%'",
            f"CAST(x AS STRING) = {maker.literal('string')}",
        )
    )
    return f"SELECT x, count(*) FROM (SELECT {left} AS x FROM {{t}}{where} {word} SELECT {right} FROM {{t}}) WHERE {condition} GROUP BY x"


def _ctes(random: Random, maker: Maker, conditions: list[str]) -> str:
    p, q, r = (_p(random, conditions) for _ in range(3))
    inner, outer = random.choice((("a", "a"), ("a", "b"), ("b", "a")))
    return (
        f"WITH a AS (SELECT * FROM {{t}} WHERE {p}), c AS (WITH {inner} AS (SELECT * FROM {{t}} WHERE {q}) "
        f"SELECT * FROM {outer if outer == 'a' else inner}) SELECT count(*), count_if({r}) FROM c WHERE {r}"
    )


def _recursive(random: Random, maker: Maker, conditions: list[str]) -> str:
    k = maker.term("int", 0)
    return (
        f"WITH RECURSIVE r(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT n, count(*) FROM r JOIN {{t}} ON {k} = n "
        f"WHERE {_p(random, conditions)} GROUP BY n"
    )


def _lateral(random: Random, maker: Maker, conditions: list[str]) -> str:
    p, q, k = _p(random, conditions), _p(random, conditions), _key(random, maker)
    if random.random() < 0.5:
        return f"SELECT count(*), count(y) FROM {{t}} a, LATERAL (SELECT a.{k} AS y WHERE {p}) WHERE {q}"
    return f"SELECT count(*), min(e) FROM {{t}} LATERAL VIEW {random.choice(('', 'OUTER '))}explode(array(1, 2, {maker.term('int', 1)})) x AS e WHERE e > 1 AND {p}"


def _pipes(random: Random, maker: Maker, conditions: list[str]) -> str:
    term, group = maker.any_term()
    step = random.choice(
        (
            f"|> WHERE {_p(random, conditions)}",
            f"|> EXTEND {term} AS z |> WHERE z {random.choice(OPS)} {maker.literal(group)}",
            "",
        )
    )
    last = random.choice(("|> AGGREGATE count(*)", f"|> AGGREGATE count(*) GROUP BY {_key(random, maker)}", ""))
    return f"FROM {{t}} |> WHERE {_p(random, conditions)} {step} {last}"


def _windows(random: Random, maker: Maker, conditions: list[str]) -> str:
    k = _key(random, maker)
    return f"SELECT count(*), sum(n), max(n) FROM (SELECT *, count(*) OVER (PARTITION BY {k}) AS n FROM {{t}}) WHERE {_p(random, conditions)}"


def _subqueries(random: Random, maker: Maker, conditions: list[str]) -> str:
    p, q, k = _p(random, conditions), _p(random, conditions), _key(random, maker)
    word = random.choice((
        f"{k} {random.choice(('', 'NOT '))}IN (SELECT {k} FROM {{t}} WHERE {p})", f"{random.choice(('', 'NOT '))}EXISTS (SELECT 1 FROM {{t}} b WHERE b.{k} = a.{k} AND {p})",
        f"{k} {random.choice(('=', '<', '>='))} (SELECT max({k}) FROM {{t}} WHERE {p})"))  # fmt: skip
    return f"SELECT count(*) FROM {{t}} a WHERE {random.choice((q + ' AND ', q + ' OR ', ''))}{word}"


def _groups(random: Random, maker: Maker, conditions: list[str]) -> str:
    k = _key(random, maker)
    having = random.choice(
        (f"HAVING count(*) > 3 AND {k} IS NOT NULL", f"HAVING max({k}) {random.choice(OPS)} {k}", "")
    )
    by = random.choice((f"GROUP BY {k}", f"GROUP BY ROLLUP ({k})", f"GROUP BY GROUPING SETS (({k}), ())"))
    return f"SELECT {k}, count(*) FROM {{t}} WHERE {_p(random, conditions)} {by} {having}"


def _shadowed(random: Random, maker: Maker, conditions: list[str]) -> str:
    """A column's name that means something else further out."""
    k = _key(random, maker)
    term, group = maker.any_term()
    op, value = random.choice(OPS), maker.literal(group)
    inner = random.choice(("{t}", f"(SELECT * FROM {{t}} WHERE {_p(random, conditions)})"))
    if random.random() < 0.4:
        return f"SELECT {term} AS {k}, count(*) FROM {inner} WHERE {k} {op} {value} GROUP BY ALL"
    return f"SELECT {k}, count(*) FROM (SELECT {term} AS {k} FROM {inner}) WHERE {k} {op} {value} GROUP BY {k}"


def _distinct(random: Random, maker: Maker, conditions: list[str]) -> str:
    k = _key(random, maker)
    return f"SELECT DISTINCT {k} FROM {{t}} WHERE {_p(random, conditions)}"


def _text(random: Random, maker: Maker, conditions: list[str]) -> str:
    return f"SELECT count(*) FROM {{t}} {maker.decorated('').strip('( )')}\nWHERE {maker.decorated(_p(random, conditions))}"


def _parameters(random: Random, maker: Maker, conditions: list[str]) -> Question:
    term, group = maker.any_term()
    value: object = {"int": random.choice((5, 0, -1, 100)), "float": 1.5, "string": random.choice(("a", "A", "5"))}.get(
        group, "5"
    )
    p = _p(random, conditions)
    return Question(
        "parameters",
        f"SELECT count(*) FROM {{t}} WHERE {term} {random.choice(OPS)} :p AND ({p} OR {term} IS NOT NULL)",
        (("p", value),),
    )


def _immediate(random: Random, maker: Maker, conditions: list[str]) -> str:
    term, group = maker.any_term()
    inner = f"SELECT count(*) FROM {{t}} WHERE {term} {random.choice(OPS)} ?".replace("\\", "\\\\").replace("'", "\\'")
    return f"EXECUTE IMMEDIATE '{inner}' USING {maker.literal(group)}"


# --- more than WHERE --------------------------------------------------------------------------------------


def _term(random: Random, maker: Maker) -> tuple[str, str]:
    """A term that the index is likely to describe, with its group."""
    known = [(s.sql, s.group) for s in maker.sources if s.group in ORDERED]
    known += [(term, group) for term, group in maker.favourites if group in ORDERED] * 2
    return random.choice(known) if known and random.random() < 0.9 else ("1", "int")


ORDERED = ("int", "string", "date", "bool", "decimal", "float", "ts", "ntz", "binary", "time", "ym", "dt")


def _where(random: Random, maker: Maker, conditions: list[str]) -> str:
    """Often a condition that is TRUE on all rows of many files."""
    term, group = _term(random, maker)
    return random.choice(
        (
            "",
            "",
            f"WHERE {term} IS NOT NULL",
            f"WHERE {term} {random.choice(OPS)} {maker.literal(group)}",
            f"WHERE {_p(random, conditions)}",
            f"WHERE {_p(random, conditions)} OR {_p(random, conditions)}",
        )
    )


def _limit(random: Random) -> str:
    offset = random.choice(("", "", "", f" OFFSET {random.choice((0, 1, 7, 60, 10_000))}"))
    return f"LIMIT {random.choice((0, 1, 1, 2, 5, 20, 90, 10_000))}{offset}"


def _first(random: Random, maker: Maker, conditions: list[str]) -> Question:
    """The first rows of an order; or of a part of the table, around or below something that an order must not cross."""
    keys = [_term(random, maker)[0] for _ in range(random.choice((1, 1, 2, 3)))]
    columns = ", ".join(f"{key} AS k{i}" for i, key in enumerate(keys))
    order = ", ".join(
        f"k{i} {random.choice(('', 'ASC', 'DESC'))} {random.choice(('', '', 'NULLS FIRST', 'NULLS LAST'))}"
        for i in range(len(keys))
    )
    where = _where(random, maker, conditions)
    rows = random.choice(
        (
            *[f"SELECT {columns} FROM {{t}} {where}"] * 6,
            f"WITH c AS (SELECT * FROM {{t}} {where}) SELECT {columns} FROM c",
            f"SELECT {columns} FROM {{t}} {where} UNION ALL SELECT {columns} FROM {{t}} {_where(random, maker, conditions)}",
            f"SELECT a.* FROM (SELECT {columns} FROM {{t}} {where}) a LEFT JOIN (SELECT {keys[0]} AS j FROM {{t}} LIMIT 0) b ON a.k0 = b.j",
            f"SELECT DISTINCT {columns} FROM {{t}} {where}",
        )
    )
    every = f"SELECT *, rank() OVER (ORDER BY {order}) AS rank__ FROM ({rows})"
    return Question("first", f"SELECT * FROM ({rows}) ORDER BY {order} {_limit(random)}", (), every)


def _any(random: Random, maker: Maker, conditions: list[str]) -> Question:
    columns = random.choice(("*", ", ".join(f"{_term(random, maker)[0]} AS k{i}" for i in range(2))))
    rows = f"SELECT {columns} FROM {{t}} {_where(random, maker, conditions)}"
    if random.random() < 0.2:
        rows = f"{rows} UNION ALL SELECT {columns} FROM {{t}}"
    return Question("any", f"SELECT * FROM ({rows}) {_limit(random)}", (), f"SELECT *, 1 AS rank__ FROM ({rows})")


def _aggregates(random: Random, maker: Maker, conditions: list[str]) -> Question:
    """Aggregates of all rows, or of the groups of some terms."""
    keys = [_term(random, maker) for _ in range(random.choice((0, 0, 1, 1, 2)))]
    by = [key for key, _ in keys if key != "1"]  # that is the first column
    found = [key + (" + 0D" if group == "float" else "") for key, group in keys if key != "1"]  # -0.0 may stand for 0.0
    for i in range(random.choice((0, 1, 2) if by else (1, 1, 2, 4))):
        term, group = _term(random, maker)
        words = ["count(*)", f"count({term})"]
        if group != "float":  # either zero may be the least
            words += [f"min({term})", f"max({term})"] * 2
            words += [f"{random.choice(('sum', 'sum', 'try_sum'))}({term})"] * (3 if group in ("int", "decimal") else 0)
            words += [f"avg({term})"] * (2 if group == "decimal" else 0)  # of large integers, it depends on their order
        else:
            words += [f"min({term}) + 0D", f"max({term}) + 0D"] * 2
        filtered = f" FILTER (WHERE {_p(random, conditions)})" if random.random() < 0.2 else ""
        found.append(f"{random.choice(words)}{filtered} AS a{i}")
    if random.random() < 0.1:
        found.append(f"count(DISTINCT {_term(random, maker)[0]})")
    sql = f"SELECT {', '.join(found)} FROM {{t}} {_where(random, maker, conditions)}"
    sql += f" GROUP BY {', '.join(by)}" if by else ""
    shape = random.choice(("{}", "{}", "{} HAVING count(*) > 3", "SELECT * FROM ({}) UNION ALL SELECT * FROM ({})"))
    return Question("aggregates", shape.replace("{}", sql))


WHOLE_QUESTIONS = {"first": _first, "any": _any, "aggregates": _aggregates, "parameters": _parameters}
FORMS = {
    "rows": _rows, "counts": _counts, "join": _join, "set": _set_operation, "set ": _set_operation, "set  ": _set_operation, "ctes": _ctes, "ctes ": _ctes, "recursive": _recursive,
    "lateral": _lateral, "pipes": _pipes, "windows": _windows, "subqueries": _subqueries, "groups": _groups, "shadowed": _shadowed,
    "distinct": _distinct, "text": _text, "immediate": _immediate,
}  # fmt: skip
