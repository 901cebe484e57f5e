"""Queries of every shape over a managed table and a plain one beside it: the same seed, the same queries."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

Condition = Callable[[random.Random, str], str]  # the second: what stands before a column, nothing or `e.`


@dataclass(frozen=True)
class Ground:
    """What the shapes need to know of the two tables; `number` is an integer column with values below `most`."""

    condition: Condition
    key: str
    number: str
    most: int
    group: str  # a column, or a field, of few values
    foreign: str  # equals `primary` of the other table
    primary: str
    label: str
    other: Condition


@dataclass(frozen=True)
class Question:
    """$E is the managed table, $D the other; `scans` has a condition for each scan of $E, None: who knows."""

    sql: str
    scans: tuple[str, ...] | None = None


def questions(ground: Ground, seed: int, n: int) -> list[Question]:
    """Every shape in turn."""
    r = random.Random(seed)
    return [SHAPES[i % len(SHAPES)](ground, r) for i in range(n)]


def _both(a: str, b: str) -> str:
    return f"({a}) AND ({b})"


def _either(a: str, b: str) -> str:
    return f"({a}) OR ({b})"


class _Draw:
    """Conditions in their plain form and as an alias needs them: the same draw twice."""

    def __init__(self, ground: Ground, r: random.Random) -> None:
        self.ground, self.r = ground, r

    def one(self, alias: str = "e") -> tuple[str, str]:
        state = self.r.getstate()
        plain = self.ground.condition(self.r, "")
        self.r.setstate(state)
        return plain, f"({self.ground.condition(self.r, f'{alias}.')})"

    def other(self) -> str:
        return f"({self.ground.other(self.r, 'd.')})"

    def below(self) -> int:
        return self.r.randrange(1, self.ground.most)


Shape = Callable[[Ground, random.Random], Question]
SHAPES: list[Shape] = []


def _shape(make: Callable[[Ground, _Draw], Question]) -> Shape:
    def shape(g: Ground, r: random.Random) -> Question:
        return make(g, _Draw(g, r))

    shape.__name__ = make.__name__
    SHAPES.append(shape)
    return shape


# --- one table ------------------------------------------------------------------------------------


@_shape
def plain(g: Ground, d: _Draw) -> Question:
    c, _ = d.one()
    return Question(f"SELECT {g.key}, {g.number} FROM $E WHERE {c}", (c,))


@_shape
def star(g: Ground, d: _Draw) -> Question:
    c, e = d.one()
    return Question(f"SELECT * FROM $E AS e WHERE {e}", (c,))


@_shape
def quoted_alias(g: Ground, d: _Draw) -> Question:
    c, e = d.one("`E`")
    return Question(f"select `e`.{g.key}, E.{g.number.upper()} from $E `e` where {e}", (c,))


@_shape
def grouped(g: Ground, d: _Draw) -> Question:
    c, _ = d.one()
    sql = f"SELECT {g.group}, count(*) AS n, MAX({g.number}) FROM $E WHERE {c} GROUP BY {g.group} HAVING count(*) > 1"
    return Question(sql, (c,))


@_shape
def distinct(g: Ground, d: _Draw) -> Question:
    c, _ = d.one()
    return Question(f"SELECT DISTINCT {g.number} FROM $E WHERE {c} ORDER BY {g.number} LIMIT 50", (c,))


@_shape
def braces_and_comments(g: Ground, d: _Draw) -> Question:
    c, _ = d.one()
    sql = f"SELECT /* {{t0}} */ {g.key}, '{{t0}} {{{{y}}}} {{0}} 😀' AS s -- {{z}}\n FROM /* $ */ $E WHERE '{{c}}' <> '' AND ({c})"
    return Question(sql, (c,))


@_shape
def windowed(g: Ground, d: _Draw) -> Question:
    c, _ = d.one()
    return Question(f"SELECT {g.key}, count(*) OVER (PARTITION BY {g.group}) AS n FROM $E WHERE {c}", (c,))


@_shape
def above_a_window(g: Ground, d: _Draw) -> Question:
    c, _ = d.one()
    inner = f"SELECT *, count(*) OVER (PARTITION BY {g.group}) AS n FROM $E"
    return Question(f"SELECT {g.key}, n FROM ({inner}) WHERE {c}", ("true",))


@_shape
def exploded(g: Ground, d: _Draw) -> Question:
    c, e = d.one()
    return Question(f"SELECT {g.key}, x FROM $E e LATERAL VIEW explode(array(1, 2)) v AS x WHERE {e} AND x = 1", (c,))


@_shape
def sampled(g: Ground, d: _Draw) -> Question:
    _, e = d.one()
    return Question(f"SELECT {g.key} FROM $E TABLESAMPLE (100 PERCENT) AS e WHERE {e}", ("true",))


@_shape
def pivoted(g: Ground, d: _Draw) -> Question:
    c, _ = d.one()
    sql = f"SELECT * FROM (SELECT {g.number}, 'a' AS k FROM $E WHERE {c}) PIVOT (count(*) FOR k IN ('a', 'b'))"
    return Question(sql, (c,))


@_shape
def above_a_pivot(g: Ground, d: _Draw) -> Question:
    inner = f"SELECT {g.number}, 'a' AS k FROM $E"
    sql = f"SELECT * FROM ({inner}) PIVOT (count(*) FOR k IN ('a', 'b')) WHERE {g.number} < {d.below()}"
    return Question(sql, ("true",))


# --- subqueries and names -------------------------------------------------------------------------


@_shape
def renamed(g: Ground, d: _Draw) -> Question:
    (c, _), n = d.one(), d.below()
    sql = f"SELECT s.y FROM (SELECT {g.key}, {g.number} FROM $E WHERE {c}) AS s(x, y) WHERE s.y < {n}"
    return Question(sql, (_both(c, f"{g.number} < {n}"),))


@_shape
def swapped(g: Ground, d: _Draw) -> Question:
    n = d.below()
    inner = f"SELECT {g.key} AS {g.number}, {g.number} AS {g.key} FROM $E"
    return Question(f"SELECT * FROM ({inner}) WHERE {g.key} < {n}", (f"{g.number} < {n}",))


@_shape
def limited(g: Ground, d: _Draw) -> Question:
    inner = f"SELECT {g.number}, {g.key} FROM $E ORDER BY 1 DESC, 2 LIMIT 500"
    return Question(f"SELECT * FROM ({inner}) WHERE {g.number} < {d.below()}", ("true",))


@_shape
def group_key(g: Ground, d: _Draw) -> Question:
    (c, _), n = d.one(), d.below()
    inner = f"SELECT {g.number}, count(*) AS n FROM $E WHERE {c} GROUP BY {g.number}"
    return Question(f"SELECT * FROM ({inner}) WHERE {g.number} < {n} AND n > 0", (_both(c, f"{g.number} < {n}"),))


@_shape
def rolled_up(g: Ground, d: _Draw) -> Question:
    n = d.below()
    inner = f"SELECT {g.number} AS k, count(*) AS n FROM $E GROUP BY ROLLUP({g.number})"
    return Question(f"SELECT * FROM ({inner}) WHERE k < {n} OR k IS NULL", ("true",))


@_shape
def cte(g: Ground, d: _Draw) -> Question:
    (a, _), (b, _) = d.one(), d.one()
    return Question(f"WITH x AS (SELECT * FROM $E WHERE {a}) SELECT {g.key} FROM x WHERE {b}", (_both(a, b),))


@_shape
def cte_twice(g: Ground, d: _Draw) -> Question:
    (a, _), (b, _) = d.one(), d.one()
    sql = f"WITH x AS (SELECT * FROM $E) SELECT 'a', {g.key} FROM x WHERE {a} UNION ALL SELECT 'b', {g.key} FROM x WHERE {b}"
    return Question(sql, (_either(a, b), _either(a, b)))


@_shape
def cte_in_cte(g: Ground, d: _Draw) -> Question:
    (a, _), (b, _) = d.one(), d.one()
    ctes = f"a AS (SELECT * FROM $E WHERE {a}), b AS (SELECT * FROM a WHERE {b})"
    sql = f"WITH {ctes} SELECT b.{g.key} FROM b JOIN $D d ON b.{g.foreign} = d.{g.primary}"
    return Question(sql, (_both(a, b),))


@_shape
def union(g: Ground, d: _Draw) -> Question:
    (a, _), (b, _) = d.one(), d.one()
    return Question(f"SELECT {g.key}, 1 FROM $E WHERE {a} UNION ALL SELECT {g.key}, 2 FROM $E WHERE {b}", (a, b))


@_shape
def above_a_union(g: Ground, d: _Draw) -> Question:
    n = d.below()
    inner = f"SELECT {g.key}, {g.number} FROM $E UNION ALL SELECT {g.primary}, 0 FROM $D"
    return Question(f"SELECT * FROM ({inner}) WHERE {g.number} < {n}", (f"{g.number} < {n}",))


@_shape
def intersection(g: Ground, d: _Draw) -> Question:
    (a, _), (b, _) = d.one(), d.one()
    word = d.r.choice(["INTERSECT", "EXCEPT", "MINUS"])
    sql = f"SELECT {g.number} FROM $E WHERE {a} {word} SELECT {g.number} FROM $E WHERE {b}"
    return Question(sql)  # Spark may see that both sides are one scan, or that one is empty


@_shape
def scalars(g: Ground, d: _Draw) -> Question:
    (a, _), (b, _) = d.one(), d.one()
    return Question(f"SELECT (SELECT count(*) FROM $E WHERE {a}) AS a, (SELECT max({g.number}) FROM $E WHERE {b}) AS b")


@_shape
def correlated(g: Ground, d: _Draw) -> Question:
    (a, e), (b, i) = d.one(), d.one("i")
    inner = f"SELECT min(i.{g.number}) FROM $E i WHERE i.{g.group} = e.{g.group} AND {i}"
    return Question(f"SELECT e.{g.key} FROM $E e WHERE e.{g.number} >= ({inner}) AND {e}", (a, b))


# --- joins ----------------------------------------------------------------------------------------


@_shape
def inner(g: Ground, d: _Draw) -> Question:
    (c, e), on = d.one(), f"e.{g.foreign} = d.{g.primary}"
    return Question(f"SELECT e.{g.key}, d.{g.label} FROM $E e JOIN $D d ON {on} WHERE {e} AND {d.other()}", (c,))


@_shape
def comma(g: Ground, d: _Draw) -> Question:
    c, e = d.one()
    sql = f"SELECT e.{g.key}, d.{g.label} FROM $D d, $E e WHERE d.{g.primary} = e.{g.foreign} AND {e} AND {d.other()}"
    return Question(sql, (c,))


@_shape
def on_only(g: Ground, d: _Draw) -> Question:
    c, e = d.one()
    return Question(f"SELECT count(*) FROM $E e JOIN $D d ON e.{g.foreign} = d.{g.primary} AND {e}", (c,))


@_shape
def using(g: Ground, d: _Draw) -> Question:
    c, _ = d.one()
    inner = f"SELECT {g.key}, {g.foreign} AS {g.primary} FROM $E WHERE {c}"
    return Question(f"SELECT {g.primary}, {g.key}, {g.label} FROM ({inner}) JOIN $D USING ({g.primary})", (c,))


@_shape
def left(g: Ground, d: _Draw) -> Question:
    (c, e), on = d.one(), f"e.{g.foreign} = d.{g.primary} AND {d.other()}"
    return Question(f"SELECT e.{g.key}, d.{g.label} FROM $E e LEFT JOIN $D d ON {on} WHERE {e}", (c,))


@_shape
def left_of_the_other(g: Ground, d: _Draw) -> Question:
    (c, e), on = d.one(), f"e.{g.foreign} = d.{g.primary}"
    return Question(f"SELECT e.{g.key}, d.{g.label} FROM $D d LEFT JOIN $E e ON {on} AND {e} WHERE {d.other()}", (c,))


@_shape
def nullable(g: Ground, d: _Draw) -> Question:
    (_, e), on = d.one(), f"e.{g.foreign} = d.{g.primary}"
    return Question(f"SELECT e.{g.key}, d.{g.label} FROM $D d LEFT JOIN $E e ON {on} WHERE {e}")


@_shape
def nullable_or(g: Ground, d: _Draw) -> Question:
    (_, e), on = d.one(), f"e.{g.foreign} = d.{g.primary}"
    where = f"{e} OR e.{g.key} IS NULL"
    return Question(f"SELECT e.{g.key}, d.{g.label} FROM $E e RIGHT OUTER JOIN $D d ON {on} WHERE {where}")


@_shape
def right(g: Ground, d: _Draw) -> Question:
    (c, e), on = d.one(), f"e.{g.foreign} = d.{g.primary}"
    return Question(f"SELECT e.{g.key}, d.{g.label} FROM $E e RIGHT JOIN $D d ON {on} AND {e}", (c,))


@_shape
def full(g: Ground, d: _Draw) -> Question:
    (_, e), on = d.one(), f"e.{g.foreign} = d.{g.primary}"
    return Question(f"SELECT e.{g.key}, d.{g.label} FROM $E e FULL JOIN $D d ON {on} AND {e} WHERE {d.other()}")


@_shape
def exists(g: Ground, d: _Draw) -> Question:
    c, e = d.one()
    inner = f"SELECT 1 FROM $D d WHERE d.{g.primary} = e.{g.foreign} AND {d.other()}"
    return Question(f"SELECT e.{g.key} FROM $E e WHERE {e} AND EXISTS ({inner})", (c,))


@_shape
def not_exists(g: Ground, d: _Draw) -> Question:
    c, e = d.one()
    inner = f"SELECT * FROM $E e WHERE e.{g.foreign} = d.{g.primary} AND {e}"
    return Question(f"SELECT d.{g.primary} FROM $D d WHERE {d.other()} AND NOT EXISTS ({inner})", (c,))


@_shape
def is_in(g: Ground, d: _Draw) -> Question:
    c, _ = d.one()
    sql = f"SELECT d.{g.label} FROM $D d WHERE d.{g.primary} IN (SELECT {g.foreign} FROM $E WHERE {c})"
    return Question(sql, (c,))


@_shape
def is_not_in(g: Ground, d: _Draw) -> Question:
    c, _ = d.one()
    sql = f"SELECT d.{g.label} FROM $D d WHERE {d.other()} AND d.{g.primary} NOT IN (SELECT {g.foreign} FROM $E WHERE {c})"
    return Question(sql, (c,))


@_shape
def semi(g: Ground, d: _Draw) -> Question:
    (c, e), on = d.one(), f"e.{g.foreign} = d.{g.primary} AND {d.other()}"
    return Question(f"SELECT e.{g.key} FROM $E e LEFT SEMI JOIN $D d ON {on} WHERE {e}", (c,))


@_shape
def anti(g: Ground, d: _Draw) -> Question:
    (c, e), on = d.one(), f"e.{g.foreign} = d.{g.primary}"
    return Question(f"SELECT d.{g.label} FROM $D d LEFT ANTI JOIN $E e ON {on} AND {e} WHERE {d.other()}", (c,))


@_shape
def with_itself(g: Ground, d: _Draw) -> Question:
    (a, x), (b, y) = d.one("a"), d.one("b")
    return Question(
        f"SELECT a.{g.key}, b.{g.number} FROM $E a JOIN $E b ON a.{g.key} = b.{g.key} + 1 WHERE {x} AND {y}", (a, b)
    )


@_shape
def lateral(g: Ground, d: _Draw) -> Question:
    _, e = d.one()
    inner = f"SELECT max(e.{g.number}) AS m FROM $E e WHERE e.{g.foreign} = d.{g.primary} AND {e}"
    return Question(f"SELECT d.{g.primary}, m FROM $D d, LATERAL ({inner}) WHERE {d.other()}")
