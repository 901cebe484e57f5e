"""Queries of every shape over a table $E and another one $D: the same seed, the same queries."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

Condition = Callable[..., str]  # of a random source, and of what stands before a column: nothing or `e.`


def conditions_of(atoms: Sequence[Condition], leaf: float, words: Sequence[str], negated: float) -> Condition:
    """Return a function that draws ANDs and ORs of atoms, at most two deep; `leaf` and `negated` are probabilities."""

    def condition(r: random.Random, of: str = "", size: int = 2) -> str:
        if size == 0 or r.random() < leaf:
            return r.choice(atoms)(r, of)
        parts = [f"({condition(r, of, size - 1)})" for _ in range(r.randrange(1, 4))]
        joined = f" {r.choice(words)} ".join(parts)
        return f"NOT ({joined})" if r.random() < negated else joined

    return condition


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


class _Drawn:
    """A condition on $E: `{a}` is its plain form, `{a:e}` the same with the alias `e` before each column."""

    def __init__(self, condition: Condition, r: random.Random) -> None:
        self._condition, self._state = condition, r.getstate()
        self._plain = condition(r, "")

    def __format__(self, alias: str) -> str:
        if not alias:
            return self._plain
        r = random.Random()
        r.setstate(self._state)
        return f"({self._condition(r, f'{alias}.')})"


@dataclass(frozen=True)
class Shape:
    """A query with places for drawn parts; `skips`: its conditions leave rows of $E out.

    The places: `{a}` and `{b}` are conditions on $E, `{n}` is a number, `{other}` a condition on $D, `{word}` a set
    operation, and all else are names of the ground.
    """

    name: str
    sql: str
    skips: bool = True

    def __call__(self, ground: Ground, r: random.Random) -> str:
        draws: dict[str, Callable[[], object]] = {
            "a": lambda: _Drawn(ground.condition, r),
            "b": lambda: _Drawn(ground.condition, r),
            "n": lambda: r.randrange(1, ground.most),
            "other": lambda: f"({ground.other(r, 'd.')})",
            "word": lambda: r.choice(["INTERSECT", "EXCEPT", "MINUS"]),
        }
        drawn = {name: draw() for name, draw in draws.items() if f"{{{name}}}" in self.sql or f"{{{name}:" in self.sql}
        return self.sql.format(**{**asdict(ground), **drawn, "NUMBER": ground.number.upper()})


JOIN = "e.{foreign} = d.{primary}"
SHAPES = [
    # --- one table ---
    Shape("plain", "SELECT {key}, {number} FROM $E WHERE {a}"),
    Shape("star", "SELECT * FROM $E AS e WHERE {a:e}"),
    Shape("quoted_alias", "select `e`.{key}, E.{NUMBER} from $E `e` where {a:`E`}"),
    Shape("grouped", "SELECT {group}, count(*) AS n, MAX({number}) FROM $E WHERE {a} GROUP BY {group} HAVING count(*) > 1"),
    Shape("distinct", "SELECT DISTINCT {number} FROM $E WHERE {a} ORDER BY {number} LIMIT 50"),
    Shape("braces_and_comments", "SELECT /* {{t0}} */ {key}, '{{t0}} {{{{y}}}} {{0}} 😀' AS s -- {{z}}\n FROM /* $ */ $E WHERE '{{c}}' <> '' AND ({a})"),
    Shape("windowed", "SELECT {key}, count(*) OVER (PARTITION BY {group}) AS n FROM $E WHERE {a}"),
    Shape("above_a_window", "SELECT {key}, n FROM (SELECT *, count(*) OVER (PARTITION BY {group}) AS n FROM $E) WHERE {a}", skips=False),
    Shape("exploded", "SELECT {key}, x FROM $E e LATERAL VIEW explode(array(1, 2)) v AS x WHERE {a:e} AND x = 1"),
    Shape("sampled", "SELECT {key} FROM $E TABLESAMPLE (100 PERCENT) AS e WHERE {a:e}", skips=False),
    Shape("pivoted", "SELECT * FROM (SELECT {number}, 'a' AS k FROM $E WHERE {a}) PIVOT (count(*) FOR k IN ('a', 'b'))"),
    Shape("above_a_pivot", "SELECT * FROM (SELECT {number}, 'a' AS k FROM $E) PIVOT (count(*) FOR k IN ('a', 'b')) WHERE {number} < {n}", skips=False),
    # --- subqueries and names ---
    Shape("renamed", "SELECT s.y FROM (SELECT {key}, {number} FROM $E WHERE {a}) AS s(x, y) WHERE s.y < {n}"),
    Shape("swapped", "SELECT * FROM (SELECT {key} AS {number}, {number} AS {key} FROM $E) WHERE {key} < {n}"),
    Shape("limited", "SELECT * FROM (SELECT {number}, {key} FROM $E ORDER BY 1 DESC, 2 LIMIT 500) WHERE {number} < {n}", skips=False),
    Shape("group_key", "SELECT * FROM (SELECT {number}, count(*) AS n FROM $E WHERE {a} GROUP BY {number}) WHERE {number} < {n} AND n > 0"),
    Shape("rolled_up", "SELECT * FROM (SELECT {number} AS k, count(*) AS n FROM $E GROUP BY ROLLUP({number})) WHERE k < {n} OR k IS NULL", skips=False),
    Shape("cte", "WITH x AS (SELECT * FROM $E WHERE {a}) SELECT {key} FROM x WHERE {b}"),
    Shape("cte_twice", "WITH x AS (SELECT * FROM $E) SELECT 'a', {key} FROM x WHERE {a} UNION ALL SELECT 'b', {key} FROM x WHERE {b}"),
    Shape("cte_in_cte", "WITH a AS (SELECT * FROM $E WHERE {a}), b AS (SELECT * FROM a WHERE {b}) SELECT b.{key} FROM b JOIN $D d ON b.{foreign} = d.{primary}"),
    Shape("union", "SELECT {key}, 1 FROM $E WHERE {a} UNION ALL SELECT {key}, 2 FROM $E WHERE {b}"),
    Shape("above_a_union", "SELECT * FROM (SELECT {key}, {number} FROM $E UNION ALL SELECT {primary}, 0 FROM $D) WHERE {number} < {n}"),
    Shape("intersection", "SELECT {number} FROM $E WHERE {a} {word} SELECT {number} FROM $E WHERE {b}", skips=False),
    Shape("scalars", "SELECT (SELECT count(*) FROM $E WHERE {a}) AS a, (SELECT max({number}) FROM $E WHERE {b}) AS b", skips=False),
    Shape("correlated", "SELECT e.{key} FROM $E e WHERE e.{number} >= (SELECT min(i.{number}) FROM $E i WHERE i.{group} = e.{group} AND {b:i}) AND {a:e}"),
    # --- joins ---
    Shape("inner", f"SELECT e.{{key}}, d.{{label}} FROM $E e JOIN $D d ON {JOIN} WHERE {{a:e}} AND {{other}}"),
    Shape("comma", "SELECT e.{key}, d.{label} FROM $D d, $E e WHERE d.{primary} = e.{foreign} AND {a:e} AND {other}"),
    Shape("on_only", f"SELECT count(*) FROM $E e JOIN $D d ON {JOIN} AND {{a:e}}"),
    Shape("using", "SELECT {primary}, {key}, {label} FROM (SELECT {key}, {foreign} AS {primary} FROM $E WHERE {a}) JOIN $D USING ({primary})"),
    Shape("left", f"SELECT e.{{key}}, d.{{label}} FROM $E e LEFT JOIN $D d ON {JOIN} AND {{other}} WHERE {{a:e}}"),
    Shape("left_of_the_other", f"SELECT e.{{key}}, d.{{label}} FROM $D d LEFT JOIN $E e ON {JOIN} AND {{a:e}} WHERE {{other}}"),
    Shape("nullable", f"SELECT e.{{key}}, d.{{label}} FROM $D d LEFT JOIN $E e ON {JOIN} WHERE {{a:e}}", skips=False),
    Shape("nullable_or", f"SELECT e.{{key}}, d.{{label}} FROM $E e RIGHT OUTER JOIN $D d ON {JOIN} WHERE {{a:e}} OR e.{{key}} IS NULL", skips=False),
    Shape("right", f"SELECT e.{{key}}, d.{{label}} FROM $E e RIGHT JOIN $D d ON {JOIN} AND {{a:e}}"),
    Shape("full", f"SELECT e.{{key}}, d.{{label}} FROM $E e FULL JOIN $D d ON {JOIN} AND {{a:e}} WHERE {{other}}", skips=False),
    Shape("exists", "SELECT e.{key} FROM $E e WHERE {a:e} AND EXISTS (SELECT 1 FROM $D d WHERE d.{primary} = e.{foreign} AND {other})"),
    Shape("not_exists", f"SELECT d.{{primary}} FROM $D d WHERE {{other}} AND NOT EXISTS (SELECT * FROM $E e WHERE {JOIN} AND {{a:e}})"),
    Shape("is_in", "SELECT d.{label} FROM $D d WHERE d.{primary} IN (SELECT {foreign} FROM $E WHERE {a})"),
    Shape("is_not_in", "SELECT d.{label} FROM $D d WHERE {other} AND d.{primary} NOT IN (SELECT {foreign} FROM $E WHERE {a})"),
    Shape("semi", f"SELECT e.{{key}} FROM $E e LEFT SEMI JOIN $D d ON {JOIN} AND {{other}} WHERE {{a:e}}"),
    Shape("anti", f"SELECT d.{{label}} FROM $D d LEFT ANTI JOIN $E e ON {JOIN} AND {{a:e}} WHERE {{other}}"),
    Shape("with_itself", "SELECT a.{key}, b.{number} FROM $E a JOIN $E b ON a.{key} = b.{key} + 1 WHERE {a:a} AND {b:b}"),
    Shape("lateral", f"SELECT d.{{primary}}, m FROM $D d, LATERAL (SELECT max(e.{{number}}) AS m FROM $E e WHERE {JOIN} AND {{a:e}}) WHERE {{other}}", skips=False),
]  # fmt: skip
