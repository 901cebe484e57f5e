"""Random tables, predicates, blocks and layouts from one `random.Random`: the same seed, the same case.

Values are few and collide often, and literals are drawn near them, so that every comparison is a close call.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.curve import Axis, CurveLayout
from hedgerow.core.layouts.feature_groups import GroupLayout
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.predicates.nodes import (
    And,
    Column,
    Compare,
    CompareTerms,
    Const,
    Expr,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Predicate,
    Prefix,
    Term,
    atoms_of,
    lit,
)
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.row_truth import truth
from hedgerow.core.predicates.sql_text import predicate_text, term_text
from hedgerow.core.predicates.values import NAN, canonical

OPS = ("=", "<>", "<", "<=", ">", ">=")
KINDS = ("int", "decimal", "float", "string", "boolean", "binary", "date", "timestamp", "timestamp_ntz")
LAYOUTS = ("tree", "range", "z", "snake", "hilbert", "group", "overlap")
BIT = {False: 1, True: 2, None: 4}

_DAY = 86_400_000_000
_SPECIAL: dict[str, list[Any]] = {
    "int": [0, 1, -1, 7, 10, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)],
    "decimal": [Decimal(v) for v in ("0", "0.01", "-0.01", "1", "-1.5", "99.99", "12345678901234567890.12")],
    "float": [0.0, -0.0, 1.0, -2.5, 0.1, 1e308, 5e-324, math.inf, -math.inf, math.nan],
    "string": [
        *("", "a", "ab", "abc", "b", "é", "日本", "\uffff", "😀", "\ud7ff", "\U0010ffff", "a\U0010ffff"),
        *("it's", "back\\slash", '"', "100%", "a_", " ", "tab\t", "line\nfeed", "x" * 300, "x" * 300 + "y"),
    ],
    "boolean": [False, True],
    "binary": [b"", b"\x00", b"\x00\x00", b"a", b"ab", b"\x7f", b"\x80", b"\xff", b"\xff\xff"],
    # the ends of the years 1 and 9999, and years far outside of them
    "date": [0, -1, 59, 19_000, -141_428, -719_162, -719_163, 2_932_896, 2_932_897, 10**8, -(10**8)],
    "timestamp": [0, -1, 1, 10**15, -(10**16), _DAY, 2_932_897 * _DAY, -719_163 * _DAY, 9 * 10**18, -9 * 10**18],
}
_SPECIAL["timestamp_ntz"] = _SPECIAL["timestamp"]
_ARROW = {
    "int": pa.int64(),
    "decimal": pa.decimal128(24, 4),
    "float": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_NAMES = ("a", "B", "select", "two words", "dot.ted", "tick`ed", "ünï")


@dataclass(frozen=True)
class Table:
    """The same rows twice: as Arrow columns, and as what `truth` reads."""

    columns: dict[Term, pa.Array]
    rows: list[dict[str, Any]]
    kinds: dict[Term, str]
    near: dict[str, list[Any]]  # per kind, the values that occur
    opaque: tuple[Like, ...]

    def __len__(self) -> int:
        return len(self.rows)


def bits(p: Predicate, table: Table) -> npt.NDArray[np.uint8]:
    """The outcome bit of each row, by the slow reference."""
    return np.array([BIT[truth(p, row)] for row in table.rows], np.uint8)


def seen(row_bits: npt.NDArray[np.uint8], entry: npt.NDArray[np.int64], entries: int) -> npt.NDArray[np.uint8]:
    """The outcomes that really occur in each entry."""
    found = np.zeros(entries, np.uint8)
    np.bitwise_or.at(found, entry, row_bits)
    return found


# --- tables ---------------------------------------------------------------------------------------


def a_value(random: Random, kind: str) -> Any:
    """A value as Arrow takes it, so -0.0 and NaN are plain floats here."""
    if random.random() < 0.4:
        return random.choice(_SPECIAL[kind])
    match kind:
        case "int":
            return random.randint(-6, 6)
        case "decimal":
            return Decimal(random.randint(-300, 300)).scaleb(-random.choice((0, 1, 2, 4)))
        case "float":
            return random.choice((random.randint(-4, 4) / 2, random.uniform(-3, 3)))
        case "string":
            return "".join(random.choices("ab\U0001f600", k=random.randint(0, 3)))
        case "binary":
            return bytes(random.choices((0, 97, 255), k=random.randint(0, 3)))
        case "boolean":
            return random.random() < 0.5
        case "date":
            return random.randint(19_000, 19_010)
    return random.randint(0, 6) * (_DAY // 2)


def a_table(random: Random, most_rows: int = 12, kinds: Sequence[str] = KINDS, plain: bool = False) -> Table:
    """Columns of some kinds, and two predicates that only Spark could evaluate; plain: no fields of structs, no f(x)."""
    names = iter(random.sample(_NAMES, 6))
    of: dict[Term, str] = {}
    near: dict[str, list[Any]] = {}
    for kind in random.sample(kinds, min(len(kinds), random.randint(1, 3))):
        near[kind] = [a_value(random, kind) for _ in range(random.randint(1, 5))]
        for _ in range(random.randint(1, 2)):
            of[Column((next(names),)) if plain else _a_term(random, next(names))] = kind
    opaque = tuple(Like(Column((column,)), f"%{i}%") for i, column in enumerate("st"))
    return some_rows(random, Table({}, [], of, near, opaque), most_rows)


def some_rows(random: Random, table: Table, most_rows: int = 12) -> Table:
    """Other rows with the columns of the table."""
    n = random.randint(1, most_rows)
    columns: dict[Term, pa.Array] = {}
    values: dict[str, list[Any]] = {}
    for term, kind in table.kinds.items():
        nulls = random.choice((0.0, 0.0, 0.2, 0.2, 1.0))
        raw = [None if random.random() < nulls else random.choice(table.near[kind]) for _ in range(n)]
        columns[term] = arrow(kind, raw)
        values[term_text(term)] = [None if v is None else canonical(kind, v) for v in raw]
    for p in table.opaque:
        outcomes = random.choice(((True, False, None), (True, False), (False,), (False, None), (True,)))
        values[predicate_text(p)] = [random.choice(outcomes) for _ in range(n)]
    rows = [{k: v[i] for k, v in values.items()} for i in range(n)]
    return Table(columns, rows, table.kinds, table.near, table.opaque)


def _a_term(random: Random, name: str) -> Term:
    column = Column((name,))
    match random.randrange(8):
        case 0:
            return Expr(f"f({term_text(column)})", (column,))
        case 1:
            return Column(("outer", name))
    return column


def arrow(kind: str, raw: Sequence[Any]) -> pa.Array:
    """Dates and timestamps are given as numbers: Python's own types end at the year 9999."""
    if kind == "date":
        return pa.array(raw, pa.int32()).cast(_ARROW[kind])
    if kind in ("timestamp", "timestamp_ntz"):
        return pa.array(raw, pa.int64()).cast(_ARROW[kind])
    found = pa.array(raw, _ARROW[kind])
    return found.dictionary_encode() if kind == "string" and len(raw) % 3 == 0 else found


