"""Random queries of more than WHERE that are planned, not run: ORDER BY with LIMIT, LIMIT, and aggregates.

Spark evaluates conditions and terms on each row of a table once, in one job. So the right answer over any of the files
is known, and a plan can be judged by the files that it opens and by the values that it has from the index:

    first        the first rows of the opened files are the first rows of all files
    any          the opened files have as many rows as the limit, or all
    aggregates   the values from the index are those of the rows in files that are not opened
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random

from tests.differential.conditions import Known, compound, either
from tests.differential.evaluated_rows import Rows, Term
from tests.differential.queries import Question
from tests.differential.sessions import EVERY, Planned

LIMITS = (0, 1, 1, 2, 5, 20, 90, 10_000)
OFFSETS = (0, 0, 0, 1, 7, 60, 10_000)
SHAPES = ("SELECT {columns} FROM {{t}} {where}", "WITH c AS (SELECT * FROM {{t}} {where}) SELECT {columns} FROM c")
Key = tuple[int | None, ...]


@dataclass(frozen=True)
class Asked:
    """A query to plan; `is_right(files that are opened, plan)` judges it."""

    question: Question
    is_right: Callable[[set[str], Planned], bool]

    def judge(self, files: Sequence[str], plan: Planned) -> bool:
        return self.is_right(set(files) if EVERY in plan.opened else plan.opened, plan)


def some_asked(random: Random, rows: Rows, count: int) -> list[Asked]:
    """Return random queries over the rows."""
    makers = (_first, _any, _aggregates)
    return [random.choice(makers)(random, rows) for _ in range(count if rows.terms else 0)]


# --- what they share ---


def _where(random: Random, rows: Rows) -> Known | None:
    """Often a condition that is TRUE on all rows of many files."""
    term = random.choice(rows.terms)
    known = rows.known or [_has_value(term)]
    return random.choice(
        (
            lambda: None,
            lambda: _has_value(term),
            lambda: random.choice(known),
            lambda: either(random.choice(known), random.choice(known)),
            lambda: compound(random, known),
        )
    )()


def _has_value(term: Term) -> Known:
    return Known(f"{term.sql} IS NOT NULL", tuple(rank is not None for rank in term.ranks))


def _select(random: Random, columns: Sequence[str], where: Known | None) -> str:
    condition = f"WHERE {where.sql}" if where else ""
    return random.choice(SHAPES[:1] * 3 + SHAPES[1:]).format(columns=", ".join(columns), where=condition)


def _limits(random: Random) -> tuple[int, int, str]:
    limit, offset = random.choice(LIMITS), random.choice(OFFSETS)
    return limit, offset, f"LIMIT {limit}" + (f" OFFSET {offset}" if offset else "")


# --- first rows, any rows ---


def _first(random: Random, rows: Rows) -> Asked:
    where, keys = _where(random, rows), random.choices(rows.terms, k=random.choice((1, 1, 2, 3)))
    ways = [(random.choice(("", "ASC", "DESC")), random.choice(("", "", "FIRST", "LAST"))) for _ in keys]
    order = ", ".join(f"k{i} {way} {'NULLS ' + nulls if nulls else ''}" for i, (way, nulls) in enumerate(ways))
    select = _select(random, [f"{key.sql} AS k{i}" for i, key in enumerate(keys)], where)
    limit, offset, tail = _limits(random)

    def place(row: int) -> tuple[tuple[int, int], ...]:
        """The row's place in the order: NULLs are first unless LAST is written, or DESC without FIRST."""
        found = []
        for key, (way, nulls) in zip(keys, ways, strict=True):
            rank, first = key.ranks[row], nulls == "FIRST" or (not nulls and way != "DESC")
            found.append((-1 if first else 1, 0) if rank is None else (0, -rank if way == "DESC" else rank))
        return tuple(found)

    places = sorted((place(row), rows.files[row]) for row in rows.matching(where))

    def is_right(opened: set[str], plan: Planned) -> bool:
        of_opened = [place for place, file in places if file in opened]
        end = offset + limit
        return of_opened[offset:end] == [place for place, _ in places[offset:end]]

    ranked = f"SELECT *, rank() OVER (ORDER BY {order}) AS rank__ FROM ({select})"
    return Asked(Question("first", f"SELECT * FROM ({select}) ORDER BY {order} {tail}", (), ranked), is_right)


