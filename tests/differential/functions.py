"""Functions of users for random tables: as lines of Python that register and declare them, also as other functions."""

from __future__ import annotations

from random import Random

# By name: the function, another one for the same name, and the type of the result. None takes dates: Python has no year
# 10000, and a function that fails on one row fails with all conditions of its query.
PYTHON = {
    "u_int": ("lambda x: None if x is None or x % 5 == 0 else x % 7", "lambda x: None if x is None else x % 3", "int"),
    "u_size": ("lambda s: None if s is None else len(s)", "lambda s: 1", "int"),
    "u_bool": ("lambda s: None if not s else s < 'b'", "lambda s: s is None", "boolean"),
    "u_text": ("lambda x: None if x is None else 'aAb'[x % 3]", "lambda x: 'b1' if x is None else None", "string"),
    "u_float": ("lambda x: x and x * -2.0", "lambda x: x and x / 2", "double"),
}
# By name: the parameter, the result, its value, and another value.
SQL = {
    "s_int": ("n BIGINT", "BIGINT", "IF(n % 3 = 0, NULL, n % 5)", "n % 2"),
    "s_text": ("s STRING", "STRING", "upper(trim(s))", "concat(s, 'x')"),
    "s_bool": ("d DATE", "BOOLEAN", "month(d) = 2", "year(d) > 2000"),
}
TERMS = (
    *(("u_int({int})", "int"), ("u_size({string})", "int"), ("u_bool({string})", "bool"), ("u_text({int})", "string")),
    *(("u_float({float})", "float"), ("u_int(u_size({string}))", "int")),
    *(("s_int({int})", "int"), ("s_text({string})", "string"), ("s_bool({date})", "bool"), ("u_int(s_int({int}))", "int")),
)  # fmt: skip


def registered(names: tuple[str, ...] = (*PYTHON, *SQL), others: bool = False) -> list[str]:
    """The lines that register the functions in all sessions, or other functions of these names."""
    lines = []
    for name in names:
        if name in PYTHON:
            value = PYTHON[name][others]
            lines.append(f"s.udf.register({name!r}, {value}, {PYTHON[name][2]!r})")
        else:
            parameter, result, *values = SQL[name]
            signature = f"{name}({parameter}) RETURNS {result} RETURN {values[others]}"
            lines.append(f's.sql("CREATE OR REPLACE TEMPORARY FUNCTION {signature}")')
    return [f"for s in (plain, attached, spark): {line}" for line in lines]


def declared(names: tuple[str, ...] = (*PYTHON, *SQL), version: str = "1") -> list[str]:
    """The lines that declare the functions in the sessions that know of Hedgerow."""
    return [f"for s in (attached, spark): [hr.stable(name, {version!r}, s) for name in {names!r}]"]


def some_change(random: Random) -> tuple[str, ...]:
    """The lines of a phase: the functions of the index, or some of their names for others, declared or not."""
    names = tuple(name for name in (*PYTHON, *SQL) if random.random() < 0.6)
    change = random.choice(("none", "none", "undeclared", "another", "anew"))
    more = {
        "none": [],
        "undeclared": registered(names, others=True),
        "another": [*registered(names, others=True), *declared(names, "2")],
        "anew": [*registered(names), *declared(names)],
    }[change]
    return (*registered(), *declared(), *more)