# --- predicates -----------------------------------------------------------------------------------


def a_literal(random: Random, table: Table, kind: str) -> Literal:
    """A value of the table, or one right beside it."""
    value = random.choice(table.near[kind]) if random.random() < 0.8 else a_value(random, kind)
    match kind:
        case "int" | "date" | "timestamp" | "timestamp_ntz":
            value += random.choice((-1, 0, 0, 1))
        case "decimal":
            value += random.choice((0, 0, 1, -1)) * Decimal(random.choice(("0.0001", "0.00001")))
        case "float":
            value = random.choice((value, value, math.nextafter(value, -math.inf), math.nextafter(value, math.inf)))
        case "string":
            value = random.choice((value, value, value[:-1], value + "a", value + "\U0010ffff"))
        case "binary":
            value = random.choice((value, value, value[:-1], value + b"\x00"))
    return lit(value, kind)


def an_atom(random: Random, table: Table) -> Predicate:
    if random.random() < 0.1:
        given: list[Predicate] = [*table.opaque, Const(True), Const(False), Const(None)]
        return random.choice(given)
    term = random.choice(list(table.kinds))
    kind = table.kinds[term]
    same = [t for t, k in table.kinds.items() if k == kind]
    match random.randrange(8):
        case 0:
            return IsNull(term)
        case 1:
            return In(term, tuple(a_literal(random, table, kind) for _ in range(random.randint(0, 4))))
        case 2 if kind == "string":
            value = a_literal(random, table, kind).value
            return Prefix(term, value[: random.randint(0, min(3, len(value)))])
        case 3 | 4 if len(same) > 1:
            return CompareTerms(term, random.choice(OPS), random.choice(same))
    return Compare(term, random.choice(OPS), a_literal(random, table, kind))


def a_predicate(random: Random, table: Table, depth: int = 3) -> Predicate:
    if depth == 0 or random.random() < 0.3:
        return an_atom(random, table)
    match random.randrange(5):
        case 0:
            return Not(a_predicate(random, table, depth - 1))
        case 1 | 2:
            return And(tuple(a_predicate(random, table, depth - 1) for _ in range(random.randint(1, 3))))
    return Or(tuple(a_predicate(random, table, depth - 1) for _ in range(random.randint(1, 3))))