def _any(random: Random, rows: Rows) -> Asked:
    where, keys = _where(random, rows), random.sample(rows.terms, min(2, len(rows.terms)))
    columns = random.choice((["*"], [f"{key.sql} AS k{i}" for i, key in enumerate(keys)]))
    select = _select(random, columns, where)
    limit, offset, tail = _limits(random)
    files = [rows.files[row] for row in rows.matching(where)]

    def answered(count: int) -> int:
        """How many of so many rows are the answer."""
        return max(0, min(limit, count - offset))

    def is_right(opened: set[str], plan: Planned) -> bool:
        return answered(sum(file in opened for file in files)) == answered(len(files))

    return Asked(
        Question("any", f"SELECT * FROM ({select}) {tail}", (), f"SELECT *, 1 AS rank__ FROM ({select})"), is_right
    )


# --- aggregates ---


@dataclass(frozen=True)
class Function:
    """`word(term) FILTER (WHERE filter)`; without a term it is `count(*)`."""

    word: str
    term: Term | None = None
    filter: Known | None = None

    @property
    def sql(self) -> str:
        filtered = f" FILTER (WHERE {self.filter.sql})" if self.filter else ""
        return f"{self.word}({self.term.sql if self.term else '*'}){filtered}"

    @property
    def parts(self) -> Sequence[Function]:
        """An average is a sum and a count in a plan."""
        return [Function(word, self.term, self.filter) for word in ("sum", "count")] if self.word == "avg" else [self]

    def is_value(self, text: str | None, type_: str, rows: Sequence[int]) -> bool:
        """True if the text stands for the aggregate over the rows."""
        rows = [row for row in rows if self.filter is None or self.filter.truth[row]]
        if self.term is None:
            return text == str(len(rows))
        ranks = [rank for row in rows if (rank := self.term.ranks[row]) is not None]
        match self.word:
            case "count":
                return text == str(len(ranks))
            case "min" | "max":
                best = (min if self.word == "min" else max)(ranks, default=None)
                return self.term.rank_of.get(text, -1) == best
        numbers = [number for row in rows if (number := self.term.number(row)) is not None]
        if text is None or not numbers:
            return text is None and not numbers
        # Spark sums short decimals without their point.
        unit = Decimal(10) ** -self.term.scale if self.term.group == "decimal" and type_ == "bigint" else 1
        return sum(numbers) == Decimal(text) * unit


def _functions(random: Random, rows: Rows, count: int) -> list[Function]:
    found = []
    for _ in range(count):
        term = random.choice(rows.terms)
        words = ["count", "count", "min", "min", "max", "max", "*"]
        words += ["sum", "sum", "sum"] if term.group in ("int", "decimal") else []
        words += ["avg"] if term.group == "decimal" else []
        word, filter_ = (
            random.choice(words),
            random.choice(rows.known) if random.random() < 0.2 and rows.known else None,
        )
        found.append(Function("count", None, filter_) if word == "*" else Function(word, term, filter_))
    return found


def _aggregates(random: Random, rows: Rows) -> Asked:
    where = _where(random, rows)
    keys = random.sample(rows.terms, min(random.choice((0, 0, 1, 1, 2)), len(rows.terms)))
    functions = _functions(random, rows, random.choice((0, 1, 2) if keys else (1, 1, 2, 4)))
    columns = [f"{key.sql} AS k{i}" for i, key in enumerate(keys)]
    columns += [f"{function.sql} AS a{i}" for i, function in enumerate(functions)]
    sql = _select(random, columns, where) + (f" GROUP BY {', '.join(key.sql for key in keys)}" if keys else "")
    matching = rows.matching(where)

    def is_right(opened: set[str], plan: Planned) -> bool:
        skipped = [row for row in matching if rows.files[row] not in opened]
        if not plan.values:
            return not skipped
        groups: dict[Key, list[int]] = {} if keys else {(): skipped}
        for row in skipped if keys else ():
            groups.setdefault(tuple(key.ranks[row] for key in keys), []).append(row)
        return _are_values(plan, keys, functions, groups)

    return Asked(Question("aggregates", sql), is_right)


def _are_values(
    plan: Planned, keys: Sequence[Term], functions: Sequence[Function], groups: dict[Key, list[int]]
) -> bool:
    """True if the plan has the right values for exactly these groups."""
    parts = [part for function in functions for part in function.parts]
    if len(plan.types) == len(keys) + len(functions):  # all is known, so averages are divided already
        parts = list(functions)
    if len(plan.types) != len(keys) + len(parts) or len(plan.values) != len(groups):
        return False
    for values in plan.values:
        key = tuple(term.rank_of.get(text, -1) for term, text in zip(keys, values, strict=False))
        columns = zip(parts, values[len(keys) :], plan.types[len(keys) :], strict=True)
        if key not in groups:
            return False
        if not all(part.word == "avg" or part.is_value(text, type_, groups[key]) for part, text, type_ in columns):
            return False
    return True
