"""Evaluates conditions and terms on every row of a table, in one Spark job without skipping."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql.functions import input_file_name

from tests.differential.conditions import Known
from tests.differential.functions import PYTHON
from tests.differential.sessions import bytes_text, short


@dataclass(frozen=True)
class Term:
    """A term with its value on each row: as text, and its rank in Spark's order; None for NULL."""

    sql: str
    group: str
    texts: Sequence[str | None]
    ranks: Sequence[int | None]
    rank_of: dict[str | None, int | None] = field(init=False, repr=False)  # by text

    def __post_init__(self) -> None:
        object.__setattr__(self, "rank_of", {None: None, **dict(zip(self.texts, self.ranks, strict=True))})

    def number(self, row: int) -> Decimal | None:
        text = self.texts[row]
        return None if text is None else Decimal(text)

    @property
    def scale(self) -> int:
        """The digits after the point."""
        numbers = (self.number(row) for row in range(len(self.texts)))
        return max((-int(n.as_tuple().exponent) for n in numbers if n is not None), default=0)


@dataclass(frozen=True)
class Rows:
    """The rows of a table: the file of each, and what conditions and terms are on it."""

    files: Sequence[str] = ()
    known: Sequence[Known] = ()
    terms: Sequence[Term] = ()

    def matching(self, where: Known | None) -> list[int]:
        return [i for i in range(len(self.files)) if where is None or where.truth[i]]


def evaluated(
    plain: SparkSession, relation: str, conditions: Sequence[str], terms: Mapping[str, str], notes: Counter[str]
) -> Rows:
    """Return the rows of a relation. `terms`: with their groups. What Spark refuses or what raises is left out."""
    good = [c for c in dict.fromkeys(conditions) if _is_condition(plain, relation, c, notes)]
    groups = {t: group for t, group in terms.items() if _is_condition(plain, relation, f"({t}) IS NULL", notes)}
    try:
        files, truths, values = _collected(plain, relation, good, list(groups))
    except Exception as error:
        notes[f"phase whose conditions cannot be told at once: {gist(str(error))}"] += 1
        told = _told(plain, relation, good)
        return evaluated(plain, relation, told, {}, notes) if 0 < len(told) < len(good) else Rows()
    known = [
        Known(p, tuple(t and t["v"] for t in truth)) for p, truth in zip(good, truths, strict=True) if None not in truth
    ]
    notes["conditions that raise"] += len(good) - len(known)
    ordered = [
        Term(sql, group, [v["text"] and bytes_text(v["text"]) for v in of], [v["rank"] for v in of])
        for (sql, group), of in zip(groups.items(), values, strict=True)
        if None not in of
    ]
    return Rows(files, known, ordered)


def _collected(
    plain: SparkSession, relation: str, conditions: Sequence[str], terms: Sequence[str]
) -> tuple[list[str], list[list[Any]], list[list[Any]]]:
    """For each condition, row by row: {"v": its truth}, or None where it raises; for each term its text and rank."""
    jvm: Any = plain._jvm
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(plain._jsparkSession)
    parse = plain._jsparkSession.sessionState().sqlParser().parseExpression
    columns = [input_file_name().alias("f__")]
    for i, p in enumerate((*conditions, *terms)):
        tried = jvm.org.apache.spark.sql.catalyst.expressions.TryEval(parse(f"named_struct('v', ({p}\n))"))
        columns.append(Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(tried)).alias(f"p{i}"))
    frame, count = plain.sql(f"SELECT * FROM {relation}").select(*columns), len(conditions)
    if terms:
        ranked = [
            f"if(p{i} IS NULL, NULL, named_struct('text', hex(CAST(CAST(p{i}.v AS STRING) AS BINARY)), 'rank', "
            f"if(p{i}.v IS NULL, NULL, dense_rank() OVER (ORDER BY p{i}.v)))) AS p{i}"
            for i in range(count, count + len(terms))
        ]
        frame = frame.selectExpr("f__", *(f"p{i}" for i in range(count)), *ranked)
    rows = frame.collect()
    cells = [[row[i + 1] for row in rows] for i in range(count + len(terms))]
    files = [row[0] for row in rows]
    if any(name in condition for condition in conditions for name in PYTHON):
        # Spark evaluates functions in Python ahead of the row whose file it names; without them, rows come in order too.
        files = [row[0] for row in plain.sql(f"SELECT * FROM {relation}").select(input_file_name()).collect()]
    return list(map(short, files)), cells[:count], cells[count:]


def _told(plain: SparkSession, relation: str, conditions: Sequence[str]) -> list[str]:
    """Return the conditions that can be told at once; what fails in a function in Python makes the whole job fail."""
    try:
        _collected(plain, relation, conditions, [])
    except Exception:
        half = len(conditions) // 2
        return [c for part in (conditions[:half], conditions[half:]) if half for c in _told(plain, relation, part)]
    return list(conditions)


def _is_condition(plain: SparkSession, relation: str, condition: str, notes: Counter[str]) -> bool:
    try:
        frame = plain.sql(f"SELECT ({condition}\n) FROM {relation}")
        frame._jdf.queryExecution().optimizedPlan()  # constants that raise do so here
        return len(frame.schema) == 1 and frame.schema[0].dataType.simpleString() == "boolean"
    except Exception:
        notes["conditions that Spark refuses"] += 1
        return False


def gist(text: str) -> str:
    """What errors of one kind have in common."""
    found = re.search(r"\[[A-Z_.]+\]", text)
    return found[0] if found else re.sub(r"[\d/'\"`{}]+.*", "", text)[-60:]