def related(random: Random, table: Table, p: Predicate) -> Predicate:
    """A predicate that may imply `p` or an atom of it, or follow from it, or exclude it."""
    near = random.choice([p, *atoms_of(p)])
    match near, random.randrange(4):
        case Compare(term, _, literal), 0 | 1:
            moved = random.choice((literal, a_literal(random, table, literal.kind)))
            near = Compare(term, random.choice(OPS), moved)
        case In(term, literals), 0 | 1 if literals:
            near = In(term, tuple(random.sample(literals, random.randint(1, len(literals)))))
        case Prefix(term, prefix), 0 | 1:
            near = Prefix(term, random.choice((prefix[:-1], prefix + "a")))
        case CompareTerms(left, _, right), 0 | 1:
            near = CompareTerms(*random.choice(((left, random.choice(OPS), right), (right, random.choice(OPS), left))))
        case _, 2:
            other = an_atom(random, table)
            near = And((near, other)) if random.random() < 0.5 else Or((near, other))
    return Not(near) if random.random() < 0.3 else near


def shuffled(random: Random, p: Predicate) -> Predicate:
    """The same predicate with siblings in another order, some of them twice."""
    match p:
        case And(kids) | Or(kids):
            again = [shuffled(random, k) for k in kids]
            again += random.sample(again, random.randint(0, len(again)))
            random.shuffle(again)
            return type(p)(tuple(again))
        case Not(kid):
            return Not(shuffled(random, kid))
    return p


# --- blocks ---------------------------------------------------------------------------------------


def some_blocks(random: Random, rows: int) -> tuple[npt.NDArray[np.int64], int]:
    """The block of each row and how many blocks there are; some stay empty."""
    n = random.randint(1, 5)
    used = random.sample(range(n), random.randint(1, n))
    return np.array([random.choice(used) for _ in range(rows)], np.int64), n


# --- layouts --------------------------------------------------------------------------------------


def a_tree(random: Random, table: Table) -> TreeLayout:
    """A tree that grew by splitting random leaves; some leaves share a block."""
    cuts = tuple(dict.fromkeys(normalise(a_predicate(random, table, depth=1)) for _ in range(4)))
    leaves = 1
    nodes: list[list[int]] = []
    for _ in range(random.randint(0, 6)):
        open_ends = [(node, side) for node in nodes for side in (1, 2) if node[side] < 0]
        if open_ends:
            parent, side = random.choice(open_ends)
            parent[side] = len(nodes)
        nodes.append([random.randrange(len(cuts)), ~(leaves - 1), ~leaves])
        leaves += 1
    blocks = [random.randrange(leaves) for _ in range(leaves)]
    placed = [(cut, *(k if k >= 0 else ~blocks[~k] for k in kids)) for cut, *kids in nodes]
    return TreeLayout(cuts, tuple((cut, left, right) for cut, left, right in placed))


def a_curve(random: Random, table: Table, curve: str) -> CurveLayout:
    """`range` sorts by one term after the other, `z` and `snake` shuffle their bits, `hilbert` needs as many of each."""
    terms = random.sample(list(table.kinds), random.randint(1, min(3, len(table.kinds))))
    axes = []
    for term in terms:
        kind = table.kinds[term]
        values = {a_literal(random, table, kind).value for _ in range(random.randint(0, 6))} - {NAN}
        axes.append(Axis(term, kind, tuple(sorted(values))))
    most = max(axis.bits for axis in axes)
    pattern = [i for i, axis in enumerate(axes) for _ in range(axis.bits)]
    if curve in ("z", "snake"):
        random.shuffle(pattern)
    if curve == "hilbert":
        pattern = [i for _ in range(most) for i in range(len(axes))]
    bounds = sorted(random.sample(range(1, 1 << len(pattern)), min(4, (1 << len(pattern)) - 1)))
    return CurveLayout(tuple(axes), tuple(pattern), tuple(bounds), curve if curve in ("snake", "hilbert") else "bits")


def a_group(random: Random, table: Table) -> GroupLayout:
    """Some vectors have a block, the others were never seen."""
    predicates = tuple(dict.fromkeys(normalise(a_predicate(random, table, depth=1)) for _ in range(3)))
    vectors = [f"{v:0{len(predicates)}b}" for v in range(1 << len(predicates))]
    known = random.sample(vectors, random.randint(1, len(vectors)))
    return GroupLayout(predicates, {v: random.randrange(3) for v in known})


def an_overlap(random: Random, table: Table) -> OverlapLayout:
    """Any leaf may live anywhere and be copied anywhere, where a learner would be choosy."""
    tree = a_tree(random, table)
    home = [random.randrange(4) if tree.nodes else 0 for _ in range(tree.blocks)]
    others = [[b for b in range(max(home) + 1) if b != h] for h in home]
    copies = [random.sample(blocks, random.randint(0, len(blocks))) for blocks in others]
    return OverlapLayout(tree, tuple(home), tuple(map(tuple, copies)))


def a_layout(random: Random, table: Table, kind: str) -> Layout:
    match kind:
        case "tree":
            return a_tree(random, table)
        case "range" | "z" | "snake" | "hilbert":
            return a_curve(random, table, kind)
        case "group":
            return a_group(random, table)
    return an_overlap(random, table)


def seeds(first: int, count: int) -> Iterator[Random]:
    return (Random(first + i) for i in range(count))
